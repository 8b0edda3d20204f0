package compile

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// podEndpoints are the addresses behind a Service port: the ready ones, or when none is ready those that still serve while they
// terminate. EndpointSlices have the numbers of named target ports already, and are all there is of a Service without selector.
func (in *input) podEndpoints(service *corev1.Service, port corev1.ServicePort) []endpoint {
	var ready, leaving []endpoint
	in.eachEndpoint(service, port, func(e discoveryv1.Endpoint, number int32) {
		address, ok := usableAddress(e)
		if !ok {
			return
		}
		found := endpoint{address: address, port: number, name: address}
		if e.TargetRef != nil && e.TargetRef.Name != "" {
			found.name = e.TargetRef.Name
		}
		switch {
		case isReady(e):
			ready = append(ready, found)
		case stillServes(e):
			leaving = append(leaving, found)
		}
	})
	if len(ready) == 0 {
		return leaving
	}
	return ready
}

// localNodes are the names of the Nodes with an endpoint of the Service port, by the same rule.
func (in *input) localNodes(service *corev1.Service, port corev1.ServicePort) map[string]bool {
	ready, leaving := map[string]bool{}, map[string]bool{}
	in.eachEndpoint(service, port, func(e discoveryv1.Endpoint, _ int32) {
		switch {
		case e.NodeName == nil:
		case isReady(e):
			ready[*e.NodeName] = true
		case stillServes(e):
			leaving[*e.NodeName] = true
		}
	})
	if len(ready) == 0 {
		return leaving
	}
	return ready
}

// eachEndpoint visits the endpoints of a Service port in the family in which the Service is reached.
func (in *input) eachEndpoint(service *corev1.Service, port corev1.ServicePort, visit func(discoveryv1.Endpoint, int32)) {
	wanted := discoveryv1.AddressType(in.family(service))
	for _, s := range in.slices[name{service.Namespace, service.Name}] {
		if s.AddressType != wanted || s.DeletionTimestamp != nil {
			continue
		}
		for _, p := range s.Ports {
			if ptr.Deref(p.Name, "") != port.Name || p.Port == nil || *p.Port < 1 || *p.Port > 65535 || ptr.Deref(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
				continue
			}
			for _, e := range s.Endpoints {
				visit(e, *p.Port)
			}
		}
	}
}

// isReady takes an unknown state as ready, as the EndpointSlice API asks for.
func isReady(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Conditions.Ready, true) }

func stillServes(e discoveryv1.Endpoint) bool {
	return ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false)
}

// usableAddress is the address of an endpoint, unless it would lead the load balancer to itself or to its own link: whoever may
// write EndpointSlices must not reach what listens there.
func usableAddress(e discoveryv1.Endpoint) (string, bool) {
	if len(e.Addresses) == 0 {
		return "", false
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || address.Zone() != "" {
		return "", false
	}
	address = address.Unmap()
	if address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified() {
		return "", false
	}
	return address.String(), true
}

// localService says whether a Service's node port answers only on Nodes with an endpoint.
func localService(service *corev1.Service) bool {
	return service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// distinct sorts endpoints and leaves out repeated ones.
func distinct(list []endpoint) []endpoint {
	slices.SortFunc(list, func(a, b endpoint) int {
		if c := compareEndpoints(a, b); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return slices.CompactFunc(list, func(a, b endpoint) bool { return compareEndpoints(a, b) == 0 })
}
