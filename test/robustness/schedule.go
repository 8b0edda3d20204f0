package robustness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// event is one thing that happens. It means the same whatever happened before, so that a schedule stays one when events are left out.
type event struct {
	// It happens in the middle of everything, at this many calls after the event before, or when so much time has passed without.
	Calls int
	Wait  time.Duration
	// What happens; N decides about the details.
	What string
	N    uint64
}

func (e event) String() string {
	return fmt.Sprintf("%s/%x after %d calls or %s", e.What, e.N, e.Calls, e.Wait)
}

// deeds are the kinds of events. They return what they did, for people.
var deeds map[string]struct {
	weight int
	do     func(w *world, p *process, r *rand.Rand) string
}

func init() {
	type deed = struct {
		weight int
		do     func(w *world, p *process, r *rand.Rand) string
	}
	deeds = map[string]deed{
		"apply":     {40, applied},
		"delete":    {8, deleted},
		"recreate":  {4, recreated},
		"namespace": {1, func(w *world, _ *process, r *rand.Rand) string { return removedNamespace(w, r) }},
		"touch":     {2, touched},
		"crash":     {6, func(w *world, p *process, r *rand.Rand) string { return crashed(w, p, r, false) }},
		"die":       {6, func(w *world, p *process, r *rand.Rand) string { return crashed(w, p, r, true) }},
		"leader":    {4, secondLeader},
		"lag":       {5, lagged},
		"relist":    {3, relisted},
		"fault":     {16, faulty},
		"outage":    {4, outage},
		"error":     {4, erroneous},
		"stuck":     {2, stuck},
		"latency":   {4, slower},
		"quota":     {3, quota},
		"tokens": {2, func(w *world, _ *process, _ *rand.Rand) string {
			w.cloud.RevokeTokens()
			return "all tokens are invalid"
		}},
		"rotate":  {2, rotated},
		"outside": {16, func(w *world, _ *process, r *rand.Rand) string { return w.foreign.interfere(r) }},
		"foreign": {8, func(w *world, _ *process, r *rand.Rand) string { return w.foreign.settleIn(r) }},
		"skew":    {2, skewed},
		"pause":   {2, paused},
	}
}

