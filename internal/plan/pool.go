package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// pools matches the pools, creates what is new with everything in it, and brings what exists to what is wanted. Nothing
// is deleted yet.
func (p *planner) pools() {
	matched := p.matchPools()
	taken := map[string]bool{}
	for i := range p.have.Pools {
		taken[p.have.Pools[i].Key] = true
	}
	for i := range p.want.Pools {
		want := &p.want.Pools[i]
		if have := matched[want]; have != nil {
			p.keys[want.Key] = have.Key
			p.updatePool(want, have)
			continue
		}
		key := freeKey(want.Key, taken)
		p.keys[want.Key] = key
		p.createPool(want, key)
	}
	p.kept = map[*lb.Pool]bool{}
	for _, have := range matched {
		p.kept[have] = true
	}
}

// matchPools finds for wanted pools the existing ones that can become them: by key, then by content.
func (p *planner) matchPools() map[*lb.Pool]*lb.Pool {
	matched := map[*lb.Pool]*lb.Pool{}
	used := map[*lb.Pool]bool{}
	match := func(identity func(*lb.Pool) string) {
		free := map[string][]*lb.Pool{}
		for i := range p.have.Pools {
			if have := &p.have.Pools[i]; !used[have] {
				free[identity(have)] = append(free[identity(have)], have)
			}
		}
		for i := range p.want.Pools {
			want := &p.want.Pools[i]
			if matched[want] != nil {
				continue
			}
			for _, have := range free[identity(want)] {
				if !used[have] && canBecome(want, have) {
					matched[want], used[have] = have, true
					break
				}
			}
		}
	}
	match(func(pool *lb.Pool) string { return pool.Key })
	match(func(pool *lb.Pool) string { return baseKey(pool.Key) })
	match(poolContent)
	return matched
}

// canBecome says whether updates alone turn have into want: what is immutable agrees.
func canBecome(want, have *lb.Pool) bool {
	if want.Protocol != have.Protocol {
		return false
	}
	subnets := make(map[memberID]string, len(have.Members))
	for _, m := range have.Members {
		subnets[idOf(m)] = m.SubnetID
	}
	for _, m := range want.Members {
		if subnet, found := subnets[idOf(m)]; found && subnet != m.SubnetID {
			return false
		}
	}
	return true
}

// memberID is what Octavia knows a member by in a batch.
type memberID struct {
	address string
	port    int
}

func idOf(m lb.Member) memberID { return memberID{m.Address, m.Port} }

// poolContent is what a pool does, as a comparable value.
func poolContent(pool *lb.Pool) string {
	monitor := "none"
	if m := pool.Monitor; m != nil {
		monitor = fmt.Sprint(m.Type, m.Delay, m.Timeout, m.MaxRetries, m.MaxRetriesDown, m.HTTPMethod, " ", m.URLPath, " ", m.ExpectedCodes, m.Disabled)
	}
	return fmt.Sprint(pool.Protocol, pool.Algorithm, memberContents(pool.Members), monitor)
}

