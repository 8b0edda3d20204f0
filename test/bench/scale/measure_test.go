package scale

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// result is what one size cost.
type result struct {
	size
	// cold is from the start of the controller, with nothing in the cloud, to all Gateways programmed; restart the same with everything
	// there. coldCalls and restartCalls are calls by service, coldCPU is what the process used meanwhile.
	cold, restart, coldCPU, restartCPU time.Duration
	coldCalls, restartCalls            map[string]int
	coldPasses, restartPasses          int
	// resident and heap are bytes at rest after the cold start, peak is the most until then; fresh is resident after the restart.
	resident, heap, peak, fresh float64
	// idle is the share of one core at rest.
	idle float64
	// p50 and p99 are from the answer of the API server to an endpoint's change to the call on the wire; p50 and p99 hold the debounce.
	p50, p99 time.Duration
	// mutations are of the restart and of the endpoint changes beyond one each: none.
	restartMutations, extraMutations int
}

// measuring is how long to look.
type measuring struct {
	// quiet is how long nothing may happen until all is done.
	quiet   time.Duration
	rest    time.Duration
	changes int
	every   time.Duration
	// patience is for one Gateway's part of the cold start, and base what it takes at any size.
	base, patience time.Duration
}

// measure runs one size from nothing.
func measure(w *world, s size, m measuring) result {
	w.Helper()
	r := result{size: s}
	w.load(s)
	w.Logf("%d Gateways, %d routes, %d Services, %d endpoints, %d Nodes are there", s.gateways, s.routes(), s.services(), s.endpoints(), s.nodes)
	patience := m.base + time.Duration(s.gateways)*m.patience

	w.cloud.ResetCalls()
	c := w.start()
	c.until(patience, func() error { return all(c, s.gateways) })
	r.cold = time.Since(c.started)
	c.quiet(m.quiet, patience)
	u := c.usage()
	r.coldCPU, r.coldCalls, r.coldPasses = u.cpu, byService(w.cloud.Calls()), c.passes()
	w.Logf("cold start: %s, %v calls, %d passes", r.cold.Round(time.Second), r.coldCalls, r.coldPasses)

	before := c.usage()
	time.Sleep(m.rest)
	after := c.usage()
	r.idle = float64(after.cpu-before.cpu) / float64(m.rest)
	r.resident, r.peak, r.heap = after.resident, after.peak, c.metric("go_memstats_heap_inuse_bytes", nil)

	r.p50, r.p99, r.extraMutations = w.changeEndpoints(c, s, m)
	w.Logf("%d endpoint changes: p50 %s, p99 %s", m.changes, r.p50, r.p99)
	c.stop()

	w.cloud.ResetCalls()
	c = w.start()
	c.until(patience, func() error { return all(c, s.gateways) })
	r.restart = time.Since(c.started)
	c.quiet(m.quiet, patience)
	u = c.usage()
	r.restartCPU, r.fresh, r.restartPasses = u.cpu, u.resident, c.passes()
	r.restartCalls, r.restartMutations = byService(w.cloud.Calls()), len(w.cloud.Mutations())
	w.Logf("restart: %s, %v calls, %d mutations", r.restart.Round(time.Second), r.restartCalls, r.restartMutations)
	c.stop()
	return r
}

func all(c *controller, n int) error {
	if got := c.programmed(); got != n {
		return fmt.Errorf("%d of %d Gateways are programmed", got, n)
	}
	return nil
}

func byService(calls []sim.Call) map[string]int {
	n := map[string]int{}
	for _, c := range calls {
		n[c.Service]++
	}
	return n
}

// changeEndpoints moves one endpoint of a Service to another Node, of one Gateway after the other, and looks when the call comes.
func (w *world) changeEndpoints(c *controller, s size, m measuring) (p50, p99 time.Duration, extra int) {
	w.Helper()
	w.cloud.ResetCalls()
	changed := map[int32]time.Time{} // by node port
	for i := range m.changes {
		g := i * 7 % s.gateways
		name := serviceName(g, 1+i/s.gateways%(servicesEach-1))
		var svc corev1.Service
		if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: namespaceOf(g), Name: name}, &svc); err != nil {
			w.Fatal(err)
		}
		if _, twice := changed[svc.Spec.Ports[0].NodePort]; twice {
			break // Gateways and Services are used up
		}
		w.moveEndpoint(svc.Namespace, svc.Name, s.nodes)
		changed[svc.Spec.Ports[0].NodePort] = time.Now()
		time.Sleep(m.every)
	}
	c.quiet(m.quiet+time.Second, 5*time.Minute)
	var took []time.Duration
	mutations := w.cloud.Mutations()
	for _, call := range mutations {
		var body struct {
			Members []struct {
				Port int32 `json:"protocol_port"`
			} `json:"members"`
		}
		if call.Method != http.MethodPut || !strings.HasSuffix(call.Path, "/members") || json.Unmarshal([]byte(call.Body), &body) != nil || len(body.Members) == 0 {
			continue
		}
		if at, ok := changed[body.Members[0].Port]; ok {
			took = append(took, call.Time.Sub(at))
			delete(changed, body.Members[0].Port)
		}
	}
	if len(changed) > 0 {
		w.Errorf("%d endpoint changes did not reach the cloud", len(changed))
	}
	if len(took) == 0 {
		return 0, 0, len(mutations)
	}
	slices.Sort(took)
	return took[len(took)/2], took[min(len(took)-1, len(took)*99/100)], len(mutations) - len(took)
}

// moveEndpoint moves the first endpoint of a Service to a Node that has none of it.
func (w *world) moveEndpoint(ns, service string, nodes int) {
	w.Helper()
	var s discoveryv1.EndpointSlice
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: ns, Name: service + "-x"}, &s); err != nil {
		w.Fatal(err)
	}
	used := map[string]bool{}
	for _, e := range s.Endpoints {
		used[*e.NodeName] = true
	}
	for i := range nodes {
		if !used[nodeName(i)] {
			s.Endpoints[0] = endpoint(i, 99)
			break
		}
	}
	if err := w.client.Update(w.Context(), &s); err != nil {
		w.Fatal(err)
	}
}

// busy is what others were doing on this machine before the measurement.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
