package plan

import (
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// matches is the set of requests that hold all of some rules: the rules' numbers in a ruleBook, sorted. No rules are all
// requests (the default pool), not none. A disabled rule has a number of its own, and every request holds it.
type matches []int

// ruleBook numbers distinct rules and remembers which exclude each other. All that it says is proven: where it cannot
// tell, sets overlap. A Host header with a comma, which no client may send, is not considered: it could hold two hosts.
type ruleBook struct {
	numbers   map[lb.Rule]int
	rules     []lb.Rule
	languages []*language
	exclusive map[[2]int]bool
}

func newRuleBook() *ruleBook {
	return &ruleBook{numbers: map[lb.Rule]int{}, exclusive: map[[2]int]bool{}}
}

// number returns the same number for rules with the same meaning.
func (b *ruleBook) number(r lb.Rule) int {
	r = sameRule(r)
	n, found := b.numbers[r]
	if !found {
		n = len(b.rules)
		b.numbers[r] = n
		b.rules = append(b.rules, r)
		b.languages = append(b.languages, nil)
	}
	return n
}

// sameRule takes away what does not matter: ids, and the case of a header's name.
func sameRule(r lb.Rule) lb.Rule {
	r.ID = ""
	if r.Key != "" {
		r.Key = strings.ToLower(r.Key)
	}
	return r
}

func (b *ruleBook) matches(rules []lb.Rule) matches {
	m := make(matches, len(rules))
	for i, r := range rules {
		m[i] = b.number(r)
	}
	slices.Sort(m)
	return slices.Compact(m)
}

// overlap says whether one request may be in both sets.
func (b *ruleBook) overlap(x, y matches) bool {
	for _, r := range x {
		for _, s := range y {
			if b.excludes(r, s) {
				return false
			}
		}
	}
	return true
}

// empty says whether provably no request is in the set.
func (b *ruleBook) empty(x matches) bool {
	for i, r := range x {
		for _, s := range x[i+1:] {
			if b.excludes(r, s) {
				return true
			}
		}
	}
	return false
}

// covered says whether provably each request that is in x and in y is also in by.
func (b *ruleBook) covered(x, y, by matches) bool {
	for _, r := range by {
		if !b.rules[r].Disabled && !slices.Contains(x, r) && !slices.Contains(y, r) {
			return false
		}
	}
	return true
}

func (b *ruleBook) excludes(r, s int) bool {
	if r == s {
		return false
	}
	x, y := &b.rules[r], &b.rules[s]
	if x.Type != y.Type || x.Key != y.Key || x.Invert && y.Invert || x.Disabled || y.Disabled {
		return false
	}
	if r > s {
		r, s = s, r
	}
	known, found := b.exclusive[[2]int{r, s}]
	if !found {
		known = b.prove(r, s)
		b.exclusive[[2]int{r, s}] = known
	}
	return known
}

// prove says whether no request can hold both rules. Of a header any element may hold a rule, so that two rules exclude
// each other only when one is inverted: it speaks of all elements.
func (b *ruleBook) prove(r, s int) bool {
	x, y := b.rules[r], b.rules[s]
	switch {
	case x.Invert:
		return b.language(s).within(b.language(r))
	case y.Invert:
		return b.language(r).within(b.language(s))
	}
	return x.Type != lb.RuleHeader && b.language(r).disjoint(b.language(s))
}

func (b *ruleBook) language(n int) *language {
	if b.languages[n] == nil {
		b.languages[n] = newLanguage(b.rules[n])
	}
	return b.languages[n]
}
