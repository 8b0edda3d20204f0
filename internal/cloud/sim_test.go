package cloud

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// hurriedClock is a simulator's clock that moves on when we sleep.
type hurriedClock struct{ *sim.FakeClock }

func (c hurriedClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		c.Advance(d)
	}
	return ctx.Err()
}

// ground is a simulated cloud with our client.
type ground struct {
	*testing.T
	sim    *sim.Cloud
	clock  hurriedClock
	client *Client
	file   string
	facts  lb.Facts
}

func newGround(t *testing.T, so sim.Options, o Options) *ground {
	t.Helper()
	g := &ground{T: t, clock: hurriedClock{sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}}
	so.Clock = g.clock.FakeClock
	var err error
	if g.sim, err = sim.New(so); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.sim.Close)
	g.file = filepath.Join(t.TempDir(), "clouds.yaml")
	g.writeClouds(g.sim.CloudsYAML("test"))
	o.CloudsFile, o.Cloud, o.Clock = g.file, "test", g.clock
	if g.client, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.facts, err = g.client.Facts(t.Context(), g.request())
	if err != nil {
		t.Fatal(err)
	}
	g.sim.ResetCalls()
	return g
}

func (g *ground) request() FactsRequest {
	return FactsRequest{VIPSubnet: lb.Selector{ID: g.sim.VIPSubnetID()}, FloatingNetwork: lb.Selector{ID: g.sim.PublicNetworkID()}}
}

func (g *ground) writeClouds(content []byte) {
	g.Helper()
	if err := os.WriteFile(g.file, content, 0o600); err != nil {
		g.Fatal(err)
	}
}

// tree is a wanted load balancer with n routes, each with its own policy, rules and pool.
func (g *ground) tree(n int) *lb.Tree {
	t := &lb.Tree{
		Meta: lb.Meta{Key: "loadbalancer", Name: testOwner.LoadBalancerName()}, Owner: testOwner, Provider: "amphora",
		VIP:        lb.VIP{SubnetID: g.facts.VIPSubnet.ID, NetworkID: g.facts.VIPSubnet.NetworkID},
		FloatingIP: &lb.FloatingIP{NetworkID: g.facts.FloatingNetworkID},
		Listeners:  []lb.Listener{{Meta: lb.Meta{Key: "http/80", Name: "http/80"}, Protocol: lb.HTTP, Port: 80}},
	}
	for i := range n {
		key := fmt.Sprintf("r%02d", i)
		t.Pools = append(t.Pools, lb.Pool{Meta: lb.Meta{Key: key, Name: key}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN",
			Members: []lb.Member{{Name: "n1", Address: "10.0.0.5", Port: 30000 + i, Weight: 1}},
			Monitor: &lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 2, MaxRetriesDown: 2}})
		t.Listeners[0].Policies = append(t.Listeners[0].Policies, lb.Policy{Meta: lb.Meta{Key: key, Name: key},
			Action: lb.RedirectToPool, Pool: key, Rules: []lb.Rule{
				{Type: lb.RuleHost, Compare: lb.Regex, Value: "^" + key + "(:[0-9]+)?$"},
				{Type: lb.RulePath, Compare: lb.StartsWith, Value: "/v1/"}}})
	}
	return t
}

// observe fails the test on an error.
func (g *ground) observe() *lb.Tree {
	g.Helper()
	t, err := g.client.Observe(g.Context(), testOwner)
	if err != nil {
		g.Fatal(err)
	}
	return &t
}

// reach applies plans until nothing is left to do.
func (g *ground) reach(want *lb.Tree) *lb.Tree {
	g.Helper()
	for passes, looks := 0, 0; passes < 10 && looks < 300; looks++ {
		observed, err := g.client.ObserveFor(g.Context(), testOwner, want, nil)
		if err != nil {
			g.Fatal(err)
		}
		have := &observed
		if have.ProvisioningStatus.Pending() {
			g.clock.Advance(time.Second)
			continue
		}
		passes++
		p := plan.New(want, have)
		if p.Empty() {
			return have
		}
		progress, err := g.client.Apply(g.Context(), have, p.Steps, time.Hour, nil)
		if err != nil {
			g.Fatal(err)
		}
		if progress.RequeueAfter > 0 {
			continue
		}
		if left := plan.New(want, have); !left.Empty() && !want.Empty() {
			g.Fatalf("the tree does not follow the cloud: %+v", left)
		}
	}
	g.Fatal("the plan never ends")
	return nil
}

func (g *ground) calls(service, method string) int {
	n := 0
	for _, c := range g.sim.Calls() {
		if c.Service == service && (method == "" || c.Method == method) {
			n++
		}
	}
	return n
}

func (g *ground) mutations(service string) (out []string) {
	for _, c := range g.sim.Mutations() {
		if c.Service == service {
			out = append(out, c.Method+" "+c.Path)
		}
	}
	return out
}

// raw makes a call as somebody else with the same credentials would.
func (g *ground) raw(svc service, method, path string, body any) map[string]any {
	g.Helper()
	var out map[string]any
	r := call{service: svc, method: method, path: path, body: body, out: &out, op: method, what: path}
	if method == http.MethodDelete {
		r.out = nil
	}
	if err := g.client.do(g.Context(), r); err != nil {
		g.Fatal(err)
	}
	return out
}

