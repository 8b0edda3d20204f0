//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// hostileCase is one rule with a value that means something to HTML, to HAProxy's configuration or to a regular expression.
type hostileCase struct {
	match  gwv1.HTTPRouteMatch
	filter *gwv1.HTTPRequestRedirectFilter
	// take are paths that the rule takes, if any can come over the wire. Requests have the headers of match.
	take []string
	// value is a header value that the match takes, when it is not the match's own.
	value string
	// location is where a redirect leads.
	location string
}

// Each rule takes what it says and nothing else, or is refused; HAProxy's configuration stays valid in any case.
func TestHostile_valuesNeitherBreakNorWidenAnything(t *testing.T) {
	g := newGround(t)
	g.steady()
	s := g.site("e2e-hostile", "e2e-hostile-b")
	namespace := s.namespaces[0]
	gw := gateway(namespace, "edge", listener("all", 80, ""))
	gw.Spec.GatewayClassName = steadyClass

	exact, prefix, pattern := gwv1.PathMatchExact, gwv1.PathMatchPathPrefix, gwv1.PathMatchRegularExpression
	header := func(kind gwv1.HeaderMatchType, name, value string) gwv1.HTTPRouteMatch {
		m := path(prefix, "/", name, value)
		m.Headers[0].Type = &kind
		return m
	}
	to := func(replacement string) *gwv1.HTTPRequestRedirectFilter {
		return &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname("to.test")), Path: &gwv1.HTTPPathModifier{
			Type: gwv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &replacement}}
	}
	served := []hostileCase{
		{match: path(exact, "/a&amp;b'c$"), take: []string{"/a&amp;b'c$"}},
		{match: path(prefix, "/%23%22%27%3C%0a%00"), take: []string{"/%23%22%27%3C%0a%00", "/%23%22%27%3C%0a%00/x"}},
		{match: path(exact, "/-f"), take: []string{"/-f"}},
		{match: path(pattern, `/a['"#<>& ]?b`), take: []string{"/a'b", "/ab", "/a&b"}},
		{match: path(pattern, `/x#.*|/y' if TRUE`)},
		{match: path(pattern, "-i|/z"), take: []string{"/z"}},
		{match: path(pattern, `/%\[src\]|/\$\{HOME\}`)},
		{match: path(pattern, `/q`+"`"+`id`+"`"+`?`)},
		{match: header(gwv1.HeaderMatchExact, "X-A", `-f /etc/passwd`), take: []string{"/"}},
		{match: header(gwv1.HeaderMatchExact, "X-A", `' if TRUE # "`), take: []string{"/"}},
		{match: header(gwv1.HeaderMatchExact, "X-A", `&#39;<b>\x41`), take: []string{"/"}},
		{match: header(gwv1.HeaderMatchExact, "X-A", `"a, b" ${HOME} %[src]`), take: []string{"/"}},
		{match: header(gwv1.HeaderMatchRegularExpression, "X-A", `[#'"<>&]+ ?`), value: `"#'#"`, take: []string{"/"}},
		{match: path(prefix, "/"), filter: to("/%20$(id)=@!"), take: []string{"/x?y"}, location: "http://to.test/%20$(id)=@!/x?y"},
	}
	var refused []hostileCase
	for _, replacement := range []string{"/%[src]", "/x#", "/x' if TRUE #", `/x"`, "/x y", "/x\ny", "/x\r\n", "/<x>", "/a&b", `/a\b`, "/é", "/\x00", "/" + strings.Repeat("a", 300)} {
		refused = append(refused, hostileCase{match: path(prefix, "/"), filter: to(replacement)})
	}
	for _, value := range []string{"(", "/a\nacl x always_true", "/a\x00", "/a\r", "/é", `/(a+)+$`, `/(a*)*b`, `/\p{L}+`, `/(?i)a`, `/(?#c)a`, `/(?!a)`, `/(?P<n>a)`, `/[[:alpha:]]`, `/a\`, `/\1`, `/\Qa\E`, "/" + strings.Repeat("a", 300)} {
		refused = append(refused, hostileCase{match: path(pattern, value)})
	}
	for _, h := range [][2]string{{"X-A", "a,b"}, {"X-A", "a\nb"}, {"X-A", "a\x00"}, {"X-A", " a"}, {"X-A", "é"}, {"X-A", strings.Repeat("a", 300)}, {"X#A", "a"}, {"X'A", "a"}, {"X&A", "a"}} {
		refused = append(refused, hostileCase{match: header(gwv1.HeaderMatchExact, h[0], h[1])})
	}

	var routes []*gwv1.HTTPRoute
	add := func(kind string, i int, c hostileCase) *gwv1.HTTPRoute {
		name := fmt.Sprintf("%s-%02d", kind, i)
		r := route(namespace, name, gw, []gwv1.Hostname{gwv1.Hostname(name + ".hostile.test")}, rule([]gwv1.HTTPRouteMatch{c.match}, backend("a0", 1)))
		if c.filter != nil {
			r.Spec.Rules[0] = gwv1.HTTPRouteRule{Matches: r.Spec.Rules[0].Matches, Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: c.filter}}}
		}
		return r
	}
	for i, c := range served {
		r := add("served", i, c)
		g.must(g.kube.Create(t.Context(), r))
		routes = append(routes, r)
	}
	var turned int
	for i, c := range refused {
		r := add("refused", i, c)
		switch err := g.kube.Create(t.Context(), r); {
		case err == nil:
			routes = append(routes, r)
		case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
			turned++
		default:
			t.Fatalf("%v: %v", r.Spec.Rules[0], err)
		}
	}
	// Whatever is not taken by a rule above is taken by this one.
	g.apply(route(namespace, "rest", gw, []gwv1.Hostname{"*.hostile.test"}, rule(nil, backend("a1", 1))))
	g.apply(gw)
	g.healthy(gw)
	g.programmed(gw)
	t.Logf("%d rules with hostile values, %d that have to be refused, %d of them by the API server", len(served), len(refused), turned)

	c := g.cloudClient()
	w := g.world(g.facts(c), s.namespaces...)
	tree := w.compile(gw, w.HTTPRoutes).Tree
	id := g.isAsWanted(c, &tree)
	g.validConfiguration(id)
	o, err := w.oracle(&tree)
	g.must(err)
	for _, r := range routes {
		g.must(g.kube.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		if len(r.Status.Parents) != 1 {
			t.Fatalf("%s has %d parent statuses", r.Name, len(r.Status.Parents))
		}
		accepted := meta.IsStatusConditionTrue(r.Status.Parents[0].Conditions, string(gwv1.RouteConditionAccepted))
		if accepted != strings.HasPrefix(r.Name, "served") {
			t.Errorf("%s, %+v: accepted is %t", r.Name, r.Spec.Rules[0], accepted)
		}
	}
	vip := g.vip(gw)
	g.takesWhatItSays(vip, served)
	d := newDice(seed(t), 3)
	var questions []question
	all := drawn{gateway: gw, routes: routes}
	for range number(t, "REQUESTS", 4000) / 2 {
		questions = append(questions, all.question(d))
	}
	g.compare(o, vip, questions)
	g.delete(gw)
	g.nothingLeft()
}

// takesWhatItSays asks what each case must take.
func (g *ground) takesWhatItSays(address string, served []hostileCase) {
	g.Helper()
	a := newAsker(address)
	defer a.close()
	for i, c := range served {
		for _, target := range c.take {
			q := question{Port: 80, Method: "GET", Target: target, Host: fmt.Sprintf("served-%02d.hostile.test", i)}
			for _, h := range c.match.Headers {
				value := h.Value
				if c.value != "" {
					value = c.value
				}
				q.Headers = append(q.Headers, [2]string{string(h.Name), value})
			}
			got, err := a.ask(g.Context(), q)
			switch {
			case err != nil:
				g.Errorf("%s: %v", q, err)
			case c.location != "" && (got.Status != 302 || got.Location != c.location):
				g.Errorf("%s is answered by %s, want a redirect to %s", q, got, c.location)
			case c.location == "" && got.Text != "a0":
				g.Errorf("%s is answered by %s, want a0", q, got)
			}
		}
	}
}
