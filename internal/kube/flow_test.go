package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

func TestCluster_aGatewayBecomesProgrammedAndThenNothingIsWritten(t *testing.T) {
	t.Parallel()
	g := newGround(t, "plain")
	gw := g.gateway("edge")
	r := g.route("site", "edge", key(g.ns("web"), "site"))
	g.create(g.service(g.ns("web"), "site"), gw, r)
	g.waitParent(r, "", "ResolvedRefs", "True/ResolvedRefs")
	g.eventually("Gateway", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		if len(gw.Status.Addresses) != 1 || len(gw.Status.Listeners) != 1 || gw.Status.Listeners[0].AttachedRoutes != 1 {
			return fmt.Sprintf("status %+v", gw.Status)
		}
		for _, c := range gw.Status.Conditions {
			if c.Status != metav1.ConditionTrue || c.ObservedGeneration != gw.Generation {
				return fmt.Sprintf("condition %+v", c)
			}
		}
		return ""
	})
	if !slices.Contains(gw.Finalizers, g.loop.reader.Finalizer()) {
		t.Errorf("finalizers %v", gw.Finalizers)
	}
	g.eventually("GatewayClass", func() string {
		c := &gwv1.GatewayClass{}
		if err := g.Get(t.Context(), key("", g.name), c); err != nil {
			return err.Error()
		}
		var got []string
		for _, x := range c.Status.Conditions {
			got = append(got, x.Type+"="+string(x.Status)+"/"+x.Reason)
		}
		want := []string{"Accepted=True/Accepted", "SupportedVersion=True/SupportedVersion"}
		if !slices.Equal(got, want) || len(c.Status.SupportedFeatures) == 0 || !slices.Contains(c.Finalizers, gwv1.GatewayClassFinalizerGatewaysExist) {
			return fmt.Sprintf("%v %v %v", got, c.Status.SupportedFeatures, c.Finalizers)
		}
		return ""
	})
	g.eventually("Event", func() string {
		var list eventsv1.EventList
		if err := g.List(t.Context(), &list, client.InNamespace(gw.Namespace)); err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			if e.Reason == "Programmed" && e.Regarding.Name == "edge" && strings.Contains(e.Note, "192.0.2.7") {
				return ""
			}
		}
		return fmt.Sprintf("%d Events", len(list.Items))
	})

	_, before := g.settled()
	// Something that does change input, and nothing in the outcome.
	ns := &corev1.Namespace{}
	if err := g.Get(t.Context(), key("", g.ns("web")), ns); err != nil {
		t.Fatal(err)
	}
	passes, _ := g.settled()
	ns.Labels["team"] = "web"
	if err := g.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	g.eventually("reconcile", func() string {
		if g.loop.passes.Load() == passes {
			return "none"
		}
		return ""
	})
	if _, after := g.settled(); after != before {
		t.Errorf("%d writes without a change", after-before)
	}
}

// Deleting a ReferenceGrant takes the permission away, without an edit of the route.
func TestCluster_aDeletedGrantReachesTheRoute(t *testing.T) {
	t.Parallel()
	g := newGround(t, "grants")
	permit := &gwv1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.ns("finance"), Name: "web"},
		Spec: gwv1.ReferenceGrantSpec{
			From: []gwv1.ReferenceGrantFrom{{Group: gwv1.GroupName, Kind: "HTTPRoute", Namespace: gwv1.Namespace(g.ns("web"))}},
			To:   []gwv1.ReferenceGrantTo{{Kind: "Service"}},
		},
	}
	r := g.route("pay", "edge", key(g.ns("finance"), "pay"))
	g.create(g.service(g.ns("finance"), "pay"), permit, g.gateway("edge"), r)
	g.waitParent(r, "", "ResolvedRefs", "True/ResolvedRefs")
	generation := r.Generation
	g.delete(permit)
	c := g.waitParent(r, "", "ResolvedRefs", "False/RefNotPermitted")
	if c.ObservedGeneration != generation {
		t.Errorf("observed %d, the route is at %d", c.ObservedGeneration, generation)
	}
	if got, _ := g.parentCondition(r, "", "Accepted"); got != "True/Accepted" {
		t.Errorf("Accepted is %s", got)
	}
	permit.ResourceVersion = ""
	g.create(permit)
	g.waitParent(r, "", "ResolvedRefs", "True/ResolvedRefs")
}

