package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

const configDir = "../../config"

// serviceAccount is who the controller is in a cluster: the tests run as it, with the rights of config/rbac.
const serviceAccount = "system:serviceaccount:gateway-api-openstack-system:openstack-gateway-controller"

// The API server is started by the first test that needs it, and shared.
var apiServer struct {
	once  sync.Once
	env   *envtest.Environment
	admin *rest.Config
	err   error
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if apiServer.env != nil {
		if err := apiServer.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
	}
	os.Exit(code)
}

// cluster starts the API server with all CRDs, or skips.
func cluster(t *testing.T) *rest.Config {
	t.Helper()
	needAssets(t)
	apiServer.once.Do(func() {
		apiServer.env = &envtest.Environment{CRDDirectoryPaths: []string{gatewayAPICRDs(t), filepath.Join(configDir, "crd")}, ErrorIfCRDPathMissing: true}
		apiServer.admin, apiServer.err = apiServer.env.Start()
		if apiServer.err == nil {
			apiServer.err = applyDir(t, apiServer.admin, filepath.Join(configDir, "deployment"), filepath.Join(configDir, "rbac"))
		}
	})
	if apiServer.err != nil {
		t.Fatal(apiServer.err)
	}
	return apiServer.admin
}

func needAssets(t *testing.T) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: run make test, or KUBEBUILDER_ASSETS=$(hack/kube-assets.sh) go test")
	}
}

func gatewayAPICRDs(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard")
}

