package compile_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

func pointer[T any](v T) *T { return &v }

// The pools are small, so that everything overlaps.
var (
	someHosts     = []string{"a.test", "b.test", "x.a.test", "y.x.a.test", "*.test", "*.a.test", "*.x.a.test"}
	somePaths     = []string{"/", "/p", "/p/", "/p/q", "/p/q/r", "/pq", "/z-1.html", "/z&'$", "/p%20q"}
	somePatterns  = []string{"/p/.*", "/p.*", "/(p|z).*", "/.*"}
	someHeaders   = []string{"X-A", "X-B", "X-C"}
	someValues    = []string{"v1", "v2", "v1-", `a"b, c"`}
	requestHosts  = []string{"a.test", "A.test:80", "b.test", "x.a.test", "q.a.test", "y.x.a.test:8080", "z.y.x.a.test", "other", "test", "c.test", ".test", "xa.test"}
	requestPaths  = []string{"/", "/p", "/p/", "/p/q", "/p/q/", "/p/q/r", "/p/q/r/s?x=/p", "/pq", "/pq/x", "/z-1.html", "/zX1xhtml", "/z&'$", "/z", "/p%20q", "/P", "//p"}
	requestValues = []string{"v1", "v2", "v1-", "v1,v2", "v3", `a"b, c"`, ""}
)

// someSnapshot generates a Gateway and routes full of overlaps. Each rule has a Service or redirect of its own.
func someSnapshot(t *rapid.T) compile.Snapshot {
	s := compile.Snapshot{
		ClusterID: "c", Controller: "gw.test/c",
		Gateway: &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "u"}},
	}
	type site struct {
		port int
		host string
	}
	seen := map[site]bool{}
	for range rapid.IntRange(1, 5).Draw(t, "listeners") {
		at := site{rapid.SampledFrom([]int{80, 80, 8080}).Draw(t, "port"), rapid.SampledFrom(append([]string{"", ""}, someHosts...)).Draw(t, "listener host")}
		if seen[at] {
			continue
		}
		seen[at] = true
		l := gwv1.Listener{
			Name: gwv1.SectionName(fmt.Sprintf("l%d", len(seen))), Port: gwv1.PortNumber(at.port), Protocol: gwv1.HTTPProtocolType,
			AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: pointer(gwv1.NamespacesFromAll)}},
		}
		if at.host != "" {
			l.Hostname = pointer(gwv1.Hostname(at.host))
		}
		s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, l)
	}
	s.Nodes = []*corev1.Node{readyNode("10.1.0.11")}
	if rapid.Bool().Draw(t, "responder") {
		s.Config = &v1alpha1.OpenStackGatewayClassConfig{}
		s.Config.Spec.Responder = &v1alpha1.Responder{Service: v1alpha1.ServiceName{Namespace: "system", Name: "responder"}}
		s.Services = append(s.Services, responderService(rapid.SampledFrom([]int{0, 1, 3, 32}).Draw(t, "redirect ports")))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "routes") {
		s.HTTPRoutes = append(s.HTTPRoutes, someRoute(t, &s, i))
	}
	return s
}

func someRoute(t *rapid.T, s *compile.Snapshot, i int) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{
		Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "namespace"), Name: fmt.Sprintf("r%d", i),
		CreationTimestamp: metav1.NewTime(time.Unix(rapid.Int64Range(1, 2).Draw(t, "age"), 0)),
	}}
	ref := gwv1.ParentReference{Namespace: pointer(gwv1.Namespace("infra")), Name: "edge"}
	switch rapid.IntRange(0, 5).Draw(t, "parent") {
	case 0:
		ref.SectionName = pointer(rapid.SampledFrom(s.Gateway.Spec.Listeners).Draw(t, "section").Name)
	case 1:
		ref.Port = pointer(gwv1.PortNumber(80))
	}
	r.Spec.ParentRefs = []gwv1.ParentReference{ref}
	exact := true
	for _, h := range rapid.SliceOfNDistinct(rapid.SampledFrom(someHosts), 0, 3, rapid.ID[string]).Draw(t, "hosts") {
		r.Spec.Hostnames = append(r.Spec.Hostnames, gwv1.Hostname(h))
		exact = exact && !strings.HasPrefix(h, "*")
	}
	exact = exact && len(r.Spec.Hostnames) > 0 || s.Config != nil
	for j := range rapid.IntRange(1, 3).Draw(t, "rules") {
		r.Spec.Rules = append(r.Spec.Rules, someRule(t, s, r, j, exact))
	}
	return r
}

