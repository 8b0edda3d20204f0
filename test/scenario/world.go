package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

const (
	controllerName = api.DefaultControllerName
	clusterID      = "blue"
	resync         = 10 * time.Minute
	slice          = 20 * time.Second
)

// world is a cluster, a cloud and the controller between them.
type world struct {
	clock   clock
	dir     string
	kube    *cluster
	cloud   *sim.Cloud
	latency *time.Duration
	// metrics are those of the requests to the cloud.
	metrics *prometheus.Registry
	// before is the cloud without anything of ours.
	before sim.Snapshot

	// The controller's process; nil when it does not run, because the cloud gives it no token.
	process *process
	events  recorder
	// due is when each key has its next pass; gateways that are gone stay until a pass wants nothing more.
	due map[key]time.Time
	// handover is that of the next process.
	handover time.Duration
	// log is what the passes said since the last look, said the last of it by key.
	log  []said
	last map[key]string
}

type said struct {
	key   key
	text  string
	times int
}

// process is what is lost with the controller.
type process struct {
	gateways *controller.GatewayReconciler
	classes  *controller.ClassReconciler
	errors   map[key]int
}

type key struct {
	kind string
	types.NamespacedName
}

func (k key) String() string {
	if k.Namespace == "" {
		return k.kind + "/" + k.Name
	}
	return k.kind + "/" + k.Namespace + "/" + k.Name
}

// recorder keeps Events as text.
type recorder struct{ list []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	name := ""
	if m, err := meta.Accessor(regarding); err == nil {
		name = m.GetName()
	}
	r.list = append(r.list, fmt.Sprintf("%s %s %s %s: %s", name, kind, reason, action, fmt.Sprintf(note, args...)))
}

var _ events.EventRecorder = (*recorder)(nil)

// newWorld makes a world in which the controller has just started. dir is for its credentials.
func newWorld(ctx context.Context, dir string, o sim.Options) (*world, error) {
	w := &world{clock: newClock(), dir: dir, metrics: prometheus.NewRegistry(), latency: new(5 * time.Second), due: map[key]time.Time{}, last: map[key]string{}}
	var err error
	o.Clock, o.Seed = w.clock, 1
	if o.Latency == nil {
		o.Latency = func(sim.Op) sim.Timing { return sim.Timing{Pending: *w.latency} }
	}
	if w.cloud, err = sim.New(o); err != nil {
		return nil, fmt.Errorf("starting the cloud: %w", err)
	}
	if err = w.credentials(); err != nil {
		return nil, err
	}
	w.before = w.cloud.Snapshot()
	if w.kube, err = newCluster(ctx, w.clock); err != nil {
		return nil, err
	}
	return w, w.restart(ctx)
}

func (w *world) close() { w.cloud.Close() }

func (w *world) credentials() error {
	return w.writeClouds(w.cloud.CloudsYAML("story"))
}

func (w *world) writeClouds(text []byte) error {
	if err := os.WriteFile(filepath.Join(w.dir, "clouds.yaml"), text, 0o600); err != nil {
		return fmt.Errorf("writing the credentials: %w", err)
	}
	return nil
}

// restart begins a new process of the controller: nothing that it remembered is left, and every object is looked at.
func (w *world) restart(ctx context.Context) error {
	w.kube.dead = false
	client, err := cloud.New(ctx, cloud.Options{CloudsFile: filepath.Join(w.dir, "clouds.yaml"), Cloud: "story", Clock: w.clock, Metrics: w.metrics})
	if err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	reader := &kube.Reader{Client: w.kube.controller, Live: w.kube.controller, Controller: controllerName, ClusterID: clusterID, Served: served}
	writer := &kube.Writer{
		Client: w.kube.controller, Live: w.kube.controller, Controller: controllerName,
		Events: kube.NewEvents(&w.events), Now: w.clock.Now,
	}
	w.process = &process{
		gateways: &controller.GatewayReconciler{Reader: reader, Writer: writer, Cloud: client, Clock: w.clock, Resync: resync, Slice: slice, Handover: w.handover},
		classes:  &controller.ClassReconciler{Reader: reader, Writer: writer, Cloud: client, Client: w.kube.controller},
		errors:   map[key]int{},
	}
	return nil
}

// Reconcile looks ahead so far from each pass, and so far in all: passes that are due later are for tick.
const (
	soon = 15 * time.Second
	long = time.Minute
)

// reconcile is what a change in Kubernetes causes: a pass for every object, and then those passes that they want soon.
func (w *world) reconcile(ctx context.Context) error {
	if err := w.enqueue(ctx); err != nil {
		return err
	}
	end := w.clock.Now().Add(long)
	for range 100 {
		k, at, ok := w.next()
		if !ok || at.After(w.clock.Now().Add(soon)) || at.After(end) || w.kube.dead {
			return nil
		}
		if at.After(w.clock.Now()) {
			w.clock.Advance(at.Sub(w.clock.Now()))
		}
		w.pass(ctx, k)
	}
	return errors.New("not quiet after 100 passes")
}

