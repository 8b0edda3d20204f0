package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// seen is what a client can tell of an answer: for a pool, its members.
type seen struct {
	kind     route.Kind
	code     int
	location string
	members  string
	// services names the backends, whatever members they have now.
	services string
}

var rules route.Cache

func look(t *rapid.T, tree *lb.Tree, requests []route.Request) []seen {
	e, err := rules.New(tree)
	if err != nil {
		t.Fatal(err)
	}
	pools := map[string]seen{}
	for i := range tree.Pools {
		pools[tree.Pools[i].Key] = seen{members: members(&tree.Pools[i]), services: baseKey(tree.Pools[i].Key)}
	}
	out := make([]seen, len(requests))
	for i, r := range requests {
		a := e.Route(r)
		out[i] = pools[a.Pool]
		out[i].kind, out[i].code, out[i].location = a.Kind, a.Code, a.Location
	}
	return out
}

func members(pool *lb.Pool) string {
	var out []string
	for _, m := range memberContents(pool.Members) {
		out = append(out, fmt.Sprintf("%s*%d", m.Address, m.Weight))
	}
	return strings.Join(out, " ")
}

// safely applies a plan and checks after each step that every request has its old or its new answer. A pool counts as
// the same when it is one of the same services with their old or their new members.
func safely(t *rapid.T, old, want *lb.Tree, p Plan, steps int) *lb.Tree {
	state := *old
	wanted := state
	for _, s := range p.Steps {
		if err := Apply(&wanted, s); err != nil {
			t.Fatalf("%v\nin the plan\n%s", err, p)
		}
	}
	requests := requestsTo(old, want)
	before, after := look(t, old, requests), look(t, want, requests)
	fresh := map[string]bool{}
	for _, tree := range []*lb.Tree{old, want} {
		for i := range tree.Pools {
			fresh[baseKey(tree.Pools[i].Key)+" "+members(&tree.Pools[i])] = true
		}
	}
	for n, s := range p.Steps[:steps] {
		last := state
		if err := Apply(&state, s); err != nil {
			t.Fatalf("%v\nin the plan\n%s", err, p)
		}
		if reflect.DeepEqual(last, state) {
			t.Fatalf("step %d (%s) does nothing in the plan\n%s", n+1, s, p)
		}
		if s.Kind == lb.KindMonitor {
			continue
		}
		for i, now := range look(t, &state, requests) {
			same := func(o seen) bool {
				return now == o || now.kind == o.kind && now.code == o.code && now.location == o.location &&
					(now.members == o.members || now.services == o.services && fresh[now.services+" "+now.members])
			}
			if !same(before[i]) && !same(after[i]) {
				t.Fatalf("after step %d (%s)\n%+v gets\n%+v; old is\n%+v, new is\n%+v\nplan:\n%s\nold:\n%s\nnew:\n%s",
					n+1, s, requests[i], now, before[i], after[i], p, show(old), show(want))
			}
		}
	}
	return &state
}

