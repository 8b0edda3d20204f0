package kube

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// enqueued runs one event through the watches of its kind, as the builder wires it: before nil is a creation, after nil a deletion.
func enqueued(t *testing.T, watches []watch, before, after client.Object) []string {
	t.Helper()
	object := after
	if after == nil {
		object = before
	}
	var requests []reconcile.Request
	watched := false
	for _, w := range watches {
		if reflect.TypeOf(w.object) != reflect.TypeOf(object) {
			continue
		}
		watched = true
		switch {
		case before == nil:
			if w.matters.Create(event.CreateEvent{Object: after}) {
				requests = append(requests, w.requests(t.Context(), after)...)
			}
		case after == nil:
			if w.matters.Delete(event.DeleteEvent{Object: before}) {
				requests = append(requests, w.requests(t.Context(), before)...)
			}
		default:
			if w.matters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
				requests = append(requests, w.requests(t.Context(), before)...)
				requests = append(requests, w.requests(t.Context(), after)...)
			}
		}
	}
	if !watched {
		t.Fatalf("%T is not watched", object)
	}
	var out []string
	for _, r := range requests {
		out = append(out, strings.TrimPrefix(r.String(), "/"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func edit[T client.Object](o T, change func(T)) T {
	c := o.DeepCopyObject().(T)
	change(c)
	return c
}

func spec[T client.Object](o T, change func(T)) T {
	return edit(o, func(c T) { c.SetGeneration(o.GetGeneration() + 1); change(c) })
}

func TestWatches_mapEachKindToTheGatewaysItChanges(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	site := route("web", "site", edge, key("web", "site"))
	moved := spec(site, func(r *gwv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "inner" })
	ready := node("n1")
	slice := endpoints("web", "site", "site-1")
	gw := gateway("infra", "edge", "openstack")
	label := func(ns *corev1.Namespace) { ns.Labels = map[string]string{"team": "web"} }

	for name, c := range map[string]struct {
		before, after client.Object
		want          string
	}{
		"Gateway of ours created":                 {nil, gw, "infra/edge"},
		"Gateway of ours deleted":                 {gw, nil, "infra/edge"},
		"Gateway of another":                      {nil, gateway("infra", "foreign", "other"), ""},
		"Gateway moved to another":                {gw, spec(gw, func(g *gwv1.Gateway) { g.Spec.GatewayClassName = "other" }), "infra/edge"},
		"Gateway with our finalizer":              {nil, edit(gateway("infra", "foreign", "other"), func(g *gwv1.Gateway) { g.Finalizers = []string{api.Finalizer} }), "infra/foreign"},
		"Gateway of another installation":         {nil, edit(gateway("infra", "foreign", "other"), func(g *gwv1.Gateway) { g.Finalizers = []string{api.FinalizerFor(otherController)} }), ""},
		"Gateway without class":                   {nil, gateway("infra", "edge", "nowhere"), ""},
		"class of ours":                           {nil, class("openstack", ourController), "infra/edge infra/inner"},
		"class of another":                        {nil, class("other", otherController), ""},
		"configuration":                           {config("cloud"), spec(config("cloud"), func(o *v1alpha1.OpenStackGatewayClassConfig) { o.Spec.VIPSubnet.Name = "x" }), "infra/edge infra/inner"},
		"node label, which a class may select by": {node("n1"), edit(node("n1"), func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} }), "infra/edge infra/inner"},
		"unused configuration":                    {nil, config("unused"), ""},
		"route created":                           {nil, site, "infra/edge"},
		"route deleted":                           {site, nil, "infra/edge"},
		"route moved":                             {site, moved, "infra/edge infra/inner"},
		"route of another":                        {nil, route("web", "elsewhere", key("infra", "foreign"), key("web", "elsewhere")), ""},
		"route to nowhere":                        {nil, route("web", "x", key("infra", "nowhere"), key("web", "x")), ""},
		"route with a former parent":              {nil, world()[10], "infra/edge infra/inner"},
		"route of a ListenerSet":                  {nil, world()[11], "infra/edge"},
		"route of a missing set":                  {nil, edit(world()[11].(*gwv1.HTTPRoute), func(r *gwv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "gone" }), ""},
		"ListenerSet":                             {nil, listenerSet("shop", "set", edge), "infra/edge"},
		"ListenerSet of another":                  {nil, listenerSet("shop", "set", key("infra", "foreign")), ""},
		"Service":                                 {service("web", "site"), edit(service("web", "site"), func(s *corev1.Service) { s.Spec.Ports[0].NodePort++ }), "infra/edge infra/inner"},
		"Service that a route awaits":             {nil, service("web", "gone"), "infra/edge"},
		"Service that nobody uses":                {nil, service("web", "unused"), ""},
		"Service of another":                      {nil, service("web", "elsewhere"), ""},
		"slice":                                   {slice, edit(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.1.0.9" }), "infra/edge infra/inner"},
		"slice of another":                        {nil, endpoints("web", "elsewhere", "e-1"), ""},
		"slice of no Service":                     {nil, edit(slice, func(s *discoveryv1.EndpointSlice) { s.Labels = nil }), ""},
		"slice moved":                             {slice, edit(slice, func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{discoveryv1.LabelServiceName: "x"} }), "infra/edge infra/inner"},
		"node added":                              {nil, ready, "infra/edge infra/inner"},
		"node removed":                            {ready, nil, "infra/edge infra/inner"},
		"node not ready":                          {ready, edit(ready, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }), "infra/edge infra/inner"},
		"node cordoned":                           {ready, edit(ready, func(n *corev1.Node) { n.Spec.Unschedulable = true }), "infra/edge infra/inner"},
		"node tainted":                            {ready, edit(ready, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x"}} }), "infra/edge infra/inner"},
		"node excluded":                           {ready, edit(ready, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }), "infra/edge infra/inner"},
		"node with another address":               {ready, edit(ready, func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.99" }), "infra/edge infra/inner"},
		"namespace labelled":                      {namespace("web"), edit(namespace("web"), label), "infra/edge infra/inner"},
		"namespace of a ListenerSet":              {namespace("shop"), edit(namespace("shop"), label), "infra/edge"},
		"namespace without routes":                {namespace("certs"), edit(namespace("certs"), label), ""},
		"grant for routes created":                {nil, grant("finance", "x"), "infra/edge"},
		"grant for routes deleted":                {grant("finance", "x"), nil, "infra/edge"},
		"grant for certificates":                  {nil, grant("certs", "x"), "infra/edge"},
		"grant where nothing leads":               {nil, grant("web", "x"), ""},
		"Secret that a listener names":            {nil, secretMeta("certs", "edge-tls"), "infra/edge"},
		"Secret that nobody names":                {nil, secretMeta("certs", "unused"), ""},
	} {
		r := newReader(t, world()...)
		watches := r.watches()
		if m, ok := c.after.(*metav1.PartialObjectMetadata); ok {
			// The watch is found by type, which metadata does not have.
			i := slices.IndexFunc(watches, func(w watch) bool { _, ok := w.object.(*corev1.Secret); return ok })
			if got := fmt.Sprint(w2s(watches[i].requests(t.Context(), m))); got != "["+c.want+"]" {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
			continue
		}
		if got := strings.Join(enqueued(t, watches, c.before, c.after), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func w2s(requests []reconcile.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.String())
	}
	return out
}

func secretMeta(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestWatches_ignoreWhatChangesNothing(t *testing.T) {
	t.Parallel()
	site := route("web", "site", key("infra", "edge"), key("web", "site"))
	site.Status.Parents = []gwv1.RouteParentStatus{
		{ParentRef: parentRef(key("infra", "edge")), ControllerName: ourController, Conditions: []metav1.Condition{{Type: "Accepted"}}},
	}
	gw := edit(gateway("infra", "edge", "openstack"), func(g *gwv1.Gateway) {
		g.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: "False"}}
	})
	beats := func(n *corev1.Node) {
		n.ResourceVersion = "2"
		n.Annotations = map[string]string{"seen": "now"}
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1e9, 0))
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
		n.Status.Capacity = corev1.ResourceList{}
	}
	for name, c := range map[string]struct{ before, after client.Object }{
		"heartbeat":              {node("n1"), edit(node("n1"), beats)},
		"resync":                 {gw, gw},
		"our own Gateway status": {gw, edit(gw, func(g *gwv1.Gateway) { g.Status.Conditions[0].Status = "True" })},
		"our own route status":   {site, edit(site, func(r *gwv1.HTTPRoute) { r.Status.Parents[0].Conditions[0].Status = "True" })},
		"another's route status": {site, edit(site, func(r *gwv1.HTTPRoute) {
			r.Status.Parents = append(r.Status.Parents, gwv1.RouteParentStatus{ControllerName: otherController})
		})},
		"Service status": {service("web", "site"), edit(service("web", "site"), func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		})},
		"Service annotation": {service("web", "site"), edit(service("web", "site"), func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} })},
		"slice trigger time": {endpoints("web", "site", "s"), edit(endpoints("web", "site", "s"), func(s *discoveryv1.EndpointSlice) {
			s.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "x"}
		})},
		"namespace annotation":    {namespace("web"), edit(namespace("web"), func(n *corev1.Namespace) { n.Annotations = map[string]string{"a": "b"} })},
		"class status":            {class("openstack", ourController), edit(class("openstack", ourController), func(c *gwv1.GatewayClass) { c.Status.SupportedFeatures = []gwv1.SupportedFeature{{Name: "x"}} })},
		"node capacity and other": {node("n1"), edit(node("n1"), func(n *corev1.Node) { n.Status.Capacity = corev1.ResourceList{} })},
	} {
		if got := enqueued(t, newReader(t, world()...).watches(), c.before, c.after); len(got) != 0 {
			t.Errorf("%s: enqueued %v", name, got)
		}
	}
}

