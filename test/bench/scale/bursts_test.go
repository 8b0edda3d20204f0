package scale

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// The budget of requests to OpenStack, by the controller's defaults.
const (
	budgetRate  = 20
	budgetBurst = 40
)

// burstGateways are so few that a burst is over in a minute; the calls of each are exact at any number.
const burstGateways = 10

// needBursts skips where only a smoke test is wanted.
func needBursts(t *testing.T) {
	t.Helper()
	if os.Getenv(envSizes) == "" {
		t.Skip("bursts take minutes: run make bench-scale")
	}
}

// running is a world in which Gateways are programmed. A new amphora boots at once there: bursts are about what comes later.
func running(t *testing.T, s size, flags ...string) (*world, *controller) {
	t.Helper()
	needBursts(t)
	w := newWorld(t, sim.Measured)
	w.load(s)
	c := w.start(flags...)
	c.settled(s.gateways, 10*time.Minute)
	w.cloud.ResetCalls()
	return w, c
}

// writes are the calls that change something, by method and what they change.
func writes(calls []sim.Call) map[string]int {
	n := map[string]int{}
	for _, c := range calls {
		parts := strings.Split(strings.Trim(c.Path, "/"), "/")
		for i, p := range parts {
			if len(p) == 36 {
				parts[i] = "*"
			}
		}
		n[c.Service+" "+c.Method+" /"+strings.Join(parts, "/")]++
	}
	return n
}

const putMembers = "octavia PUT /pools/*/members"

func (w *world) wrote(what string, want map[string]int) {
	w.Helper()
	all := w.cloud.Calls()
	got := writes(w.cloud.Mutations())
	w.Logf("%s: %d calls, of which %v change something", what, len(all), got)
	if !maps.Equal(got, want) {
		w.Errorf("%s: %v, want %v", what, got, want)
	}
	w.withinBudget(all)
	w.cloud.ResetCalls()
}

// withinBudget fails when more calls came in any ten seconds than the budget lets through.
func (w *world) withinBudget(calls []sim.Call) {
	w.Helper()
	slices.SortFunc(calls, func(a, b sim.Call) int { return a.Time.Compare(b.Time) })
	const window = 10 * time.Second
	for i, first := 0, 0; i < len(calls); i++ {
		for calls[i].Time.Sub(calls[first].Time) > window {
			first++
		}
		// Calls that were let through in time may arrive a little later.
		if n := i - first + 1; n > budgetRate*10+budgetBurst+budgetRate {
			w.Errorf("%d calls within %s", n, window)
			return
		}
	}
}

func (w *world) get(ns, name string, o client.Object) {
	w.Helper()
	if err := w.client.Get(w.Context(), types.NamespacedName{Namespace: ns, Name: name}, o); err != nil {
		w.Fatal(err)
	}
}

// A Node that is lost and comes back costs one call for each pool with a member on it, each time.
func TestBurst_nodeLostAndBack(t *testing.T) {
	s := size{gateways: burstGateways, nodes: 20}
	w, c := running(t, s)
	pools := 0
	for g := range s.gateways {
		pools++ // the Service on all Nodes
		for i := 1; i < servicesEach; i++ {
			first := g*7 + i*11
			for e := range endpointsEach {
				if (first+e)%s.nodes == 3 {
					pools++
				}
			}
		}
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionTrue} {
		var n corev1.Node
		w.get("", nodeName(3), &n)
		n.Status.Conditions[0].Status = status
		if err := w.client.Status().Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c.settled(s.gateways, 10*time.Minute)
		w.wrote("a Node's condition "+string(status), map[string]int{putMembers: pools})
	}
}