func (g *ground) rawID(path, key string, body any) string {
	g.Helper()
	return g.raw(octavia, http.MethodPost, path, map[string]any{key: body})[key].(map[string]any)["id"].(string)
}

func (g *ground) count(svc service, path, key string) int {
	g.Helper()
	found, err := list[wireRef](g.Context(), g.client, svc, path, key, key, nil)
	if err != nil {
		g.Fatal(err)
	}
	return len(found)
}

func TestCreate_isOneCallForAnyNumberOfRoutes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, sim.Options{Latency: sim.Pending(20 * time.Second)}, Options{})
			g.reach(g.tree(n))
			if got := g.mutations(sim.Octavia); len(got) != 1 {
				t.Errorf("Octavia was changed by %q", got)
			}
			if got := g.mutations(sim.Neutron); len(got) != 1 || got[0] != "POST /floatingips" {
				t.Errorf("Neutron was changed by %q", got)
			}
		})
	}
}

func TestObserve_makesTheDocumentedCalls(t *testing.T) {
	t.Parallel()
	const n = 6
	g := newGround(t, sim.Options{Latency: sim.Pending(time.Minute)}, Options{})
	if got := g.observe(); !got.Empty() || got.FloatingIP != nil || len(g.sim.Calls()) != 2 {
		t.Errorf("without a load balancer: %+v after\n%s", got, g.sim.CallSummary())
	}

	have := g.observe()
	if err := g.client.Do(t.Context(), have, plan.Diff(g.tree(n), have)[0]); err != nil {
		t.Fatal(err)
	}
	g.sim.ResetCalls()
	if got := g.observe(); got.ProvisioningStatus != lb.PendingCreate || got.VIP.PortID == "" || len(got.Listeners) != 0 || len(g.sim.Calls()) != 1 {
		t.Errorf("while it is pending: %+v after\n%s", got, g.sim.CallSummary())
	}
	g.clock.Advance(time.Minute)

	g.sim.ResetCalls()
	g.observe()
	if got, want := len(g.sim.Calls()), 5+2+2*n; got != want {
		t.Errorf("without floating IP %d calls, want %d:\n%s", got, want, g.sim.CallSummary())
	}
	g.reach(g.tree(n))
	g.sim.ResetCalls()
	g.observe()
	if got, want := len(g.sim.Calls()), 5+1+2*n; got != want || len(g.sim.Mutations()) != 0 {
		t.Errorf("%d calls, want %d:\n%s", got, want, g.sim.CallSummary())
	}
}

func TestObserve_readsBackWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{PageLimit: 2}, Options{Parallel: 2})
	want := g.tree(7)
	l := &want.Listeners[0]
	l.DefaultPool, l.InsertHeaders, l.TimeoutClientData = "r03", map[string]string{"X-Forwarded-For": "true"}, 30000
	l.AllowedCIDRs = []string{"10.0.0.0/8", "192.0.2.0/24"}
	l.Policies[2].Action, l.Policies[2].Pool, l.Policies[2].URL, l.Policies[2].Code = lb.RedirectToURL, "", "https://x.test/", 301
	want.Pools[4].Disabled = true
	have := g.reach(want)
	for i, p := range have.Listeners[0].Policies {
		if p.Key != l.Policies[i].Key || p.Pool != l.Policies[i].Pool || p.URL != l.Policies[i].URL || len(p.Rules) != 2 {
			t.Errorf("policy %d is %+v", i, p)
		}
	}
	if have.Listeners[0].DefaultPool != "r03" || have.FloatingIP == nil || have.FloatingIP.PortID != have.VIP.PortID || have.FloatingIP.Supplied {
		t.Errorf("got %+v", have)
	}
}

func TestDo_everyKindOfStep(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(time.Second)}, Options{})
	g.reach(g.tree(3))

	want := g.tree(4)
	l := &want.Listeners[0]
	l.Policies = append(l.Policies[3:4], l.Policies[1], l.Policies[2]) // first new, r00 gone
	l.Policies[1].Action, l.Policies[1].Pool, l.Policies[1].URL, l.Policies[1].Code = lb.RedirectPrefix, "", "https://y.test", 308
	l.Policies[2].Rules[1].Value = "/v2/"
	l.ConnectionLimit = 500
	want.Listeners = append(want.Listeners, lb.Listener{Meta: lb.Meta{Key: "http/8080", Name: "http/8080"}, Protocol: lb.HTTP, Port: 8080, DefaultPool: "r02",
		Policies: []lb.Policy{{Meta: lb.Meta{Key: "r00", Name: "r00"}, Action: lb.Reject, Rules: []lb.Rule{{Type: lb.RuleHost, Compare: lb.EqualTo, Value: "no"}}}}})
	want.Pools[1].Algorithm, want.Pools[1].Persistence = "LEAST_CONNECTIONS", lb.HTTPCookie
	want.Pools[1].Monitor = &lb.Monitor{Type: "HTTP", Delay: 6, Timeout: 4, MaxRetries: 3, MaxRetriesDown: 3, HTTPMethod: "GET", URLPath: "/h", ExpectedCodes: "200"}
	want.Pools[2].Monitor = nil
	want.Pools[2].Members = []lb.Member{{Name: "n1", Address: "10.0.0.5", Port: 30002, Weight: 7}, {Name: "n2", Address: "10.0.0.6", Port: 30002, Weight: 1}}
	want.Pools = want.Pools[1:]
	want.FloatingIP = nil
	g.reach(want)
	want.Pools[0].Persistence = ""
	g.reach(want)

	g.reach(g.tree(1))
	g.reach(&lb.Tree{})
	if n := g.count(octavia, "/loadbalancers", "loadbalancers") + g.count(neutron, "/floatingips", "floatingips"); n != 0 {
		t.Errorf("%d objects are left behind", n)
	}
}

