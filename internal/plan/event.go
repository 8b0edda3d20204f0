package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// element is one thing that HAProxy asks for a request: a policy as it was or shall be, or a default pool.
type element struct {
	side  *side
	place place
	match matches
	goal  goal
}

// event is a change that requests see at once: the last of its calls. It takes elements away and adds others.
type event struct {
	slots []*slot
	// pool is enabled, or converted.
	pool *poolChange
	// defaultOf is the listener whose default pool changes.
	defaultOf *side
	removes   []element
	adds      []element
	// first is what has to be done before: the pools that must be enabled.
	first []*poolChange
}

// phase orders events that no request ties: what nobody sees, then all that adds, then what exchanges, then all that
// deletes.
func (e *event) phase() int {
	switch {
	case len(e.removes) == 0 && len(e.adds) == 0:
		return -1
	case len(e.removes) == 0:
		return 0
	case len(e.adds) > 0:
		return 1
	}
	return 2
}

// place orders events within a phase.
func (e *event) place() place {
	switch {
	case len(e.adds) > 0:
		return e.adds[0].place
	case len(e.removes) > 0:
		return e.removes[0].place
	}
	return place{}
}

// simple says that the event is one addition or one deletion. Of those any set has a safe order.
func (e *event) simple() bool { return len(e.removes)+len(e.adds) <= 1 && len(e.first) == 0 }

// cost is how many calls it takes to go without the shortcut that the event rests on; 0 when it rests on none.
func (e *event) cost() int {
	switch {
	case e.pool != nil && e.pool.convert:
		return 4 + len(e.removes)
	case e.pool != nil:
		return max(1, len(e.adds)-1)
	case e.defaultOf != nil:
		return 0
	}
	if one := e.slots[0]; one.have != nil && one.want != nil {
		return 2 + len(one.want.Rules)
	}
	return 0
}

// giveUp drops that shortcut for the next attempt.
func (e *event) giveUp(c *change) {
	switch {
	case e.pool != nil && e.pool.convert:
		c.without.convert[e.pool.want] = true
	case e.pool != nil && e.pool.have != nil:
		c.without.enable[e.pool.have] = true
	case e.pool != nil:
		c.without.together[e.pool.want] = true
	default:
		c.without.reuse[e.slots[0].have] = true
	}
}

// findEvents lists all that is to do about policies, default pools and pools below policies.
func (c *change) findEvents() {
	c.events = nil
	together := map[*poolChange]*event{}
	for _, pc := range c.pools {
		if pc.group || pc.convert {
			together[pc] = &event{pool: pc}
			c.events = append(c.events, together[pc])
		}
	}
	for _, s := range c.sides {
		c.defaultEvent(s, together)
		for _, one := range s.slots {
			c.slotEvent(one, together)
		}
	}
}

// defaultPlace is that of a side's default pool.
var defaultPlace = place{class: classDefault}

func (c *change) defaultEvent(s *side, together map[*poolChange]*event) {
	if !s.live {
		// All of its fields are sent at the end, with what makes it visible.
		return
	}
	from, to := c.byHave[s.have.DefaultPool], c.byWant[s.want.DefaultPool]
	element := func(pc *poolChange) element {
		return element{side: s, place: defaultPlace, goal: goal{action: lb.RedirectToPool, pool: pc}}
	}
	visible := from != nil && !from.have.Disabled
	if from != nil && from == to {
		e := together[to]
		switch {
		case e == nil:
		case to.convert:
			before := element(to)
			before.goal.url = beforeConversion
			e.removes, e.adds = append(e.removes, before), append(e.adds, element(to))
		default:
			e.adds = append(e.adds, element(to))
		}
		return
	}
	if from == nil && to == nil && s.have.DefaultPool == "" {
		return
	}
	e := &event{defaultOf: s}
	if visible {
		e.removes = append(e.removes, element(from))
	}
	if to != nil {
		e.adds = append(e.adds, element(to))
	}
	if to != nil && to.group {
		e.first = append(e.first, to)
	}
	c.events = append(c.events, e)
}

// beforeConversion tells what a pool was from what it becomes.
const beforeConversion = "before"

func (c *change) slotEvent(one *slot, together map[*poolChange]*event) {
	shared := together[one.to.pool]
	if one.want == nil {
		shared = nil
	}
	old := element{side: one.side, place: one.old, match: one.before, goal: one.from}
	added := element{side: one.side, place: one.new, match: one.after, goal: one.to}
	if shared != nil && shared.pool.convert {
		// Each user of the pool is only exchanged with it.
		if one.visible {
			old.goal = one.to
			old.goal.url = beforeConversion
			shared.removes, shared.adds = append(shared.removes, old), append(shared.adds, added)
		}
		return
	}
	if shared != nil && !one.visible && one.side.live {
		shared.slots = append(shared.slots, one)
		if c.willBeRendered(one) {
			shared.adds = append(shared.adds, added)
		}
		return
	}
	if one.have != nil && one.want != nil && len(one.edits) == 0 && !one.moved && len(c.policyFields(one)) == 0 {
		return
	}
	e := &event{slots: []*slot{one}}
	if one.visible {
		e.removes = append(e.removes, old)
	}
	if one.want != nil && one.side.live && c.willBeRendered(one) {
		e.adds = append(e.adds, added)
	}
	if shared != nil {
		e.first = append(e.first, shared.pool)
	}
	c.events = append(c.events, e)
}

func (c *change) willBeRendered(one *slot) bool {
	return !one.want.Disabled && one.want.HasRules() &&
		(one.want.Action != lb.RedirectToPool || one.to.pool != nil && !one.to.pool.want.Disabled)
}

// groupPools decides which pools are disabled until all their policies are there. It returns false when it found that
// another attempt is needed.
func (c *change) groupPools() bool {
	building := map[*poolChange]int{}
	for _, s := range c.sides {
		for _, one := range s.slots {
			if one.have == nil && s.live && one.to.pool != nil && len(one.want.Rules) > 1 {
				building[one.to.pool]++
			}
		}
	}
	fit := true
	for _, pc := range c.pools {
		switch {
		case pc.want == nil || pc.want.Disabled || pc.convert:
		case pc.have == nil:
			pc.group = building[pc] > 1 && !c.without.together[pc.want]
		case pc.have.Disabled:
			pc.group = true
			if !c.onlyItsOwn(pc) {
				// Enabling it would show policies that shall do something else.
				c.without.enable[pc.have] = true
				fit = false
			}
		}
	}
	return fit
}

// onlyItsOwn says whether all that a disabled pool hides is wanted with that pool.
func (c *change) onlyItsOwn(pc *poolChange) bool {
	for i := range c.have.Listeners {
		have := &c.have.Listeners[i]
		at := slices.IndexFunc(c.sides, func(s *side) bool { return s.have == have })
		if at < 0 {
			if usesPool(have, pc.have.Key) {
				return false
			}
			continue
		}
		s := c.sides[at]
		if have.DefaultPool == pc.have.Key && c.byWant[s.want.DefaultPool] != pc {
			return false
		}
		for _, one := range s.slots {
			if one.have != nil && one.from.pool == pc && !one.have.Disabled && one.have.HasRules() && (one.want == nil || one.to.pool != pc) {
				return false
			}
		}
	}
	return true
}

func usesPool(l *lb.Listener, key string) bool {
	return l.DefaultPool == key || slices.ContainsFunc(l.Policies, func(p lb.Policy) bool {
		return p.Action == lb.RedirectToPool && p.Pool == key
	})
}
