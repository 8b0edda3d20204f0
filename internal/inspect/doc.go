// Package inspect is what kubectl-octavia does: it looks at Kubernetes and at OpenStack and tells what it sees. It changes nothing,
// but for probe --create, which deletes what it made.
//
// Every command makes the same steps as the controller, with the same packages: kube.Still gives the snapshot, compile the wanted tree,
// cloud.Observe the tree that is there, plan the difference, route what a request gets. command.go has the flags that all commands share,
// connect.go the way to the cluster and the cloud, view.go one Gateway from all sides; each other file is one command or one form of output.
//
// A command gives its result as a value first; text, JSON and YAML print that value. Names and messages of others are made printable before a
// terminal sees them, and no value holds a secret.
package inspect
