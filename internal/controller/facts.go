package controller

import (
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// FactsRequest is what has to be known of the cloud for a class.
func FactsRequest(config *v1alpha1.OpenStackGatewayClassConfig) cloud.FactsRequest {
	spec := &config.Spec
	r := cloud.FactsRequest{
		VIPSubnet:            selector(spec.VIPSubnet),
		VIPNetwork:           selector(spec.VIPNetwork),
		AdditionalVIPSubnets: selectors(spec.AdditionalVIPSubnets),
		MemberSubnet:         selector(spec.MemberSubnet),
		FloatingNetwork:      selector(spec.FloatingNetwork),
		VIPSecurityGroups:    selectors(spec.VIPSecurityGroups),
		AvailabilityZone:     spec.AvailabilityZone,
		AllowedCIDRs:         spec.AllowedCIDRs,
	}
	if f := spec.Flavor; f != nil {
		r.Flavor = lb.Selector{ID: f.ID, Name: f.Name}
	}
	if t := spec.TLS; t != nil {
		r.TLSVersions, r.TLSCiphers = len(t.Versions) > 0, len(t.Ciphers) > 0
	}
	return r
}

func selector(s *v1alpha1.Selector) lb.Selector {
	if s == nil {
		return lb.Selector{}
	}
	return lb.Selector{ID: s.ID, Name: s.Name, Tags: s.Tags, Only: s.Discovery == v1alpha1.DiscoveryOnly}
}

func selectors(list []v1alpha1.Selector) []lb.Selector {
	out := make([]lb.Selector, 0, len(list))
	for i := range list {
		out = append(out, selector(&list[i]))
	}
	return out
}