func TestDo_replacesMembersInOneCall(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.reach(g.tree(2))
	want := g.tree(2)
	for i := range 30 {
		want.Pools[0].Members = append(want.Pools[0].Members, lb.Member{Name: "x", Address: fmt.Sprintf("10.0.1.%d", i), Port: 30000, Weight: 1, MonitorPort: 31900})
	}
	g.sim.ResetCalls()
	have := g.reach(want)
	if got := g.mutations(sim.Octavia); len(got) != 1 || !strings.HasSuffix(got[0], "/members") {
		t.Errorf("Octavia was changed by %q", got)
	}
	for _, m := range have.Pools[0].Members {
		if m.Name == "x" && m.MonitorPort != 31900 {
			t.Errorf("a member lost its monitor port: %+v", m)
		}
	}
}

func TestObserve_isAConflictWhenTwoAreOurs(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	for range 2 {
		if err := g.client.Do(t.Context(), &lb.Tree{Owner: testOwner}, plan.Diff(g.tree(0), nil)[0]); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.client.Observe(t.Context(), testOwner)
	if ClassOf(err) != Conflict || !strings.Contains(err.Error(), "2 load balancers") {
		t.Errorf("got %v", err)
	}
}

func TestObserve_ignoresWhatIsNotCompletelyOurs(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	subnet := g.facts.VIPSubnet.ID
	name := testOwner.LoadBalancerName()
	for _, tags := range [][]string{nil, {testOwner.Mark()}, {testOwner.ControllerTag()},
		{testOwner.Mark() + "x", testOwner.ControllerTag()}} {
		g.rawID("/loadbalancers", "loadbalancer", map[string]any{"name": name, "vip_subnet_id": subnet, "tags": tags})
	}
	if got := g.observe(); !got.Empty() {
		t.Errorf("took over %+v", got)
	}
}

func TestApply_findsWhatALostAnswerLeftBehind(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(10 * time.Second)}, Options{})
	want := g.tree(3)
	g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: "^/loadbalancers$", Cut: sim.CutAfter})
	g.sim.Inject(sim.Fault{Service: sim.Neutron, Method: "POST", Path: "^/floatingips$", Cut: sim.CutAfter})
	failures := 0
	for range 10 {
		have := g.observe()
		if have.ProvisioningStatus.Pending() {
			g.clock.Advance(10 * time.Second)
			continue
		}
		if _, err := g.client.Apply(t.Context(), have, plan.Diff(want, have), time.Hour, nil); err != nil {
			if ClassOf(err) != Retry {
				t.Fatal(err)
			}
			failures++
		}
	}
	if failures != 2 || !plan.New(want, g.observe()).Empty() {
		t.Errorf("%d failures", failures)
	}
	if a, b := g.count(octavia, "/loadbalancers", "loadbalancers"), g.count(neutron, "/floatingips", "floatingips"); a != 1 || b != 1 {
		t.Errorf("%d load balancers and %d floating IPs", a, b)
	}
}

func TestFloatingIP_aFreeOneOfOursIsTaken(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.raw(neutron, http.MethodPost, "/floatingips", map[string]any{"floatingip": map[string]any{
		"floating_network_id": g.facts.FloatingNetworkID, "description": testOwner.Description()}})
	if got := g.observe(); got.FloatingIP == nil || got.FloatingIP.PortID != "" {
		t.Errorf("the orphan is not seen: %+v", got)
	}
	g.reach(g.tree(1))
	if n := g.count(neutron, "/floatingips", "floatingips"); n != 1 {
		t.Errorf("%d floating IPs", n)
	}
}

func TestFloatingIP_aSuppliedOneIsAttachedAndDetachedOnly(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	made := g.raw(neutron, http.MethodPost, "/floatingips", map[string]any{"floatingip": map[string]any{
		"floating_network_id": g.facts.FloatingNetworkID, "description": "by hand"}})["floatingip"].(map[string]any)
	want := g.tree(1)
	want.FloatingIP = &lb.FloatingIP{Address: made["floating_ip_address"].(string), Supplied: true}
	have := g.reach(want)
	if have.FloatingIP.PortID != have.VIP.PortID {
		t.Errorf("got %+v", have.FloatingIP)
	}
	g.reach(&lb.Tree{})
	after := g.raw(neutron, http.MethodGet, "/floatingips/"+made["id"].(string), nil)["floatingip"].(map[string]any)
	if after["port_id"] != nil || after["description"] != "by hand" {
		t.Errorf("it was changed to %v", after)
	}
	for _, m := range g.mutations(sim.Neutron) {
		if strings.HasPrefix(m, "DELETE") {
			t.Error(m)
		}
	}
}

