package kube

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// world is a cluster with two Gateways of ours, one of another controller, and things that concern none.
func world() []client.Object {
	edge, inner, foreign := key("infra", "edge"), key("infra", "inner"), key("infra", "foreign")
	former := route("web", "former", inner, key("web", "site"))
	former.Status.Parents = []gwv1.RouteParentStatus{
		{ParentRef: parentRef(edge), ControllerName: ourController},
		{ParentRef: parentRef(foreign), ControllerName: otherController},
	}
	viaSet := route("shop", "via-set", edge, key("shop", "cart"))
	viaSet.Spec.ParentRefs = []gwv1.ParentReference{{Kind: new(gwv1.Kind(kindListenerSet)), Name: "set"}}
	return []client.Object{
		class("openstack", ourController), class("other", otherController), config("cloud"),
		tlsGateway("infra", "edge", "openstack", key("certs", "edge-tls")),
		gateway("infra", "inner", "openstack"), gateway("infra", "foreign", "other"),
		listenerSet("shop", "set", edge),
		route("web", "site", edge, key("web", "site")),
		route("web", "pay", edge, key("finance", "pay")),
		route("web", "absent", edge, key("web", "gone")),
		former, viaSet,
		route("web", "elsewhere", foreign, key("web", "elsewhere")),
		service("web", "site"), service("finance", "pay"), service("shop", "cart"), service("web", "elsewhere"), service("web", "unused"),
		endpoints("web", "site", "site-1"), endpoints("web", "site", "site-2"), endpoints("web", "elsewhere", "elsewhere-1"),
		endpoints("finance", "pay", "pay-1"),
		node("n1"), node("n2"),
		namespace("infra"), namespace("web"), namespace("shop"), namespace("finance"), namespace("certs"),
		grant("finance", "from-web"), grant("certs", "certs"), grant("elsewhere", "unrelated"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "certs", Name: "edge-tls"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "certs", Name: "unused"}},
	}
}

func namesOf[T client.Object](objects []T) string {
	var out []string
	for _, o := range objects {
		out = append(out, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestSnapshot_holdsWhatTheGatewayDependsOnAndNothingElse(t *testing.T) {
	t.Parallel()
	s, err := newReader(t, world()...).Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"routes":     {namesOf(s.HTTPRoutes), "shop/via-set web/absent web/former web/pay web/site"},
		"sets":       {namesOf(s.ListenerSets), "shop/set"},
		"grants":     {namesOf(s.ReferenceGrants), "certs/certs finance/from-web"},
		"namespaces": {namesOf(s.Namespaces), "infra shop web"},
		"services":   {namesOf(s.Services), "finance/pay shop/cart web/site"},
		"slices":     {namesOf(s.EndpointSlices), "finance/pay-1 web/site-1 web/site-2"},
		"nodes":      {namesOf(s.Nodes), "n1 n2"},
		"secrets":    {namesOf(s.Secrets), "certs/edge-tls"},
		"configMaps": {namesOf(s.ConfigMaps), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
		}
	}
	if s.Class.Name != "openstack" || s.Config.Name != "cloud" || s.Gateway.Name != "edge" || s.ClusterID != "blue" || s.Controller != ourController {
		t.Errorf("class %v config %v gateway %v cluster %q controller %q", s.Class.Name, s.Config.Name, s.Gateway.Name, s.ClusterID, s.Controller)
	}
}

func TestSnapshot_readsGrantsOfTheServedVersion(t *testing.T) {
	t.Parallel()
	old := gwv1beta1.ReferenceGrant(*grant("finance", "old"))
	for served, want := range map[string]string{"v1": "finance/from-web", "v1beta1": "finance/old", "": ""} {
		r := newReader(t, append(world(), &old)...)
		r.Served.ReferenceGrants = served
		s, err := r.Snapshot(t.Context(), key("infra", "edge"))
		if err != nil {
			t.Fatal(err)
		}
		s.ReferenceGrants = slices.DeleteFunc(s.ReferenceGrants, func(g *gwv1beta1.ReferenceGrant) bool { return g.Namespace != "finance" })
		if got := namesOf(s.ReferenceGrants); got != want {
			t.Errorf("served %q: got %q, want %q", served, got, want)
		}
	}
}

func TestSnapshot_withoutOurClassHoldsOnlyWhatCleanupNeeds(t *testing.T) {
	t.Parallel()
	foreign := gateway("infra", "edge", "other")
	foreign.Finalizers = []string{api.Finalizer}
	objects := []client.Object{class("other", otherController), foreign, route("web", "site", key("infra", "edge"), key("web", "site")), service("web", "site"), node("n1")}
	for name, objects := range map[string][]client.Object{"foreign class": objects, "no class": objects[1:]} {
		r := newReader(t, objects...)
		s, err := r.Snapshot(t.Context(), key("infra", "edge"))
		if err != nil {
			t.Fatal(err)
		}
		if namesOf(s.HTTPRoutes) != "web/site" || len(s.Services)+len(s.Nodes) != 0 {
			t.Errorf("%s: routes %q, services %d, nodes %d", name, namesOf(s.HTTPRoutes), len(s.Services), len(s.Nodes))
		}
		if !r.Ours(s) || r.Selects(s.Class) {
			t.Errorf("%s: a Gateway with our finalizer must be ours, and the class not", name)
		}
	}
}

func TestSnapshot_ofAMissingGatewayIsNotFound(t *testing.T) {
	t.Parallel()
	_, err := newReader(t).Snapshot(t.Context(), key("infra", "edge"))
	if !apierrors.IsNotFound(err) {
		t.Fatalf("got %v", err)
	}
}

func TestSnapshot_withUnusableParametersIsCompleteButForTheConfig(t *testing.T) {
	t.Parallel()
	change := func(f func(*gwv1.GatewayClass)) []client.Object {
		objects := world()
		f(objects[0].(*gwv1.GatewayClass))
		return objects
	}
	empty := world()
	bad := config("cloud")
	bad.Spec.VIPSubnet = nil
	empty[2] = bad
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"none":       {change(func(c *gwv1.GatewayClass) { c.Spec.ParametersRef = nil }), "parametersRef is missing"},
		"other kind": {change(func(c *gwv1.GatewayClass) { c.Spec.ParametersRef.Kind = "ConfigMap" }), "must have group"},
		"namespaced": {change(func(c *gwv1.GatewayClass) { c.Spec.ParametersRef.Namespace = new(gwv1.Namespace("x")) }), "no namespace"},
		"absent":     {change(func(c *gwv1.GatewayClass) { c.Spec.ParametersRef.Name = "typo" }), `"typo", which does not exist`},
		"no subnet":  {empty, "exactly one of"},
	} {
		s, err := newReader(t, c.objects...).Snapshot(t.Context(), key("infra", "edge"))
		var parameters *ParametersError
		if !errors.As(err, &parameters) || !strings.Contains(parameters.Message, c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
		if s.Config != nil || len(s.HTTPRoutes) != 5 || len(s.Nodes) != 2 {
			t.Errorf("%s: config %v, %d routes, %d nodes", name, s.Config, len(s.HTTPRoutes), len(s.Nodes))
		}
	}
}

func TestSnapshot_failsAsAWholeWhenAnyReadFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, kind := range []client.Object{
		&gwv1.GatewayClass{}, &corev1.Namespace{}, &corev1.Service{}, &corev1.Secret{},
	} {
		r := newReader(t, world()...)
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if reflect.TypeOf(o) == reflect.TypeOf(kind) {
					return boom
				}
				return c.Get(ctx, k, o, opts...)
			},
		})
		if s, err := r.Snapshot(t.Context(), key("infra", "edge")); !errors.Is(err, boom) || s.Gateway != nil {
			t.Errorf("Get of %T: snapshot %v, error %v", kind, s.Gateway, err)
		}
	}
	r := newReader(t, world()...)
	lists := 0
	base := r.Client.(client.WithWatch)
	count := func(failing int) client.WithWatch {
		n := 0
		return interceptor.NewClient(base, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				n++
				lists = max(lists, n)
				if n == failing {
					return boom
				}
				return c.List(ctx, l, opts...)
			},
		})
	}
	r.Client = count(0)
	if _, err := r.Snapshot(t.Context(), key("infra", "edge")); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= lists; i++ {
		r.Client = count(i)
		if s, err := r.Snapshot(t.Context(), key("infra", "edge")); !errors.Is(err, boom) || s.Gateway != nil {
			t.Errorf("list %d of %d: snapshot %v, error %v", i, lists, s.Gateway, err)
		}
	}
}

