package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// The generator makes small trees whose policies overlap as much as possible, in the forms that the compiler emits: few
// hosts (exact, wildcard, none), nested paths, exact headers, exclusions, redirects above and below forwards, barriers.

var (
	someHosts = []string{`^a\.test(:[0-9]*)?$`, `^b\.test(:[0-9]*)?$`, `^[^:]+\.test(:[0-9]*)?$`, `^(a\.test|c\.org)(:[0-9]*)?$`}
	somePaths = []lb.Rule{
		path(lb.Regex, "^/x(/|$)"), path(lb.Regex, "^/x/y(/|$)"), path(lb.EqualTo, "/x"), path(lb.EqualTo, "/z"),
		path(lb.Regex, "^/(?:x|z)$"), path(lb.Regex, "^/z(/|$)"),
	}
	everything = lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: "(?!)", Invert: true}
	services   = []string{"s0", "s1", "s2", "s3"}
)

// allRequests are all that can tell generated trees apart, by port.
var allRequests = func() map[int][]route.Request {
	all := map[int][]route.Request{}
	for _, port := range []int{80, 81, 82} {
		for _, host := range []string{"a.test", "b.test:80", "c.test", "c.org", "d.org"} {
			for _, path := range []string{"/", "/x", "/x/y", "/x/w", "/z", "/z/w", "*"} {
				for _, header := range []map[string][]string{nil, {"x-v": {"v1"}}, {"X-V": {"v2"}}, {"X-V": {"v1,v2"}}} {
					all[port] = append(all[port], route.Request{Port: port, Host: host, Path: path, Header: header})
				}
			}
		}
	}
	return all
}()

// requestsTo are those to the ports of the trees.
func requestsTo(trees ...*lb.Tree) []route.Request {
	ports := map[int]bool{}
	var some []route.Request
	for _, tree := range trees {
		for _, l := range tree.Listeners {
			if !ports[l.Port] {
				ports[l.Port] = true
				some = append(some, allRequests[l.Port]...)
			}
		}
	}
	return some
}

func drawRules(t *rapid.T) []lb.Rule {
	var rules []lb.Rule
	if i := rapid.IntRange(-1, len(someHosts)-1).Draw(t, "host"); i >= 0 {
		rules = append(rules, lb.Rule{Type: lb.RuleHost, Compare: lb.Regex, Value: someHosts[i]})
	}
	if i := rapid.IntRange(-1, len(somePaths)-1).Draw(t, "path"); i >= 0 {
		rules = append(rules, somePaths[i])
	}
	switch rapid.IntRange(0, 5).Draw(t, "more") {
	case 0:
		rules = append(rules, exactHeader("v1")...)
	case 1:
		rules = append(rules, exactHeader("v2")...)
	case 2:
		not := rapid.SampledFrom(somePaths).Draw(t, "not")
		not.Invert = true
		rules = append(rules, not)
	}
	if len(rules) == 0 {
		rules = append(rules, everything)
	}
	return rules
}

func drawPolicy(t *rapid.T, pools []string) lb.Policy {
	p := lb.Policy{Rules: drawRules(t)}
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		p.Action, p.URL, p.Code = lb.RedirectPrefix, "https://r1.test", 301
	case 1:
		p.Action, p.URL, p.Code = lb.RedirectToURL, "https://r2.test/", 302
	case 2:
		p.Action = lb.Reject
	default:
		p.Action, p.Pool = lb.RedirectToPool, rapid.SampledFrom(pools).Draw(t, "pool")
	}
	return p
}

// drawPoolKeys names pools by their services, as the compiler does.
func drawPoolKeys(t *rapid.T) []string {
	keys := []string{"s0", "s1"}
	return append(keys, rapid.SampledFrom([]string{"s2", "s3", "s0+s1", "s1+s2"}).Draw(t, "third pool"))
}

