package compile

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// toBeDeletedTaint is what the cluster autoscaler puts on a Node before it removes it.
const toBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// node is a Node that may take requests.
type node struct {
	name    string
	address string
}

// nodesFor returns the Nodes that carry NodePorts in an address family, sorted by name. A control plane that lost sight of all its
// Nodes at once proves nothing about them: then all stay.
func (in *input) nodesFor(family corev1.IPFamily) []node {
	kind := corev1.NodeInternalIP
	if in.Config != nil && in.Config.Spec.NodeAddressType == v1alpha1.NodeExternalIP {
		kind = corev1.NodeExternalIP
	}
	selector := in.nodeSelector()
	var usable, all []node
	for _, o := range in.Nodes {
		if o == nil || excluded(o) || !selector.Matches(labels.Set(o.Labels)) {
			continue
		}
		address, found := nodeAddress(o, kind, family)
		if !found {
			continue
		}
		n := node{name: o.Name, address: address}
		all = append(all, n)
		if carriesTraffic(o) {
			usable = append(usable, n)
		}
	}
	if len(usable) == 0 {
		usable = all
	}
	slices.SortFunc(usable, func(a, b node) int { return strings.Compare(a.name, b.name) })
	return usable
}

// excluded says whether a Node takes no requests whatever its condition.
func excluded(o *corev1.Node) bool {
	if _, labelled := o.Labels[corev1.LabelNodeExcludeBalancers]; labelled || o.DeletionTimestamp != nil {
		return true
	}
	return slices.ContainsFunc(o.Spec.Taints, func(t corev1.Taint) bool { return t.Key == toBeDeletedTaint })
}

// carriesTraffic says whether a Node was ready once and its network is not known to be down. A Node that stopped being ready
// stays: the health monitor knows better than the control plane whether it answers.
func carriesTraffic(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		switch c.Status {
		case corev1.ConditionTrue:
			return true
		case corev1.ConditionFalse, corev1.ConditionUnknown:
			return wasReady(o, c) && !networkUnavailable(o)
		}
	}
	return false
}

// wasReady tells a Node that lost its readiness from one that never had it. A new Node reports NotReady within seconds of its
// creation, and the condition keeps that time until the Node becomes ready.
func wasReady(o *corev1.Node, ready corev1.NodeCondition) bool {
	const registration = time.Minute
	if ready.Reason == "NodeStatusNeverUpdated" {
		return false
	}
	return ready.LastTransitionTime.After(o.CreationTimestamp.Add(registration))
}

func networkUnavailable(o *corev1.Node) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue
	})
}

// nodeAddress is the first address of a type and family.
func nodeAddress(o *corev1.Node, kind corev1.NodeAddressType, family corev1.IPFamily) (string, bool) {
	for _, a := range o.Status.Addresses {
		if a.Type != kind {
			continue
		}
		if address, err := netip.ParseAddr(a.Address); err == nil && familyOf(address) == family {
			return address.Unmap().String(), true
		}
	}
	return "", false
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Unmap().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// family is the address family in which a Service is reached: that of the VIP when the Service has it, else the Service's own first.
func (in *input) family(service *corev1.Service) corev1.IPFamily {
	wanted := corev1.IPv4Protocol
	if prefix, err := netip.ParsePrefix(in.Facts.VIPSubnet.CIDR); err == nil {
		wanted = familyOf(prefix.Addr())
	}
	if families := service.Spec.IPFamilies; len(families) > 0 && !slices.Contains(families, wanted) {
		return families[0]
	}
	return wanted
}