// enqueue makes every Gateway and every GatewayClass due.
func (w *world) enqueue(ctx context.Context) error {
	classes, err := w.kube.all(ctx, &gwv1.GatewayClassList{})
	if err != nil {
		return err
	}
	gateways, err := w.kube.all(ctx, &gwv1.GatewayList{})
	if err != nil {
		return err
	}
	for _, c := range classes {
		w.due[key{"gatewayclass", c}] = w.clock.Now()
	}
	for _, g := range gateways {
		w.due[key{"gateway", g}] = w.clock.Now()
	}
	for k := range w.due {
		w.due[k] = w.clock.Now()
	}
	return nil
}

// next is the key that is due first; equal times go by name.
func (w *world) next() (key, time.Time, bool) {
	keys := slices.SortedFunc(maps.Keys(w.due), func(a, b key) int {
		if c := w.due[a].Compare(w.due[b]); c != 0 {
			return c
		}
		return -strings.Compare(a.String(), b.String())
	})
	if len(keys) == 0 {
		return key{}, time.Time{}, false
	}
	return keys[0], w.due[keys[0]], true
}

// tick lets time pass, with the passes that are due in it.
func (w *world) tick(ctx context.Context, d time.Duration) {
	until := w.clock.Now().Add(d)
	for range 1000 {
		k, at, ok := w.next()
		if !ok || at.After(until) {
			break
		}
		if at.After(w.clock.Now()) {
			w.clock.Advance(at.Sub(w.clock.Now()))
		}
		w.pass(ctx, k)
	}
	if until.After(w.clock.Now()) {
		w.clock.Advance(until.Sub(w.clock.Now()))
	}
}

// never is when a key is due that waits for an event.
const never = 1000 * time.Hour

// pass makes one pass and notes how it ended. An error is retried as a work queue does.
func (w *world) pass(ctx context.Context, k key) {
	var result ctrl.Result
	var err error
	request := ctrl.Request{NamespacedName: k.NamespacedName}
	if k.kind == "gateway" {
		result, err = w.process.gateways.Reconcile(ctx, request)
	} else {
		result, err = w.process.classes.Reconcile(ctx, request)
	}
	text := k.String()
	switch {
	case err != nil:
		w.process.errors[k]++
		after := min(time.Second<<w.process.errors[k], 16*time.Minute)
		w.due[k] = w.clock.Now().Add(after)
		text += ": error: " + err.Error()
	case result.RequeueAfter > 0:
		delete(w.process.errors, k)
		w.due[k] = w.clock.Now().Add(result.RequeueAfter)
		text += ": again in " + shown(result.RequeueAfter)
	default:
		delete(w.process.errors, k)
		w.due[k] = w.clock.Now().Add(never)
		text += ": done"
	}
	if k.kind == "gateway" {
		text += w.summary(ctx, k.NamespacedName)
	}
	w.say(k, text)
}

// say notes what a pass did. Equal passes of a key in a row are counted, and a class is mentioned only when something is new.
func (w *world) say(k key, text string) {
	old := w.last[k]
	w.last[k] = text
	for i := len(w.log) - 1; i >= 0; i-- {
		if w.log[i].key == k {
			if w.log[i].text == text {
				w.log[i].times++
				return
			}
			break
		}
	}
	if k.kind == "gatewayclass" && text == old {
		return
	}
	w.log = append(w.log, said{k, text, 1})
}

// shown hides the jitter of the resync.
func shown(d time.Duration) string {
	if d > resync*3/4 && d < resync*5/4 {
		return "about " + resync.String()
	}
	return d.Round(time.Millisecond).String()
}

// summary is the state of a Gateway in a few words.
func (w *world) summary(ctx context.Context, name types.NamespacedName) string {
	gateway := &gwv1.Gateway{}
	if err := w.kube.admin.Get(ctx, name, gateway); err != nil {
		// Its class learns that by a watch.
		for k := range w.due {
			if k.kind == "gatewayclass" {
				w.due[k] = w.clock.Now()
			}
		}
		return ", it is gone"
	}
	text := ""
	if c := meta.FindStatusCondition(gateway.Status.Conditions, string(gwv1.GatewayConditionProgrammed)); c != nil {
		text += fmt.Sprintf(", Programmed=%s %s", c.Status, c.Reason)
	}
	if !gateway.DeletionTimestamp.IsZero() {
		text += ", being deleted"
	}
	return text
}

// news returns what the passes said since the last call.
func (w *world) news() string {
	var b strings.Builder
	for _, l := range w.log {
		b.WriteString(l.text)
		if l.times > 1 {
			fmt.Fprintf(&b, " (%d times)", l.times)
		}
		b.WriteString("\n")
	}
	w.log = nil
	if b.Len() == 0 {
		return "nothing new"
	}
	return b.String()
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// anonymous replaces the ids in a text: they say nothing to a reader.
func anonymous(text string) string {
	return contentAddress.ReplaceAllString(uuid.ReplaceAllString(text, "<id>"), "$1-<hash>")
}
