package compile_test

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// hostile generates values with everything that means something to HTML, HAProxy's configuration or a regular expression.
func hostile(t *rapid.T, label string) string {
	nasty := rapid.StringOf(rapid.SampledFrom([]rune("aZ0/_~-.#&'\"<>\\ \t\r\n\x00%[](){}*+?|^$,;:=@!`é\u2028")))
	return rapid.OneOf(nasty, rapid.String(), rapid.Map(nasty, func(s string) string { return "/" + s })).Draw(t, label)
}

// hostileSnapshot has one Gateway and one route with hostile values wherever a user can write some.
func hostileSnapshot(t *rapid.T) compile.Snapshot {
	hostname := gwv1.Hostname("a.test")
	if rapid.Bool().Draw(t, "hostile host") {
		hostname = gwv1.Hostname(hostile(t, "hostname"))
	}
	rule := gwv1.HTTPRouteRule{Matches: []gwv1.HTTPRouteMatch{{
		Path: &gwv1.HTTPPathMatch{
			Type:  pointer(rapid.SampledFrom([]gwv1.PathMatchType{gwv1.PathMatchExact, gwv1.PathMatchPathPrefix, gwv1.PathMatchRegularExpression, "Other"}).Draw(t, "path type")),
			Value: pointer(hostile(t, "path")),
		},
	}}}
	if rapid.Bool().Draw(t, "has header") {
		rule.Matches[0].Headers = []gwv1.HTTPHeaderMatch{{
			Type: pointer(rapid.SampledFrom([]gwv1.HeaderMatchType{gwv1.HeaderMatchExact, gwv1.HeaderMatchRegularExpression, "Other"}).Draw(t, "header type")),
			Name: gwv1.HTTPHeaderName(rapid.OneOf(rapid.Just("X-A"), rapid.String()).Draw(t, "name")), Value: hostile(t, "value"),
		}}
	}
	if rapid.Bool().Draw(t, "redirects") {
		rule.Filters = []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{
			Scheme:   pointer(rapid.SampledFrom([]string{"http", "https", "x' if TRUE #"}).Draw(t, "scheme")),
			Hostname: pointer(gwv1.PreciseHostname(rapid.SampledFrom([]string{"b.test", "b' #", "*.b.test"}).Draw(t, "redirect host"))),
			Path: &gwv1.HTTPPathModifier{
				Type: rapid.SampledFrom([]gwv1.HTTPPathModifierType{gwv1.PrefixMatchHTTPPathModifier, gwv1.FullPathHTTPPathModifier, "Other"}).Draw(t, "modifier"), ReplacePrefixMatch: pointer(hostile(t, "replacement")),
			},
		}}}
		if rapid.Bool().Draw(t, "everything") {
			rule.Matches[0].Path = nil
		}
	}
	return compile.Snapshot{
		Gateway: &gwv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "u"},
			Spec: gwv1.GatewaySpec{Listeners: []gwv1.Listener{
				{Name: "l", Port: rapid.SampledFrom([]int32{80, 0, -1, 70000}).Draw(t, "port"), Protocol: gwv1.HTTPProtocolType, Hostname: &hostname},
				{Name: "m", Port: 81, Protocol: gwv1.ProtocolType(hostile(t, "protocol"))},
				{Name: "n", Port: 82, Protocol: gwv1.HTTPProtocolType},
			}},
		},
		HTTPRoutes: []*gwv1.HTTPRoute{nil, {
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "r"},
			Spec: gwv1.HTTPRouteSpec{
				CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "edge"}}},
				Hostnames:       []gwv1.Hostname{"a.test", hostname},
				Rules:           []gwv1.HTTPRouteRule{rule, {}},
			},
		}},
	}
}

var (
	safeValue = regexp.MustCompile(`^[!$%()*+,./0-9:;=?@A-Z\[\\\]^_a-z{|}~-]+$`)
	safeKey   = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
	safeURL   = regexp.MustCompile(`^https?://[a-z0-9.:-]+(/[A-Za-z0-9:/._~!$()*+,;=@%-]*)?$`)
)