// Only the Gateway changes: the statuses of its routes follow.
func TestCluster_aNewListenerReachesTheRoute(t *testing.T) {
	t.Parallel()
	g := newGround(t, "listeners")
	gw := g.gateway("edge")
	gw.Spec.Listeners[0].Hostname = new(gwv1.Hostname("a.acme.test"))
	r := g.route("b", "edge", key(g.ns("web"), "site"))
	r.Spec.Hostnames = []gwv1.Hostname{"b.acme.test"}
	g.create(g.service(g.ns("web"), "site"), gw, r)
	refused := g.waitParent(r, "", "Accepted", "False/NoMatchingListenerHostname")
	time.Sleep(1100 * time.Millisecond) // transition times are whole seconds

	set := func(change func(*gwv1.Gateway)) {
		g.eventually("update", func() string {
			if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
				return err.Error()
			}
			change(gw)
			if err := g.Update(t.Context(), gw); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	set(func(gw *gwv1.Gateway) {
		second := *gw.Spec.Listeners[0].DeepCopy()
		second.Name, second.Hostname = "b", new(gwv1.Hostname("b.acme.test"))
		gw.Spec.Listeners = append(gw.Spec.Listeners, second)
	})
	accepted := g.waitParent(r, "", "Accepted", "True/Accepted")
	if accepted.ObservedGeneration != r.Generation || !accepted.LastTransitionTime.After(refused.LastTransitionTime.Time) {
		t.Errorf("before %+v, after %+v", refused, accepted)
	}
	g.eventually("attachedRoutes", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		for _, l := range gw.Status.Listeners {
			if want := map[gwv1.SectionName]int32{"http": 0, "b": 1}[l.Name]; l.AttachedRoutes != want {
				return fmt.Sprintf("listener %s has %d", l.Name, l.AttachedRoutes)
			}
		}
		if len(gw.Status.Listeners) != 2 {
			return fmt.Sprintf("%d listeners", len(gw.Status.Listeners))
		}
		return ""
	})
	set(func(gw *gwv1.Gateway) { gw.Spec.Listeners = gw.Spec.Listeners[:1] })
	g.waitParent(r, "", "Accepted", "False/NoMatchingListenerHostname")
}

// What another controller wrote stays to the byte, and is written about once.
func TestCluster_keepsForeignParentsToTheByte(t *testing.T) {
	t.Parallel()
	g := newGround(t, "foreign")
	r := g.route("site", "edge", key(g.ns("web"), "site"))
	r.Spec.ParentRefs = append(r.Spec.ParentRefs, parentRef(key(g.ns("infra"), "internal")))
	g.create(g.service(g.ns("web"), "site"), r)
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion("gateway.networking.k8s.io/v1")
	raw.SetKind("HTTPRoute")
	if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), raw); err != nil {
		t.Fatal(err)
	}
	// A time with a fraction does not survive a round trip through Go's types.
	foreign := map[string]any{
		"controllerName": "example.test/somebody", "parentRef": map[string]any{"name": "internal", "namespace": g.ns("infra")},
		"conditions": []any{map[string]any{
			"type": "example.test/Odd", "status": "Unknown", "reason": "Odd", "message": "", "lastTransitionTime": "2020-01-01T00:00:00.123456Z",
		}},
	}
	if err := unstructured.SetNestedSlice(raw.Object, []any{foreign}, "status", "parents"); err != nil {
		t.Fatal(err)
	}
	if err := g.Status().Update(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	parents := func() []any {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), raw); err != nil {
			t.Fatal(err)
		}
		out, _, err := unstructured.NestedSlice(raw.Object, "status", "parents")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before, err := json.Marshal(parents()[0])
	if err != nil {
		t.Fatal(err)
	}
	g.create(g.gateway("edge"))
	g.waitParent(r, "", "Accepted", "True/Accepted")
	_, patches := g.settled()
	version := raw.GetResourceVersion()
	// Three more passes.
	for i := range 3 {
		ns := &corev1.Namespace{}
		if err = g.Get(t.Context(), key("", g.ns("web")), ns); err != nil {
			t.Fatal(err)
		}
		ns.Labels["pass"] = fmt.Sprint(i)
		passes := g.loop.passes.Load()
		if err = g.Update(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		g.eventually("pass", func() string {
			if g.loop.passes.Load() == passes {
				return "none"
			}
			return ""
		})
	}
	if _, now := g.settled(); now != patches {
		t.Errorf("%d more writes", now-patches)
	}
	all := parents()
	after, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) || len(all) != 2 {
		t.Errorf("before %s\nafter  %s\n%d parents", before, after, len(all))
	}
	if v := raw.GetResourceVersion(); version == v {
		t.Error("the version must have moved once")
	}
}

