package controller

import (
	"context"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// facts looks up what the class selects; known is false when the pass ends with that, and its outcome says why. A class whose selection
// became invalid gives no new load balancer. One that there is goes on with what it was made with: its members follow the Nodes and
// endpoints, so that a mistake in the class never becomes an outage.
func (r *GatewayReconciler) facts(ctx context.Context, p *pass) (facts lb.Facts, known bool) {
	p.status.Fault = ""
	facts, err := r.Cloud.Facts(ctx, FactsRequest(p.snapshot.Config))
	if err == nil {
		return facts, true
	}
	p.outcome = outcomeOf(err)
	if cloud.ReasonOf(err) != cloud.ReasonSelector {
		return lb.Facts{}, false
	}
	have, _, lookErr := r.observe(ctx, p, nil)
	switch {
	case lookErr != nil && !cloud.OfCertificates(lookErr):
		p.outcome = outcomeOf(lookErr)
		return lb.Facts{}, false
	case have.Empty():
		return lb.Facts{}, false
	case have.ProvisioningStatus.Pending():
		p.status.Have, p.outcome = have, pendingAfter(pauseWait, atWork)
		return lb.Facts{}, false
	}
	capabilities, lookErr := r.Cloud.Preflight(ctx)
	if lookErr != nil {
		p.outcome = outcomeOf(lookErr)
		return lb.Facts{}, false
	}
	p.status.Fault = p.outcome.Message
	return lb.Recorded(have, capabilities.Facts()), true
}

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