// A rollout changes the slice of a Service hundreds of times: changes are gathered, and no more calls are made than there is time for.
func TestBurst_rollout(t *testing.T) {
	s := size{gateways: 1, nodes: 100}
	w, c := running(t, s)
	const pods = 500
	ns, name := namespaceOf(0), serviceName(0, 1)
	started := time.Now()
	for i := range pods {
		var es discoveryv1.EndpointSlice
		w.get(ns, name+"-x", &es)
		es.Endpoints[i%len(es.Endpoints)] = endpoint((i*3+1)%s.nodes, i%200)
		if err := w.client.Update(t.Context(), &es); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(started)
	c.settled(1, 5*time.Minute)
	puts := writes(w.cloud.Mutations())[putMembers]
	t.Logf("%d Pods in %s: %d calls, %d of members", pods, took.Round(time.Second), len(w.cloud.Calls()), puts)
	// One for each debounce at most, and the last.
	if most := int(took/time.Second) + 2; puts < 1 || puts > most {
		t.Errorf("%d updates of members, at most %d are needed", puts, most)
	}
	w.withinBudget(w.cloud.Calls())
}

// A label of a namespace that lets a thousand routes in is one pass and, for a pool that is there, one call for each policy and rule at
// most.
func TestBurst_namespaceLabel(t *testing.T) {
	s := size{gateways: 2, nodes: 5}
	w, c := running(t, s)
	const routes = 1000
	w.create(namespace("many"))
	gw := gateway("many", "edge-many")
	gw.Spec.Listeners[0] = gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType, AllowedRoutes: &gwv1.AllowedRoutes{
		Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"edge": "yes"}}},
	}}
	w.create(service("many", "app", false), slice("many", "app", 0, s.nodes))
	objects := []client.Object{}
	for i := range routes {
		objects = append(objects, route("many", fmt.Sprintf("route-%d", i), gw.Name, fmt.Sprintf("host-%d.example.test", i%50), i, "app"))
	}
	w.create(objects...)
	w.create(gw)
	c.settled(s.gateways+1, 10*time.Minute)
	w.cloud.ResetCalls()
	passes, started := c.passes(), time.Now()
	var ns corev1.Namespace
	w.get("", "many", &ns)
	ns.Labels["edge"] = "yes"
	if err := w.client.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	c.until(2*time.Minute, func() error {
		var got gwv1.Gateway
		w.get("many", gw.Name, &got)
		if n := got.Status.Listeners; len(n) == 0 || n[0].AttachedRoutes != routes {
			return fmt.Errorf("%d routes are not attached yet", routes)
		}
		return nil
	})
	t.Logf("%d routes attached after %s and %d passes; calls until then: %v", routes, time.Since(started).Round(100*time.Millisecond), c.passes()-passes, writes(w.cloud.Calls()))
	w.withinBudget(w.cloud.Calls())
}

// Certificates that are all renewed at once cost each Gateway a new secret, one update of its listener, and the removal of the old secret.
func TestBurst_secrets(t *testing.T) {
	s := size{gateways: burstGateways, nodes: 3}
	w, c := running(t, s)
	w.each(s.gateways, func(g int) error {
		var old corev1.Secret
		w.get(namespaceOf(g), gatewayName(g), &old)
		old.Data = secret(w, old.Namespace, old.Name).Data
		return w.client.Update(t.Context(), &old)
	})
	time.Sleep(2 * time.Second)
	c.settled(s.gateways, 10*time.Minute)
	got := writes(w.cloud.Mutations())
	if got["octavia PUT /listeners/*"] != s.gateways || got["barbican DELETE /secrets/*"] != s.gateways {
		t.Errorf("%v, want one update of a listener and one removal of a secret for each of %d Gateways", got, s.gateways)
	}
	t.Logf("%d certificates: %v", s.gateways, writes(w.cloud.Calls()))
	w.withinBudget(w.cloud.Calls())
}

