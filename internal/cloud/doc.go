// Package cloud is all I/O with OpenStack: Octavia, Neutron, and Keystone below them.
//
// Facts resolves the selectors of a class, Observe reads one Gateway's load balancer into an lb.Tree, Do makes the one
// call of a plan.Step, and Apply runs a plan within a slice of time, waiting for Octavia between the steps. Nothing
// that correctness needs is remembered here: whoever is in doubt observes again.
//
// Requests go through gophercloud for tokens and the catalog, and through one transport that keeps the process inside
// its request budget and measures every call. Bodies are our own maps, because gophercloud's options cannot say all
// that is needed: a redirect pool by name, an empty tag list, tag filters on policies.
//
// Every error is an *Error of one Class: errors.go holds what OpenStack's answers mean.
package cloud
