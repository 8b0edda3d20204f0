package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

const (
	controllerName = api.DefaultControllerName
	clusterID      = "blue"
	resync         = 10 * time.Minute
	slice          = 20 * time.Second
	handover       = 30 * time.Second
)

// world is a cluster, a cloud, and the processes of the controller between them. Everything in it happens in one goroutine: whoever
// waits lets the others go on.
type world struct {
	seed   uint64
	rand   *rand.Rand
	dir    string
	clock  *sim.FakeClock
	kube   *server
	cloud  *sim.Cloud
	before sim.Snapshot

	processes []*process
	started   int
	timers    []timer
	// depth is how many passes are under way in each other.
	depth int
	now   int // calls so far, since the world settles
	ever  int // and in all

	schedule []event
	calm     bool // the schedule is over: no call fails any more
	// lastCall and lastTime are when the event before happened.
	lastCall int
	lastTime time.Time

	latency time.Duration
	faults  []*fault
	foreign *strangers

	writes, kubeWrites int
	cloudCalls         int
	// well says that the last check found every Gateway as it asks to be.
	well    bool
	tracing bool
	trace   func(format string, args ...any)
	problem error
}

type timer struct {
	at   time.Time
	what string
	do   func()
}

func newWorld(dir string, seed uint64, schedule []event, trace func(string, ...any)) (*world, error) {
	w := &world{seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), dir: dir, schedule: schedule, latency: 3 * time.Second, trace: trace,
		clock: sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	if w.tracing = trace != nil; !w.tracing {
		w.trace = func(string, ...any) {}
	}
	w.kube = newServer(func() metav1.Time { return metav1.NewTime(w.clock.Now().Truncate(time.Second)) })
	var err error
	w.cloud, err = sim.New(sim.Options{Clock: passing{w}, Seed: seed, MaxCalls: 1, Latency: func(op sim.Op) sim.Timing {
		pending := w.latency
		if op.Resource == "loadbalancer" && op.Action == "create" {
			pending *= 4
		}
		return sim.Timing{Pending: pending}
	}})
	if err != nil {
		return nil, fmt.Errorf("starting the cloud: %w", err)
	}
	if err := w.credentials(); err != nil {
		w.cloud.Close()
		return nil, err
	}
	w.before = w.cloud.Snapshot()
	w.foreign = newStrangers(w)
	w.lastTime = w.clock.Now()
	return w, nil
}

func (w *world) close() {
	for _, p := range w.processes {
		p.kill()
	}
	w.cloud.Close()
}

// passing is the clock of the cloud: when it sleeps, everybody goes on.
type passing struct{ w *world }

func (c passing) Now() time.Time { return c.w.clock.Now() }

func (c passing) Sleep(_ context.Context, d time.Duration) error {
	c.w.clock.Advance(d)
	return nil
}

func (c passing) AfterFunc(d time.Duration, f func()) func() { return c.w.clock.AfterFunc(d, f) }

// to moves the clock forward.
func (w *world) to(at time.Time) {
	if now := w.clock.Now(); at.After(now) {
		w.clock.Advance(at.Sub(now))
	}
}

func (w *world) after(d time.Duration, what string, do func()) {
	w.timers = append(w.timers, timer{w.clock.Now().Add(d), what, do})
}

// advance lets everything happen that is due until then.
func (w *world) advance(until time.Time) {
	for w.problem == nil {
		do, at := w.next()
		if do == nil || at.After(until) {
			break
		}
		w.to(at)
		do()
	}
	w.to(until)
}

// most is how many passes may be under way in each other.
const most = 3

// next is what is due first: an event of the schedule, a timer, or a pass.
func (w *world) next() (do func(), at time.Time) {
	if len(w.schedule) > 0 {
		do, at = func() { w.happen(nil) }, w.lastTime.Add(w.schedule[0].Wait)
	}
	for i, t := range w.timers {
		if do == nil || t.at.Before(at) {
			do, at = func() {
				w.timers = slices.Delete(w.timers, i, i+1)
				w.trace("%s", t.what)
				t.do()
			}, t.at
		}
	}
	for _, p := range w.processes {
		if due, ok := p.view.arrives(w.clock.Now()); ok && (do == nil || due.Before(at)) {
			do, at = func() { p.view.catchUp(w.clock.Now()) }, due
		}
	}
	if w.depth < most {
		for _, p := range w.processes {
			if k, due, ok := p.next(); ok && (do == nil || due.Before(at)) {
				do, at = func() { p.pass(k) }, due
			}
		}
	}
	return do, at
}

// step is asked before every call of a process that goes over the network. What happens at this very moment happens in it.
func (w *world) step(p *process, alone bool) {
	w.now++
	w.ever++
	for _, other := range w.processes {
		other.view.catchUp(w.clock.Now())
	}
	for len(w.schedule) > 0 && w.now-w.lastCall >= w.schedule[0].Calls && w.problem == nil {
		w.happen(p)
	}
	// The other workers, and the other process, are not idle meanwhile.
	if !alone && w.depth < most && w.rand.IntN(6) == 0 {
		for _, other := range w.processes {
			if k, due, ok := other.next(); ok && !due.After(w.clock.Now()) {
				other.pass(k)
				break
			}
		}
	}
}

// happen makes the next event of the schedule happen, at a call of a process or, with none, between calls.
func (w *world) happen(p *process) {
	e := w.schedule[0]
	w.schedule = w.schedule[1:]
	w.lastCall, w.lastTime = w.now, w.clock.Now()
	w.trace("event %s: %s", e, e.happen(w, p))
}

func (w *world) fail(format string, args ...any) {
	if w.problem == nil {
		w.problem = fmt.Errorf(format, args...)
	}
}

// key is what a pass is about; kind is gateway or gatewayclass.
type key struct {
	kind string
	types.NamespacedName
}

func (k key) String() string {
	return k.kind + "/" + strings.TrimPrefix(k.NamespacedName.String(), "/")
}