func TestFloatingIP_notOnAPortThatIsNotOctavias(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	have := g.reach(func() *lb.Tree { w := g.tree(1); w.FloatingIP = nil; return w }())
	port := g.raw(neutron, http.MethodPost, "/ports", map[string]any{"port": map[string]any{"network_id": g.facts.VIPSubnet.NetworkID}})["port"].(map[string]any)
	have.VIP.PortID = port["id"].(string)
	g.sim.ResetCalls()
	err := g.client.Do(t.Context(), have, plan.Step{Verb: plan.Create, Kind: lb.KindFloatingIP, Ref: plan.Ref{Key: "floatingip"},
		Parent: plan.Ref{Key: "loadbalancer"}, FloatingIP: g.tree(1).FloatingIP})
	if ClassOf(err) != Conflict || len(g.sim.Mutations()) != 0 {
		t.Errorf("got %v, changes %v", err, g.sim.Mutations())
	}
}

func TestForeign_isReportedAndNeverTouched(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	have := g.reach(g.tree(2))
	listener, pool, policy := have.Listeners[0].ID, have.Pools[0].ID, have.Listeners[0].Policies[0].ID
	foreign := map[lb.Kind]string{
		lb.KindListener: g.rawID("/listeners", "listener", map[string]any{"loadbalancer_id": have.ID, "protocol": "HTTP", "protocol_port": 9000}),
		lb.KindPool:     g.rawID("/pools", "pool", map[string]any{"loadbalancer_id": have.ID, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}),
		lb.KindPolicy:   g.rawID("/l7policies", "l7policy", map[string]any{"listener_id": listener, "action": "REJECT", "position": 1}),
		lb.KindRule:     g.rawID("/l7policies/"+policy+"/rules", "rule", map[string]any{"type": "PATH", "compare_type": "EQUAL_TO", "value": "/"}),
		lb.KindMember:   g.rawID("/pools/"+pool+"/members", "member", map[string]any{"address": "10.0.9.9", "protocol_port": 9, "weight": 9, "backup": true, "name": "theirs"}),
	}
	foreign[lb.KindMonitor] = g.rawID("/healthmonitors", "healthmonitor", map[string]any{"pool_id": foreign[lb.KindPool], "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2})
	have = g.observe()
	delete(foreign, lb.KindMonitor) // below a foreign pool: covered by that
	if len(have.Foreign) != len(foreign) {
		t.Errorf("foreign are %+v, want %v", have.Foreign, foreign)
	}
	for _, f := range have.Foreign {
		if foreign[f.Kind] != f.ID {
			t.Errorf("%+v is not foreign", f)
		}
	}
	if len(have.Listeners) != 1 || len(have.Pools) != 2 || len(have.Listeners[0].Policies) != 2 || len(have.Pools[0].Members) != 1 {
		t.Errorf("foreign objects are in the tree: %+v", have)
	}

	err := g.client.Do(t.Context(), have, plan.Step{Verb: plan.Delete, Kind: lb.KindLoadBalancer, Ref: plan.Ref{ID: have.ID, Key: "loadbalancer"}})
	if ClassOf(err) != Conflict || ReasonOf(err) != ReasonForeign {
		t.Errorf("the cascade gave %v", err)
	}

	// A new policy in the middle, and other members: the foreign ones stay as they are.
	want := g.tree(3)
	want.Listeners[0].Policies[1], want.Listeners[0].Policies[2] = want.Listeners[0].Policies[2], want.Listeners[0].Policies[1]
	want.Pools[0].Members[0].Weight = 5
	have = g.reach(want)
	for i, key := range []string{"r00", "r02", "r01"} {
		if have.Listeners[0].Policies[i].Key != key {
			t.Errorf("policy %d is %s", i, have.Listeners[0].Policies[i].Key)
		}
	}
	member := g.raw(octavia, http.MethodGet, "/pools/"+pool+"/members/"+foreign[lb.KindMember], nil)["member"].(map[string]any)
	if fmt.Sprint(member["weight"]) != "9" || member["backup"] != true || member["name"] != "theirs" {
		t.Errorf("the foreign member is now %v", member)
	}
}

// Positions count the policies of others too. A plan that compared numbers would move ours for ever.
func TestForeign_policiesDoNotCountInTheOrder(t *testing.T) {
	t.Parallel()
	for _, position := range []int{1, 2, 3, 4} {
		t.Run(fmt.Sprintf("at %d", position), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, sim.Options{}, Options{})
			have := g.reach(g.tree(3))
			for range 2 {
				g.rawID("/l7policies", "l7policy", map[string]any{"listener_id": have.Listeners[0].ID, "action": "REJECT", "position": position})
			}
			g.sim.ResetCalls()
			if g.reach(g.tree(3)); len(g.mutations(sim.Octavia)) > 0 {
				t.Errorf("nothing has changed, and yet %q", g.mutations(sim.Octavia))
			}

			// The last comes first: one call, and then again none.
			want := g.tree(3)
			l := &want.Listeners[0]
			for i := range l.Policies {
				l.Policies[i].Rules = l.Policies[i].Rules[1:] // they overlap, so that their order counts
			}
			g.reach(want)
			l.Policies[0], l.Policies[1], l.Policies[2] = l.Policies[2], l.Policies[0], l.Policies[1]
			g.sim.ResetCalls()
			have = g.reach(want)
			if got := g.mutations(sim.Octavia); len(got) != 1 || !strings.HasPrefix(got[0], "PUT /l7policies/") {
				t.Errorf("a move is %q", got)
			}
			for i, key := range []string{"r02", "r00", "r01"} {
				if have.Listeners[0].Policies[i].Key != key {
					t.Errorf("policy %d is %s", i, have.Listeners[0].Policies[i].Key)
				}
			}
			g.sim.ResetCalls()
			if g.reach(want); len(g.mutations(sim.Octavia)) > 0 {
				t.Errorf("after the move %q", g.mutations(sim.Octavia))
			}
		})
	}
}