// letsNothingOut is the property: whatever users write, only characters that are safe everywhere reach Octavia.
func letsNothingOut(t *rapid.T) {
	tree := compile.Gateway(hostileSnapshot(t)).Tree
	if _, err := route.New(&tree); err != nil {
		t.Fatalf("HAProxy would not take the tree: %v", err)
	}
	for _, l := range tree.Listeners {
		for _, p := range l.Policies {
			for _, r := range p.Rules {
				if len(r.Value) > 255 || !safeValue.MatchString(r.Value) || strings.HasPrefix(r.Value, "-") {
					t.Fatalf("rule value %q", r.Value)
				}
				if r.Type == lb.RuleHeader && !safeKey.MatchString(r.Key) {
					t.Fatalf("header name %q", r.Key)
				}
				// A value that is neither anchored nor compared as a whole could be a flag of HAProxy.
				if r.Compare == lb.Regex && r.Value[0] != '^' && r.Value != "(?!)" {
					t.Fatalf("rule value %q is not anchored", r.Value)
				}
			}
			if p.URL != "" && (len(p.URL) > 255 || !safeURL.MatchString(p.URL)) {
				t.Fatalf("redirect to %q", p.URL)
			}
		}
	}
}

func TestGateway_letsNoHostileValueOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, letsNothingOut)
}

func FuzzGateway_letsNoHostileValueOut(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(letsNothingOut))
}

func TestGateway_matchesExactlyWhatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.StringMatching(`[-A-Za-z0-9._~!$&'()*+,;=:@]{0,12}`).Draw(t, "path")
		value := strings.Trim(rapid.StringMatching(`[ -+\--~]{1,12}`).Draw(t, "value"), " ")
		s := oneRule(gwv1.HTTPRouteMatch{
			Path:    &gwv1.HTTPPathMatch{Type: pointer(gwv1.PathMatchExact), Value: &path},
			Headers: []gwv1.HTTPHeaderMatch{{Name: "x", Value: value}},
		})
		result := compile.Gateway(s)
		if len(result.Tree.Listeners[0].Policies) == 0 {
			t.Skip("refused")
		}
		e, err := route.New(&result.Tree)
		if err != nil {
			t.Fatal(err)
		}
		other := path + rapid.SampledFrom([]string{"", "x", "/", "?q"}).Draw(t, "suffix")
		given := value + rapid.SampledFrom([]string{"", "x", ",x", ", " + value}).Draw(t, "more")
		hit := e.Route(route.Request{Port: 80, Host: "h", Path: other, Header: map[string][]string{"x": {given}}}).Policy != ""
		wanted := other == path || other == path+"?q"
		for _, element := range strings.Split(given, ",") {
			wanted = wanted && strings.Trim(element, " ") == value
		}
		// A quote that is left open makes the rest of the line one element.
		if hit != wanted && strings.Count(value, `"`) == 0 {
			t.Fatalf("path %q, header %q: request %q, %q: got %v", path, value, other, given, hit)
		}
	})
}

func TestGateway_readsRegularExpressionsLikeGo(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "b", "/", ".", `\.`, `\d`, `\w`, "[ab]", "[^a]", "[a-c-]", "(a|b)", "(?:/a)", "*", "+", "?", "{2}", "{1,}", "{,2}", "|", `\x41`, "x&y", "#", "^", "$", `\/`, `\-`, "é"}
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "pieces"), "")
		result := compile.Gateway(oneRule(gwv1.HTTPRouteMatch{
			Path: &gwv1.HTTPPathMatch{Type: pointer(gwv1.PathMatchRegularExpression), Value: &expression},
		}))
		if len(result.Tree.Listeners[0].Policies) == 0 {
			t.Skip("refused")
		}
		e, err := route.New(&result.Tree)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		want := regexp.MustCompile("^(?:" + expression + ")$")
		for range 10 {
			path := "/" + rapid.StringOf(rapid.SampledFrom([]rune("ab/.1A&#xy-"))).Draw(t, "path")
			if hit := e.Route(route.Request{Port: 80, Host: "h", Path: path}).Policy != ""; hit != want.MatchString(path) {
				t.Fatalf("%s on %s: got %v", expression, path, hit)
			}
		}
	})
}

// oneRule is a Gateway with a route that has one match.
func oneRule(m gwv1.HTTPRouteMatch) compile.Snapshot {
	return compile.Snapshot{
		Gateway: &gwv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "u"},
			Spec:       gwv1.GatewaySpec{Listeners: []gwv1.Listener{{Name: "l", Port: 80, Protocol: gwv1.HTTPProtocolType}}},
		},
		HTTPRoutes: []*gwv1.HTTPRoute{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "r"},
			Spec: gwv1.HTTPRouteSpec{
				CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "edge"}}},
				Rules:           []gwv1.HTTPRouteRule{{Matches: []gwv1.HTTPRouteMatch{m}}},
			},
		}},
	}
}