// drawPool makes members that say which services they belong to.
func drawPool(t *rapid.T, key string) lb.Pool {
	pool := lb.Pool{Meta: lb.Meta{Key: key, Name: key, Tags: []string{"key=" + key}}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN"}
	scale := rapid.IntRange(1, 2).Draw(t, "endpoints of "+key)
	weight := rapid.IntRange(1, 2).Draw(t, "weight of "+key)
	subnet := rapid.SampledFrom([]string{"", "", "", "m"}).Draw(t, "subnet of "+key)
	for _, service := range strings.Split(key, "+") {
		for i := range scale {
			pool.Members = append(pool.Members, lb.Member{
				Address: fmt.Sprintf("10.%d.0.%d", slices.Index(services, service), i+1), Port: 80, Weight: weight, SubnetID: subnet,
			})
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "monitor of "+key) {
	case 0:
		pool.Monitor = &lb.Monitor{Type: "HTTP", Delay: 5, Timeout: 3, MaxRetries: 3, MaxRetriesDown: 3, HTTPMethod: "GET", URLPath: "/", ExpectedCodes: "200"}
	default:
		pool.Monitor = &lb.Monitor{Type: "TCP", Delay: rapid.IntRange(5, 6).Draw(t, "delay"), Timeout: 3, MaxRetries: 3, MaxRetriesDown: 3}
	}
	return pool
}

func drawTree(t *rapid.T, most int) *lb.Tree {
	tree := &lb.Tree{Meta: lb.Meta{Name: "gw"}}
	keys := drawPoolKeys(t)
	for _, port := range rapid.SampledFrom([][]int{{80}, {80}, {80, 81}, {80, 82}}).Draw(t, "ports") {
		l := lb.Listener{Meta: lb.Meta{Key: fmt.Sprintf("http-%d", port)}, Protocol: lb.HTTP, Port: port}
		if rapid.IntRange(0, 2).Draw(t, "default") == 0 {
			l.DefaultPool = rapid.SampledFrom(keys).Draw(t, "default pool")
		}
		for range rapid.IntRange(0, most).Draw(t, "policies") {
			l.Policies = append(l.Policies, drawPolicy(t, keys))
		}
		tree.Listeners = append(tree.Listeners, l)
	}
	return named(withPools(t, tree))
}

// mutate makes a few changes such as users make.
func mutate(t *rapid.T, old *lb.Tree) *lb.Tree {
	tree := &lb.Tree{Meta: old.Meta}
	for _, l := range old.Listeners {
		l.Policies = slices.Clone(l.Policies)
		for i := range l.Policies {
			l.Policies[i].Rules = slices.Clone(l.Policies[i].Rules)
		}
		tree.Listeners = append(tree.Listeners, l)
	}
	keys := drawPoolKeys(t)
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		l := &tree.Listeners[rapid.IntRange(0, len(tree.Listeners)-1).Draw(t, "listener")]
		n := len(l.Policies)
		kind := rapid.IntRange(0, 8).Draw(t, "change")
		if n == 0 && kind != 8 {
			kind = 0
		}
		i := 0
		if n > 0 {
			i = rapid.IntRange(0, n-1).Draw(t, "at")
		}
		switch kind {
		case 0:
			l.Policies = slices.Insert(l.Policies, rapid.IntRange(0, n).Draw(t, "insert at"), drawPolicy(t, keys))
		case 1:
			l.Policies = slices.Delete(l.Policies, i, i+1)
		case 2:
			j := rapid.IntRange(0, n-1).Draw(t, "swap with")
			l.Policies[i], l.Policies[j] = l.Policies[j], l.Policies[i]
		case 3:
			l.Policies[i].Rules = drawRules(t)
		case 4, 5:
			r := rapid.IntRange(0, len(l.Policies[i].Rules)-1).Draw(t, "rule")
			rule := &l.Policies[i].Rules[r]
			switch rule.Type {
			case lb.RuleHost:
				rule.Value = rapid.SampledFrom(someHosts).Draw(t, "new host")
			case lb.RulePath:
				*rule = rapid.SampledFrom(somePaths).Draw(t, "new path")
			default:
				l.Policies[i].Rules = slices.Delete(l.Policies[i].Rules, r, r+1)
				if len(l.Policies[i].Rules) == 0 {
					l.Policies[i].Rules = []lb.Rule{everything}
				}
			}
		case 6:
			goal := drawPolicy(t, keys)
			goal.Rules = l.Policies[i].Rules
			l.Policies[i] = goal
		case 7:
			// A Service is replaced by another one.
			from, to := l.Policies[i].Pool, rapid.SampledFrom(keys).Draw(t, "new service")
			for j := range l.Policies {
				if l.Policies[j].Action == lb.RedirectToPool && l.Policies[j].Pool == from {
					l.Policies[j].Pool = to
				}
			}
		case 8:
			l.DefaultPool = rapid.SampledFrom(append(keys, "")).Draw(t, "new default")
		}
	}
	return named(withPools(t, tree))
}

// withPools adds the pools that the tree uses.
func withPools(t *rapid.T, tree *lb.Tree) *lb.Tree {
	used := map[string]bool{}
	for _, l := range tree.Listeners {
		if l.DefaultPool != "" {
			used[l.DefaultPool] = true
		}
		for _, p := range l.Policies {
			if p.Action == lb.RedirectToPool {
				used[p.Pool] = true
			}
		}
	}
	tree.Pools = nil
	for _, key := range slices.Sorted(maps.Keys(used)) {
		tree.Pools = append(tree.Pools, drawPool(t, key))
	}
	return tree
}

// named gives policies keys by their number, so that keys change hands as they do when rules are inserted into a route.
func named(tree *lb.Tree) *lb.Tree {
	for i := range tree.Listeners {
		for j := range tree.Listeners[i].Policies {
			tree.Listeners[i].Policies[j].Meta = lb.Meta{Key: fmt.Sprintf("r/%d", j)}
		}
	}
	return tree
}

// damage does to an existing tree what people and crashes do.
func damage(t *rapid.T, tree *lb.Tree) {
	for range rapid.IntRange(0, 3).Draw(t, "damages") {
		switch rapid.IntRange(0, 5).Draw(t, "damage") {
		case 0:
			if n := len(tree.Pools); n > 0 {
				pool := &tree.Pools[rapid.IntRange(0, n-1).Draw(t, "pool")]
				if rapid.IntRange(0, 2).Draw(t, "pool damage") > 0 {
					pool.Disabled = true
				} else {
					pool.ProvisioningStatus = lb.Errored
				}
			}
		case 1:
			l := &tree.Listeners[rapid.IntRange(0, len(tree.Listeners)-1).Draw(t, "listener off")]
			if l.Disabled = rapid.IntRange(0, 2).Draw(t, "listener damage") > 0; !l.Disabled {
				l.ProvisioningStatus = lb.Errored
			}
		case 2, 3, 4:
			l := &tree.Listeners[rapid.IntRange(0, len(tree.Listeners)-1).Draw(t, "listener")]
			if len(l.Policies) == 0 {
				continue
			}
			p := &l.Policies[rapid.IntRange(0, len(l.Policies)-1).Draw(t, "policy")]
			p.Disabled = rapid.Bool().Draw(t, "policy off")
			if rapid.IntRange(0, 4).Draw(t, "policy in ERROR") == 0 {
				p.ProvisioningStatus = lb.Errored
			}
			if len(p.Rules) > 0 && rapid.Bool().Draw(t, "rules lost") {
				p.Rules = p.Rules[:rapid.IntRange(0, len(p.Rules)-1).Draw(t, "rules left")]
			}
			if rapid.Bool().Draw(t, "rules off") {
				p.Rules = slices.Clone(p.Rules)
				for i := range p.Rules {
					p.Rules[i].Disabled = rapid.Bool().Draw(t, "rule off")
				}
			}
		case 5:
			tree.Disabled = rapid.IntRange(0, 3).Draw(t, "load balancer off") == 0
		}
	}
}