// memberContents is what we own of members, in a fixed order.
func memberContents(members []lb.Member) []lb.Member {
	out := slices.Clone(members)
	for i := range out {
		out[i].ID, out[i].Name, out[i].OperatingStatus = "", "", ""
	}
	slices.SortFunc(out, func(a, b lb.Member) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return out
}

func (p *planner) createPool(want *lb.Pool, key string) {
	const reason = "no existing pool has these backends"
	bare := *want
	bare.Key, bare.Members, bare.Monitor = key, nil, nil
	ref := Ref{Key: key}
	p.add(Step{Verb: Create, Kind: lb.KindPool, Ref: ref, Pool: &bare, Reason: reason})
	if len(want.Members) > 0 {
		p.add(Step{Verb: Update, Kind: lb.KindMembers, Ref: ref, Members: want.Members, Reason: "the pool is new"})
	}
	if want.Monitor != nil {
		p.add(Step{Verb: Create, Kind: lb.KindMonitor, Ref: monitorRef(ref, want.Monitor), Parent: ref, Monitor: want.Monitor, Reason: "the pool is new"})
	}
}

func (p *planner) updatePool(want, have *lb.Pool) {
	ref := poolRef(have)
	if !slices.Equal(memberContents(want.Members), memberContents(have.Members)) {
		p.add(Step{Verb: Update, Kind: lb.KindMembers, Ref: ref, Members: want.Members, Reason: memberReason(want.Members, have.Members)})
	}
	p.updateMonitor(ref, want.Monitor, have.Monitor)
	var fields []string
	if want.Disabled != have.Disabled {
		fields = append(fields, "admin_state_up")
	}
	if want.Algorithm != have.Algorithm {
		fields = append(fields, "lb_algorithm")
	}
	if len(fields) > 0 {
		after := *have
		after.Members, after.Monitor = nil, nil
		after.Algorithm, after.Disabled = want.Algorithm, want.Disabled
		p.add(Step{Verb: Update, Kind: lb.KindPool, Ref: ref, Fields: fields, Pool: &after, Reason: differ(fields)})
	}
}

// memberReason says how a set of members changes.
func memberReason(want, have []lb.Member) string {
	before := make(map[memberID]lb.Member, len(have))
	for _, m := range memberContents(have) {
		before[idOf(m)] = m
	}
	added, changed := 0, 0
	for _, m := range memberContents(want) {
		old, found := before[idOf(m)]
		switch {
		case !found:
			added++
		case old != m:
			changed++
		}
		delete(before, idOf(m))
	}
	return fmt.Sprintf("members: %d to add, %d to change, %d to remove", added, changed, len(before))
}

// updateMonitor changes what can be changed. A monitor of another type replaces the old one; Octavia allows only one, so
// that for a moment every member counts as healthy.
func (p *planner) updateMonitor(pool Ref, want, have *lb.Monitor) {
	if have != nil && (want == nil || want.Type != have.Type) {
		reason := "no monitor is wanted"
		if want != nil {
			reason = fmt.Sprintf("a monitor's type cannot change from %s to %s", have.Type, want.Type)
		}
		p.add(Step{Verb: Delete, Kind: lb.KindMonitor, Ref: monitorRef(pool, have), Parent: pool, Reason: reason})
		have = nil
	}
	if want == nil {
		return
	}
	if have == nil {
		p.add(Step{Verb: Create, Kind: lb.KindMonitor, Ref: monitorRef(pool, &lb.Monitor{Type: want.Type}), Parent: pool, Monitor: want, Reason: "the pool has no such monitor"})
		return
	}
	var fields []string
	for _, f := range []struct {
		name   string
		differ bool
	}{
		{"admin_state_up", want.Disabled != have.Disabled},
		{"delay", want.Delay != have.Delay},
		{"expected_codes", want.ExpectedCodes != have.ExpectedCodes},
		{"http_method", want.HTTPMethod != have.HTTPMethod},
		{"max_retries", want.MaxRetries != have.MaxRetries},
		{"max_retries_down", want.MaxRetriesDown != have.MaxRetriesDown},
		{"timeout", want.Timeout != have.Timeout},
		{"url_path", want.URLPath != have.URLPath},
	} {
		if f.differ {
			fields = append(fields, f.name)
		}
	}
	if len(fields) == 0 {
		return
	}
	after := *want
	after.ID, after.Name, after.Tags = have.ID, have.Name, have.Tags
	p.add(Step{Verb: Update, Kind: lb.KindMonitor, Ref: monitorRef(pool, have), Parent: pool, Fields: fields, Monitor: &after, Reason: differ(fields)})
}

// deletePools deletes what no policy and no listener uses any more.
func (p *planner) deletePools() {
	for i := range p.have.Pools {
		if have := &p.have.Pools[i]; !p.kept[have] {
			p.deletePool(have, "nothing uses the pool any more")
		}
	}
}

func (p *planner) deletePool(have *lb.Pool, reason string) {
	p.add(Step{Verb: Delete, Kind: lb.KindPool, Ref: poolRef(have), Reason: reason})
}

func poolRef(pool *lb.Pool) Ref { return Ref{ID: pool.ID, Key: pool.Key} }

func monitorRef(pool Ref, m *lb.Monitor) Ref {
	return Ref{ID: m.ID, Key: pool.Key + "/" + string(lb.KindMonitor)}
}
