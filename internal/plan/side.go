package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// side is a listener that stays, with what becomes of its policies.
type side struct {
	want, have *lb.Listener
	// live says that requests see it.
	live bool
	// slots has the policies that exist in their order, then the new ones in theirs.
	slots []*slot
	// present has the slots that exist at this point of the plan, in position order.
	present []*slot
	// taken are the keys in use.
	taken map[string]bool
	// updated says that an event has sent the listener's fields.
	updated bool
}

func (s *side) ref() Ref { return listenerRef(s.have) }

// slot is one policy on its way: want is nil when it goes, have when it is new.
type slot struct {
	side       *side
	want, have *lb.Policy
	key        string
	// before and after are what it matches.
	before, after matches
	// from and to are what it does.
	from, to goal
	// edits are the calls on its rules, in a safe order.
	edits []edit
	// visible says that requests see it at the start.
	visible bool
	// old and new are its places, when it has one before and one after; they are the same unless it is moved.
	old, new place
	moved    bool
	// now is the place at this point of the plan.
	now place
}

func (s *slot) ref() Ref {
	if s.have != nil {
		return policyRef(s.have)
	}
	return Ref{Key: s.key}
}

func policyRef(policy *lb.Policy) Ref { return Ref{ID: policy.ID, Key: policy.Key} }

// goal is what a policy does with a request, as a comparable value.
type goal struct {
	action lb.Action
	pool   *poolChange
	url    string
	code   int
}

func goalOf(policy *lb.Policy, pools map[string]*poolChange) goal {
	g := goal{action: policy.Action}
	switch policy.Action {
	case lb.RedirectToPool:
		if g.pool = pools[policy.Pool]; g.pool == nil {
			// A pool that is not ours: no wanted goal.
			g.url = policy.Pool
		}
	case lb.RedirectToURL, lb.RedirectPrefix:
		g.url, g.code = policy.URL, policy.Code
		if g.code == 0 {
			g.code = defaultCode
		}
	}
	return g
}

// defaultCode is Octavia's redirect_http_code.
const defaultCode = 302

// matchSides pairs the listeners that stay, and their policies.
func (c *change) matchSides() {
	c.sides = nil
	for i := range c.want.Listeners {
		want := &c.want.Listeners[i]
		for j := range c.have.Listeners {
			have := &c.have.Listeners[j]
			if have.Port == want.Port && have.Protocol == want.Protocol {
				s := &side{want: want, have: have, live: !c.have.Disabled && !have.Disabled, taken: map[string]bool{}}
				c.matchPolicies(s)
				c.sides = append(c.sides, s)
			}
		}
	}
}

// rendered says whether Octavia has an existing policy in HAProxy's configuration.
func (c *change) rendered(s *side, h *lb.Policy) bool {
	if !s.live || h.Disabled || !h.HasRules() {
		return false
	}
	if h.Action != lb.RedirectToPool {
		return true
	}
	pc := c.byHave[h.Pool]
	return pc != nil && !pc.have.Disabled
}

// policyFields names what differs of what a policy does.
func (c *change) policyFields(one *slot) []string {
	var fields []string
	if one.want.Disabled != one.have.Disabled {
		fields = append(fields, "admin_state_up")
	}
	if one.from == one.to {
		return fields
	}
	if one.from.action != one.to.action {
		fields = append(fields, "action")
	}
	switch one.to.action {
	case lb.RedirectToPool:
		fields = append(fields, "redirect_pool_id")
	case lb.RedirectToURL:
		// Octavia resets the code to 302 when it is sent without the target, so they always go together.
		fields = append(fields, "redirect_http_code", "redirect_url")
	case lb.RedirectPrefix:
		fields = append(fields, "redirect_http_code", "redirect_prefix")
	}
	slices.Sort(fields)
	return fields
}
