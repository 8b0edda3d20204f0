package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// poolChange is what becomes of one pool: want is nil when it goes, have when it is new.
type poolChange struct {
	want, have *lb.Pool
	// key is its key in the cloud.
	key string
	// relabel says that it shall be called after other backends.
	relabel bool
	// convert says that it gets other backends below policies that stay: in an event, not before.
	convert bool
	// group says that it is disabled until all its policies are there: then one call shows them all.
	group bool
}

func (pc *poolChange) ref() Ref {
	if pc.have != nil {
		return poolRef(pc.have)
	}
	return Ref{Key: pc.key}
}

func poolRef(pool *lb.Pool) Ref { return Ref{ID: pool.ID, Key: pool.Key} }

// canBecome says whether updates alone turn have into want: what is immutable agrees.
//
// A pool never goes from backends to others in plain text, or with another TLS: for a moment the ones would be spoken to as the others.
func canBecome(want, have *lb.Pool) bool {
	if want.Protocol != have.Protocol || baseKey(want.Key) != baseKey(have.Key) && len(tlsFields(want.TLS, have.TLS)) > 0 {
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
	var monitor lb.Monitor
	if m := pool.Monitor; m != nil {
		monitor = *m
		monitor.ID, monitor.Name, monitor.Tags, monitor.ProvisioningStatus = "", "", nil, ""
	}
	var tls lb.PoolTLS
	if pool.TLS != nil {
		tls = *pool.TLS
		// What operators set is not told from what we want here; it only costs a pass of matching.
		tls.Ciphers = ""
	}
	return fmt.Sprintf("%q %q %q %t %+v %+v %+v", pool.Protocol, pool.Algorithm, pool.Persistence, pool.TLS != nil, tls, monitor, memberContents(pool.Members))
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

// preparePool makes what requests do not see, or see as the same pool with fresh members: before any policy changes.
func (c *change) preparePool(pc *poolChange) {
	switch {
	case pc.want == nil:
	case pc.have == nil:
		c.createPool(pc)
	case !pc.convert:
		c.updatePool(pc, pc.group)
	}
}

func (c *change) createPool(pc *poolChange) {
	bare := *pc.want
	bare.Key, bare.Members, bare.Monitor = pc.key, nil, nil
	reason := "no existing pool has these backends"
	if pc.group {
		bare.Disabled = true
		reason += "; disabled until its policies are complete"
	}
	ref := pc.ref()
	c.add(Step{Verb: Create, Kind: lb.KindPool, Ref: ref, Pool: &bare, Reason: reason})
	if len(pc.want.Members) > 0 {
		c.add(Step{Verb: Update, Kind: lb.KindMembers, Ref: ref, Members: pc.want.Members, Reason: "the pool is new"})
	}
	if pc.want.Monitor != nil {
		c.add(Step{Verb: Create, Kind: lb.KindMonitor, Ref: monitorRef(ref, ""), Parent: ref, Monitor: pc.want.Monitor, Reason: "the pool is new"})
	}
}

// updatePool changes what differs; enabling the pool of a group is left to its event.
func (c *change) updatePool(pc *poolChange, group bool) {
	want, have, ref := pc.want, pc.have, pc.ref()
	// Members that come with TLS are never spoken to in plain text, not for a moment.
	tls := tlsFields(want.TLS, have.TLS)
	if want.TLS != nil && len(tls) > 0 {
		after := *have
		after.Members, after.Monitor, after.TLS = nil, nil, want.TLS
		c.add(Step{Verb: Update, Kind: lb.KindPool, Ref: ref, Fields: tls, Pool: &after, Reason: notAsWanted})
		tls = nil
	}
	if !slices.Equal(memberContents(want.Members), memberContents(have.Members)) {
		c.add(Step{Verb: Update, Kind: lb.KindMembers, Ref: ref, Members: want.Members, Reason: memberReason(want.Members, have.Members)})
	}
	c.updateMonitor(ref, want.Monitor, have.Monitor)
	after := *have
	after.Members, after.Monitor, after.TLS = nil, nil, want.TLS
	fields := tls
	if want.Disabled != have.Disabled && !group {
		after.Disabled = want.Disabled
		fields = append(fields, "admin_state_up")
	}
	if want.Algorithm != have.Algorithm {
		after.Algorithm = want.Algorithm
		fields = append(fields, "lb_algorithm")
	}
	if want.Persistence != have.Persistence {
		after.Persistence = want.Persistence
		fields = append(fields, "session_persistence")
	}
	if pc.relabel {
		// Members come before: a pool that is named after backends has them.
		after.Key, after.Name, after.Tags = pc.key, want.Name, want.Tags
		fields = append(fields, "name", "tags")
	}
	if len(fields) == 0 {
		return
	}
	slices.Sort(fields)
	reason := notAsWanted
	if pc.relabel {
		reason = "the pool serves these backends now"
	}
	c.add(Step{Verb: Update, Kind: lb.KindPool, Ref: ref, Fields: fields, Pool: &after, Reason: reason})
}

// tlsFields names what differs between the TLS of pools. Without it nothing else of it matters.
func tlsFields(want, have *lb.PoolTLS) []string {
	if want == nil {
		if have == nil {
			return nil
		}
		// The secrets go, so nothing may refer to them.
		fields := []string{"tls_enabled"}
		if have.CA != "" {
			fields = append(fields, "ca_tls_container_ref")
		}
		if have.Certificate != "" {
			fields = append(fields, "tls_container_ref")
		}
		slices.Sort(fields)
		return fields
	}
	var before lb.PoolTLS
	if have != nil {
		before = *have
	}
	var fields []string
	for _, f := range []struct {
		name   string
		differ bool
	}{
		{"alpn_protocols", len(want.ALPN) > 0 && !slices.Equal(want.ALPN, before.ALPN)},
		{"ca_tls_container_ref", want.CA != before.CA},
		{"tls_ciphers", want.Ciphers != "" && want.Ciphers != before.Ciphers},
		{"tls_container_ref", want.Certificate != before.Certificate},
		{"tls_enabled", have == nil || have.Disabled},
		{"tls_versions", len(want.Versions) > 0 && !sameSet(want.Versions, before.Versions)},
	} {
		if f.differ {
			fields = append(fields, f.name)
		}
	}
	return fields
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
func (c *change) updateMonitor(pool Ref, want, have *lb.Monitor) {
	if have != nil && (want == nil || want.Type != have.Type || have.ProvisioningStatus == lb.Errored) {
		reason := "no monitor is wanted"
		switch {
		case want != nil && want.Type != have.Type:
			reason = fmt.Sprintf("a monitor's type cannot change from %s to %s", have.Type, want.Type)
		case want != nil:
			reason = "it is in ERROR, where Octavia refuses changes"
		}
		c.add(Step{Verb: Delete, Kind: lb.KindMonitor, Ref: monitorRef(pool, have.ID), Parent: pool, Reason: reason})
		have = nil
	}
	if want == nil {
		return
	}
	if foreign := c.foreignMonitor(pool.Key); foreign != nil {
		c.conflict(Conflict{Kind: lb.KindMonitor, Key: monitorRef(pool, "").Key, ID: foreign.ID, Reason: fmt.Sprintf(
			"the pool %q has the health monitor %s, which is not ours, and a pool takes only one: delete that by hand", pool.Key, foreign.ID)})
		return
	}
	if have == nil {
		c.add(Step{Verb: Create, Kind: lb.KindMonitor, Ref: monitorRef(pool, ""), Parent: pool, Monitor: want, Reason: "the pool has no such monitor"})
		return
	}
	fields := monitorFields(want, have)
	if len(fields) == 0 {
		return
	}
	after := *want
	after.ID, after.Name, after.Tags = have.ID, have.Name, have.Tags
	c.add(Step{Verb: Update, Kind: lb.KindMonitor, Ref: monitorRef(pool, have.ID), Parent: pool, Fields: fields, Monitor: &after, Reason: notAsWanted})
}

func monitorFields(want, have *lb.Monitor) []string {
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
	return fields
}

func monitorRef(pool Ref, id string) Ref {
	return Ref{ID: id, Key: pool.Key + "/" + string(lb.KindMonitor)}
}

// deletePool deletes a pool that nothing uses.
func (p *planner) deletePool(have *lb.Pool, reason string) {
	if p.used[have.Key] || p.spare(lb.KindPool, poolRef(have), lb.KindMember, lb.KindMonitor) {
		return
	}
	p.add(Step{Verb: Delete, Kind: lb.KindPool, Ref: poolRef(have), Reason: reason})
}
