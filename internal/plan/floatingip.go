package plan

import (
	"fmt"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// reserveFloatingIP allocates the address that is asked for before anything else is made or taken away: when it cannot be had, everything stays
// as it is. It takes no port yet. Without an address to ask for, and where one of ours can be used, there is nothing to do.
func (p *planner) reserveFloatingIP() {
	want := p.want.FloatingIP
	if want == nil || want.Address == "" || p.hasAddress(want.Address) {
		return
	}
	switch asked := p.have.Asked; {
	case asked == nil:
		free := *want
		free.PortID = ""
		p.add(Step{Verb: Create, Kind: lb.KindFloatingIP, Ref: floatingIPRef("", want), FloatingIP: &free,
			Reason: "the Gateway asks for this address, which the project does not have"})
	case asked.OfOther:
		p.unusable(asked, "it belongs to another Gateway")
	case asked.PortID != "" && asked.PortID != p.have.VIP.PortID:
		p.unusable(asked, "it is in use by port "+asked.PortID)
	case want.NetworkID != "" && asked.NetworkID != "" && want.NetworkID != asked.NetworkID:
		p.unusable(asked, "it is in network "+asked.NetworkID+", and Gateways of this class have theirs in network "+want.NetworkID)
	}
}

func (p *planner) hasAddress(address string) bool {
	return p.have.FloatingIP != nil && p.have.FloatingIP.Address == address
}

func (p *planner) unusable(f *lb.FloatingIP, why string) {
	p.conflict(Conflict{Kind: lb.KindFloatingIP, Key: f.Address, ID: f.ID, Address: true,
		Reason: fmt.Sprintf("the floating IP %s cannot be used: %s; ask for another address, or free this one", f.Address, why)})
}

// addressRefused says whether a conflict of this plan is about the address that is asked for.
func (p *planner) addressRefused() bool {
	for _, c := range p.conflicts {
		if c.Address && c.Kind == lb.KindFloatingIP {
			return true
		}
	}
	return false
}

// floatingIP plans the public address. A VIP port takes one, so another one goes first.
func (p *planner) floatingIP() {
	want, have := p.want.FloatingIP, p.have.FloatingIP
	if p.want.Empty() {
		want = nil
	}
	if p.addressRefused() {
		// What serves goes on doing so.
		return
	}
	for i := range p.have.Spare {
		if spare := &p.have.Spare[i]; want == nil || want.Address == "" || spare.Address != want.Address {
			p.releaseFloatingIP(spare)
		}
	}
	if have != nil && (want == nil || !sameFloatingIP(want, have)) {
		p.releaseFloatingIP(have)
		have = nil
	}
	switch {
	case want == nil:
	case have != nil && have.PortID != "" && have.PortID == p.have.VIP.PortID:
	case have != nil:
		p.attach(have.ID, have, "the floating IP is not attached to the VIP")
	case want.Address != "" && p.have.Asked != nil:
		p.attach(p.have.Asked.ID, p.have.Asked, "the Gateway asks for this address")
	case want.Address != "":
		p.attach("", want, "the Gateway asks for this address")
	default:
		p.add(Step{Verb: Create, Kind: lb.KindFloatingIP, Ref: floatingIPRef("", want), Parent: p.vipOwner(),
			FloatingIP: p.onVIP(want), Reason: "the Gateway has no floating IP"})
	}
}

// sameFloatingIP says whether what exists serves the wish. Whoever asks for an address may have allocated it.
func sameFloatingIP(want, have *lb.FloatingIP) bool {
	if want.Address != "" {
		return want.Address == have.Address
	}
	return !have.Supplied && (want.NetworkID == "" || have.NetworkID == "" || want.NetworkID == have.NetworkID)
}

func (p *planner) attach(id string, f *lb.FloatingIP, reason string) {
	p.add(Step{Verb: Update, Kind: lb.KindFloatingIP, Ref: floatingIPRef(id, f), Parent: p.vipOwner(),
		Fields: []string{"port_id"}, FloatingIP: p.onVIP(f), Reason: reason})
}

func (p *planner) releaseFloatingIP(f *lb.FloatingIP) {
	const reason = "the floating IP is no longer wanted"
	ref := floatingIPRef(f.ID, f)
	if !f.Supplied {
		p.add(Step{Verb: Delete, Kind: lb.KindFloatingIP, Ref: ref, FloatingIP: f, Reason: reason})
		return
	}
	if f.PortID == "" {
		return
	}
	free := *f
	free.PortID = ""
	p.add(Step{Verb: Update, Kind: lb.KindFloatingIP, Ref: ref, Fields: []string{"port_id"}, FloatingIP: &free,
		Reason: reason + "; it was supplied, so it is only detached"})
}

// vipOwner is the load balancer whose VIP port takes the floating IP.
func (p *planner) vipOwner() Ref {
	if p.have.Empty() {
		return loadBalancerRef(p.want)
	}
	return loadBalancerRef(p.have)
}

// onVIP is the floating IP as it shall be: on the VIP port, which has no id yet before the load balancer is created.
func (p *planner) onVIP(f *lb.FloatingIP) *lb.FloatingIP {
	on := *f
	on.PortID = p.have.VIP.PortID
	return &on
}

func floatingIPRef(id string, f *lb.FloatingIP) Ref {
	if f.Address != "" {
		return Ref{ID: id, Key: f.Address}
	}
	return Ref{ID: id, Key: "floatingip"}
}
