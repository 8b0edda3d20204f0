// Package status turns verdicts, the observed load balancer and the outcome of a pass into the statuses that users read.
//
// The *_conditions.go files, gateway.go and class.go hold the constructors of conditions: all sentences are there. For puts
// them together. What compile says about an object comes from a Verdict; what only the cloud can tell (Programmed,
// addresses) is added here.
//
// The package is pure. It never reads earlier conditions, but for the two cases that For names, and it sets no times: whoever
// writes a status keeps lastTransitionTime when nothing changed.
package status
