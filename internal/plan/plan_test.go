package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func testPool(key string, addresses ...string) lb.Pool {
	pool := lb.Pool{Meta: lb.Meta{Key: key, Name: key}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN",
		Monitor: &lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 3, MaxRetriesDown: 3}}
	for _, a := range addresses {
		pool.Members = append(pool.Members, lb.Member{Address: a, Port: 80, Weight: 1})
	}
	return pool
}

func testPolicy(key, pool, host, path string) lb.Policy {
	policy := lb.Policy{Meta: lb.Meta{Key: key, Name: key}, Action: lb.RedirectToPool, Pool: pool}
	if host != "" {
		policy.Rules = append(policy.Rules, lb.Rule{Type: lb.RuleHost, Compare: lb.Regex, Value: `^` + host + `\.example(:[0-9]*)?$`})
	}
	if path != "" {
		policy.Rules = append(policy.Rules, lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: `^` + path + `(/|$)`})
	}
	return policy
}

func testTree(policies ...lb.Policy) *lb.Tree {
	return &lb.Tree{
		Meta: lb.Meta{Key: "loadbalancer", Name: "gw"},
		VIP:  lb.VIP{SubnetID: "subnet"},
		Listeners: []lb.Listener{
			{Meta: lb.Meta{Key: "80", Name: "80"}, Protocol: lb.HTTP, Port: 80, Policies: policies},
		},
		Pools: []lb.Pool{testPool("a", "10.0.0.1"), testPool("b", "10.0.0.2")},
	}
}

// built is the tree as the cloud has it after it was created.
func built(t testing.TB, want *lb.Tree) *lb.Tree {
	t.Helper()
	have := &lb.Tree{}
	applyAll(t, have, New(want, have))
	return have
}

func applyAll(t testing.TB, have *lb.Tree, p Plan) {
	t.Helper()
	for _, s := range p.Steps {
		if err := Apply(have, s); err != nil {
			t.Fatalf("%v\nin the plan\n%s", err, p)
		}
	}
}

func TestNew_createsInOneCall(t *testing.T) {
	t.Parallel()
	want := testTree(testPolicy("p1", "a", "foo", "/a"), testPolicy("p2", "b", "foo", ""))
	want.FloatingIP = &lb.FloatingIP{NetworkID: "public"}
	p := New(want, &lb.Tree{})
	if len(p.Steps) != 2 || p.Steps[0].Kind != lb.KindLoadBalancer || p.Steps[1].Kind != lb.KindFloatingIP {
		t.Fatalf("got\n%s", p)
	}
	have := built(t, want)
	if again := New(want, have); !again.Empty() {
		t.Errorf("a second plan does\n%s", again)
	}
}

func TestNew_removesInOneCall(t *testing.T) {
	t.Parallel()
	want := testTree(testPolicy("p1", "a", "foo", "/a"))
	want.FloatingIP = &lb.FloatingIP{NetworkID: "public"}
	have := built(t, want)
	p := New(&lb.Tree{}, have)
	if len(p.Steps) != 2 || p.Steps[0].Kind != lb.KindFloatingIP || p.Steps[1].Kind != lb.KindLoadBalancer {
		t.Fatalf("got\n%s", p)
	}
	applyAll(t, have, p)
	if !have.Empty() || have.FloatingIP != nil {
		t.Errorf("left: %+v", have)
	}
}

func TestNew_doesNotCascadeOverForeignChildren(t *testing.T) {
	t.Parallel()
	have := built(t, testTree(testPolicy("p1", "a", "foo", "/a")))
	have.Foreign = []lb.Foreign{{Kind: lb.KindListener, ID: "x", Port: 81}}
	p := New(&lb.Tree{}, have)
	applyAll(t, have, p)
	if have.Empty() || len(have.Listeners)+len(have.Pools) > 0 || len(p.Conflicts) != 1 {
		t.Errorf("got\n%s", p)
	}
}

func TestNew_changesObjectByObject(t *testing.T) {
	t.Parallel()
	have := built(t, testTree(testPolicy("p1", "a", "foo", "/a"), testPolicy("p2", "b", "foo", "")))
	want := testTree(testPolicy("p3", "c", "foo", "/c"), testPolicy("p1", "a", "foo", "/a"))
	want.Pools = []lb.Pool{testPool("a", "10.0.0.1", "10.0.0.3"), testPool("c", "10.0.0.4")}
	want.Listeners = append(want.Listeners, lb.Listener{Meta: lb.Meta{Key: "81"}, Protocol: lb.HTTP, Port: 81, DefaultPool: "c",
		Policies: []lb.Policy{testPolicy("p1", "a", "foo", "")}})
	applyAll(t, have, New(want, have))
	if again := New(want, have); !again.Empty() {
		t.Errorf("a second plan does\n%s", again)
	}
}

