package robustness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Bounds of what a calm world may cost. A Gateway is looked at every ten minutes.
const (
	mostWrites     = 400
	mostKubeWrites = 1000
	mostCalls      = 40000
)

// calmFor is how long it may take until all is well: the longest pause after a failure is ten minutes, a full read comes within 72.
const calmFor = 100 * time.Minute

// quiet is a context for calls that are nobody's.
func (w *world) quiet() (context.Context, context.CancelFunc) {
	log := logr.Discard()
	if w.tracing {
		log = funcr.New(func(_, args string) { w.trace("      log %s", args) }, funcr.Options{})
	}
	return context.WithCancel(ctrl.LoggerInto(context.Background(), log))
}

// direct carries calls that nobody disturbs and nobody counts.
type direct struct{ w *world }

func (t direct) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	return t.w.serve(req, body), nil
}

// play runs a schedule of a seed and says what came of it: nil when all is well.
func play(dir string, seed uint64, schedule []event, trace func(string, ...any)) (err error) {
	w, err := newWorld(dir, seed, schedule, trace)
	if err != nil {
		return err
	}
	defer w.close()
	defer func() {
		if r := recover(); r != nil {
			if trace != nil {
				panic(r)
			}
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w.start()
	for len(w.schedule) > 0 && w.problem == nil {
		// Whatever is due, until the last event has happened.
		if do, at := w.next(); do != nil {
			w.to(at)
			do()
		}
	}
	w.trace("the schedule is over")
	w.heal()
	// What is under way may still end badly.
	w.advance(w.clock.Now().Add(10 * time.Minute))
	for range 3 {
		if !w.troubled() {
			break
		}
		if err := w.settle("after the faults", false); err != nil {
			return err
		}
		w.repair()
	}
	if err := w.settle("after all", true); err != nil {
		return err
	}
	if err := w.rest(); err != nil {
		return err
	}
	return w.end()
}

// heal ends all that makes calls fail.
func (w *world) heal() {
	w.calm = true
	w.faults = nil
	w.cloud.ClearFaults()
	w.latency = 3 * time.Second
	w.unstick("ACTIVE")
	for _, kind := range []string{"loadbalancer", "listener", "pool", "member", "healthmonitor", "l7policy", "l7rule", "floatingip"} {
		w.cloud.SetQuota(kind, -1)
	}
	if err := w.credentials(); err != nil {
		w.fail("%w", err)
	}
	for _, p := range w.processes {
		for _, c := range p.view.caches {
			c.held = 0
		}
	}
}

// settle lets the world come to rest and checks it.
func (w *world) settle(when string, clean bool) error {
	w.writes, w.kubeWrites, w.now, w.lastCall = 0, 0, 0, 0
	w.trace("settling %s", when)
	var problems []string
	// Most is well soon; some is only after the longest pause.
	for _, d := range []time.Duration{calmFor / 5, calmFor * 4 / 5} {
		w.advance(w.clock.Now().Add(d))
		if w.problem != nil {
			return w.problem
		}
		if len(w.processes) == 0 {
			return fmt.Errorf("%s: no process runs", when)
		}
		if w.writes > mostWrites || w.kubeWrites > mostKubeWrites || w.now > mostCalls {
			return fmt.Errorf("%s it took %d writes, %d writes to Kubernetes, %d calls", when, w.writes, w.kubeWrites, w.now)
		}
		if problems = w.check(clean); len(problems) == 0 {
			return nil
		}
	}
	return w.found(when, problems)
}

func (w *world) found(when string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(when + ":\n" + strings.Join(problems, "\n"))
}

// troubled says whether there is something that only people can mend.
func (w *world) troubled() bool {
	for _, one := range w.foreign.have {
		if one.obstacle {
			return true
		}
	}
	return len(w.broken()) > 0 || len(w.twice()) > 0
}

// broken are the load balancers of ours with something in ERROR.
func (w *world) broken() (ids []string) {
	now := w.cloud.Snapshot()
	for _, id := range w.ids("loadbalancers") {
		if o := now["loadbalancers"][id]; ownerIn("loadbalancers", o) != "" && w.foreign.have[id] == nil && (o["provisioning_status"] == "ERROR" || len(w.children(now, id, "ERROR")) > 0) {
			ids = append(ids, id)
		}
	}
	return ids
}

// children are the listeners below a load balancer, and whatever else is of its Gateway, with a status.
func (w *world) children(now sim.Snapshot, id, status string) (ids []string) {
	owner := ownerIn("loadbalancers", now["loadbalancers"][id])
	for _, collection := range []string{"listeners", "pools", "l7policies", "healthmonitors"} {
		for child, o := range now[collection] {
			if o["provisioning_status"] == status && ownerIn(collection, o) == owner && w.foreign.have[child] == nil {
				ids = append(ids, child)
			}
		}
	}
	return ids
}

// twice are load balancers that a Gateway has beside another one: because somebody copied all of its marks, or because two leaders made
// one each. Whoever copied it knows which it is; of two of ours the one with the address stays.
func (w *world) twice() (ids []string) {
	now := w.cloud.Snapshot()
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(now["loadbalancers"])) {
		if owner := ownerIn("loadbalancers", now["loadbalancers"][id]); owner != "" {
			of[owner] = append(of[owner], id)
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(of)) {
		keep := of[owner][0]
		for _, id := range of[owner] {
			if now["loadbalancers"][id]["description"] != "somebody else's" {
				keep = id
			}
		}
		for _, id := range of[owner] {
			for _, f := range now["floatingips"] {
				if f["port_id"] == now["loadbalancers"][id]["vip_port_id"] {
					keep = id
				}
			}
		}
		ids = append(ids, slices.DeleteFunc(slices.Clone(of[owner]), func(id string) bool { return id == keep })...)
	}
	return ids
}

// repair does what only people can do: it takes away what is in the way, and mends what is in ERROR.
func (w *world) repair() {
	w.foreign.intact("before people mended it")
	w.foreign.leave()
	for _, id := range w.twice() {
		w.trace("one of two load balancers is taken away: %s: %v", id, w.foreign.delete("loadbalancers", id))
	}
	for _, id := range w.broken() {
		path, method := "/loadbalancers/"+id+"/failover", "PUT"
		now := w.cloud.Snapshot()
		if len(w.children(now, id, "PENDING_CREATE")) > 0 {
			// It never was what it should be.
			path, method = "/loadbalancers/"+id+"?cascade=true", "DELETE"
		}
		_, err := w.foreign.do("octavia", method, path, nil)
		w.trace("the operator: %s %s: %v", method, path, err)
		for _, child := range w.children(w.cloud.Snapshot(), id, "ERROR") {
			w.cloud.SetStatus(child, "ACTIVE", "")
		}
	}
	// Whatever others had below what was deleted went with it.
	w.foreign.look()
}

// rest says whether a world in which all is well is left alone.
func (w *world) rest() error {
	w.writes, w.kubeWrites, w.now, w.lastCall = 0, 0, 0, 0
	// Two looks at everything: what is remembered may just have run out.
	w.trace("resting")
	w.advance(w.clock.Now().Add(25 * time.Minute))
	if w.writes > 0 || w.kubeWrites > 0 {
		return fmt.Errorf("at rest there were %d writes to the cloud and %d to Kubernetes", w.writes, w.kubeWrites)
	}
	// The next event changes nothing, and is just after a look at everything.
	for _, p := range w.processes {
		for k := range p.due {
			p.due[k] = w.clock.Now()
		}
	}
	w.advance(w.clock.Now().Add(time.Second))
	for range 2 {
		for _, k := range w.kube.kinds {
			for _, key := range k.keys() {
				w.touch(k, k.objects[key], fmt.Sprint("rest ", w.now))
			}
		}
		for _, p := range w.processes {
			p.view.catchUp(w.clock.Now())
			for _, gateway := range w.kube.kind(&gwv1.Gateway{}).keys() {
				p.enqueue(key{"gateway", gateway}, w.clock.Now())
			}
		}
		w.cloudCalls = 0
		w.advance(w.clock.Now().Add(time.Second))
		if w.cloudCalls == 0 {
			break
		}
		// What is known of the networks may run out just now, and not twice.
	}
	if w.well && w.cloudCalls > 0 {
		return fmt.Errorf("events that change nothing made %d calls to the cloud", w.cloudCalls)
	}
	return w.problem
}

// end deletes all Gateways: then nothing of ours is left.
func (w *world) end() error {
	k := w.kube.kind(&gwv1.Gateway{})
	for _, key := range k.keys() {
		w.kube.remove(k, key)
	}
	return w.settle("after all Gateways were deleted", true)
}
