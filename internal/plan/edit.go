package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// edit is one call on a rule: have is nil for a new rule, want for one that goes.
type edit struct {
	have, want *lb.Rule
}

// editRules finds the calls that turn one set of rules into another.
func editRules(want, have []lb.Rule) []edit {
	left := make([]*lb.Rule, 0, len(have))
	for i := range have {
		left = append(left, &have[i])
	}
	take := func(fits func(*lb.Rule) bool) *lb.Rule {
		i := slices.IndexFunc(left, fits)
		if i < 0 {
			return nil
		}
		found := left[i]
		left = slices.Delete(left, i, i+1)
		return found
	}
	var missing []*lb.Rule
	for i := range want {
		w := &want[i]
		if take(func(h *lb.Rule) bool { return sameRule(*h) == sameRule(*w) }) == nil {
			missing = append(missing, w)
		}
	}
	var edits []edit
	// Rules of the same kind turn into each other first, so that a header's two rules keep their parts.
	var unlike []*lb.Rule
	for _, w := range missing {
		h := take(func(h *lb.Rule) bool {
			a, b := sameRule(*h), sameRule(*w)
			return a.Type == b.Type && a.Key == b.Key && a.Invert == b.Invert
		})
		if h == nil {
			unlike = append(unlike, w)
			continue
		}
		edits = append(edits, edit{h, w})
	}
	for _, w := range unlike {
		edits = append(edits, edit{take(func(*lb.Rule) bool { return true }), w})
	}
	for _, h := range left {
		edits = append(edits, edit{have: h})
	}
	return edits
}

// live puts edits into an order in which a policy may take them while it serves requests: on the way it must match
// nothing but what it matched before or shall match after, and all of what is in both. ok is false when there is none.
func (b *ruleBook) live(edits []edit, want, have []lb.Rule) (ordered []edit, ok bool) {
	added, removed := 0, 0
	for _, e := range edits {
		switch {
		case e.have == nil || e.have.Disabled:
			added++
		case e.want == nil || e.want.Disabled:
			removed++
		}
	}
	if len(edits) <= 1 || added == len(edits) || removed == len(edits) {
		// One call is atomic. Only new rules narrow step by step, only old ones widen.
		return edits, true
	}
	if len(edits) != 2 || added+removed > 0 {
		return nil, false
	}
	// Two rules change, such as those of an exact header: it is well if the policy matches nothing between them, and
	// nothing both before and after.
	if b.overlap(b.matches(want), b.matches(have)) {
		return nil, false
	}
	for _, order := range [][]edit{edits, {edits[1], edits[0]}} {
		between := slices.Clone(have)
		i := slices.IndexFunc(between, func(r lb.Rule) bool { return sameRule(r) == sameRule(*order[0].have) })
		between[i] = *order[0].want
		if b.empty(b.matches(between)) {
			return order, true
		}
	}
	return nil, false
}

// ruleFields names what an edit changes of a rule.
func ruleFields(want, have *lb.Rule) []string {
	var fields []string
	for _, f := range []struct {
		name   string
		differ bool
	}{
		{"admin_state_up", want.Disabled != have.Disabled},
		{"compare_type", want.Compare != have.Compare},
		{"invert", want.Invert != have.Invert},
		{"key", sameRule(*want).Key != sameRule(*have).Key},
		{"type", want.Type != have.Type},
		{"value", want.Value != have.Value},
	} {
		if f.differ {
			fields = append(fields, f.name)
		}
	}
	return fields
}
