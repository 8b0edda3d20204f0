//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// One Gateway through its life: created in one call, serving by host, path and header through the VIP and the floating IP, following its
// backends and its routes, and gone without a trace. A load balancer that somebody made by hand beside it stays as it is.
func TestHTTP_oneGatewayThroughItsLife(t *testing.T) {
	g := newGround(t)
	foreign := g.foreignLoadBalancer()
	before := g.everythingOf(foreign)

	infra := g.namespace("e2e-infra", nil)
	shop := g.namespace("e2e-shop", map[string]string{"e2e": "yes"})
	blog := g.namespace("e2e-blog", map[string]string{"e2e": "yes"})
	stranger := g.namespace("e2e-stranger", nil)
	g.echo(shop, "web", 2)
	g.echo(shop, "canary", 1)
	g.echo(shop, "local", 2, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	g.echo(blog, "blog", 1)

	gw := gateway(infra, "edge", listener("http", 80, ""), listener("alt", 8080, "*.example.test"))
	prefix, exact := gwv1.PathMatchPathPrefix, gwv1.PathMatchExact
	shopRoute := route(shop, "shop", gw, []gwv1.Hostname{"shop.example.test"},
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/split")}, backend("web", 80), backend("canary", 20)),
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/cart"), path(exact, "/checkout")}, backend("canary", 1)),
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/", "x-canary", "yes")}, backend("canary", 1)),
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/local")}, backend("local", 1)),
		rule(nil, backend("web", 1)))
	blogRoute := route(blog, "blog", gw, []gwv1.Hostname{"blog.example.test", "*.blog.example.test"}, rule(nil, backend("blog", 1)))
	strangerRoute := route(stranger, "stranger", gw, nil, rule(nil, backend("nothing", 1)))
	calls := g.calls()
	started := time.Now()
	for _, o := range []client.Object{shopRoute, blogRoute, strangerRoute, gw} {
		g.apply(o)
	}
	public := g.programmed(gw)
	t.Logf("programmed after %v", time.Since(started).Round(100*time.Millisecond))
	if made := g.calls().since(calls); made.writes("load-balancer") != 1 || made.writes("network") != 1 {
		t.Errorf("a new Gateway took %s; want one writing call to Octavia and one to Neutron", made)
	} else {
		t.Logf("calls to program it: %s", made)
	}
	vip := g.vip(gw)
	t.Logf("VIP %s, floating IP %s", vip, public)

	for _, from := range []struct {
		name    string
		client  *http.Client
		address string
	}{{"floating IP", g.outside, public}, {"VIP", g.inside, vip}} {
		t.Run("requests through the "+from.name, func(t *testing.T) {
			g := &ground{T: t, kube: g.kube, cloud: g.cloud}
			for _, c := range []struct {
				host, path, want string
				headers          []string
			}{
				{host: "shop.example.test", path: "/", want: "web"},
				{host: "SHOP.example.test:80", path: "/x?q=1", want: "web"},
				{host: "shop.example.test", path: "/cart", want: "canary"},
				{host: "shop.example.test", path: "/cart/1", want: "canary"},
				{host: "shop.example.test", path: "/cartoon", want: "web"},
				{host: "shop.example.test", path: "/checkout", want: "canary"},
				{host: "shop.example.test", path: "/checkout/1", want: "web"},
				{host: "shop.example.test", path: "/", want: "canary", headers: []string{"X-Canary", "yes"}},
				{host: "shop.example.test", path: "/", want: "web", headers: []string{"X-Canary", "yes, no"}},
				{host: "blog.example.test", path: "/", want: "blog"},
				{host: "a.b.blog.example.test", path: "/", want: "blog"},
				{host: "other.test", path: "/", want: "503"},
				{host: from.address, path: "/", want: "503"},
			} {
				g.expect(from.client, "http://"+from.address+c.path, c.host, c.want, c.headers...)
			}
			g.expect(from.client, "http://"+from.address+":8080/", "blog.example.test:8080", "blog")
			g.expect(from.client, "http://"+from.address+":8080/", "other.test", "503")
		})
	}

	t.Run("weights", func(t *testing.T) {
		const requests = 200
		count := map[string]int{}
		for range requests {
			a, err := get(t.Context(), g.outside, "http://"+public+"/split", "shop.example.test")
			if err != nil {
				t.Fatal(err)
			}
			count[a.String()]++
		}
		// Weighted round robin is not random: 80 to 20 holds within a few requests.
		if share := float64(count["web"]) / requests; share < 0.75 || share > 0.85 {
			t.Errorf("%v of %d requests; want web 80 %%", count, requests)
		}
		t.Logf("80 to 20: %v", count)
	})

	t.Run("statuses", func(t *testing.T) {
		if n := gw.Status.Listeners[0].AttachedRoutes; n != 2 {
			t.Errorf("listener http has %d attached routes, want 2", n)
		}
		r := &gwv1.HTTPRoute{}
		if err := g.kube.Get(t.Context(), client.ObjectKeyFromObject(strangerRoute), r); err != nil {
			t.Fatal(err)
		}
		if len(r.Status.Parents) != 1 {
			t.Fatalf("the stranger has %d parent statuses", len(r.Status.Parents))
		}
		c := meta.FindStatusCondition(r.Status.Parents[0].Conditions, string(gwv1.RouteConditionAccepted))
		if c == nil || c.Reason != string(gwv1.RouteReasonNotAllowedByListeners) {
			t.Errorf("the stranger is %v, want NotAllowedByListeners", c)
		}
	})

	t.Run("backends change", func(t *testing.T) {
		g := g.in(t)
		g.scale(shop, "web", 4)
		g.eventually(40*time.Second, "all four Pods answer", func() error {
			pods := map[string]bool{}
			for range 30 {
				a, err := get(t.Context(), g.outside, "http://"+public+"/", "shop.example.test")
				if err != nil {
					return err
				}
				pods[a.Pod] = true
			}
			if len(pods) != 4 {
				return fmt.Errorf("%d answer", len(pods))
			}
			return nil
		})
		// With policy Local the members are the Nodes that have a ready Pod.
		g.members(gw, "service="+shop+"/local:80", 2)
		g.scale(shop, "local", 1)
		g.members(gw, "service="+shop+"/local:80", 1)
		g.expect(g.outside, "http://"+public+"/local", "shop.example.test", "local")
		node := g.nodeOf(shop, "local")
		g.drain(node)
		g.ready(shop, "local", 1)
		if moved := g.nodeOf(shop, "local"); moved == node {
			t.Errorf("the Pod is still on %s", node)
		}
		g.eventually(60*time.Second, "the member follows the Pod", func() error {
			a, err := get(t.Context(), g.outside, "http://"+public+"/local", "shop.example.test")
			if err != nil {
				return err
			}
			if a.Node == node || a.Status != 200 {
				return fmt.Errorf("answered by %s on %s", a, a.Node)
			}
			return nil
		})
		g.uncordon(node)
	})

	t.Run("routes change", func(t *testing.T) {
		g := g.in(t)
		update(g, shopRoute, func(r *gwv1.HTTPRoute) {
			r.Spec.Rules[1].Matches[0].Path.Value = new("/basket")
			r.Spec.Rules[4].BackendRefs = []gwv1.HTTPBackendRef{backend("canary", 1)}
		})
		g.expect(g.outside, "http://"+public+"/basket/1", "shop.example.test", "canary")
		g.expect(g.outside, "http://"+public+"/", "shop.example.test", "canary")
		g.delete(blogRoute)
		g.expect(g.outside, "http://"+public+"/", "blog.example.test", "503")
		g.expect(g.outside, "http://"+public+"/basket", "shop.example.test", "canary")
	})

	g.delete(gw)
	g.nothingLeft()
	r := &gwv1.HTTPRoute{}
	g.must(g.kube.Get(t.Context(), client.ObjectKeyFromObject(shopRoute), r))
	if len(r.Status.Parents) != 0 {
		t.Errorf("the route still reports %d parents", len(r.Status.Parents))
	}
	if after := g.everythingOf(foreign); after != before {
		t.Errorf("the load balancer beside ours changed:\nbefore %s\nafter  %s", before, after)
	}
}

// A controller that dies while Octavia creates the load balancer finds it again: one load balancer, one floating IP.
func TestHTTP_restartInTheMiddleOfACreate(t *testing.T) {
	g := newGround(t)
	namespace := g.namespace("e2e-restart", map[string]string{"e2e": "yes"})
	g.echo(namespace, "web", 1)
	gw := gateway(namespace, "edge", listener("http", 80, ""))
	r := route(namespace, "web", gw, nil, rule(nil, backend("web", 1)))
	g.apply(r)
	g.apply(gw)
	g.eventually(time.Minute, "Octavia has begun", func() error {
		if len(g.ours()) == 0 {
			return fmt.Errorf("nothing yet")
		}
		return nil
	})
	pods := &corev1.PodList{}
	g.must(g.kube.List(t.Context(), pods, client.InNamespace(controllerNamespace)))
	for i := range pods.Items {
		g.must(g.kube.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)))
	}
	public := g.programmed(gw)
	g.expect(g.outside, "http://"+public+"/", "any.test", "web")
	kinds := map[string]int{}
	for _, o := range g.ours() {
		var kind, id string
		_, _ = fmt.Sscan(o, &kind, &id)
		kinds[kind]++
	}
	if kinds["loadbalancers"] != 1 || kinds["floatingips"] != 1 || kinds["listeners"] != 1 || kinds["pools"] != 1 {
		t.Errorf("the cloud has %v", kinds)
	}
	g.delete(gw)
	g.nothingLeft()
}