// manifests are the documents of all YAML files in dirs, but for kustomizations.
func manifests(t *testing.T, dirs ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests in %s: %v", dir, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
			for {
				o := &unstructured.Unstructured{}
				if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if o.Object != nil {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// applyDir creates everything in dirs, namespaces first.
func applyDir(t *testing.T, admin *rest.Config, dirs ...string) error {
	c, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	all := manifests(t, dirs...)
	for _, namespaces := range []bool{true, false} {
		for _, o := range all {
			if (o.GetKind() == "Namespace") != namespaces {
				continue
			}
			if err := c.Create(context.Background(), o.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

// loop is the shortest controller that reads with Reader, compiles, and writes with Writer: its cloud programs everything at once.
type loop struct {
	reader *Reader
	writer *Writer
	// passes counts reconciles of Gateways.
	passes atomic.Int64
	// running counts those that have not ended.
	running atomic.Int64
	// patched counts the requests that change something.
	patched atomic.Int64
}

func (l *loop) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	l.passes.Add(1)
	l.running.Add(1)
	defer l.running.Add(-1)
	s, err := l.reader.Snapshot(ctx, req.NamespacedName)
	var parameters *ParametersError
	switch {
	case apierrors.IsNotFound(err):
		sets, routes, listErr := l.reader.Attached(ctx, req.NamespacedName)
		if listErr != nil {
			return reconcile.Result{}, listErr
		}
		if err := l.writer.ReleaseListenerSets(ctx, sets); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, l.writer.ReleaseRoutes(ctx, req.NamespacedName, sets, routes)
	case err != nil && !errors.As(err, &parameters):
		return reconcile.Result{}, err
	}
	if !s.Gateway.DeletionTimestamp.IsZero() || !l.reader.Selects(s.Class) {
		if err := l.writer.ReleaseRoutes(ctx, req.NamespacedName, s.ListenerSets, s.HTTPRoutes); err != nil {
			return reconcile.Result{}, err
		}
		if s.Gateway.DeletionTimestamp.IsZero() && l.reader.Ours(s) {
			if err := l.writer.ReleaseGateway(ctx, s.Gateway); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, l.writer.RemoveFinalizer(ctx, s.Gateway, l.reader.Finalizer())
	}
	if err := l.writer.AddFinalizer(ctx, s.Gateway, l.reader.Finalizer()); err != nil {
		return reconcile.Result{}, err
	}
	in := status.Input{Controller: l.reader.Controller, Gateway: s.Gateway, ListenerSets: s.ListenerSets}
	if parameters != nil {
		in.Verdicts = []status.Verdict{{Object: status.Object{Kind: status.KindGateway}, Conditions: []status.Condition{status.GatewayInvalidParameters("openstack", parameters.Message)}}}
		in.Outcome = status.Outcome{Kind: status.UserFault, Message: parameters.Message}
	} else {
		result := compile.Gateway(s)
		in.Compiled, in.Verdicts, in.Want = true, result.Verdicts, result.Tree
		have := result.Tree
		have.ID, have.ProvisioningStatus, have.VIP.Address = "lb", lb.Active, "192.0.2.7"
		in.Have, in.Outcome = &have, status.Outcome{Kind: status.Programmed}
	}
	return reconcile.Result{}, l.writer.Write(ctx, s, status.For(in))
}

// classLoop keeps a class while Gateways use it.
type classLoop struct{ *loop }

func (l classLoop) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	class := &gwv1.GatewayClass{}
	if err := l.reader.Client.Get(ctx, req.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	gateways, err := l.reader.GatewaysOfClass(ctx, class.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(gateways) == 0 {
		return reconcile.Result{}, l.writer.RemoveFinalizer(ctx, class, gwv1.GatewayClassFinalizerGatewaysExist)
	}
	if !class.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err = l.writer.AddFinalizer(ctx, class, gwv1.GatewayClassFinalizerGatewaysExist); err != nil {
		return reconcile.Result{}, err
	}
	bundle, err := l.reader.Bundle(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, l.writer.WriteClass(ctx, class, []status.Condition{status.ClassAccepted(nil), status.ClassSupportedVersion(bundle...)}, status.SupportedFeatures(nil))
}

// start runs a loop as the controller's ServiceAccount until the test ends. It serves classes of its own controller name, so that
// tests do not see each other.
func start(t *testing.T, admin *rest.Config, controllerName string) *loop {
	t.Helper()
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: serviceAccount, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:gateway-api-openstack-system", "system:authenticated"}}
	as.QPS, as.Burst = 200, 400
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	served, err := ServedKinds(discovery.NewDiscoveryClientForConfigOrDie(as))
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(as, ctrl.Options{
		Scheme: scheme, Cache: CacheOptions(), Client: ClientOptions(), Metrics: server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := SetupIndexes(t.Context(), mgr.GetFieldIndexer(), controllerName, served); err != nil {
		t.Fatal(err)
	}
	l := &loop{}
	l.reader = &Reader{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Controller: controllerName, ClusterID: "blue", Served: served}
	l.writer = &Writer{Client: countingClient{mgr.GetClient(), &l.patched}, Live: mgr.GetAPIReader(), Controller: controllerName, Events: NewEvents(mgr.GetEventRecorder("gateway-api-openstack"))}
	options := controller.Options{MaxConcurrentReconciles: 4}
	if err := l.reader.Watches(ctrl.NewControllerManagedBy(mgr).Named("gateway").WithOptions(options)).Complete(l); err != nil {
		t.Fatal(err)
	}
	if err := l.reader.ClassWatches(ctrl.NewControllerManagedBy(mgr).Named("gatewayclass")).Complete(classLoop{l}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager ended with %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the manager does not end")
		}
	})
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the caches do not sync")
	}
	return l
}

// countingClient counts patches of status and objects.
type countingClient struct {
	client.Client
	n *atomic.Int64
}

func (c countingClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.n.Add(1)
	return c.Client.Patch(ctx, o, p, opts...)
}

func (c countingClient) Status() client.SubResourceWriter {
	return countingStatus{c.Client.Status(), c.n}
}

type countingStatus struct {
	client.SubResourceWriter
	n *atomic.Int64
}

func (c countingStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	c.n.Add(1)
	return c.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// ground is a test's own namespaces, class and client.
type ground struct {
	client.Client
	t          *testing.T
	admin      *rest.Config
	name       string
	controller string
	loop       *loop
}

// newGround makes namespaces <name>-infra, <name>-web and <name>-finance and a class <name>, and starts a loop for it.
func newGround(t *testing.T, name string) *ground {
	t.Helper()
	admin := cluster(t)
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{Client: c, t: t, admin: admin, name: name, controller: "example.test/" + name}
	for _, ns := range []string{"infra", "web", "finance"} {
		g.create(namespace(g.ns(ns)))
	}
	g.create(config(name))
	cl := class(name, g.controller)
	cl.Generation, cl.Spec.ParametersRef.Name = 0, name
	g.create(cl)
	g.loop = start(t, admin, g.controller)
	return g
}

func (g *ground) ns(name string) string { return g.name + "-" + name }

func (g *ground) create(objects ...client.Object) {
	g.t.Helper()
	for _, o := range objects {
		if err := g.Create(g.t.Context(), o); err != nil {
			g.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (g *ground) delete(o client.Object) {
	g.t.Helper()
	if err := g.Delete(g.t.Context(), o); err != nil {
		g.t.Fatal(err)
	}
}

// eventually waits until check has nothing to say.
func (g *ground) eventually(what string, check func() string) {
	g.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: %s", what, wrong)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settled waits until the loop has been idle for a moment, and returns its counts.
func (g *ground) settled() (passes, patches int64) {
	g.t.Helper()
	// A pass begins after the event of a write has come back, which takes its time on a busy machine.
	for quiet := 0; quiet < 3; {
		time.Sleep(250 * time.Millisecond)
		quiet++
		if now, wrote := g.loop.passes.Load(), g.loop.patched.Load(); now != passes || wrote != patches || g.loop.running.Load() > 0 {
			passes, patches, quiet = now, wrote, 0
		}
	}
	return passes, patches
}

func (g *ground) gateway(name string) *gwv1.Gateway {
	gw := gateway(g.ns("infra"), name, g.name)
	gw.Generation, gw.UID = 0, ""
	gw.Spec.Listeners[0].AllowedRoutes = &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}}
	return gw
}

func (g *ground) route(name string, gateway string, service types.NamespacedName) *gwv1.HTTPRoute {
	r := route(g.ns("web"), name, key(g.ns("infra"), gateway), service)
	r.Generation, r.UID = 0, ""
	return r
}

func (g *ground) service(ns, name string) *corev1.Service {
	s := service(ns, name)
	s.Spec.Ports[0].NodePort = 0
	return s
}

// parentCondition reads "status/reason" of a condition of our entry for the parent with this section, "" when there is none.
func (g *ground) parentCondition(r *gwv1.HTTPRoute, section, conditionType string) (string, metav1.Condition) {
	g.t.Helper()
	fresh := &gwv1.HTTPRoute{}
	if err := g.Get(g.t.Context(), client.ObjectKeyFromObject(r), fresh); err != nil {
		g.t.Fatal(err)
	}
	for _, p := range fresh.Status.Parents {
		if string(p.ControllerName) != g.controller || string(valueOr(p.ParentRef.SectionName, "")) != section {
			continue
		}
		for _, c := range p.Conditions {
			if c.Type == conditionType {
				return string(c.Status) + "/" + c.Reason, c
			}
		}
	}
	return "", metav1.Condition{}
}

func (g *ground) waitParent(r *gwv1.HTTPRoute, section, conditionType, want string) metav1.Condition {
	g.t.Helper()
	var c metav1.Condition
	g.eventually(r.Name+" "+section+" "+conditionType, func() string {
		var got string
		if got, c = g.parentCondition(r, section, conditionType); got != want {
			return fmt.Sprintf("got %q, want %q", got, want)
		}
		return ""
	})
	return c
}

// warningList collects the warnings of the API server.
type warningList struct {
	mu  sync.Mutex
	all []string
}

func (w *warningList) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warningList) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func withWarnings(c *rest.Config, w *warningList) *rest.Config {
	c = rest.CopyConfig(c)
	c.WarningHandler = w
	return c
}