func TestDrift_aDisabledRuleIsEnabledAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	have := g.reach(g.tree(1))
	policy := have.Listeners[0].Policies[0]
	path := "/l7policies/" + policy.ID + "/rules/" + policy.Rules[1].ID
	g.raw(octavia, http.MethodPut, path, map[string]any{"rule": map[string]any{"admin_state_up": false}})
	if have = g.observe(); !have.Listeners[0].Policies[0].Rules[1].Disabled || have.Listeners[0].Policies[0].Rules[0].Disabled {
		t.Errorf("observed %+v", have.Listeners[0].Policies[0].Rules)
	}
	g.sim.ResetCalls()
	have = g.reach(g.tree(1))
	if got := g.mutations(sim.Octavia); len(got) != 1 || got[0] != "PUT "+path || have.Listeners[0].Policies[0].Rules[1].Disabled {
		t.Errorf("%q made %+v", got, have.Listeners[0].Policies[0].Rules)
	}
}

func TestApply_endsWithTheSlice(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(90 * time.Second)}, Options{})
	have := g.observe()
	started := g.clock.Now()
	p, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have), 10*time.Second, nil)
	if err != nil || p.Done != 1 || p.Remaining != 1 || !p.Pending || p.RequeueAfter <= 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	if took := g.clock.Now().Sub(started); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if p, err := g.client.Apply(t.Context(), g.observe(), plan.Diff(g.tree(1), have), time.Minute, nil); err != nil || p.Done != 0 || !p.Pending {
		t.Errorf("on a pending tree: %+v, %v", p, err)
	}
}

// A new amphora boots for a minute: no pass sits that out, however long its slice, and the looks that are made follow what was seen before.
func TestApply_leavesANewLoadBalancerToLaterPasses(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(60 * time.Second)}, Options{})
	for i, most := range []int{55, 10} {
		want := g.tree(1)
		have := g.observe()
		g.sim.ResetCalls()
		started := g.clock.Now()
		p, err := g.client.Apply(t.Context(), have, plan.Diff(want, have)[:1], time.Hour, nil)
		if err != nil || !p.Pending || p.Since.Before(started) {
			t.Fatalf("got %+v, %v", p, err)
		}
		if took := g.clock.Now().Sub(started); took > 11*time.Second {
			t.Errorf("the pass sat there for %s", took)
		}
		for p.Pending {
			g.clock.Advance(p.RequeueAfter)
			before := g.clock.Now()
			if p, err = g.client.Resume(t.Context(), have, p.Since, time.Hour); err != nil {
				t.Fatal(err)
			}
			if took := g.clock.Now().Sub(before); took > 0 {
				t.Errorf("a later pass sat there for %s", took)
			}
		}
		if took := g.clock.Now().Sub(started); took > 66*time.Second+time.Second {
			t.Errorf("it was seen after %s", took)
		}
		if n := len(g.sim.Calls()); n > most+5 {
			t.Errorf("load balancer %d: %d calls", i, n)
		}
		g.reach(&lb.Tree{})
	}
}

func TestApply_dropsAPlanThatIsSuperseded(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.reach(g.tree(1))
	have := g.observe()
	asked := 0
	p, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(3), have), time.Hour, func() bool { asked++; return asked == 2 })
	if err != nil || !p.Superseded || p.Done != 2 || p.Remaining == 0 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestApply_waitsForAForeignWriter(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(2 * time.Second)}, Options{})
	have := g.reach(g.tree(1))
	g.raw(octavia, http.MethodPut, "/loadbalancers/"+have.ID, map[string]any{"loadbalancer": map[string]any{"description": "an operator was here"}})
	_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(2), have), time.Hour, nil)
	if ClassOf(err) != Wait {
		t.Errorf("got %v", err)
	}
}