func someRule(t *rapid.T, s *compile.Snapshot, r *gwv1.HTTPRoute, j int, exact bool) gwv1.HTTPRouteRule {
	rule := gwv1.HTTPRouteRule{}
	for range rapid.IntRange(0, 3).Draw(t, "matches") {
		m := gwv1.HTTPRouteMatch{}
		if rapid.IntRange(0, 4).Draw(t, "has path") > 0 {
			m.Path = &gwv1.HTTPPathMatch{
				Type:  pointer(rapid.SampledFrom([]gwv1.PathMatchType{gwv1.PathMatchExact, gwv1.PathMatchPathPrefix}).Draw(t, "path type")),
				Value: pointer(rapid.SampledFrom(somePaths).Draw(t, "path")),
			}
		}
		if m.Path != nil && rapid.IntRange(0, 6).Draw(t, "pattern") == 0 {
			m.Path.Type, m.Path.Value = pointer(gwv1.PathMatchRegularExpression), pointer(rapid.SampledFrom(somePatterns).Draw(t, "path"))
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someHeaders), 0, 2, rapid.ID[string]).Draw(t, "headers") {
			m.Headers = append(m.Headers, gwv1.HTTPHeaderMatch{Name: gwv1.HTTPHeaderName(name), Value: rapid.SampledFrom(someValues).Draw(t, "value")})
		}
		rule.Matches = append(rule.Matches, m)
	}
	if rapid.IntRange(0, 8).Draw(t, "action") < 4 {
		rule.Filters = []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: someRedirect(t, s, r, rule, j, exact)}}
		return rule
	}
	for k := range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 0}).Draw(t, "backends") {
		name := fmt.Sprintf("%s-%d-%d", r.Name, j, k)
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30100 + int32(len(s.Services))}}},
		}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			service.Name = "missing" + name
		case 1:
			service.Name += "-empty"
			service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			s.Services = append(s.Services, service)
		default:
			s.Services = append(s.Services, service)
		}
		ref := gwv1.HTTPBackendRef{BackendRef: gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{
			Name: gwv1.ObjectName(service.Name), Port: pointer(gwv1.PortNumber(80)),
		}}}
		if weight := rapid.Int32Range(0, 4).Draw(t, "weight"); weight < 4 {
			ref.Weight = &weight
		}
		rule.BackendRefs = append(rule.BackendRefs, ref)
	}
	return rule
}

// someRedirect generates a redirect. Without a responder it is one that Octavia can give.
func someRedirect(t *rapid.T, s *compile.Snapshot, r *gwv1.HTTPRoute, rule gwv1.HTTPRouteRule, j int, exact bool) *gwv1.HTTPRequestRedirectFilter {
	filter := &gwv1.HTTPRequestRedirectFilter{StatusCode: pointer(rapid.SampledFrom([]int{301, 302}).Draw(t, "code"))}
	if !exact || rapid.Bool().Draw(t, "own host") {
		filter.Hostname = pointer(gwv1.PreciseHostname(fmt.Sprintf("to-%s-%d.test", r.Name, j)))
	}
	if rapid.Bool().Draw(t, "https") {
		filter.Scheme = pointer("https")
	}
	if rapid.IntRange(0, 4).Draw(t, "to port") == 0 {
		filter.Port = pointer(rapid.SampledFrom([]gwv1.PortNumber{80, 443, 8080, 8443}).Draw(t, "port"))
	}
	if s.Config == nil {
		return filter
	}
	prefixes := !slices.ContainsFunc(rule.Matches, func(m gwv1.HTTPRouteMatch) bool { return m.Path != nil && *m.Path.Type != gwv1.PathMatchPathPrefix })
	switch kind := rapid.IntRange(0, 4).Draw(t, "new path"); {
	case kind == 0:
		filter.Path = &gwv1.HTTPPathModifier{Type: gwv1.FullPathHTTPPathModifier, ReplaceFullPath: pointer(rapid.SampledFrom([]string{"/", "/full", "/full/"}).Draw(t, "full"))}
	case kind == 1 && prefixes:
		filter.Path = &gwv1.HTTPPathModifier{Type: gwv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: pointer(rapid.SampledFrom([]string{"", "/", "/new", "/new/", "/p"}).Draw(t, "replacement"))}
	}
	return filter
}

// responderService has the ports of the responder, with some of those for redirects.
func responderService(redirects int) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "responder"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	for _, port := range answer.Ports() {
		if port < 9600+redirects {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: fmt.Sprint(port), Port: int32(port), TargetPort: intstr.FromInt(port), NodePort: 22000 + int32(port),
			})
		}
	}
	return service
}

func readyNode(address string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: address}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

func someRequest(t *rapid.T) route.Request {
	r := route.Request{
		Port: rapid.SampledFrom([]int{80, 8080}).Draw(t, "port"),
		Host: rapid.SampledFrom(requestHosts).Draw(t, "host"),
		Path: rapid.SampledFrom(requestPaths).Draw(t, "path"),
	}
	for _, name := range someHeaders {
		if value := rapid.SampledFrom(requestValues).Draw(t, name); value != "" {
			if r.Header == nil {
				r.Header = map[string][]string{}
			}
			r.Header[strings.ToLower(name)] = []string{value}
		}
	}
	return r
}

