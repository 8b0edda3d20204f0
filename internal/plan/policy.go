package plan

import (
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// policies brings the policies of a listener that exists to what is wanted.
func (p *planner) policies(want, have *lb.Listener) {
	ref := listenerRef(have)
	matched := p.matchPolicies(want, have)
	taken := map[string]bool{}
	order := make([]*lb.Policy, 0, len(have.Policies)+len(want.Policies))
	for i := range have.Policies {
		taken[have.Policies[i].Key] = true
		order = append(order, &have.Policies[i])
	}
	kept := map[*lb.Policy]bool{}
	for i := range want.Policies {
		q := &want.Policies[i]
		h := matched[q]
		if h == nil {
			p.createPolicy(ref, q, freeKey(q.Key, taken), i+1, "no existing policy matches this")
			order = slices.Insert(order, i, q)
			continue
		}
		kept[h] = true
		fields := p.policyFields(q, h)
		position := 0
		if at := slices.Index(order, h); at != i {
			fields, position = append(fields, "position"), i+1
			order = slices.Insert(slices.Delete(order, at, at+1), i, h)
		}
		if len(fields) == 0 {
			continue
		}
		slices.Sort(fields)
		after := p.barePolicy(q)
		after.Meta = h.Meta
		after.Disabled = q.Disabled
		p.add(Step{Verb: Update, Kind: lb.KindPolicy, Ref: policyRef(h), Parent: ref, Fields: fields, Position: position, Policy: &after, Reason: differ(fields)})
	}
	for i := len(have.Policies) - 1; i >= 0; i-- {
		if h := &have.Policies[i]; !kept[h] {
			p.add(Step{Verb: Delete, Kind: lb.KindPolicy, Ref: policyRef(h), Parent: ref, Reason: "nothing is routed by this policy any more"})
		}
	}
}

// matchPolicies finds for wanted policies existing ones with the same rules.
func (p *planner) matchPolicies(want, have *lb.Listener) map[*lb.Policy]*lb.Policy {
	free := map[string][]*lb.Policy{}
	for i := range have.Policies {
		key := rulesContent(have.Policies[i].Rules)
		free[key] = append(free[key], &have.Policies[i])
	}
	matched := map[*lb.Policy]*lb.Policy{}
	for i := range want.Policies {
		key := rulesContent(want.Policies[i].Rules)
		if found := free[key]; len(found) > 0 {
			matched[&want.Policies[i]] = found[0]
			free[key] = found[1:]
		}
	}
	return matched
}

// rulesContent is what a set of rules matches, as a comparable value.
func rulesContent(rules []lb.Rule) string {
	contents := make([]string, len(rules))
	for i, r := range rules {
		contents[i] = ruleText(r)
	}
	slices.Sort(contents)
	return fmt.Sprintf("%q", contents)
}

func ruleText(r lb.Rule) string {
	text := string(r.Type)
	if r.Key != "" {
		text += " " + r.Key
	}
	if r.Invert {
		text += " not"
	}
	return text + " " + string(r.Compare) + " " + r.Value
}

// policyFields names what differs of what a policy does.
func (p *planner) policyFields(want, have *lb.Policy) []string {
	var fields []string
	if want.Disabled != have.Disabled {
		fields = append(fields, "admin_state_up")
	}
	action := want.Action != have.Action
	if action {
		fields = append(fields, "action")
	}
	switch want.Action {
	case lb.RedirectToPool:
		if action || p.keys[want.Pool] != have.Pool {
			fields = append(fields, "redirect_pool_id")
		}
	case lb.RedirectToURL, lb.RedirectPrefix:
		// Octavia resets the code to 302 when it is sent without the target, so they always go together.
		if action || want.URL != have.URL || want.Code != have.Code {
			target := "redirect_url"
			if want.Action == lb.RedirectPrefix {
				target = "redirect_prefix"
			}
			fields = append(fields, "redirect_http_code", target)
		}
	}
	return fields
}

// barePolicy is the wanted policy without rules, its pool named as in the cloud.
func (p *planner) barePolicy(want *lb.Policy) lb.Policy {
	bare := *want
	bare.Rules = nil
	bare.Pool = p.keys[want.Pool]
	return bare
}

// createPolicy creates a policy at a position. With more than one rule it is built disabled: with only some of them it
// would match too much.
func (p *planner) createPolicy(listener Ref, want *lb.Policy, key string, position int, reason string) {
	ref := Ref{Key: key}
	done := p.barePolicy(want)
	done.Key = key
	building := done
	building.Disabled = want.Disabled || len(want.Rules) > 1
	p.add(Step{Verb: Create, Kind: lb.KindPolicy, Ref: ref, Parent: listener, Position: position, Policy: &building, Reason: reason})
	for i := range want.Rules {
		p.add(Step{Verb: Create, Kind: lb.KindRule, Ref: Ref{Key: ruleText(want.Rules[i])}, Parent: ref, Listener: listener,
			Rule: &want.Rules[i], Reason: "the policy is new"})
	}
	if building.Disabled != want.Disabled {
		p.add(Step{Verb: Update, Kind: lb.KindPolicy, Ref: ref, Parent: listener, Fields: []string{"admin_state_up"}, Policy: &done, Reason: "the policy is complete"})
	}
}

func policyRef(policy *lb.Policy) Ref { return Ref{ID: policy.ID, Key: policy.Key} }
