package compile_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
)

// BenchmarkGateway compiles one Gateway with n rules: 10 in each route, a host for each route, a Service for each fifth rule, one redirect
// in ten rules, 20 Nodes.
func BenchmarkGateway(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			s := largeSnapshot(n)
			b.ReportAllocs()
			for b.Loop() {
				compile.Gateway(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rule")
		})
	}
}

func largeSnapshot(rules int) compile.Snapshot {
	s := compile.Snapshot{
		ClusterID: "c", Controller: "gw.test/c",
		Gateway: &gwv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "u"},
			Spec: gwv1.GatewaySpec{Listeners: []gwv1.Listener{{
				Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType,
				AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: pointer(gwv1.NamespacesFromAll)}},
			}}},
		},
	}
	for i := range 20 {
		s.Nodes = append(s.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	for i := range rules {
		namespace := fmt.Sprintf("team-%d", i/10%7)
		service := fmt.Sprintf("service-%d", i/5)
		if i%10 == 0 {
			s.HTTPRoutes = append(s.HTTPRoutes, &gwv1.HTTPRoute{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("route-%d", i/10), CreationTimestamp: metav1.NewTime(time.Unix(int64(i%17), 0))},
				Spec: gwv1.HTTPRouteSpec{
					CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Namespace: pointer(gwv1.Namespace("infra")), Name: "edge"}}},
					Hostnames:       []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("app-%d.acme.test", i/10))},
				},
			})
		}
		if i%5 == 0 {
			s.Services = append(s.Services, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: int32(30000 + i%2000)}}},
			})
		}
		rule := gwv1.HTTPRouteRule{Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{
			Type: pointer(gwv1.PathMatchPathPrefix), Value: pointer(fmt.Sprintf("/api/v%d", i%10)),
		}}}}
		switch i % 10 {
		case 0:
			rule.Matches = nil
			rule.Filters = []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Scheme: pointer("https")}}}
		case 1:
			rule.Matches[0].Headers = []gwv1.HTTPHeaderMatch{{Name: "X-Canary", Value: "always"}}
			rule.BackendRefs = backendRef(service)
		default:
			rule.BackendRefs = backendRef(service)
		}
		last := s.HTTPRoutes[len(s.HTTPRoutes)-1]
		last.Spec.Rules = append(last.Spec.Rules, rule)
	}
	return s
}

// BenchmarkGateway_overlaps has n rules that forward and n/4 redirects below them that overlap all of them.
func BenchmarkGateway_overlaps(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			s := largeSnapshot(n)
			for i, r := range s.HTTPRoutes {
				r.Spec.Hostnames = nil
				for j := range r.Spec.Rules {
					rule := &r.Spec.Rules[j]
					if len(rule.Filters) > 0 {
						rule.Filters[0].RequestRedirect.Hostname = pointer(gwv1.PreciseHostname("to.test"))
						rule.Matches = []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: pointer(gwv1.PathMatchPathPrefix), Value: pointer(fmt.Sprintf("/api/%d", i%3))}}}
					} else {
						rule.Matches[0].Path.Value = pointer(fmt.Sprintf("/api/%d/%d/x", i%3, i*100+j))
					}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				compile.Gateway(s)
			}
		})
	}
}
