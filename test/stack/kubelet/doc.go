// Command kubelet is a process kubelet: it makes one real Kubernetes Node out
// of a network namespace, without a container runtime and without images.
//
// It runs inside the namespace of its node. For each Pod bound to the node it
// makes a network namespace with the Pod's address, and for each container a
// process in mount, pid, uts and ipc namespaces of its own whose root holds
// the static binary that stands for the image, the Pod's volumes and little
// else. Environment, Secrets, ConfigMaps, service account tokens, probes,
// restarts, graceful termination, logs, leases and eviction behave as users
// know them; what is not supported (exec, port-forward, other volume types)
// is refused in the Pod's status with a sentence that says so.
//
// It is test equipment: everything it starts dies with it, and it trusts the
// API server that it is given.
package main