// Real Octavia has in ERROR what the call was about, and nothing else, when it could not be applied.
func TestApply_seesAChildInError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, kind string
		took               time.Duration
		says               string
	}{
		"policy":                     {"POST", "^/l7policies$", "l7policy", 2 * time.Second, ""},
		"rule, after a long time":    {"POST", "^/l7policies/[^/]*/rules$", "rule", 3 * time.Minute, ""},
		"members, after a long time": {"PUT", "^/pools/[^/]*/members$", "member", 3 * time.Minute, ""},
		"monitor":                    {"POST", "^/healthmonitors$", "healthmonitor", 2 * time.Second, ""},
		"pool":                       {"POST", "^/pools$", "pool", 2 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := 2 * time.Second
			g := newGround(t, sim.Options{Latency: func(sim.Op) sim.Timing { return sim.Timing{Pending: took} }}, Options{})
			g.reach(g.tree(1))
			took = c.took
			g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: c.method, Path: c.path, Error: []string{c.kind}})
			have := g.observe()
			_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(2), have), time.Hour, nil)
			if ClassOf(err) != Broken || !strings.Contains(err.Error(), "of load balancer "+have.ID) {
				t.Errorf("got %v", err)
			}
			seen := g.observe()
			if c.kind == "member" {
				// Its next write mends it.
				g.sim.ClearFaults()
				g.reach(g.tree(2))
				if steps := plan.Diff(g.tree(2), g.observe()); len(steps) > 0 {
					t.Errorf("left to do: %v", steps)
				}
				return
			}
			if err := Errored(*seen); ClassOf(err) != Broken {
				t.Errorf("observed: %v", err)
			}
		})
	}
}

func TestApply_seesALoadBalancerInError(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(2 * time.Second)}, Options{})
	g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: "^/loadbalancers$", Error: []string{"loadbalancer"}})
	have := g.observe()
	_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have), time.Hour, nil)
	if ClassOf(err) != Broken {
		t.Errorf("got %v", err)
	}
	have = g.observe()
	if _, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(2), have), time.Hour, nil); ClassOf(err) != Broken {
		t.Errorf("a change in ERROR: %v", err)
	}
	if steps := plan.Diff(g.tree(0), have); len(steps) > 0 {
		if _, err := g.client.Apply(t.Context(), have, steps, time.Hour, nil); ClassOf(err) != Broken {
			t.Errorf("a deletion in ERROR: %v", err)
		}
	}
	g.reach(&lb.Tree{})
}

func TestApply_takesWhatIsGoneAsDeleted(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	have := g.reach(g.tree(1))
	g.raw(octavia, http.MethodDelete, "/loadbalancers/"+have.ID+"?cascade=true", nil)
	g.clock.Advance(time.Minute)
	p, err := g.client.Apply(t.Context(), have, plan.Diff(&lb.Tree{}, have), time.Hour, nil)
	if err != nil || p.Remaining != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	if got := g.observe(); !got.Empty() || got.FloatingIP != nil {
		t.Errorf("left is %+v", got)
	}
}

func TestApply_fallsBackToSingleCreates(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{BrokenCreate: true, MaxAPIVersion: "v2.26", Latency: sim.Pending(time.Second)}, Options{})
	want := g.tree(2)
	have := g.observe()
	if _, err := g.client.Apply(t.Context(), have, plan.Diff(want, have)[:1], time.Hour, nil); ClassOf(err) != Stale {
		t.Fatalf("children that are lost: %v", err)
	}
	if _, err := g.client.Observe(t.Context(), testOwner); ClassOf(err) != Wait {
		t.Fatalf("children that may still become ACTIVE: %v", err)
	}
	g.clock.Advance(5 * time.Minute)
	tree, err := g.client.Observe(t.Context(), testOwner)
	if ClassOf(err) != Broken || ReasonOf(err) != ReasonStuck || tree.Empty() {
		t.Fatalf("got %v, %+v", err, tree)
	}
	if _, err := g.client.Apply(t.Context(), &tree, plan.Diff(&lb.Tree{}, &tree), time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	g.reach(want)
}

func TestFacts_areRemembered(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{FactsFor: time.Minute})
	again := func() int {
		g.sim.ResetCalls()
		if _, err := g.client.Facts(t.Context(), g.request()); err != nil {
			t.Fatal(err)
		}
		return len(g.sim.Calls())
	}
	if n := again(); n != 0 {
		t.Errorf("%d calls", n)
	}
	g.clock.Advance(time.Minute)
	if n := again(); n != 4 {
		t.Errorf("%d calls after a minute:\n%s", n, g.sim.CallSummary())
	}
}

