package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
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

// immutable reports what only another load balancer could fulfil and what a Gateway asks for itself.
func (p *planner) immutable() {
	remedy := fmt.Sprintf("annotate the Gateway with %s=%s to have the load balancer replaced", api.ReplaceAnnotation, p.have.ID)
	if lb.SharedVIP(p.want, p.have) != "" {
		// Another load balancer cannot have that one at the same time.
		remedy = "delete the Gateway and create it again"
	}
	refuse := func(want, have string) {
		if want != "" && have != "" && want != have {
			p.conflict(Conflict{Kind: lb.KindLoadBalancer, Key: loadBalancerRef(p.have).Key, ID: p.have.ID, Address: true, Reason: fmt.Sprintf(
				"the VIP address of a load balancer cannot change from %s to %s: %s", have, want, remedy)})
		}
	}
	refuse(p.want.VIP.Address, p.have.VIP.Address)
	for _, w := range p.want.AdditionalVIPs {
		for _, h := range p.have.AdditionalVIPs {
			if w.SubnetID == h.SubnetID {
				refuse(w.Address, h.Address)
			}
		}
	}
}

// Kept is what a load balancer has otherwise than it would be made today, and keeps, since Octavia cannot change it. Another load
// balancer would be another address, so it is not ours to decide.
type Kept struct {
	// What is the VIP subnet, the flavor and so on.
	What string `json:"what"`
	// Have is what it has, and Want what a new one would get; "" is none, or what Octavia chooses.
	Have string `json:"have"`
	Want string `json:"want"`
}

// KeptBy compares what cannot change. What nothing is asked for is not compared when Octavia has chosen it.
func KeptBy(want, have *lb.Tree) []Kept {
	if want.Empty() || have.Empty() {
		return nil
	}
	var kept []Kept
	for _, k := range []struct {
		Kept
		// chosen says that Octavia chooses where nothing is asked for.
		chosen bool
	}{
		{Kept{"VIP network", have.VIP.NetworkID, want.VIP.NetworkID}, true},
		{Kept{"VIP subnet", have.VIP.SubnetID, want.VIP.SubnetID}, true},
		{Kept{"additional VIP subnets", subnetsOf(have.AdditionalVIPs), subnetsOf(want.AdditionalVIPs)}, false},
		{Kept{"provider", have.Provider, want.Provider}, true},
		{Kept{"flavor", have.FlavorID, want.FlavorID}, true},
		{Kept{"availability zone", have.AvailabilityZone, want.AvailabilityZone}, true},
	} {
		if k.Have != k.Want && (k.Want != "" || !k.chosen) {
			kept = append(kept, k.Kept)
		}
	}
	return kept
}

func subnetsOf(vips []lb.VIP) string {
	var ids []string
	for _, v := range vips {
		ids = append(ids, v.SubnetID)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}
