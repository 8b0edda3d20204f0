package compile

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodeAddress_takesTheFamilyAsked(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "not an address"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
		{Type: corev1.NodeInternalIP, Address: "fd00::1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
	}}}
	if got, _ := nodeAddress(n, corev1.NodeInternalIP, corev1.IPv4Protocol); got != "10.0.0.1" {
		t.Errorf("got %s", got)
	}
	if got, _ := nodeAddress(n, corev1.NodeInternalIP, corev1.IPv6Protocol); got != "fd00::1" {
		t.Errorf("got %s", got)
	}
	if _, ok := nodeAddress(n, corev1.NodeExternalIP, corev1.IPv6Protocol); ok {
		t.Error("found an address that is not there")
	}
}
