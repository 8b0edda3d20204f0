package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// do adds the calls of an event. The last one is what requests see, or all after which a policy matches less and less, or
// more and more.
func (e *event) do(c *change) {
	for _, one := range e.slots {
		switch {
		case one.want == nil:
			c.deletePolicy(one)
		case one.have == nil:
			c.createPolicy(one, e.pool != nil || !one.side.live)
		default:
			c.updatePolicy(one)
		}
	}
	switch {
	case e.defaultOf != nil:
		c.updateListener(e.defaultOf)
	case e.pool == nil:
	case e.pool.convert:
		c.updatePool(e.pool, false)
	default:
		c.enablePool(e.pool)
	}
}

func (c *change) enablePool(pc *poolChange) {
	after := *pc.want
	if pc.have != nil {
		after = *pc.have
	}
	after.Key, after.Members, after.Monitor, after.Disabled = pc.key, nil, nil, false
	reason := "its policies are complete"
	if pc.have != nil {
		reason = notAsWanted
	}
	c.add(Step{Verb: Update, Kind: lb.KindPool, Ref: pc.ref(), Fields: []string{"admin_state_up"}, Pool: &after, Reason: reason})
}

// barePolicy is the wanted policy without rules, its pool named as in the cloud.
func (c *change) barePolicy(want *lb.Policy) lb.Policy {
	bare := *want
	bare.Rules, bare.Pool = nil, ""
	if pc := c.byWant[want.Pool]; pc != nil && want.Action == lb.RedirectToPool {
		bare.Pool = pc.key
	}
	return bare
}

// createPolicy creates a policy with its rules. With more than one it is built disabled, unless requests do not see it
// anyway: with only some of its rules it would match too much.
func (c *change) createPolicy(one *slot, hidden bool) {
	done := c.barePolicy(one.want)
	done.Key = one.key
	building := done
	building.Disabled = done.Disabled || len(one.want.Rules) > 1 && !hidden
	at := one.side.placeFor(one)
	one.side.present = slices.Insert(one.side.present, at, one)
	one.now = one.new
	ref, parent := one.ref(), one.side.ref()
	c.add(Step{Verb: Create, Kind: lb.KindPolicy, Ref: ref, Parent: parent, Position: at + 1, Policy: &building, Reason: "no existing policy can serve for this one"})
	for i := range one.want.Rules {
		c.editRule(one, edit{want: &one.want.Rules[i]})
	}
	if building.Disabled != done.Disabled {
		c.add(Step{Verb: Update, Kind: lb.KindPolicy, Ref: ref, Parent: parent, Fields: []string{"admin_state_up"}, Policy: &done, Reason: "the policy is complete"})
	}
}

func (c *change) deletePolicy(one *slot) {
	if c.spare(lb.KindPolicy, one.ref(), lb.KindRule) {
		c.stay(one.have.Pool)
		return
	}
	one.side.present = slices.DeleteFunc(one.side.present, func(o *slot) bool { return o == one })
	c.add(Step{Verb: Delete, Kind: lb.KindPolicy, Ref: one.ref(), Parent: one.side.ref(), Reason: "nothing is routed by this policy any more"})
}

// updatePolicy changes rules and the policy itself. One that requests do not see is shown last. One that they see moves up
// after its rules have changed, and down before: between the calls it then takes nothing from the policies that it passes.
func (c *change) updatePolicy(one *slot) {
	fields := c.policyFields(one)
	side := one.side
	position := 0
	if one.moved {
		if at, moves := side.move(one); moves {
			position = at + 1
			fields = append(fields, "position")
			slices.Sort(fields)
		}
	}
	down := one.old.before(one.new)
	first := one.visible && down || !one.visible && !slices.Contains(fields, "admin_state_up") && !one.have.HasRules()
	if first {
		c.sendPolicy(one, fields, position)
	}
	for _, e := range one.edits {
		c.editRule(one, e)
	}
	if !first {
		c.sendPolicy(one, fields, position)
	}
}

func (c *change) sendPolicy(one *slot, fields []string, position int) {
	if len(fields) == 0 {
		return
	}
	after := c.barePolicy(one.want)
	after.Meta = one.have.Meta
	after.Disabled = one.want.Disabled
	c.add(Step{Verb: Update, Kind: lb.KindPolicy, Ref: one.ref(), Parent: one.side.ref(), Fields: fields, Position: position, Policy: &after, Reason: notAsWanted})
}

func (c *change) editRule(one *slot, e edit) {
	s := Step{Kind: lb.KindRule, Parent: one.ref(), Listener: one.side.ref()}
	switch {
	case e.have == nil:
		s.Verb, s.Ref, s.Rule = Create, Ref{Key: ruleText(*e.want)}, e.want
		s.Reason = "the policy is new"
		if one.have != nil {
			s.Reason = "the policy lacks this rule"
		}
	case e.want == nil:
		s.Verb, s.Ref, s.Reason = Delete, Ref{ID: e.have.ID, Key: ruleText(*e.have)}, "the policy has one rule too many"
	default:
		after := *e.want
		after.ID = e.have.ID
		s.Verb, s.Ref, s.Rule, s.Fields = Update, Ref{ID: e.have.ID, Key: ruleText(*e.have)}, &after, ruleFields(e.want, e.have)
		s.Reason = notAsWanted
	}
	c.add(s)
}

// placeFor is the index among the present policies at which a slot has its new place.
func (s *side) placeFor(one *slot) int {
	at := -1
	for i, other := range s.present {
		if other.now.class != one.new.class {
			continue
		}
		if one.new.before(other.now) {
			if at < 0 {
				return i
			}
			break
		}
		at = i + 1
	}
	if at < 0 {
		return len(s.present)
	}
	return at
}

// move brings a present slot to its new place. It stays where it is when that is right among its new class.
func (s *side) move(one *slot) (at int, moves bool) {
	one.now = one.new
	from := slices.Index(s.present, one)
	fits := true
	for i, other := range s.present {
		if i != from && other.now.class == one.new.class && (i < from) != other.now.before(one.new) {
			fits = false
			break
		}
	}
	if fits {
		return from, false
	}
	s.present = slices.Delete(s.present, from, from+1)
	at = s.placeFor(one)
	s.present = slices.Insert(s.present, at, one)
	return at, true
}
