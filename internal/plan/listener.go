package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// listeners brings the listeners and their policies to what is wanted. A listener is its port: protocol and port cannot
// change, and a port is taken by one listener only, so that one of another protocol has to go first.
func (p *planner) listeners() {
	byPort := map[int]*lb.Listener{}
	for i := range p.have.Listeners {
		byPort[p.have.Listeners[i].Port] = &p.have.Listeners[i]
	}
	taken := map[string]bool{}
	for i := range p.have.Listeners {
		taken[p.have.Listeners[i].Key] = true
	}
	wanted := map[int]bool{}
	for i := range p.want.Listeners {
		want := &p.want.Listeners[i]
		wanted[want.Port] = true
		have := byPort[want.Port]
		switch foreign := p.foreignOn(want.Port); {
		case have != nil && have.Protocol == want.Protocol:
			p.updateListener(want, have)
		case foreign != nil && have == nil:
			p.conflict(Conflict{Kind: lb.KindListener, Key: want.Key, ID: foreign.ID, Reason: fmt.Sprintf(
				"port %d is taken by the listener %s %q, which is not ours: delete it or use another port", want.Port, foreign.ID, foreign.Name)})
		default:
			if have != nil {
				p.deleteListener(have, fmt.Sprintf("a listener's protocol cannot change from %s to %s", have.Protocol, want.Protocol))
				delete(taken, have.Key)
			}
			p.createListener(want, freeKey(want.Key, taken))
		}
	}
	for i := range p.have.Listeners {
		if have := &p.have.Listeners[i]; !wanted[have.Port] {
			p.deleteListener(have, "nothing listens on this port any more")
		}
	}
}

func (p *planner) foreignOn(port int) *lb.Foreign {
	for i := range p.have.Foreign {
		if f := &p.have.Foreign[i]; f.Kind == lb.KindListener && f.Port == port {
			return f
		}
	}
	return nil
}

// createListener builds a listener disabled and enables it last, so that no request sees only some of its policies.
func (p *planner) createListener(want *lb.Listener, key string) {
	ref := Ref{Key: key}
	bare := p.bareListener(want)
	bare.Key = key
	hidden := bare
	hidden.Disabled = want.Disabled || len(want.Policies) > 0
	p.add(Step{Verb: Create, Kind: lb.KindListener, Ref: ref, ListenerTo: &hidden, Reason: "nothing listens on this port yet"})
	taken := map[string]bool{}
	for i := range want.Policies {
		p.createPolicy(ref, &want.Policies[i], freeKey(want.Policies[i].Key, taken), i+1, "the listener is new")
	}
	if hidden.Disabled != want.Disabled {
		p.add(Step{Verb: Update, Kind: lb.KindListener, Ref: ref, Fields: []string{"admin_state_up"}, ListenerTo: &bare, Reason: "the listener is complete"})
	}
}

// bareListener is the wanted listener without its policies, its pool named as in the cloud.
func (p *planner) bareListener(want *lb.Listener) lb.Listener {
	bare := *want
	bare.Policies = nil
	bare.DefaultPool = p.keys[want.DefaultPool]
	return bare
}

func (p *planner) updateListener(want, have *lb.Listener) {
	p.policies(want, have)
	fields := p.listenerFields(want, have)
	if len(fields) == 0 {
		return
	}
	after := p.bareListener(want)
	after.Meta = have.Meta
	after.Disabled = want.Disabled
	p.add(Step{Verb: Update, Kind: lb.KindListener, Ref: listenerRef(have), Fields: fields, ListenerTo: &after, Reason: differ(fields)})
}

// listenerFields names what differs. A number that is zero in want is not ours: Octavia's default, which the operator
// sets, may stand there.
func (p *planner) listenerFields(want, have *lb.Listener) []string {
	var wantTLS, haveTLS lb.ListenerTLS
	if want.TLS != nil {
		wantTLS = *want.TLS
	}
	if have.TLS != nil {
		haveTLS = *have.TLS
	}
	var fields []string
	for _, f := range []struct {
		name   string
		differ bool
	}{
		{"admin_state_up", want.Disabled != have.Disabled},
		{"allowed_cidrs", !sameSet(want.AllowedCIDRs, have.AllowedCIDRs)},
		{"connection_limit", want.ConnectionLimit != 0 && want.ConnectionLimit != have.ConnectionLimit},
		{"default_pool_id", p.keys[want.DefaultPool] != have.DefaultPool},
		{"default_tls_container_ref", wantTLS.DefaultRef != haveTLS.DefaultRef},
		{"insert_headers", !maps.Equal(want.InsertHeaders, have.InsertHeaders)},
		{"sni_container_refs", !sameSet(wantTLS.SNIRefs, haveTLS.SNIRefs)},
		{"timeout_client_data", want.TimeoutClientData != 0 && want.TimeoutClientData != have.TimeoutClientData},
		{"timeout_member_connect", want.TimeoutMemberConnect != 0 && want.TimeoutMemberConnect != have.TimeoutMemberConnect},
		{"timeout_member_data", want.TimeoutMemberData != 0 && want.TimeoutMemberData != have.TimeoutMemberData},
	} {
		if f.differ {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func (p *planner) deleteListener(have *lb.Listener, reason string) {
	p.add(Step{Verb: Delete, Kind: lb.KindListener, Ref: listenerRef(have), Reason: reason})
}

func listenerRef(l *lb.Listener) Ref { return Ref{ID: l.ID, Key: l.Key} }

// sameSet compares without order and duplicates.
func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
