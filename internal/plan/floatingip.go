package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// floatingIP plans the public address. A VIP port takes one, so another one goes first.
func (p *planner) floatingIP() {
	want, have := p.want.FloatingIP, p.have.FloatingIP
	if p.want.Empty() {
		want = nil
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
	case want.Supplied:
		p.attach(want.ID, want, "the Gateway asks for this address")
	default:
		p.add(Step{Verb: Create, Kind: lb.KindFloatingIP, Ref: floatingIPRef("", want), Parent: p.vipOwner(),
			FloatingIP: p.onVIP(want), Reason: "the Gateway has no floating IP"})
	}
}

// sameFloatingIP says whether what exists serves the wish.
func sameFloatingIP(want, have *lb.FloatingIP) bool {
	return want.Supplied == have.Supplied &&
		(want.NetworkID == "" || have.NetworkID == "" || want.NetworkID == have.NetworkID) &&
		(want.Address == "" || want.Address == have.Address)
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
