package robustness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// process is one process of the controller with all that is lost with it.
type process struct {
	w      *world
	name   string
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	// dying says that it dies when the call that it makes is done.
	dying bool
	// pause is how long nobody runs after its death.
	pause time.Duration
	// skew is how far its clock is ahead of the cloud's.
	skew time.Duration

	view     *view
	reader   *kube.Reader
	gateways *controller.GatewayReconciler
	classes  *controller.ClassReconciler

	due     map[key]time.Time
	errors  map[key]int
	running map[key]bool
	// began is at which call each pass under way did, the innermost last.
	began []int
}

var errDead = errors.New("the process is dead")

// start begins a process, now or as soon as the cloud gives it a token.
func (w *world) start() {
	w.started++
	p := &process{w: w, name: fmt.Sprintf("p%d", w.started), due: map[key]time.Time{}, errors: map[key]int{}, running: map[key]bool{}}
	p.ctx, p.cancel = w.quiet()
	var err error
	if p.view, err = newView(w.kube, controllerName); err != nil {
		w.fail("starting: %w", err)
		return
	}
	w.processes = append(w.processes, p)
	if err := p.begin(); err != nil {
		w.trace("%s cannot start: %v", p.name, err)
		p.pause = 5 * time.Second
		p.kill()
	}
}

func (p *process) begin() error {
	c, err := cloud.New(p.ctx, cloud.Options{CloudsFile: p.w.credentialsFile(), Cloud: "story", Clock: p.clock(), Transport: &wire{p}, Parallel: 1})
	if err != nil {
		return err
	}
	a := &access{view: p.view, step: p.kubeStep}
	p.reader = &kube.Reader{Client: a, Live: live{a}, Controller: controllerName, ClusterID: clusterID, Served: served}
	writer := &kube.Writer{Client: a, Live: live{a}, Controller: controllerName, Events: kube.NewEvents(silent{}), Now: p.clock().Now}
	p.gateways = &controller.GatewayReconciler{Reader: p.reader, Writer: writer, Cloud: c, Clock: p.clock(), Resync: resync, Slice: slice, Handover: handover}
	p.classes = &controller.ClassReconciler{Reader: p.reader, Writer: writer, Cloud: c, Client: a}
	p.view.notify = p.notice
	p.view.list()
	return nil
}

// silent is an event recorder that keeps nothing.
type silent struct{}

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// kill ends a process. When it was the last one, another begins after its pause.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead = true
	w := p.w
	p.cancel()
	// Not in place: others are in the middle of the list.
	w.processes = slices.DeleteFunc(slices.Clone(w.processes), func(other *process) bool { return other == p })
	if len(w.processes) == 0 {
		w.after(p.pause, "the next process begins", func() {
			if len(w.processes) == 0 {
				w.start()
			}
		})
	}
}

// clock is what the process takes for the time.
func (p *process) clock() processClock { return processClock{p} }

type processClock struct{ p *process }

func (c processClock) Now() time.Time { return c.p.w.clock.Now().Add(c.p.skew) }

func (c processClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c processClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		c.p.w.advance(c.p.w.clock.Now().Add(d))
	}
	return ctx.Err()
}

// notice enqueues what an event concerns.
func (p *process) notice(before, after client.Object) {
	gateways, classes, err := p.reader.Concerned(p.ctx, before, after)
	if err != nil {
		p.w.fail("mapping an event: %w", err)
	}
	for _, g := range gateways {
		p.enqueue(key{"gateway", g}, p.w.clock.Now())
	}
	for _, c := range classes {
		p.enqueue(key{"gatewayclass", types.NamespacedName{Name: c.Name}}, p.w.clock.Now())
	}
}

func (p *process) enqueue(k key, at time.Time) {
	if due, ok := p.due[k]; !ok || at.Before(due) {
		p.due[k] = at
	}
}

// next is the pass that is due first; a key that is worked on waits.
func (p *process) next() (k key, at time.Time, ok bool) {
	for _, other := range slices.SortedFunc(maps.Keys(p.due), func(a, b key) int { return strings.Compare(a.String(), b.String()) }) {
		if due := p.due[other]; !p.running[other] && (!ok || due.Before(at)) {
			k, at, ok = other, due, true
		}
	}
	return k, at, ok
}

// pass makes one pass, as a worker of controller-runtime does.
func (p *process) pass(k key) {
	w := p.w
	if p.dead {
		return
	}
	delete(p.due, k)
	p.running[k] = true
	p.began = append(p.began, w.ever)
	w.depth++
	p.view.catchUp(w.clock.Now())
	if w.tracing {
		w.trace("%s%s begins %s", strings.Repeat("  ", w.depth), p.name, k)
	}
	var result ctrl.Result
	var err error
	request := ctrl.Request{NamespacedName: k.NamespacedName}
	if k.kind == "gateway" {
		result, err = p.gateways.Reconcile(p.ctx, request)
	} else {
		result, err = p.classes.Reconcile(p.ctx, request)
	}
	if w.tracing {
		w.trace("%s%s ends %s: again after %v, error %v", strings.Repeat("  ", w.depth), p.name, k, result.RequeueAfter, err)
	}
	w.depth--
	p.began = p.began[:len(p.began)-1]
	delete(p.running, k)
	p.view.catchUp(w.clock.Now())
	switch {
	case p.dead:
	case err != nil:
		p.errors[k]++
		p.enqueue(k, w.clock.Now().Add(min(time.Second<<min(p.errors[k], 20), 1000*time.Second)))
	default:
		delete(p.errors, k)
		if result.RequeueAfter > 0 {
			p.enqueue(k, w.clock.Now().Add(result.RequeueAfter))
		}
	}
}

// kubeStep is a call to the Kubernetes API.
func (p *process) kubeStep(verb string, o client.Object) (after bool, err error) {
	w := p.w
	if p.dead {
		return false, errDead
	}
	// Not with others in between: the ports of the responder are decided under a lock.
	w.step(p, true)
	if p.dead {
		return false, errDead
	}
	w.trace("      %s kube %s %T %s", p.name, verb, o, client.ObjectKeyFromObject(o))
	if verb != "get" {
		w.kubeWrites++
	}
	f := w.fault("kube", verb != "get")
	if p.dying {
		p.kill()
		return true, errDead
	}
	if f == nil {
		return false, nil
	}
	return f.kubeError()
}

func (w *world) credentialsFile() string { return filepath.Join(w.dir, "clouds.yaml") }

func (w *world) credentials() error {
	if err := os.WriteFile(w.credentialsFile(), w.cloud.CloudsYAML("story"), 0o600); err != nil {
		return fmt.Errorf("writing the credentials: %w", err)
	}
	return nil
}