// An API server that restarts makes every informer list anew; nothing is asked of the cloud for that.
func TestBurst_apiServerRestart(t *testing.T) {
	s := size{gateways: burstGateways, nodes: 5}
	w, c := running(t, s)
	server := w.env.ControlPlane.GetAPIServer()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	// A change afterwards arrives: the watches are back.
	c.until(time.Minute, func() error {
		return w.client.Get(t.Context(), types.NamespacedName{Name: "openstack"}, &gwv1.GatewayClass{})
	})
	w.wrote("an API server that restarts", map[string]int{})
	w.moveEndpoint(namespaceOf(0), serviceName(0, 1), s.nodes)
	c.until(2*time.Minute, func() error {
		if writes(w.cloud.Mutations())[putMembers] == 0 {
			return fmt.Errorf("the change of an endpoint has not reached the cloud")
		}
		return nil
	})
	c.settled(s.gateways, 5*time.Minute)
	w.wrote("an endpoint after that", map[string]int{putMembers: 1})
}

// outage is how long Octavia is away: ten minutes for a measurement that is published.
func outage(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("GATEWAY_API_OPENSTACK_SCALE_OUTAGE"))
	if err != nil {
		return 30 * time.Second
	}
	return d
}

// While Octavia is away each change costs few calls, and when it is back all arrive, once each and within the budget.
func TestBurst_octaviaAway(t *testing.T) {
	s := size{gateways: burstGateways, nodes: 20}
	w, c := running(t, s)
	fault := w.cloud.Inject(sim.Fault{Service: sim.Octavia, Status: http.StatusServiceUnavailable, Times: -1})
	for g := range s.gateways {
		w.moveEndpoint(namespaceOf(g), serviceName(g, 1), s.nodes)
	}
	away := outage(t)
	time.Sleep(away)
	tried := w.cloud.Calls()
	t.Logf("away for %s: %d calls", away, len(tried))
	w.withinBudget(tried)
	w.cloud.ResetCalls()
	fault.Remove()
	back := time.Now()
	c.until(15*time.Minute, func() error { return all(c, s.gateways) })
	t.Logf("all are programmed %s after its return", time.Since(back).Round(time.Second))
	c.settled(s.gateways, 5*time.Minute)
	w.wrote("Octavia is back", map[string]int{putMembers: s.gateways})
}

// An Octavia that is ten times slower makes everything later and nothing more.
func TestBurst_octaviaSlow(t *testing.T) {
	needBursts(t)
	var slow atomic.Bool
	w := newWorld(t, func(op sim.Op) sim.Timing {
		d := sim.Measured(op)
		if slow.Load() {
			d.Hold, d.Pending = 10*d.Hold, 10*d.Pending
		}
		return d
	})
	s := size{gateways: burstGateways, nodes: 20}
	w.load(s)
	c := w.start()
	c.settled(s.gateways, 10*time.Minute)
	w.cloud.ResetCalls()
	slow.Store(true)
	for g := range s.gateways {
		w.moveEndpoint(namespaceOf(g), serviceName(g, 1), s.nodes)
	}
	time.Sleep(2 * time.Second)
	c.settled(s.gateways, 10*time.Minute)
	w.wrote("a slow Octavia", map[string]int{putMembers: s.gateways})
}

// A new leader finds everything as it shall be.
func TestBurst_leaderChange(t *testing.T) {
	s := size{gateways: burstGateways, nodes: 5}
	elect := []string{"--leader-elect", "--leader-election-namespace=default"}
	w, first := running(t, s, elect...)
	second := w.start(elect...)
	time.Sleep(3 * time.Second)
	w.cloud.ResetCalls()
	killed := time.Now()
	first.kill()
	w.moveEndpoint(namespaceOf(0), serviceName(0, 1), s.nodes)
	second.until(3*time.Minute, func() error { return all(second, s.gateways) })
	t.Logf("the second has all after %s", time.Since(killed).Round(time.Second))
	second.settled(s.gateways, 3*time.Minute)
	w.wrote("a leader that is killed", map[string]int{putMembers: 1})
}