// One entry per parentRef, each judged for itself; and stale ones go.
func TestCluster_oneEntryPerParentRef(t *testing.T) {
	t.Parallel()
	g := newGround(t, "parents")
	gw := g.gateway("edge")
	second := *gw.Spec.Listeners[0].DeepCopy()
	gw.Spec.Listeners[0].Name, gw.Spec.Listeners[0].Hostname = "www", new(gwv1.Hostname("www.acme.test"))
	second.Name, second.Hostname = "api", new(gwv1.Hostname("api.acme.test"))
	gw.Spec.Listeners = append(gw.Spec.Listeners, second)
	r := g.route("site", "edge", key(g.ns("web"), "site"))
	r.Spec.Hostnames = []gwv1.Hostname{"www.acme.test"}
	ref := r.Spec.ParentRefs[0]
	r.Spec.ParentRefs = nil
	for _, section := range []gwv1.SectionName{"www", "api", "gone"} {
		named := *ref.DeepCopy()
		named.SectionName = new(section)
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, named)
	}
	g.create(g.service(g.ns("web"), "site"), gw, r)
	g.waitParent(r, "www", "Accepted", "True/Accepted")
	g.waitParent(r, "api", "Accepted", "False/NoMatchingListenerHostname")
	g.waitParent(r, "gone", "Accepted", "False/NoMatchingParent")

	// The route leaves the Gateway: the index on its status still leads there.
	g.eventually("leaving", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err.Error()
		}
		r.Spec.ParentRefs = []gwv1.ParentReference{parentRef(key(g.ns("infra"), "elsewhere"))}
		if err := g.Update(t.Context(), r); err != nil {
			return err.Error()
		}
		return ""
	})
	g.eventually("stale entries", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err.Error()
		}
		if n := len(r.Status.Parents); n != 0 {
			return fmt.Sprintf("%d left", n)
		}
		return ""
	})
}

// Two Gateways write to one route at the same time: both entries are there in the end.
func TestCluster_manyWritersOfOneRoute(t *testing.T) {
	t.Parallel()
	g := newGround(t, "writers")
	r := g.route("site", "edge-0", key(g.ns("web"), "site"))
	r.Spec.ParentRefs = nil
	objects := []client.Object{g.service(g.ns("web"), "site")}
	for i := range 8 {
		name := fmt.Sprintf("edge-%d", i)
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, parentRef(key(g.ns("infra"), name)))
		objects = append(objects, g.gateway(name))
	}
	g.create(append(objects, r)...)
	g.eventually("all parents", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err.Error()
		}
		if len(r.Status.Parents) != 8 {
			return fmt.Sprintf("%d parents", len(r.Status.Parents))
		}
		return ""
	})
}

// The class, its Gateway and the routes are deleted in any order: nothing stays in Terminating.
func TestCluster_deletionInAnyOrder(t *testing.T) {
	t.Parallel()
	for i, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, fmt.Sprintf("order%d", i))
			gw := g.gateway("edge")
			r := g.route("site", "edge", key(g.ns("web"), "site"))
			g.create(g.service(g.ns("web"), "site"), gw, r)
			g.waitParent(r, "", "Accepted", "True/Accepted")
			g.settled()
			objects := []client.Object{&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: g.name}}, gw, r}
			for _, n := range order {
				g.delete(objects[n])
			}
			for _, o := range objects {
				g.eventually("deletion", func() string {
					err := g.Get(t.Context(), client.ObjectKeyFromObject(o), o)
					if !apierrors.IsNotFound(err) {
						return fmt.Sprintf("%T is still there: %v, finalizers %v", o, err, o.GetFinalizers())
					}
					return ""
				})
			}
		})
	}
}

// A Gateway that moves to another class is released: no finalizer, no conditions of ours, no entries in its routes.
func TestCluster_aGatewayThatLeavesIsReleased(t *testing.T) {
	t.Parallel()
	g := newGround(t, "leave")
	gw := g.gateway("edge")
	r := g.route("site", "edge", key(g.ns("web"), "site"))
	g.create(g.service(g.ns("web"), "site"), gw, r)
	g.waitParent(r, "", "Accepted", "True/Accepted")
	g.eventually("leaving", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		gw.Spec.GatewayClassName = "nowhere"
		if err := g.Update(t.Context(), gw); err != nil {
			return err.Error()
		}
		return ""
	})
	g.eventually("release", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err.Error()
		}
		if len(gw.Finalizers)+len(gw.Status.Conditions)+len(gw.Status.Listeners)+len(gw.Status.Addresses)+len(r.Status.Parents) != 0 {
			return fmt.Sprintf("finalizers %v status %+v parents %+v", gw.Finalizers, gw.Status, r.Status.Parents)
		}
		return ""
	})
}

func TestCluster_parametersThatAppearLater(t *testing.T) {
	t.Parallel()
	g := newGround(t, "params")
	parameters := config(g.name)
	g.delete(parameters)
	gw := g.gateway("edge")
	g.create(gw)
	accepted := func(want string) {
		g.eventually("Accepted "+want, func() string {
			if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
				return err.Error()
			}
			for _, c := range gw.Status.Conditions {
				if got := string(c.Status) + "/" + c.Reason; c.Type == "Accepted" && got != want {
					return got + ": " + c.Message
				}
			}
			return ""
		})
	}
	accepted("False/InvalidParameters")
	g.create(config(g.name))
	accepted("True/Accepted")
}