// names of the deeds, in a fixed order, each as often as its weight.
func lots() []string {
	var out []string
	for name := range deeds {
		for range deeds[name].weight {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// newSchedule is the schedule of a seed.
func newSchedule(seed uint64) []event {
	r := rand.New(rand.NewPCG(seed, 0))
	names := lots()
	var out []event
	// First there is something to disturb.
	for i := range entities() {
		if !perhaps(r, 6) {
			out = append(out, event{What: fmt.Sprintf("make-%02d", i), N: r.Uint64()})
		}
	}
	for range 3 + r.IntN(20) {
		e := event{What: one(r, names...), N: r.Uint64(), Calls: 1 + r.IntN(one(r, 4, 20, 60)), Wait: one(r, 0, time.Second, 10*time.Second, time.Minute, 12*time.Minute)}
		out = append(out, e)
	}
	return out
}

func (e event) happen(w *world, p *process) string {
	r := rand.New(rand.NewPCG(e.N, 2))
	if number, ok := strings.CutPrefix(e.What, "make-"); ok {
		var i int
		if _, err := fmt.Sscanf(number, "%d", &i); err != nil || i >= len(entities()) {
			return "nothing"
		}
		return w.put(entities()[i], r)
	}
	deed, ok := deeds[e.What]
	if !ok {
		return "nothing"
	}
	return deed.do(w, p, r)
}

func (w *world) put(e entity, r *rand.Rand) string {
	return fmt.Sprintf("%s %s", e, w.kube.apply(e.make(r)))
}

func applied(w *world, _ *process, r *rand.Rand) string { return w.put(pick(r), r) }

func deleted(w *world, _ *process, r *rand.Rand) string {
	e := pick(r)
	return fmt.Sprintf("%s %s", e, w.kube.remove(w.kube.kind(e.object), e.key))
}

// recreated deletes and makes anew under the same name, as far as nothing holds it.
func recreated(w *world, _ *process, r *rand.Rand) string {
	e := pick(r)
	gone := w.kube.remove(w.kube.kind(e.object), e.key)
	if gone == "being deleted" {
		w.after(time.Duration(r.IntN(120))*time.Second, fmt.Sprintf("%s is made again", e), func() { w.put(e, r) })
		return fmt.Sprintf("%s being deleted, to be made again", e)
	}
	return fmt.Sprintf("%s, %s", gone, w.put(e, r))
}

func removedNamespace(w *world, r *rand.Rand) string {
	name := one(r, "shop", "blog", "infra")
	w.kube.removeNamespace(name)
	return "namespace " + name
}

// touched changes what nobody needs.
func touched(w *world, _ *process, r *rand.Rand) string {
	e := pick(r)
	k := w.kube.kind(e.object)
	old := k.objects[e.key]
	if old == nil {
		return "nothing"
	}
	w.touch(k, old, fmt.Sprint(r.IntN(1000)))
	return e.String()
}

func (w *world) touch(k *kind, old client.Object, value string) {
	fresh := old.DeepCopyObject().(client.Object)
	annotations := map[string]string{"example.com/seen": value}
	for name, v := range old.GetAnnotations() {
		if name != "example.com/seen" {
			annotations[name] = v
		}
	}
	fresh.SetAnnotations(annotations)
	w.kube.store(k, old, fresh)
}

// crashed ends a process at once, or when the call that it makes is done, and begins another one.
func crashed(w *world, p *process, r *rand.Rand, after bool) string {
	if p == nil || p.dead {
		if len(w.processes) == 0 {
			return "nobody runs"
		}
		p, after = one(r, w.processes...), false
	}
	p.pause = one(r, 0, time.Second, 20*time.Second)
	if after {
		p.dying = true
		return p.name + " dies when its call is done"
	}
	p.kill()
	return p.name + " dies"
}

// secondLeader begins a process beside the one that runs, which does not learn of it for a while: at most the time for which a new leader
// takes that for possible.
func secondLeader(w *world, _ *process, r *rand.Rand) string {
	if len(w.processes) != 1 {
		return "not now"
	}
	old := w.processes[0]
	d := time.Duration(1+r.IntN(int(handover/time.Second))) * time.Second
	w.after(0, "a second leader begins", w.start)
	w.after(d, old.name+" learns that it leads no more", func() {
		if !old.dead && len(w.processes) > 1 {
			old.kill()
		}
	})
	return "for " + d.String()
}

func lagged(w *world, _ *process, r *rand.Rand) string {
	k := one(r, w.kube.kinds...)
	calls, d := 1+r.IntN(60), time.Duration(1+r.IntN(40))*time.Second
	for _, p := range w.processes {
		p.view.caches[k].held, p.view.caches[k].until = calls, w.clock.Now().Add(d)
	}
	return fmt.Sprintf("%s for %d calls or %s", k.name, calls, d)
}

func relisted(w *world, _ *process, r *rand.Rand) string {
	k := one(r, w.kube.kinds...)
	for _, p := range w.processes {
		p.view.relist(k)
	}
	return k.name
}

// faulty lets some of the next calls fail.
func faulty(w *world, _ *process, r *rand.Rand) string {
	f := fault{service: one(r, "", "", sim.Octavia, sim.Octavia, sim.Octavia, sim.Neutron, sim.Barbican, sim.Keystone, "kube", "kube"), skip: r.IntN(one(r, 1, 5, 30)), times: 1 + r.IntN(3)}
	f.writes = f.service != sim.Keystone && perhaps(r, 2)
	switch r.IntN(8) {
	case 0, 1:
		f.lost = true
	case 2:
		f.cut = true
	case 3:
		f.lost, f.delay = true, 2*time.Minute
	case 4:
		f.status, f.after = one(r, http.StatusTooManyRequests, http.StatusServiceUnavailable), one(r, 0, 3*time.Second, time.Minute)
	case 5:
		// What Octavia says while the load balancer is busy, and what a proxy says.
		f.status, f.body = http.StatusConflict, one(r, `{"faultstring": "Load Balancer x is immutable and cannot be updated.", "faultcode": "Client", "debuginfo": null}`, `{}`)
	default:
		f.status, f.body = one(r, 500, 500, 502, 503, 504), "<html>a gateway timed out</html>"
	}
	w.faults = append(w.faults, &f)
	return f.String()
}

// outage lets a service fail for a while.
func outage(w *world, _ *process, r *rand.Rand) string {
	f := &fault{service: one(r, sim.Octavia, sim.Neutron, sim.Barbican, sim.Keystone, "kube", ""), times: 1 << 30, status: one(r, 500, 503, 403)}
	f.cut = perhaps(r, 3)
	f.writes = f.service == "kube"
	d := one(r, 5*time.Second, time.Minute, 20*time.Minute)
	w.faults = append(w.faults, f)
	w.after(d, "the outage ends", func() { w.faults = slices.DeleteFunc(w.faults, func(o *fault) bool { return o == f }) })
	return fmt.Sprintf("%s for %s", f, d)
}

// erroneous lets what the next writes touch end in ERROR.
func erroneous(w *world, _ *process, r *rand.Rand) string {
	kind := one(r, "loadbalancer", "loadbalancer", "listener", "pool", "member", "healthmonitor", "l7policy", "rule")
	times := 1 + r.IntN(2)
	w.cloud.Inject(sim.Fault{Service: sim.Octavia, Path: "^/(loadbalancers|listeners|pools|l7policies|healthmonitors)", Method: one(r, "POST", "POST", "PUT", "DELETE"), Times: times, Error: []string{kind}})
	return fmt.Sprintf("%s, %d times", kind, times)
}

// stuck leaves a load balancer PENDING for long.
func stuck(w *world, _ *process, r *rand.Rand) string {
	w.cloud.Inject(sim.Fault{Service: sim.Octavia, Method: one(r, "POST", "PUT", "DELETE"), Stuck: true})
	d := one(r, time.Minute, 20*time.Minute)
	end := one(r, "ACTIVE", "ACTIVE", "ERROR")
	w.after(d, "nothing is stuck any more", func() { w.unstick(end) })
	return fmt.Sprintf("for %s, then %s", d, end)
}

func (w *world) unstick(end string) {
	for _, id := range w.ids("loadbalancers") {
		w.cloud.Unstick(id, end)
	}
}

func slower(w *world, _ *process, r *rand.Rand) string {
	w.latency = one(r, 0, time.Second, 5*time.Second, 30*time.Second, 5*time.Minute)
	return w.latency.String()
}

func quota(w *world, _ *process, r *rand.Rand) string {
	kind, limit := one(r, "loadbalancer", "listener", "pool", "member", "healthmonitor", "l7policy", "l7rule", "floatingip"), r.IntN(3)
	w.cloud.SetQuota(kind, limit)
	return fmt.Sprintf("%s %d", kind, limit)
}

// rotated gives the project another credential, and the controller learns of it after a while.
func rotated(w *world, _ *process, r *rand.Rand) string {
	w.cloud.RotateCredential()
	d := one(r, 0, 10*time.Second, 10*time.Minute)
	w.after(d, "the new credential is in the file", func() {
		if err := w.credentials(); err != nil {
			w.fail("%w", err)
		}
	})
	return "known after " + d.String()
}

// skewed sets the clocks of the processes wrong.
func skewed(w *world, _ *process, r *rand.Rand) string {
	d := one(r, -5*time.Minute, -time.Second, time.Second, 5*time.Minute)
	for _, p := range w.processes {
		p.skew = d
	}
	return d.String()
}

// paused stops all processes for a while, in the middle of whatever they do; the world goes on.
func paused(w *world, _ *process, r *rand.Rand) string {
	d := one(r, time.Second, time.Minute, time.Hour)
	w.clock.Advance(d)
	return d.String()
}