// in is the same ground for a subtest.
func (g *ground) in(t *testing.T) *ground {
	sub := *g
	sub.T = t
	return &sub
}

func (g *ground) scale(namespace, name string, replicas int32) {
	g.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	update(g, d, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	g.ready(namespace, name, replicas)
}

func (g *ground) nodeOf(namespace, app string) string {
	g.Helper()
	pods := &corev1.PodList{}
	g.must(g.kube.List(g.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}))
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			return pods.Items[i].Spec.NodeName
		}
	}
	g.Fatalf("%s/%s has no Pod", namespace, app)
	return ""
}

func (g *ground) cordon(node string) {
	g.Helper()
	update(g, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

func (g *ground) uncordon(node string) {
	g.Helper()
	update(g, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) { n.Spec.Unschedulable = false })
}

// drain does what "kubectl drain" does: cordon, then evict.
func (g *ground) drain(node string) {
	g.Helper()
	g.cordon(node)
	g.Cleanup(func() {
		n := &corev1.Node{}
		ctx := context.WithoutCancel(g.Context())
		if g.kube.Get(ctx, client.ObjectKey{Name: node}, n) == nil && n.Spec.Unschedulable {
			n.Spec.Unschedulable = false
			_ = g.kube.Update(ctx, n)
		}
	})
	pods := &corev1.PodList{}
	g.must(g.kube.List(g.Context(), pods))
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Spec.NodeName != node {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
		g.must(client.IgnoreNotFound(g.kube.SubResource("eviction").Create(g.Context(), p, eviction)))
	}
	g.eventually(time.Minute, "the Node is empty", func() error {
		if err := g.kube.List(g.Context(), pods); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == node {
				return fmt.Errorf("%s is still there", pods.Items[i].Name)
			}
		}
		return nil
	})
}