// The cost of a snapshot follows the Gateway, not the cluster: routes, Gateways and Services of others add no read.
func TestSnapshot_readsNoMoreWhenOthersGrow(t *testing.T) {
	t.Parallel()
	reads := func(objects []client.Object) int {
		r, n := newReader(t, objects...), 0
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				n++
				return c.Get(ctx, k, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				n++
				switch l.(type) {
				case *gwv1.HTTPRouteList, *gwv1.GatewayList, *corev1.ServiceList:
					var lo client.ListOptions
					lo.ApplyOptions(opts)
					if lo.FieldSelector == nil {
						t.Errorf("a list of %T without an index", l)
					}
				}
				return c.List(ctx, l, opts...)
			},
		})
		if _, err := r.Snapshot(t.Context(), key("infra", "edge")); err != nil {
			t.Fatal(err)
		}
		return n
	}
	small := world()
	big := world()
	for i := range 200 {
		name := "x" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		big = append(big, route("other", name, key("infra", "inner"), key("other", name)), service("other", name))
	}
	if a, b := reads(small), reads(big); a != b {
		t.Errorf("%d reads in a small cluster, %d in a big one", a, b)
	}
}

// Snapshots share memory with the cache: neither compile nor a status write may change them.
func TestSnapshot_isNotChangedByItsUsers(t *testing.T) {
	t.Parallel()
	s, err := newReader(t, world()...).Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	s.Facts.VIPSubnet.CIDR = "10.0.0.0/24"
	before, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	result := compile.Gateway(s)
	statuses := status.For(status.Input{Controller: ourController, Gateway: s.Gateway, Compiled: true, Verdicts: result.Verdicts, Want: result.Tree, Have: &result.Tree})
	d := newDesk(t, world()...)
	// The versions in the snapshot are not those of the desk's cluster: this goes through the retry too.
	if err = d.Write(t.Context(), s, statuses); err != nil {
		t.Fatal(err)
	}
	if len(d.patches) == 0 {
		t.Error("nothing was written")
	}
	after, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the snapshot was changed")
	}
}
