package plan

import (
	"fmt"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// loadBalancerKey is the key of the one load balancer.
const loadBalancerKey = "loadbalancer"

func loadBalancerRef(t *lb.Tree) Ref {
	if t.Key != "" {
		return Ref{ID: t.ID, Key: t.Key}
	}
	return Ref{ID: t.ID, Key: loadBalancerKey}
}

// build creates everything in one call: nesting works nowhere else in Octavia.
func (p *planner) build() {
	if p.reserveFloatingIP(); p.addressRefused() {
		// Nothing that would have to wait for another address.
		return
	}
	p.createSecrets()
	p.add(Step{Verb: Create, Kind: lb.KindLoadBalancer, Ref: loadBalancerRef(p.want), Tree: p.want,
		Reason: "the load balancer does not exist"})
	p.floatingIP()
	p.deleteSecrets()
}

// remove deletes everything in one call. A cascade would take foreign children with it, so with any of those what is
// ours goes one by one, and the load balancer stays.
func (p *planner) remove() {
	p.floatingIP()
	defer p.deleteSecrets()
	if p.have.Empty() {
		return
	}
	const reason = "the load balancer is no longer wanted"
	ref := loadBalancerRef(p.have)
	if len(p.have.Foreign) == 0 {
		p.add(Step{Verb: Delete, Kind: lb.KindLoadBalancer, Ref: ref, Reason: reason})
		return
	}
	for i := range p.have.Listeners {
		p.deleteListener(&p.have.Listeners[i], reason)
	}
	for i := range p.have.Pools {
		p.deletePool(&p.have.Pools[i], reason)
	}
	for _, f := range p.have.Foreign {
		p.conflict(Conflict{Kind: lb.KindLoadBalancer, Key: ref.Key, ID: f.ID, Reason: fmt.Sprintf(
			"the load balancer cannot be deleted while it holds the %s %s %q, which is not ours: delete or move it", f.Kind, f.ID, f.Name)})
	}
}

// immutable reports what only another load balancer could fulfil. That would be another address, so it is not ours to
// decide.
func (p *planner) immutable() {
	for _, f := range []struct{ name, want, have string }{
		{"VIP subnet", p.want.VIP.SubnetID, p.have.VIP.SubnetID},
		{"VIP network", p.want.VIP.NetworkID, p.have.VIP.NetworkID},
		{"VIP address", p.want.VIP.Address, p.have.VIP.Address},
		{"provider", p.want.Provider, p.have.Provider},
		{"flavor", p.want.FlavorID, p.have.FlavorID},
		{"availability zone", p.want.AvailabilityZone, p.have.AvailabilityZone},
	} {
		if f.want != "" && f.have != "" && f.want != f.have {
			p.conflict(Conflict{Kind: lb.KindLoadBalancer, Key: loadBalancerRef(p.have).Key, ID: p.have.ID, Reason: fmt.Sprintf(
				"the %s of a load balancer cannot change from %s to %s: delete the Gateway and create it again", f.name, f.have, f.want)})
		}
	}
}
