//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

const responderClass = "e2e-responder"

// responderClass makes sure of a class with the responder of config/components/responder.
func (g *ground) responderClass() {
	g.Helper()
	g.apply(&v1alpha1.OpenStackGatewayClassConfig{
		ObjectMeta: metav1.ObjectMeta{Name: responderClass},
		Spec: v1alpha1.OpenStackGatewayClassConfigSpec{
			VIPSubnet:       &v1alpha1.Selector{ID: g.nodeSubnet},
			FloatingNetwork: &v1alpha1.Selector{ID: g.publicNetwork},
			HealthMonitor:   v1alpha1.HealthMonitor{DelaySeconds: 2, TimeoutSeconds: 1},
			Responder:       &v1alpha1.Responder{Service: v1alpha1.ServiceName{Namespace: controllerNamespace, Name: "openstack-gateway-responder"}},
		},
	})
	g.apply(&gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: responderClass},
		Spec: gwv1.GatewayClassSpec{
			ControllerName: api.DefaultControllerName,
			ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: responderClass},
		},
	})
}

func redirect(matches []gwv1.HTTPRouteMatch, filter gwv1.HTTPRequestRedirectFilter) gwv1.HTTPRouteRule {
	return gwv1.HTTPRouteRule{Matches: matches, Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &filter}}}
}

// What Octavia cannot answer comes from the responder, through the real HAProxy and node ports: 404, 500, shares of 500, and redirects that
// depend on the request, which no header of a client can turn elsewhere.
func TestResponder_answersWhatOctaviaCannot(t *testing.T) {
	g := newGround(t)
	g.responderClass()
	infra := g.namespace("e2e-answers-infra", nil)
	shop := g.namespace("e2e-answers", map[string]string{"e2e": "yes"})
	g.echo(shop, "web", 1)

	gw := gateway(infra, "answers", listener("all", 80, ""), listener("shop", 80, "shop.example.test"), listener("alt", 8080, ""))
	gw.Spec.GatewayClassName = responderClass
	prefix := gwv1.PathMatchPathPrefix
	replaced := func(with string) *gwv1.HTTPPathModifier {
		return &gwv1.HTTPPathModifier{Type: gwv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &with}
	}
	shopRoute := route(shop, "shop", gw, []gwv1.Hostname{"shop.example.test"},
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/web")}, backend("web", 1)),
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/gone")}, backend("gone", 1)),
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/half")}, backend("web", 1), backend("gone", 1)))
	sectioned := gwv1.SectionName("shop")
	shopRoute.Spec.ParentRefs[0].SectionName = &sectioned
	moved := route(shop, "moved", gw, nil,
		redirect([]gwv1.HTTPRouteMatch{path(prefix, "/old")}, gwv1.HTTPRequestRedirectFilter{Path: replaced("/new")}),
		redirect([]gwv1.HTTPRouteMatch{path(prefix, "/full")}, gwv1.HTTPRequestRedirectFilter{
			StatusCode: new(308), Path: &gwv1.HTTPPathModifier{Type: gwv1.FullPathHTTPPathModifier, ReplaceFullPath: new("/index.html")},
		}))
	toHTTPS := route(shop, "to-https", gw, nil, redirect(nil, gwv1.HTTPRequestRedirectFilter{Scheme: new("https"), StatusCode: new(301)}))
	port := gwv1.PortNumber(8080)
	toHTTPS.Spec.ParentRefs[0].Port = &port
	for _, o := range []client.Object{shopRoute, moved, toHTTPS, gw} {
		g.apply(o)
	}
	public := g.programmed(gw)

	lie := []string{"X-Forwarded-Proto", "https", "X-Forwarded-Port", "1", "X-Forwarded-Host", "evil.test"}
	for _, c := range []struct {
		at, host, want string
		headers        []string
	}{
		{at: "/web", host: "shop.example.test", want: "web"},
		{at: "/other", host: "shop.example.test", want: "404"},
		{at: "/old", host: "shop.example.test", want: "302 http://shop.example.test/new"},
		{at: "/gone", host: "shop.example.test", want: "500"},
		{at: "/", host: "a.example.test", want: "404"},
		{at: "/old/x?y=1", host: "A.example.test", want: "302 http://a.example.test/new/x?y=1", headers: lie},
		{at: "/older", host: "a.example.test", want: "404"},
		{at: "/full/x?y=1", host: "a.example.test:80", want: "308 http://a.example.test/index.html?y=1"},
		{at: ":8080/x?y=1", host: "a.example.test:8080", want: "301 https://a.example.test/x?y=1", headers: lie},
		{at: ":8080/old", host: "a.example.test:8080", want: "302 http://a.example.test:8080/new", headers: lie},
		{at: ":8080/x", host: "a_b@c", want: "400"},
	} {
		url := "http://" + public + c.at
		g.eventually(2*time.Minute, fmt.Sprintf("%s with Host %s gets %s", url, c.host, c.want), func() error {
			a, err := get(g.Context(), g.outside, url, c.host, c.headers...)
			if err != nil {
				return err
			}
			got := a.String()
			if a.Location != "" {
				got += " " + a.Location
			}
			if got != c.want {
				return fmt.Errorf("it gets %s", got)
			}
			return nil
		})
	}

	count := map[int]int{}
	for range 100 {
		a, err := get(g.Context(), g.outside, "http://"+public+"/half", "shop.example.test")
		g.must(err)
		count[a.Status]++
	}
	if count[http.StatusOK] < 45 || count[http.StatusInternalServerError] < 45 {
		t.Errorf("half of the requests should get 500: %v", count)
	}
	g.delete(gw)
	g.nothingLeft()
}