// More Gateways than there are workers, whose load balancers stay PENDING for ever, delay no other.
func TestFairness_stuckLoadBalancers(t *testing.T) {
	s := size{gateways: 2, nodes: 20}
	w, c := running(t, s)
	const stuck = 12 // eight workers
	w.cloud.Inject(sim.Fault{Service: sim.Octavia, Method: http.MethodPost, Path: "^/loadbalancers$", Times: stuck, Stuck: true})
	w.create(namespace("stuck"))
	for i := range stuck {
		name := fmt.Sprintf("stuck-%d", i)
		w.create(secret(w, "stuck", name), service("stuck", name, true), slice("stuck", name, i, s.nodes),
			route("stuck", name, name, "stuck.example.test", i, name), gateway("stuck", name))
	}
	c.until(2*time.Minute, func() error {
		if n := writes(w.cloud.Mutations())["octavia POST /loadbalancers"]; n < stuck {
			return fmt.Errorf("%d of %d load balancers are being made", n, stuck)
		}
		return nil
	})
	var worst time.Duration
	for i := range 8 {
		worst = max(worst, w.endpointLatency(i%s.gateways, 1+i/s.gateways, s.nodes))
	}
	t.Logf("the worst of 8 endpoint changes took %s", worst.Round(10*time.Millisecond))
	if worst > mostEndpoint {
		t.Errorf("an endpoint's change took %s to the wire while %d other load balancers are stuck", worst, stuck)
	}
}

// A Gateway with 5,000 rules does not starve small ones.
func TestFairness_largeGateway(t *testing.T) {
	s := size{gateways: 2, nodes: 20}
	w, _ := running(t, s)
	const rules = 5000
	w.create(namespace("large"), service("large", "app", false), slice("large", "app", 0, s.nodes), secret(w, "large", "large"))
	var objects []client.Object
	for i := range rules / 10 {
		r := route("large", fmt.Sprintf("route-%d", i), "large", fmt.Sprintf("host-%d.example.test", i), 0, "app")
		one := r.Spec.Rules[0]
		r.Spec.Rules = nil
		for j := range 10 {
			rule := *one.DeepCopy()
			rule.Matches[0].Path.Value = new(fmt.Sprintf("/part-%d", j))
			r.Spec.Rules = append(r.Spec.Rules, rule)
		}
		objects = append(objects, r)
	}
	w.create(objects...)
	w.create(gateway("large", "large"))
	// Its routes change all the time.
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			var r gwv1.HTTPRoute
			if w.client.Get(ctx, types.NamespacedName{Namespace: "large", Name: fmt.Sprintf("route-%d", i%100)}, &r) == nil {
				r.Spec.Rules[0].Matches[0].Path.Value = new(fmt.Sprintf("/changed-%d", i))
				_ = w.client.Update(ctx, &r)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
	defer wg.Wait()
	defer cancel()
	var worst time.Duration
	for i := range 8 {
		worst = max(worst, w.endpointLatency(i%s.gateways, 1+i/s.gateways, s.nodes))
	}
	t.Logf("the worst of 8 endpoint changes took %s", worst.Round(10*time.Millisecond))
	if worst > mostEndpoint {
		t.Errorf("an endpoint's change of a small Gateway took %s to the wire beside one with %d rules", worst, rules)
	}
}

// endpointLatency changes an endpoint of a Service and returns when the call for its node port comes.
func (w *world) endpointLatency(g, service, nodes int) time.Duration {
	w.Helper()
	var svc corev1.Service
	w.get(namespaceOf(g), serviceName(g, service), &svc)
	port := fmt.Sprintf(`"protocol_port":%d`, svc.Spec.Ports[0].NodePort)
	w.moveEndpoint(svc.Namespace, svc.Name, nodes)
	changed := time.Now()
	var took time.Duration
	if err := eventually(w.Context(), 5*time.Minute, func() error {
		for _, c := range w.cloud.Mutations() {
			if c.Method == http.MethodPut && c.Time.After(changed) && strings.Contains(c.Body, port) {
				took = c.Time.Sub(changed)
				return nil
			}
		}
		return fmt.Errorf("the endpoint's change is not on the wire")
	}); err != nil {
		w.Fatal(err)
	}
	return took
}
