package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// finishListeners does what is left to do for listeners once the policies of those that stay are right. A listener is
// its port: protocol and port cannot change, and a port is taken by one listener only, so that one of another protocol
// has to go first.
func (c *change) finishListeners() {
	taken := map[string]bool{}
	byPort := map[int]*lb.Listener{}
	for i := range c.have.Listeners {
		taken[c.have.Listeners[i].Key] = true
		byPort[c.have.Listeners[i].Port] = &c.have.Listeners[i]
	}
	for _, s := range c.sides {
		c.updateListener(s)
		delete(byPort, s.have.Port)
	}
	for i := range c.want.Listeners {
		want := &c.want.Listeners[i]
		if slices.ContainsFunc(c.sides, func(s *side) bool { return s.want == want }) {
			continue
		}
		if have := byPort[want.Port]; have != nil {
			delete(byPort, want.Port)
			if !c.deleteListener(have, fmt.Sprintf("a listener's protocol cannot change from %s to %s", have.Protocol, want.Protocol)) {
				continue
			}
			delete(taken, have.Key)
		} else if foreign := c.foreignOn(want.Port); foreign != nil {
			c.conflict(Conflict{Kind: lb.KindListener, Key: want.Key, ID: foreign.ID, Reason: fmt.Sprintf(
				"port %d is taken by the listener %s %q, which is not ours: delete it or use another port", want.Port, foreign.ID, foreign.Name)})
			continue
		}
		c.createListener(want, freeKey(want.Key, taken))
	}
	for i := range c.have.Listeners {
		if have := &c.have.Listeners[i]; byPort[have.Port] == have {
			c.deleteListener(have, "nothing is wanted on this port any more")
		}
	}
}

// createListener builds a listener disabled and enables it last, so that no request sees only some of its policies.
func (c *change) createListener(want *lb.Listener, key string) {
	s := &side{want: want, have: &lb.Listener{Meta: lb.Meta{Key: key}}, taken: map[string]bool{}}
	done := c.bareListener(want)
	done.Key = key
	building := done
	building.Disabled = done.Disabled || len(want.Policies) > 0
	ref := s.ref()
	c.add(Step{Verb: Create, Kind: lb.KindListener, Ref: ref, ListenerTo: &building, Reason: "nothing listens on this port yet"})
	for i := range want.Policies {
		q := &want.Policies[i]
		one := &slot{side: s, want: q, key: freeKey(q.Key, s.taken), new: place{rank: int64(i)}}
		c.createPolicy(one, true)
	}
	if building.Disabled != done.Disabled {
		c.add(Step{Verb: Update, Kind: lb.KindListener, Ref: ref, Fields: []string{"admin_state_up"}, ListenerTo: &done, Reason: "the listener is complete"})
	}
}

// bareListener is the wanted listener without its policies, its pool named as in the cloud.
func (c *change) bareListener(want *lb.Listener) lb.Listener {
	bare := *want
	bare.Policies, bare.DefaultPool = nil, ""
	if pc := c.byWant[want.DefaultPool]; pc != nil {
		bare.DefaultPool = pc.key
	}
	return bare
}

// updateListener sends all fields that differ, once.
func (c *change) updateListener(s *side) {
	if s.updated {
		return
	}
	s.updated = true
	fields := c.listenerFields(s.want, s.have)
	if len(fields) == 0 {
		return
	}
	after := c.bareListener(s.want)
	after.Meta = s.have.Meta
	after.Disabled = s.want.Disabled
	c.add(Step{Verb: Update, Kind: lb.KindListener, Ref: s.ref(), Fields: fields, ListenerTo: &after, Reason: notAsWanted})
}

// listenerFields names what differs.
func (c *change) listenerFields(want, have *lb.Listener) []string {
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
		{"alpn_protocols", len(wantTLS.ALPN) > 0 && !slices.Equal(wantTLS.ALPN, haveTLS.ALPN)},
		{"client_authentication", (wantTLS.ClientCA == "") != (haveTLS.ClientCA == "")},
		{"client_ca_tls_container_ref", wantTLS.ClientCA != haveTLS.ClientCA},
		{"connection_limit", want.ConnectionLimit != have.ConnectionLimit},
		{"default_pool_id", c.defaultDiffers(want, have)},
		{"default_tls_container_ref", wantTLS.Default != haveTLS.Default},
		{"hsts_include_subdomains", wantTLS.HSTS.Header() != haveTLS.HSTS.Header()},
		{"hsts_max_age", wantTLS.HSTS.Header() != haveTLS.HSTS.Header()},
		{"hsts_preload", wantTLS.HSTS.Header() != haveTLS.HSTS.Header()},
		{"insert_headers", !maps.Equal(want.InsertHeaders, have.InsertHeaders)},
		{"sni_container_refs", !sameSet(wantTLS.SNI, haveTLS.SNI)},
		{"timeout_client_data", want.TimeoutClientData != have.TimeoutClientData},
		{"timeout_member_connect", want.TimeoutMemberConnect != have.TimeoutMemberConnect},
		{"timeout_member_data", want.TimeoutMemberData != have.TimeoutMemberData},
		{"tls_ciphers", wantTLS.Ciphers != "" && wantTLS.Ciphers != haveTLS.Ciphers},
		{"tls_versions", len(wantTLS.Versions) > 0 && !sameSet(wantTLS.Versions, haveTLS.Versions)},
	} {
		if f.differ {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func (c *change) defaultDiffers(want, have *lb.Listener) bool {
	to, from := c.byWant[want.DefaultPool], c.byHave[have.DefaultPool]
	return to != from || to == nil && have.DefaultPool != ""
}

// deleteListener returns false when the listener has to stay.
func (p *planner) deleteListener(have *lb.Listener, reason string) bool {
	if p.spare(lb.KindListener, listenerRef(have), lb.KindPolicy, lb.KindRule) {
		p.stay(have.DefaultPool)
		for i := range have.Policies {
			p.stay(have.Policies[i].Pool)
		}
		return false
	}
	bare := *have
	bare.Policies = nil
	p.add(Step{Verb: Delete, Kind: lb.KindListener, Ref: listenerRef(have), ListenerTo: &bare, Reason: reason})
	return true
}

func listenerRef(l *lb.Listener) Ref { return Ref{ID: l.ID, Key: l.Key} }

// sameSet compares without order and duplicates.
func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
