// Command demo shows the controller at work, on a real Kubernetes API and an embedded OpenStack, with nothing but Go: no root, no
// network but loopback. "make demo" builds what it needs and runs it (hack/demo.sh).
//
// It starts etcd, kube-apiserver, the simulator of internal/sim with its data plane, and the controller's own binary with flags and a
// clouds.yaml, as users run it. There is no kubelet, no kube-proxy and no controller manager: nodes.go plays what of them is needed.
// story.go is what happens then. Every expectation is checked: the exit status is 0 only when all of them held.
//
// Everything that was started is stopped again, however the demo ends (process.go).
package main