func TestWatches_seeWhenOursIsRemovedByOthers(t *testing.T) {
	t.Parallel()
	site := route("web", "site", key("infra", "edge"), key("web", "site"))
	site.Status.Parents = []gwv1.RouteParentStatus{{ParentRef: parentRef(key("infra", "edge")), ControllerName: ourController, Conditions: []metav1.Condition{{Type: "Accepted"}}}}
	gw := edit(gateway("infra", "edge", "openstack"), func(g *gwv1.Gateway) { g.Status.Conditions = []metav1.Condition{{Type: "Accepted"}} })
	for name, c := range map[string]struct{ before, after client.Object }{
		"parents":    {site, edit(site, func(r *gwv1.HTTPRoute) { r.Status.Parents = nil })},
		"conditions": {gw, edit(gw, func(g *gwv1.Gateway) { g.Status.Conditions = nil })},
		"finalizer":  {edit(gw, func(g *gwv1.Gateway) { g.Finalizers = []string{api.Finalizer} }), gw},
	} {
		if got := enqueued(t, newReader(t, world()...).watches(), c.before, c.after); !slices.Equal(got, []string{"infra/edge"}) {
			t.Errorf("%s: enqueued %v", name, got)
		}
	}
}

// An entry of ours may reach the cache when its Gateway has been released already: nothing else would ever remove it.
func TestWatches_seeEntriesThatComeTooLate(t *testing.T) {
	t.Parallel()
	site := route("web", "site", key("infra", "inner"), key("web", "site"))
	reports := func(gateways ...string) *gwv1.HTTPRoute {
		return edit(site, func(r *gwv1.HTTPRoute) {
			for _, name := range gateways {
				r.Status.Parents = append(r.Status.Parents, gwv1.RouteParentStatus{ParentRef: parentRef(key("infra", name)), ControllerName: ourController})
			}
		})
	}
	policy := backendPolicy("site", "site")
	standard := backendTLSPolicy("standard", "site")
	ancestors := func(gateways ...string) (out []gwv1.PolicyAncestorStatus) {
		for _, name := range gateways {
			out = append(out, gwv1.PolicyAncestorStatus{AncestorRef: parentRef(key("infra", name)), ControllerName: ourController})
		}
		return out
	}
	for name, c := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"Gateway that is gone":        {site, reports("inner", "gone"), []string{"infra/gone"}},
		"Gateway of another":          {site, reports("foreign"), []string{"infra/foreign"}},
		"Gateway of ours":             {site, reports("inner"), nil},
		"known entry":                 {reports("gone"), reports("gone", "inner"), []string{"infra/gone"}},
		"policy, gone":                {policy, edit(policy, func(p *v1alpha1.OpenStackBackendPolicy) { p.Status.Ancestors = ancestors("gone", "inner") }), []string{"infra/gone"}},
		"policy, ours":                {policy, edit(policy, func(p *v1alpha1.OpenStackBackendPolicy) { p.Status.Ancestors = ancestors("inner") }), nil},
		"BackendTLSPolicy, gone":      {standard, edit(standard, func(p *gwv1.BackendTLSPolicy) { p.Status.Ancestors = ancestors("gone") }), []string{"infra/gone"}},
		"BackendTLSPolicy, ours":      {standard, edit(standard, func(p *gwv1.BackendTLSPolicy) { p.Status.Ancestors = ancestors("edge") }), nil},
		"entry that was there before": {reports("gone"), reports("gone"), nil},
	} {
		if got := enqueued(t, newReader(t, withPolicies()...).watches(), c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%s: enqueued %v, want %v", name, got, c.want)
		}
	}
}

