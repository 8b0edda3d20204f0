package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// policyMatcher pairs the wanted with the existing policies of one side.
type policyMatcher struct {
	*change
	side *side
	// want and have are all policies with what is known of them; pair of a have is nil when it goes.
	want, have []*slot
	paired     map[*slot]*slot
}

// matchPolicies pairs policies so that little is left to do: keys are only names.
//
//  1. the same rules and the same action: nothing to do
//  2. the same rules: another action
//  3. the same key: other rules
//  4. the same action: other rules
//
// Rules only change below a policy where that is safe, see ruleBook.live.
func (c *change) matchPolicies(s *side) {
	m := policyMatcher{change: c, side: s, paired: map[*slot]*slot{}}
	for i := range s.have.Policies {
		h := &s.have.Policies[i]
		s.taken[h.Key] = true
		m.have = append(m.have, &slot{side: s, have: h, key: h.Key, before: c.book.matches(h.Rules),
			from: goalOf(h, c.byHave), visible: c.rendered(s, h)})
	}
	for i := range s.want.Policies {
		q := &s.want.Policies[i]
		m.want = append(m.want, &slot{side: s, want: q, after: c.book.matches(q.Rules), to: goalOf(q, c.byWant)})
	}
	type content struct {
		rules string
		goal  goal
	}
	contentOf := func(one *slot) content {
		if one.want != nil {
			return content{one.after.id(), one.to}
		}
		return content{one.before.id(), one.from}
	}
	rulesOf := func(one *slot) string { return contentOf(one).rules }
	sameKey := func(w, h *slot) bool { return w.want.Key == h.have.Key }
	all := func(w, h *slot) bool { return true }
	pass(&m, contentOf, all, m.sameRules)
	pass(&m, rulesOf, sameKey, m.sameRules)
	pass(&m, rulesOf, all, m.sameRules)
	pass(&m, func(one *slot) string { return baseKey(one.name()) }, all, m.otherRules)
	pass(&m, func(one *slot) goal { return contentOf(one).goal }, all, m.otherRules)

	s.slots = append(s.slots, m.have...)
	for _, w := range m.want {
		if m.paired[w] == nil {
			w.key = freeKey(w.want.Key, s.taken)
			s.slots = append(s.slots, w)
		}
	}
	s.present = append(s.present, m.have...)
}

func (s *slot) name() string {
	if s.want != nil {
		return s.want.Key
	}
	return s.have.Key
}

func (m matches) id() string {
	var b strings.Builder
	for _, n := range m {
		b.WriteString(strconv.Itoa(n))
		b.WriteByte(' ')
	}
	return b.String()
}

// maxCandidates bounds the comparisons for one policy.
const maxCandidates = 16

// pass pairs what is left, agrees in identity and is considered: of equals the first. fit says whether one may become
// the other, and in how many calls.
func pass[K comparable](m *policyMatcher, identity func(*slot) K, considered func(w, h *slot) bool, fit func(w, h *slot) ([]edit, bool)) {
	free := map[K][]*slot{}
	for _, h := range m.have {
		// Octavia refuses to change what is in ERROR, so it is replaced.
		if h.want == nil && !m.without.reuse[h.have] && !h.have.Errored() {
			free[identity(h)] = append(free[identity(h)], h)
		}
	}
	for _, w := range m.want {
		if m.paired[w] != nil {
			continue
		}
		candidates := free[identity(w)]
		best, tried := -1, 0
		var edits []edit
		for i, h := range candidates {
			if !considered(w, h) {
				continue
			}
			if tried++; tried > maxCandidates {
				break
			}
			found, ok := fit(w, h)
			// What requests see is kept rather than what is half-built.
			if ok && (best < 0 || len(found) < len(edits) || len(found) == len(edits) && h.visible && !candidates[best].visible) {
				best, edits = i, found
			}
		}
		if best < 0 {
			continue
		}
		h := candidates[best]
		h.want, h.after, h.to, h.edits = w.want, w.after, w.to, edits
		m.paired[w] = h
		free[identity(w)] = append(candidates[:best:best], candidates[best+1:]...)
	}
}

// sameRules lets a policy change its action, in one call. A rule that is there twice, such as from two creates of which one lost its
// answer, goes once: that changes nothing for requests.
func (m *policyMatcher) sameRules(w, h *slot) ([]edit, bool) {
	edits := editRules(w.want.Rules, h.have.Rules)
	if slices.ContainsFunc(edits, func(e edit) bool { return e.want != nil }) {
		return nil, true
	}
	return edits, true
}

// otherRules lets a policy change its rules: one that requests see only safely, and not together with its action.
func (m *policyMatcher) otherRules(w, h *slot) ([]edit, bool) {
	edits := editRules(w.want.Rules, h.have.Rules)
	switch {
	case len(w.want.Rules) == 0 || len(edits) > len(w.want.Rules)+1:
		// As many calls as a new policy takes.
		return nil, false
	case !h.visible:
		return edits, m.hiddenUntilDone(w, h, edits)
	case w.to != h.from || !h.have.HasRules():
		return nil, false
	}
	return m.book.live(edits, w.want.Rules, h.have.Rules)
}

// hiddenUntilDone says whether a policy that requests do not see stays hidden until its last call.
func (m *policyMatcher) hiddenUntilDone(w, h *slot, edits []edit) bool {
	switch {
	case !m.side.live || h.have.Disabled:
		return true
	case !h.have.HasRules():
		// Its first rule shows it, unless its pool hides it.
		pool := m.byHave[h.have.Pool]
		hidden := h.have.Action == lb.RedirectToPool && pool != nil && pool.have.Disabled
		return w.to == h.from && (len(edits) == 1 || hidden)
	}
	// Its pool hides it: until the policy gets another one, or the pool is enabled after all its policies.
	return h.have.Action == lb.RedirectToPool
}