func TestNew_saysWhatIsWrongWithTheCredentials(t *testing.T) {
	t.Parallel()
	s, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	yaml := string(s.CloudsYAML("test"))
	secret := yaml[strings.Index(yaml, "credential_secret: ")+len("credential_secret: "):]
	secret = secret[:strings.Index(secret, "\n")]
	for name, c := range map[string]struct {
		yaml, cloud, says string
	}{
		"unknown cloud": {yaml, "other", `it has no cloud "other"`},
		"not YAML":      {"clouds: [" + yaml, "test", "not valid"},
		"no auth_url":   {strings.Replace(yaml, "auth_url", "x_url", 1), "test", "auth_url"},
		"wrong secret":  {strings.Replace(yaml, secret, secret+"x", 1), "test", "does not accept the credentials"},
		"wrong region":  {strings.Replace(yaml, "RegionOne", "RegionTwo", 1), "test", "no load-balancer endpoint"},
		"missing CA":    {yaml + "    cacert: /nonexistent/ca.pem\n", "test", "CA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "clouds.yaml")
			if err := os.WriteFile(file, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := New(t.Context(), Options{CloudsFile: file, Cloud: c.cloud})
			if ClassOf(err) != OperatorFault || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := New(t.Context(), Options{CloudsFile: "/nonexistent/clouds.yaml", Cloud: "test"}); !strings.Contains(fmt.Sprint(err), "no such file") {
		t.Errorf("got %v", err)
	}
	password := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(password, s.PasswordCloudsYAML("test", "demo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := New(t.Context(), Options{CloudsFile: password, Cloud: "test"}); err != nil || c.ProjectID() != s.ProjectID() {
		t.Errorf("with a password: %v", err)
	}
}

func TestToken_isRenewedOnceForAllWorkers(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.sim.RevokeTokens()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := g.client.Observe(t.Context(), testOwner); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := g.calls(sim.Keystone, http.MethodPost); n != 1 {
		t.Errorf("%d token requests", n)
	}
}

func TestToken_survivesAKeystoneThatIsDown(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{TokenTTL: time.Hour}, Options{})
	g.clock.Advance(2 * time.Hour)
	expired := g.clock.Now()
	down := g.sim.Inject(sim.Fault{Service: sim.Keystone, Method: "POST", Status: 503, Times: -1})
	for range 50 {
		_, err := g.client.Observe(t.Context(), testOwner)
		if ClassOf(err) != Retry {
			t.Fatalf("got %v", err)
		}
		g.clock.Advance(time.Second)
	}
	down.Remove()
	g.clock.Advance(10 * time.Second)
	g.observe()
	most := int(g.clock.Now().Sub(expired)/(10*time.Second)) + 1
	if n := g.calls(sim.Keystone, http.MethodPost); n > most {
		t.Errorf("%d token requests, want at most %d", n, most)
	}
}

func TestCredentials_areReloadedWhenTheFileChanges(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.sim.RotateCredential()
	if _, err := g.client.Observe(t.Context(), testOwner); ReasonOf(err) != ReasonAuth {
		t.Errorf("with revoked credentials: %v", err)
	}
	g.writeClouds([]byte("clouds: {}"))
	g.clock.Advance(10 * time.Second)
	if _, err := g.client.Observe(t.Context(), testOwner); ReasonOf(err) != ReasonAuth || g.client.ReloadError() == nil {
		t.Errorf("with a broken file: %v, reload %v", err, g.client.ReloadError())
	}
	g.writeClouds(g.sim.CloudsYAML("test"))
	g.clock.Advance(10 * time.Second)
	g.observe()
	if err := g.client.ReloadError(); err != nil {
		t.Error(err)
	}
}

func TestDo_tellsAQuotaFromAPolicy(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	g.sim.SetQuota("loadbalancer", 0)
	have := g.observe()
	_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have), time.Hour, nil)
	if ClassOf(err) != OperatorFault || ReasonOf(err) != ReasonQuota {
		t.Errorf("got %v", err)
	}
}

// A quota is told with the resource and the limit, of every kind of object.
func TestDo_namesTheQuotaAndItsLimit(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		"loadbalancer": "Octavia quota for load balancers is used up: the limit is 0", "pool": "Octavia quota for pools is used up: the limit is 1",
		"listener": "Octavia quota for listeners is used up: the limit is 0", "healthmonitor": "Octavia quota for health monitors is used up: the limit is 1",
		"member": "Octavia quota for members is used up: the limit is 1", "l7policy": "Octavia quota for L7 policies is used up: the limit is 1",
		"l7rule": "Octavia quota for L7 rules is used up: the limit is 1", "floatingip": "Neutron quota for floating IPs is used up: the limit is 0",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, sim.Options{}, Options{})
			limit, _ := strconv.Atoi(says[len(says)-1:])
			if strings.HasPrefix(kind, "l7") {
				// A fully-populated create does not count them.
				g.reach(g.tree(1))
			}
			g.sim.SetQuota(kind, limit)
			try := func() error {
				have := g.observe()
				_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(2), have), time.Hour, nil)
				return err
			}
			if err := try(); ReasonOf(err) != ReasonQuota || !strings.HasSuffix(fmt.Sprint(err), says) {
				t.Errorf("got %v", err)
			}
			// Where the limit cannot be read, the rest is told.
			g.sim.Inject(sim.Fault{Method: "GET", Path: "^/quotas/", Status: 403, Times: -1})
			if err := try(); ReasonOf(err) != ReasonQuota || !strings.HasSuffix(fmt.Sprint(err), " is used up") {
				t.Errorf("without the limit: %v", err)
			}
		})
	}
}

// A missing role is told with the service and the role.
func TestDo_namesTheRoleThatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ service, path, says string }{
		{sim.Octavia, "^/loadbalancers$", "create load balancer gw_blue_infra_edge: Octavia forbids this to the controller's credentials (403): they need the roles load-balancer_member and member"},
		{sim.Neutron, "^/floatingips$", "create floating IP: Neutron forbids this to the controller's credentials (403): they need the role member"},
	} {
		g := newGround(t, sim.Options{}, Options{})
		g.sim.Inject(sim.Fault{Service: c.service, Method: "POST", Path: c.path, Status: 403, Times: -1})
		have := g.observe()
		_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have), time.Hour, nil)
		if ClassOf(err) != OperatorFault || ReasonOf(err) != ReasonPermission || !strings.HasPrefix(fmt.Sprint(err), c.says) {
			t.Errorf("got %v", err)
		}
	}
}