func TestPlan_printsAsJSONAndGraph(t *testing.T) {
	t.Parallel()
	if got, err := New(nil, nil).JSON(); err != nil || string(got) != "{\n  \"steps\": []\n}" {
		t.Errorf("got %s, %v", got, err)
	}
	have := built(t, testTree(testPolicy("p1", "a", "foo", "/a")))
	want := testTree(testPolicy("p1", "c", "foo", "/a"), testPolicy("p2", "a", "foo", ""))
	want.Pools = append(want.Pools, testPool("c", "10.0.0.4"))
	p := New(want, have)
	data, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Plan
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("got back\n%s, %v", back, err)
	}
	if graph := p.Graph(); strings.Count(graph, "label=") != len(p.Steps) || !strings.Contains(graph, "s1 -> s2;") {
		t.Errorf("got %s", graph)
	}
}

func TestPlan_dependsOnWhatItNeeds(t *testing.T) {
	t.Parallel()
	have := built(t, testTree(testPolicy("p1", "b", "foo", "/a")))
	want := testTree(testPolicy("p1", "c", "foo", "/a"), testPolicy("p2", "c", "bar", "/a"))
	want.Pools = []lb.Pool{testPool("a", "10.0.0.1", "10.0.0.7"), testPool("c", "10.0.0.4")}
	p := New(want, have)
	// Any order that keeps the dependencies can be applied: here the one that delays each step as long as it can.
	depends, done := p.Depends(), make([]bool, len(p.Steps))
	for range p.Steps {
		for i := len(p.Steps) - 1; i >= 0; i-- {
			if !done[i] && !slices.ContainsFunc(depends[i], func(d int) bool { return !done[d] }) {
				if err := Apply(have, p.Steps[i]); err != nil {
					t.Fatalf("%v in\n%s", err, p.Graph())
				}
				done[i] = true
				break
			}
		}
	}
	if again := New(want, have); !again.Empty() {
		t.Errorf("a second plan does\n%s", again)
	}
}

func TestPlan_withoutDeletesDeletesNothing(t *testing.T) {
	t.Parallel()
	first := testTree(testPolicy("p1", "a", "foo", "/a"), testPolicy("p2", "b", "foo", ""))
	first.FloatingIP = &lb.FloatingIP{NetworkID: "public"}
	have := built(t, first)
	if p := New(nil, have).WithoutDeletes(); len(p.Steps) != 0 || len(p.Conflicts) != 2 {
		t.Errorf("got\n%s", p)
	}
	want := testTree(testPolicy("p1", "a", "bar", "/a"))
	want.Listeners[0].Protocol = lb.TerminatedHTTPS
	want.Pools[0].Monitor.Type = "HTTP"
	want.FloatingIP = &lb.FloatingIP{NetworkID: "other"}
	p := New(want, have).WithoutDeletes()
	if len(p.Steps) != 0 || len(p.Conflicts) == 0 {
		t.Errorf("got\n%s", p)
	}
	applyAll(t, have, p)
}

func TestWithoutCertificates_letsTheRestGoOn(t *testing.T) {
	t.Parallel()
	tree := func(text string) *lb.Tree { return parseTree(t, text) }
	have := &lb.Tree{}
	observe(t, have, tree("secret old\nlistener 443 cert=old default=d\npool d: 10.0.9.1"))
	want := tree("secret new\nlistener 80 default=e\nlistener 443 cert=new default=d\nlistener 8443 cert=new default=f\npool d: 10.0.9.1\npool e: 10.0.9.2\npool f: 10.0.9.3")
	// The cloud refuses the certificate once it is stored.
	applyAll(t, have, Plan{Steps: New(want, have).Steps[:1]})
	p := New(WithoutCertificates(want, have), have)
	applyAll(t, have, p)
	var keys []string
	for _, l := range have.Listeners {
		keys = append(keys, l.Key)
	}
	if got := strings.Join(keys, " "); got != "http-80 https-443" || have.ListenerByKey("https-443").TLS.Default != "old" {
		t.Errorf("got listeners %s", got)
	}
	if have.SecretByKey("old") == nil || have.SecretByKey("new") == nil || have.PoolByKey("f") != nil {
		t.Errorf("secrets %v, pools %v", have.Secrets, have.Pools)
	}
	// When the cloud takes certificates again, the secret is not stored a second time.
	for _, s := range New(want, have).Steps {
		if s.Kind == lb.KindSecret && s.Verb == Create {
			t.Errorf("stores %s again", s.Ref.Key)
		}
	}
}

// Real Octavia leaves a listener in ERROR below an ACTIVE load balancer when the amphora cannot be reached for a while, and has it ACTIVE
// again after the next write of it.
func TestNew_writesAListenerInErrorAgain(t *testing.T) {
	t.Parallel()
	want := testTree(testPolicy("p", "a", "a", "/x"), testPolicy("q", "b", "", "/y"))
	have := built(t, want)
	have.Listeners[0].ProvisioningStatus = lb.Errored
	p := New(want, have)
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.Verb)+" "+string(s.Kind)+" "+s.Ref.Key+" "+strings.Join(s.Fields, ","))
	}
	if want := []string{"update listener 80 admin_state_up"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	applyAll(t, have, p)
	if p := New(want, have); !p.Empty() {
		t.Errorf("left to do: %s", p)
	}
}