// equal checks that a tree is what was wanted.
func equal(t *rapid.T, want, have *lb.Tree) {
	if again := New(want, have); !again.Empty() {
		t.Fatalf("a second plan does\n%s\nhave:\n%s\nwant:\n%s", again, show(have), show(want))
	}
	requests := requestsTo(have, want)
	w, h := look(t, want, requests), look(t, have, requests)
	for i := range w {
		w[i].services, h[i].services = "", ""
		if w[i] != h[i] {
			t.Fatalf("%+v gets\n%+v, wanted\n%+v", requests[i], h[i], w[i])
		}
	}
	if a, b := contents(want), contents(have); !slices.Equal(a, b) {
		t.Fatalf("have\n%s\nwant\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
	}
}

// contents lists what a tree consists of, without order, ids and keys.
func contents(tree *lb.Tree) []string {
	var out []string
	pool := func(key string) string {
		if p := tree.PoolByKey(key); p != nil {
			return poolContent(p)
		}
		return key
	}
	for _, p := range tree.Pools {
		out = append(out, "pool "+poolContent(&p))
	}
	for _, l := range tree.Listeners {
		out = append(out, fmt.Sprint("listener ", l.Port, l.Protocol, l.Disabled, pool(l.DefaultPool)))
		for _, p := range l.Policies {
			out = append(out, fmt.Sprint("policy ", l.Port, p.Disabled, p.Action, p.URL, p.Code, pool(p.Pool), rulesOf(p)))
		}
	}
	slices.Sort(out)
	return out
}

func rulesOf(p lb.Policy) []string {
	var out []string
	for _, r := range p.Rules {
		out = append(out, ruleText(sameRule(r)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func show(tree *lb.Tree) string {
	var b strings.Builder
	for _, l := range tree.Listeners {
		fmt.Fprintf(&b, "%s default %q%s\n", l.Key, l.DefaultPool, disabled(l.Disabled))
		for _, p := range l.Policies {
			fmt.Fprintf(&b, "  %s %s%s if %v\n", p.Key, target(&p), disabled(p.Disabled), rulesOf(p))
		}
	}
	for _, p := range tree.Pools {
		fmt.Fprintf(&b, "%s: %s%s\n", p.Key, members(&p), disabled(p.Disabled))
	}
	return b.String()
}

func observed(t *rapid.T, want *lb.Tree) *lb.Tree {
	have := &lb.Tree{}
	for _, s := range New(want, have).Steps {
		if err := Apply(have, s); err != nil {
			t.Fatal(err)
		}
	}
	return have
}

func TestNew_misroutesNothingBetweenUnrelatedTrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		old, want := observed(t, drawTree(t, 5)), drawTree(t, 5)
		p := New(want, old)
		equal(t, want, safely(t, old, want, p, len(p.Steps)))
	})
}

func TestNew_misroutesNothingAfterSmallChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := drawTree(t, 7)
		old, want := observed(t, first), mutate(t, first)
		p := New(want, old)
		equal(t, want, safely(t, old, want, p, len(p.Steps)))
	})
}

func TestNew_misroutesNothingAfterCrashesAndDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := drawTree(t, 5)
		old, want := observed(t, first), mutate(t, first)
		p := New(want, old)
		state := safely(t, old, want, p, rapid.IntRange(0, len(p.Steps)).Draw(t, "steps done"))
		damage(t, state)
		if rapid.Bool().Draw(t, "changed meanwhile") {
			want = mutate(t, want)
		}
		p = New(want, state)
		equal(t, want, safely(t, state, want, p, len(p.Steps)))
	})
}

// With too many events to compare in pairs, the plan does without the shortcuts that need it.
func TestNew_misroutesNothingWithManyEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := drawTree(t, 7)
		old, want := observed(t, first), mutate(t, first)
		if rapid.Bool().Draw(t, "damaged") {
			damage(t, old)
		}
		planner := newPlanner(want, old)
		planner.pairs = 1
		p := planner.plan()
		equal(t, want, safely(t, old, want, p, len(p.Steps)))
	})
}

// A pool that somebody disabled hides a policy that comes before the new one.
func TestNew_withManyEventsEnablesNoPoolLate(t *testing.T) {
	t.Parallel()
	const pools = "\n  pool a: 10.0.0.1\n  pool b"
	have, want := &lb.Tree{}, parseTree(t, "listener 80 default=b\n r/0: host=foo path=/a -> pool b\n r/1: host=foo path=/a header=X-V:v1 -> pool a"+pools+": 10.0.1.1")
	observe(t, have, parseTree(t, "listener 80 default=b\n r/0: host=foo path=/a -> pool b"+pools+": disabled 10.0.1.1"))
	planner := newPlanner(want, have)
	planner.pairs = 1
	p := planner.plan()
	shown := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind == lb.KindPolicy && s.Verb == Update && s.Ref.Key == "r/1" })
	served := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind == lb.KindPolicy && s.Verb == Update && s.Ref.Key == "r/0" })
	if shown < 0 || served < 0 || served > shown {
		t.Errorf("r/0 has its pool too late:\n%s", p)
	}
}

func TestNew_doesNothingForEqualTrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawTree(t, 8)
		if p := New(want, observed(t, want)); !p.Empty() {
			t.Fatalf("got\n%s", p)
		}
	})
}