func TestObserve_survivesASporadicFailure(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{Parallel: 1})
	g.reach(g.tree(2))
	for _, path := range []string{"^/loadbalancers$", "^/pools/.*/members$", "^/l7policies/.*/rules$"} {
		g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "GET", Path: path, Status: 500, Times: 2})
	}
	g.observe()
	always := g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "GET", Path: "^/pools/.*/members$", Cut: sim.CutBefore, Times: -1})
	if tree, err := g.client.Observe(t.Context(), testOwner); ClassOf(err) != Retry || !tree.Empty() {
		t.Errorf("an incomplete read gave %+v, %v", tree, err)
	}
	if always.Hits() < 3 {
		t.Errorf("%d tries", always.Hits())
	}
}

func TestDo_neverRepeatsAWrite(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	have := g.reach(g.tree(1))
	want := g.tree(1)
	want.Pools[0].Members[0].Weight = 9
	g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "PUT", Status: 500, Times: -1})
	g.sim.ResetCalls()
	_, err := g.client.Apply(t.Context(), have, plan.Diff(want, have), time.Hour, nil)
	if ClassOf(err) != Retry || len(g.sim.Mutations()) != 1 {
		t.Errorf("%v after %v", err, g.sim.Mutations())
	}
}

func TestDo_givesUpOnAServiceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{HTTPTimeout: 200 * time.Millisecond})
	have := g.observe()
	g.sim.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Hold: time.Hour})
	_, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have), time.Hour, nil)
	if ReasonOf(err) != ReasonTimeout || ClassOf(err) != Retry {
		t.Errorf("got %v", err)
	}
	if got := g.observe(); got.Empty() {
		t.Error("what the service did is not seen")
	}
}

func TestApply_waitsLittleLongerThanOctavia(t *testing.T) {
	t.Parallel()
	for _, pending := range []time.Duration{1300 * time.Millisecond, 4 * time.Second, 20 * time.Second, 2 * time.Minute} {
		t.Run(pending.String(), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, sim.Options{Latency: sim.Pending(pending)}, Options{})
			have := g.observe()
			started := g.clock.Now()
			g.sim.ResetCalls()
			if _, err := g.client.Apply(t.Context(), have, plan.Diff(g.tree(1), have)[:1], time.Hour, nil); err != nil {
				t.Fatal(err)
			}
			took, polls := g.clock.Now().Sub(started), g.calls(sim.Octavia, "GET")-4
			if took > pending+pending/9 || polls > 60 {
				t.Errorf("%s in %d polls", took, polls)
			}
		})
	}
}

// Between the end of a creation and the look that finds it others may have put something below it; the updated_at of that look is the witness for
// what we made, so it has to show then.
func TestResume_seesWhatOthersPutBelowMeanwhile(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(g *ground, have *lb.Tree){
		"nothing": func(*ground, *lb.Tree) {},
		"policy": func(g *ground, have *lb.Tree) {
			g.raw(octavia, http.MethodPost, "/l7policies", map[string]any{"l7policy": map[string]any{"listener_id": have.Listeners[0].ID, "action": "REJECT"}})
		},
		"rule": func(g *ground, have *lb.Tree) {
			g.raw(octavia, http.MethodPost, "/l7policies/"+have.Listeners[0].Policies[0].ID+"/rules",
				map[string]any{"rule": map[string]any{"type": "PATH", "compare_type": "EQUAL_TO", "value": "/"}})
		},
		"member": func(g *ground, have *lb.Tree) {
			g.raw(octavia, http.MethodPost, "/pools/"+have.Pools[0].ID+"/members", map[string]any{"member": map[string]any{"address": "10.0.9.9", "protocol_port": 9}})
		},
		"monitor": func(g *ground, have *lb.Tree) {
			g.raw(octavia, http.MethodDelete, "/healthmonitors/"+have.Pools[0].Monitor.ID, nil)
			g.clock.Advance(time.Minute)
			g.raw(octavia, http.MethodPost, "/healthmonitors", map[string]any{"healthmonitor": map[string]any{"pool_id": have.Pools[0].ID, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, sim.Options{Latency: sim.Pending(30 * time.Second)}, Options{})
			have, want := g.observe(), g.tree(1)
			began := g.clock.Now()
			if p, err := g.client.Apply(t.Context(), have, plan.Diff(want, have)[:1], 10*time.Second, nil); err != nil || !p.Pending {
				t.Fatalf("got %+v, %v", p, err)
			}
			g.clock.Advance(time.Minute)
			put(g, have)
			g.clock.Advance(time.Minute)
			_, err := g.client.Resume(t.Context(), have, began, 10*time.Second)
			if stale := ClassOf(err) == Stale; stale != (name != "nothing") || err != nil && !stale {
				t.Errorf("got %v", err)
			}
		})
	}
}