func TestGateway_answersAsGatewayAPISays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSnapshot(t)
		result := compile.Gateway(s)
		refused, complete := refusalsOf(result)
		if !complete {
			t.Skip("too many refusals to read them all")
		}
		b, err := build(s, &result)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			r := someRequest(t)
			want, got := naive(s, refused, r), b.answer(r)
			if want != got {
				t.Fatalf("request %+v\nGateway API: %s\nthe tree:    %s", r, want, got)
			}
		}
	})
}

func TestGateway_ignoresTheOrderOfItsInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSnapshot(t)
		want := compile.Gateway(s)
		shuffled := s
		shuffled.HTTPRoutes = rapid.Permutation(s.HTTPRoutes).Draw(t, "routes")
		shuffled.Services = rapid.Permutation(s.Services).Draw(t, "services")
		if got := compile.Gateway(shuffled); !reflect.DeepEqual(got, want) {
			t.Fatalf("the result depends on the order of routes or Services")
		}
	})
}

func TestGateway_withoutARouteChangesOnlyItsRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSnapshot(t)
		before := compile.Gateway(s)
		less := s
		gone := rapid.IntRange(0, len(s.HTTPRoutes)-1).Draw(t, "gone")
		less.HTTPRoutes = slices.Delete(slices.Clone(s.HTTPRoutes), gone, gone+1)
		after := compile.Gateway(less)
		refusedBefore, completeBefore := refusalsOf(before)
		refusedAfter, completeAfter := refusalsOf(after)
		if !completeBefore || !completeAfter || len(refusedBefore)+len(refusedAfter) > 0 {
			t.Skip("a route less can let others be served")
		}
		old, err := build(s, &before)
		if err != nil {
			t.Fatal(err)
		}
		young, err := build(less, &after)
		if err != nil {
			t.Fatal(err)
		}
		removed := s.HTTPRoutes[gone].Namespace + "/" + s.HTTPRoutes[gone].Name + "/"
		for range 20 {
			r := someRequest(t)
			was, is := old.evaluator.Route(r), young.evaluator.Route(r)
			if strings.HasPrefix(was.Policy, removed) || was.Policy == "" {
				continue
			}
			if old.answer(r) != young.answer(r) {
				t.Fatalf("request %+v went to %+v and now to %+v", r, was, is)
			}
		}
	})
}

func TestGateway_staysAsItIsOnceItsRedirectsHavePorts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSnapshot(t)
		before := compile.Gateway(s)
		if len(before.Redirects) == 0 {
			return
		}
		annotation, err := before.Redirects.Format(s.Controller)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(s.Services, func(o *corev1.Service) bool { return o.Name == "responder" })
		s.Services[i].Annotations = map[string]string{answer.Annotation: annotation}
		if after := compile.Gateway(s); !reflect.DeepEqual(after, before) {
			t.Fatalf("the annotation %s changed the result", annotation)
		}
	})
}

func TestGateway_sameRouteUnderASecondNameChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSnapshot(t)
		result := compile.Gateway(s)
		if refused, complete := refusalsOf(result); !complete || len(refused) > 0 {
			t.Skip("the second may be served where the first was refused before others were")
		}
		want := result.Tree
		second := rapid.SampledFrom(s.HTTPRoutes).Draw(t, "route").DeepCopy()
		second.Name = "z"
		second.CreationTimestamp = metav1.NewTime(time.Unix(3, 0))
		s.HTTPRoutes = append(slices.Clone(s.HTTPRoutes), second)
		if got := compile.Gateway(s).Tree; !reflect.DeepEqual(got, want) {
			t.Fatalf("the tree is\n%+v\nand was\n%+v", got, want)
		}
	})
}

func TestGateway_namesWhatExistsAndKeepsLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := compile.Gateway(someSnapshot(t)).Tree
		pools := map[string]bool{}
		for _, p := range tree.Pools {
			if pools[p.Key] {
				t.Fatalf("pool %s twice", p.Key)
			}
			pools[p.Key] = true
		}
		used := map[string]bool{}
		for _, l := range tree.Listeners {
			used[l.DefaultPool] = true
			keys := map[string]bool{}
			for _, p := range l.Policies {
				if keys[p.Key] {
					t.Fatalf("policy %s twice", p.Key)
				}
				keys[p.Key] = true
				if len(p.Rules) == 0 || len(p.Rules) > 50 {
					t.Fatalf("policy %s has %d rules", p.Key, len(p.Rules))
				}
				for _, r := range p.Rules {
					if len(r.Value) > 255 || strings.ContainsAny(r.Value, "\r\n\x00&<>'\"# ") {
						t.Fatalf("policy %s has the value %q", p.Key, r.Value)
					}
				}
				if p.Action == lb.RedirectToPool {
					if !pools[p.Pool] {
						t.Fatalf("policy %s names the pool %q", p.Key, p.Pool)
					}
					used[p.Pool] = true
				}
			}
		}
		for key := range pools {
			if !used[key] {
				t.Fatalf("nothing uses pool %s", key)
			}
		}
	})
}

func backendRef(name string) []gwv1.HTTPBackendRef {
	return []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{
		Name: gwv1.ObjectName(name), Port: pointer(gwv1.PortNumber(80)),
	}}}}
}