func TestCluster_noiseCausesNoPass(t *testing.T) {
	t.Parallel()
	g := newGround(t, "noise")
	n := node("noise")
	g.create(n, g.gateway("edge"), g.service(g.ns("web"), "unrelated"), endpoints(g.ns("web"), "unrelated", "unrelated-1"))
	n.Status = node("noise").Status
	if err := g.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	// Another test's Node would be no noise: they are made before.
	before, _ := g.settled()
	for i := range 50 {
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(int64(1e9+i), 0))
		if err := g.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		slice := endpoints(g.ns("web"), "unrelated", "unrelated-1")
		slice.Endpoints[0].Addresses[0] = fmt.Sprintf("10.1.0.%d", i+1)
		if err := g.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
		g.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.ns("web"), Name: fmt.Sprintf("s%d", i)}})
	}
	if after, _ := g.settled(); after != before {
		t.Errorf("%d passes for noise", after-before)
	}
}

// The API server of this test serves what an older installation has.
func TestServedKinds_ofAnOlderInstallation(t *testing.T) {
	t.Parallel()
	needAssets(t)
	env := &envtest.Environment{}
	admin, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stopErr := env.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	d := discovery.NewDiscoveryClientForConfigOrDie(admin)
	var missing *MissingKindsError
	if _, err = ServedKinds(d); !errors.As(err, &missing) || len(missing.Kinds) != 6 {
		t.Fatalf("got %v", err)
	}

	var crds []*apiextensionsv1.CustomResourceDefinition
	read := func(file string) {
		text, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err = yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind == "ReferenceGrant" {
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == "v1beta1"
			}
		}
		crds = append(crds, crd)
	}
	for _, plural := range []string{"gatewayclasses", "gateways", "httproutes", "referencegrants"} {
		read(filepath.Join(gatewayAPICRDs(t), "gateway.networking.k8s.io_"+plural+".yaml"))
	}
	own, err := filepath.Glob(filepath.Join(configDir, "crd", "gateway-api-openstack.dev_*.yaml"))
	if err != nil || len(own) == 0 {
		t.Fatalf("our own CRDs: %v, %v", own, err)
	}
	for _, file := range own {
		read(file)
	}
	if _, err = envtest.InstallCRDs(admin, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
		t.Fatal(err)
	}
	served, err := ServedKinds(d)
	if err != nil || served != (Served{ReferenceGrants: "v1beta1"}) {
		t.Fatalf("served %+v, %v", served, err)
	}
	if err := applyDir(t, admin, filepath.Join(configDir, "deployment"), filepath.Join(configDir, "rbac")); err != nil {
		t.Fatal(err)
	}
	// The caches sync with these kinds only.
	start(t, admin, "example.test/older")
}

// The manifests that people apply are valid, and the Deployment keeps the restricted Pod Security Standard of its namespace.
func TestManifests_areAcceptedWithoutWarnings(t *testing.T) {
	t.Parallel()
	admin := cluster(t)
	var warnings warningList
	admin = withWarnings(admin, &warnings)
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := manifests(t, filepath.Join(configDir, "rbac"), filepath.Join(configDir, "deployment"), filepath.Join(configDir, "components", "responder"), filepath.Join(configDir, "samples"))
	for _, o := range all {
		if o.GetKind() == "Namespace" {
			if err := c.Create(t.Context(), o.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	for _, o := range all {
		dry := o.DeepCopy()
		if o.GetNamespace() != "" || o.GetKind() == "ClusterRole" || o.GetKind() == "ClusterRoleBinding" {
			// What the other tests have made already is made under another name.
			dry.SetName("dry-" + o.GetName())
		}
		if err := c.Create(t.Context(), dry, client.DryRunAll, client.FieldValidation("Strict")); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	if got := warnings.list(); len(got) > 0 {
		t.Errorf("warnings: %v", got)
	}
}

// Every file of config is part of a kustomization, and each kustomization names only files that exist.
func TestManifests_kustomizationsAreComplete(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "crd", "rbac", "deployment", "samples", "components/responder"} {
		text, err := os.ReadFile(filepath.Join(configDir, dir, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var k struct {
			Resources []string `json:"resources"`
		}
		if err = yaml.Unmarshal(text, &k); err != nil {
			t.Fatal(err)
		}
		var files []string
		entries, err := os.ReadDir(filepath.Join(configDir, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "kustomization.yaml" && (dir != "." || e.IsDir() && e.Name() != "samples" && e.Name() != "components" && e.Name() != "monitoring") {
				files = append(files, e.Name())
			}
		}
		slices.Sort(k.Resources)
		if !reflect.DeepEqual(files, k.Resources) {
			t.Errorf("%s: files %v, kustomization %v", dir, files, k.Resources)
		}
	}
}
