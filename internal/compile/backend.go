package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// backend is a Service port that requests can be sent to.
type backend struct {
	service name
	port    int32
	// endpoints are distinct and sorted.
	endpoints []endpoint
	// check is the port on which kube-proxy says whether a Node has an endpoint of the Service; 0 when there is none.
	check int32
	// policy is the OpenStackBackendPolicy for the port; nil when there is none.
	policy *backendPolicy
	// answers is the port of the responder's Pods, 0 for backends of users.
	answers int
}

func (b *backend) String() string {
	if b.answers != 0 {
		return fmt.Sprintf("responder:%d", b.answers)
	}
	return fmt.Sprintf("%s:%d", b.service, b.port)
}

// endpoint is one address of a backend.
type endpoint struct {
	address string
	port    int32
	name    string
	check   int32
}

func compareEndpoints(a, b endpoint) int {
	return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(a.port, b.port))
}

// problem makes a message of where the reference stands.
type problem func(where string) status.RouteBackendProblem

// resolution is what a Service port came to: one of the two is set.
type resolution struct {
	backend *backend
	problem problem
}

// backends resolves backendRefs, each Service port once.
type backends struct {
	in       *input
	policies *policies
	known    map[string]resolution
	nodes    map[corev1.IPFamily][]node
}

func newBackends(in *input, policies *policies) *backends {
	return &backends{in: in, policies: policies, known: map[string]resolution{}, nodes: map[corev1.IPFamily][]node{}}
}

// serviceOf is the Service that a backendRef names; false when it names something else.
func serviceOf(routeNamespace string, ref gwv1.BackendObjectReference) (name, bool) {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return name{}, false
	}
	service := name{routeNamespace, string(ref.Name)}
	if ref.Namespace != nil {
		service.namespace = string(*ref.Namespace)
	}
	return service, true
}

// resolve finds what a backendRef of an HTTPRoute means.
func (b *backends) resolve(routeNamespace string, ref gwv1.BackendObjectReference) (*backend, problem) {
	service, ok := serviceOf(routeNamespace, ref)
	if !ok {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendInvalidKind(where, string(ptr.Deref(ref.Group, "")), string(ptr.Deref(ref.Kind, "Service")))
		}
	}
	// Whether a Service of another namespace exists is told only to those who may use it.
	if !b.in.granted(routeToService(routeNamespace, service.namespace, service.name)) {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendRefNotPermitted(where, service.String(), service.namespace)
		}
	}
	if ref.Port == nil {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendWithoutPort(where, service.String())
		}
	}
	key := fmt.Sprintf("%s:%d", service, *ref.Port)
	found, ok := b.known[key]
	if !ok {
		var policy *backendPolicy
		if policy, found.problem = b.policies.apply(service, *ref.Port); found.problem == nil {
			found.backend, found.problem = b.find(service, *ref.Port, policy)
		}
		b.known[key] = found
	}
	return found.backend, found.problem
}

func (b *backends) find(id name, number int32, policy *backendPolicy) (*backend, problem) {
	service := b.in.services[id]
	if service == nil || service.DeletionTimestamp != nil {
		return nil, func(where string) status.RouteBackendProblem { return status.BackendNotFound(where, id.String()) }
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, func(where string) status.RouteBackendProblem { return status.BackendExternalName(where, id.String()) }
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	if i < 0 {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendPortNotFound(where, id.String(), number)
		}
	}
	port := service.Spec.Ports[i]
	found := &backend{service: id, port: number, policy: policy}
	if protocol := unsupportedProtocol(port, found.tls()); protocol != "" {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendUnsupportedProtocol(where, id.String(), number, protocol)
		}
	}
	if b.in.podMode() {
		found.endpoints = distinct(b.in.podEndpoints(service, port))
		return found, nil
	}
	if port.NodePort <= 0 || port.NodePort > 65535 {
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendWithoutNodePort(where, id.String(), number)
		}
	}
	local := localService(service)
	if check := service.Spec.HealthCheckNodePort; local && check > 0 && check <= 65535 {
		found.check = check
	}
	var with map[string]bool
	if local {
		with = b.in.localNodes(service, port)
	}
	for _, n := range b.nodesFor(b.in.family(service)) {
		if !local || with[n.name] {
			found.endpoints = append(found.endpoints, endpoint{address: n.address, port: port.NodePort, name: n.name, check: found.check})
		}
	}
	found.endpoints = distinct(found.endpoints)
	return found, nil
}

// podMode says whether the class sends requests to Pods and not through Nodes.
func (in *input) podMode() bool {
	return in.Config != nil && in.Config.Spec.MemberMode == v1alpha1.MemberModePodIP
}

func (b *backends) nodesFor(family corev1.IPFamily) []node {
	nodes, ok := b.nodes[family]
	if !ok {
		nodes = b.in.nodesFor(family)
		b.nodes[family] = nodes
	}
	return nodes
}

// unsupportedProtocol names the protocol of a port that an HTTP/1.1 pool cannot speak; "" when it can. With HTTP inside TLS a policy must say
// how the backend is verified.
func unsupportedProtocol(port corev1.ServicePort, tls *backendTLS) string {
	if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
		return string(port.Protocol)
	}
	if port.AppProtocol == nil {
		return ""
	}
	switch *port.AppProtocol {
	case "", "http", "kubernetes.io/ws":
		return ""
	case "https", "kubernetes.io/wss":
		if tls != nil {
			return ""
		}
		return *port.AppProtocol
	case "kubernetes.io/h2c", "grpc", "tcp", "tls":
		return *port.AppProtocol
	}
	// Others are hints for other software.
	return ""
}
