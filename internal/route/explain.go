package route

import (
	"fmt"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Explanation says for every policy of a listener what it did with a request.
type Explanation struct {
	Answer Answer
	// Policies are in the order in which HAProxy asks them, then those that are not rendered.
	Policies []PolicyExplanation
}

// PolicyExplanation is one policy's part. Exactly one of NotRendered, Matched and a failed rule is the case.
type PolicyExplanation struct {
	Policy *lb.Policy
	// NotRendered says why Octavia leaves the policy out; "" when it does not.
	NotRendered string
	// Matched says that all rules hold; Decided that it was the first such policy.
	Matched bool
	Decided bool
	// Rules has one entry per rule of a rendered policy.
	Rules []RuleExplanation
}

// RuleExplanation says whether a rule holds for the request, inversion included.
type RuleExplanation struct {
	Rule  lb.Rule
	Holds bool
}

type skippedPolicy struct {
	policy *lb.Policy
	why    string
}

// Explain is Route with the reasons. Unlike HAProxy it asks every policy and every rule.
func (e *Evaluator) Explain(r Request) Explanation {
	out := Explanation{Answer: e.Route(r)}
	l := e.listeners[r.Port]
	if l == nil {
		return out
	}
	v := newView(r, len(e.matchers))
	decided := false
	for i := range l.policies {
		p := &l.policies[i]
		one := PolicyExplanation{Policy: p.Policy, Matched: true}
		for j, index := range p.rules {
			ok := v.holds(index, e.matchers[index])
			one.Matched = one.Matched && ok
			one.Rules = append(one.Rules, RuleExplanation{Rule: p.Rules[j], Holds: ok})
		}
		one.Decided = one.Matched && !decided
		decided = decided || one.Matched
		out.Policies = append(out.Policies, one)
	}
	for _, s := range l.skipped {
		out.Policies = append(out.Policies, PolicyExplanation{Policy: s.policy, NotRendered: s.why})
	}
	return out
}

// String is one line.
func (a Answer) String() string {
	var what string
	switch a.Kind {
	case Pool:
		what = "pool " + a.Pool
	case Redirect:
		what = fmt.Sprintf("redirect %d to %s", a.Code, a.Location)
	case Rejected:
		what = "rejected with 403"
	case NoPool:
		what = "503: no policy matches and there is no default pool"
	case NoListener:
		return "nothing listens on this port"
	}
	if a.Policy != "" {
		what += " by policy " + a.Policy
	}
	return what
}

// String is one line for the answer and one for each policy.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, x.Answer)
	for _, p := range x.Policies {
		fmt.Fprintf(&b, "  %s: %s\n", p.Policy.Key, p.reason())
	}
	return b.String()
}

func (p PolicyExplanation) reason() string {
	switch {
	case p.NotRendered != "":
		return "not in HAProxy's configuration: " + p.NotRendered
	case p.Decided:
		return "matches, and decides"
	case p.Matched:
		return "matches, but an earlier policy decides"
	}
	var failed []string
	for _, r := range p.Rules {
		if !r.Holds {
			failed = append(failed, ruleText(r.Rule))
		}
	}
	return "does not match: " + strings.Join(failed, ", ")
}

func ruleText(r lb.Rule) string {
	text := string(r.Type)
	if r.Key != "" {
		text += " " + r.Key
	}
	if r.Invert {
		text += " not"
	}
	return fmt.Sprintf("%s %s %q", text, r.Compare, r.Value)
}