// The numbers that matter in a busy cluster: none of these may cost a reconcile.
func TestWatches_countUnderNoiseIsZero(t *testing.T) {
	t.Parallel()
	r := newReader(t, world()...)
	watches, n := r.watches(), 0
	for i := range 1000 {
		beat := edit(node("n1"), func(n *corev1.Node) {
			n.ResourceVersion = fmt.Sprint(i)
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(int64(i), 0))
		})
		n += len(enqueued(t, watches, node("n1"), beat))
		foreign := endpoints("web", "elsewhere", "e")
		n += len(enqueued(t, watches, foreign, edit(foreign, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = fmt.Sprint(i) })))
		n += len(enqueued(t, watches, nil, service("x", fmt.Sprint(i))))
	}
	if n != 0 {
		t.Fatalf("%d requests", n)
	}
}

func TestClassWatches_mapToClassesOfOurs(t *testing.T) {
	t.Parallel()
	gw := gateway("infra", "edge", "openstack")
	for name, c := range map[string]struct {
		before, after client.Object
		want          string
	}{
		"ours":              {nil, class("openstack", ourController), "openstack"},
		"another's":         {nil, class("other", otherController), ""},
		"config":            {nil, config("cloud"), "openstack"},
		"first Gateway":     {nil, gw, "openstack"},
		"last Gateway":      {gw, nil, "openstack"},
		"Gateway elsewhere": {nil, gateway("infra", "x", "other"), ""},
		"Gateway moved":     {gw, spec(gw, func(g *gwv1.Gateway) { g.Spec.GatewayClassName = "other" }), "openstack"},
		"Gateway edited":    {gw, spec(gw, func(g *gwv1.Gateway) { g.Spec.Listeners[0].Port = 81 }), ""},
	} {
		if got := strings.Join(enqueued(t, newReader(t, world()...).classWatches(), c.before, c.after), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
