package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Evaluator answers requests for one tree. It is safe for concurrent use; the tree must not change below it.
type Evaluator struct {
	listeners map[int]*listener
	// matchers are the distinct rules of the tree.
	matchers []*matcher
}

// listener is a rendered listener: its policies in the order in which HAProxy asks them.
type listener struct {
	key         string
	defaultPool string
	policies    []policy
	// skipped are the policies that Octavia does not render, for Explain.
	skipped []skippedPolicy
}

type policy struct {
	*lb.Policy
	class class
	// rules index Evaluator.matchers.
	rules []int
	// target is the URL or prefix as rendered.
	target string
}

// class orders policies before their position does.
type class int

const (
	classReject class = iota
	classRedirect
	classPool
)

// New prepares a tree. It fails when a rendered object would break HAProxy's configuration or cannot be evaluated; the
// error names each such policy.
func New(tree *lb.Tree) (*Evaluator, error) { return new(Cache).New(tree) }

// New is the package's New, with rules from the cache.
func (c *Cache) New(tree *lb.Tree) (*Evaluator, error) {
	e := &Evaluator{listeners: map[int]*listener{}}
	if tree.Empty() || tree.Disabled {
		return e, nil
	}
	enabled := make(map[string]bool, len(tree.Pools))
	for i := range tree.Pools {
		enabled[tree.Pools[i].Key] = !tree.Pools[i].Disabled
	}
	interned := map[lb.Rule]int{}
	var errs []error
	for i := range tree.Listeners {
		l := &tree.Listeners[i]
		if l.Disabled {
			continue
		}
		rendered := &listener{key: l.Key}
		if enabled[l.DefaultPool] {
			rendered.defaultPool = l.DefaultPool
		}
		byClass := [3][]policy{}
		for j := range l.Policies {
			p := &l.Policies[j]
			if why := notRendered(p, enabled); why != "" {
				rendered.skipped = append(rendered.skipped, skippedPolicy{p, why})
				continue
			}
			ready, err := e.policy(p, c, interned)
			if err != nil {
				errs = append(errs, fmt.Errorf("listener %s, policy %s: %w", l.Key, p.Key, err))
				continue
			}
			byClass[ready.class] = append(byClass[ready.class], ready)
		}
		for _, policies := range byClass {
			rendered.policies = append(rendered.policies, policies...)
		}
		e.listeners[l.Port] = rendered
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, nil
}

// notRendered says why Octavia leaves a policy out of HAProxy's configuration; "" when it does not.
func notRendered(p *lb.Policy, enabled map[string]bool) string {
	switch {
	case p.Disabled:
		return "the policy is disabled"
	case len(p.Rules) == 0:
		return "the policy has no rules"
	case !p.HasRules():
		return "all rules of the policy are disabled"
	case p.Action != lb.RedirectToPool:
		return ""
	}
	switch on, found := enabled[p.Pool]; {
	case !found:
		return fmt.Sprintf("its pool %q does not exist", p.Pool)
	case !on:
		return fmt.Sprintf("its pool %q is disabled", p.Pool)
	}
	return ""
}

func (e *Evaluator) policy(p *lb.Policy, c *Cache, interned map[lb.Rule]int) (policy, error) {
	if slices.ContainsFunc(p.Rules, func(r lb.Rule) bool { return r.Disabled }) {
		// Octavia renders the policy without them.
		rest := *p
		rest.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r lb.Rule) bool { return r.Disabled })
		p = &rest
	}
	ready := policy{Policy: p, rules: make([]int, len(p.Rules))}
	var err error
	switch p.Action {
	case lb.Reject:
		ready.class = classReject
	case lb.RedirectToURL, lb.RedirectPrefix:
		ready.class = classRedirect
		if ready.target, err = renderedLine(p.URL); err != nil {
			return policy{}, err
		}
	case lb.RedirectToPool:
		ready.class = classPool
	default:
		return policy{}, fmt.Errorf("action %q is not known", p.Action)
	}
	for i, rule := range p.Rules {
		rule.ID = ""
		index, found := interned[rule]
		if !found {
			m, err := c.matcher(rule)
			if err != nil {
				return policy{}, fmt.Errorf("rule %d: %w", i+1, err)
			}
			index = len(e.matchers)
			interned[rule] = index
			e.matchers = append(e.matchers, m)
		}
		ready.rules[i] = index
	}
	return ready, nil
}

// Route says what becomes of a request.
func (e *Evaluator) Route(r Request) Answer {
	l := e.listeners[r.Port]
	if l == nil {
		return Answer{Kind: NoListener}
	}
	v := newView(r, len(e.matchers))
	for i := range l.policies {
		if p := &l.policies[i]; e.matches(p, v) {
			return l.answer(p, r)
		}
	}
	return l.answer(nil, r)
}

func (e *Evaluator) matches(p *policy, v *view) bool {
	for _, index := range p.rules {
		if !v.holds(index, e.matchers[index]) {
			return false
		}
	}
	return true
}

// answer is what the listener does with a request that p takes; nil when no policy does.
func (l *listener) answer(p *policy, r Request) Answer {
	answer := Answer{Listener: l.key}
	switch {
	case p == nil && l.defaultPool == "":
		answer.Kind, answer.Code = NoPool, 503
	case p == nil:
		answer.Kind, answer.Pool = Pool, l.defaultPool
	case p.class == classReject:
		answer.Kind, answer.Code = Rejected, 403
	case p.class == classPool:
		answer.Kind, answer.Pool = Pool, p.Pool
	default:
		answer.Kind, answer.Location, answer.Code = Redirect, p.target, p.Code
		if p.Code == 0 {
			answer.Code = 302
		}
		// A prefix keeps path and query, with "/" for no path; a URL drops both.
		if p.Action == lb.RedirectPrefix {
			answer.Location += cmp.Or(pathAndQuery(r.Path), "/")
		}
	}
	if p != nil {
		answer.Policy = p.Key
	}
	return answer
}
