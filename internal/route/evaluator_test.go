package route

import (
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func pool(key string) lb.Pool {
	return lb.Pool{Meta: lb.Meta{Key: key}, Protocol: lb.HTTP}
}

func toPool(key, pool string, rules ...lb.Rule) lb.Policy {
	return lb.Policy{Meta: lb.Meta{Key: key}, Action: lb.RedirectToPool, Pool: pool, Rules: rules}
}

func host(re string) lb.Rule   { return lb.Rule{Type: lb.RuleHost, Compare: lb.Regex, Value: re} }
func prefix(re string) lb.Rule { return lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: re} }
func not(r lb.Rule) lb.Rule    { r.Invert = !r.Invert; return r }

func header(name string, compare lb.Compare, value string) lb.Rule {
	return lb.Rule{Type: lb.RuleHeader, Compare: compare, Key: name, Value: value}
}

var everything = lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: "(?!)", Invert: true}

func tree(policies ...lb.Policy) *lb.Tree {
	return &lb.Tree{
		Meta:      lb.Meta{Name: "gw"},
		Listeners: []lb.Listener{{Meta: lb.Meta{Key: "http-80"}, Protocol: lb.HTTP, Port: 80, Policies: policies}},
		Pools:     []lb.Pool{pool("a"), pool("b"), pool("c")},
	}
}

func evaluator(t *testing.T, tr *lb.Tree) *Evaluator {
	t.Helper()
	e, err := New(tr)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func get(host, path string) Request { return Request{Port: 80, Host: host, Path: path} }

func TestRoute_asksClassesInHAProxysOrder(t *testing.T) {
	t.Parallel()
	forward := toPool("forward", "a", everything)
	redirect := lb.Policy{Meta: lb.Meta{Key: "redirect"}, Action: lb.RedirectPrefix, URL: "https://x.example", Code: 301,
		Rules: []lb.Rule{prefix("^/r")}}
	url := lb.Policy{Meta: lb.Meta{Key: "url"}, Action: lb.RedirectToURL, URL: "https://x.example/fixed",
		Rules: []lb.Rule{prefix("^/r2")}}
	reject := lb.Policy{Meta: lb.Meta{Key: "reject"}, Action: lb.Reject, Rules: []lb.Rule{prefix("^/r3")}}
	e := evaluator(t, tree(forward, url, redirect, reject))
	for path, want := range map[string]Answer{
		"/":      {Kind: Pool, Listener: "http-80", Policy: "forward", Pool: "a"},
		"/r?q=1": {Kind: Redirect, Listener: "http-80", Policy: "redirect", Location: "https://x.example/r?q=1", Code: 301},
		"/r2?q":  {Kind: Redirect, Listener: "http-80", Policy: "url", Location: "https://x.example/fixed", Code: 302},
		"/r3":    {Kind: Rejected, Listener: "http-80", Policy: "reject", Code: 403},
	} {
		if got := e.Route(get("h", path)); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

func TestRoute_redirectsToThePathOfTheTarget(t *testing.T) {
	t.Parallel()
	e := evaluator(t, tree(lb.Policy{Meta: lb.Meta{Key: "p"}, Action: lb.RedirectPrefix, URL: "https://x.example:8443", Rules: []lb.Rule{everything}}))
	for target, want := range map[string]string{
		"/a?b=/c":              "/a?b=/c",
		"http://h/a?b=http://": "/a?b=http://",
		"http://h":             "/",
		"*":                    "/",
	} {
		if got := e.Route(get("h", target)).Location; got != "https://x.example:8443"+want {
			t.Errorf("%s: got %s", target, got)
		}
	}
}

func TestRoute_ordersWithinAClassByPosition(t *testing.T) {
	t.Parallel()
	e := evaluator(t, tree(toPool("1", "a", prefix("^/x")), toPool("2", "b", everything), toPool("3", "c", everything)))
	for path, want := range map[string]string{"/x": "a", "/": "b"} {
		if got := e.Route(get("h", path)); got.Pool != want {
			t.Errorf("%s: got %s, want pool %s", path, got, want)
		}
	}
}

func TestRoute_leavesOutWhatOctaviaDoesNotRender(t *testing.T) {
	t.Parallel()
	disabled := toPool("disabled", "a", everything)
	disabled.Disabled = true
	tr := tree(disabled, toPool("no rules", "a"), toPool("pool disabled", "b", everything), toPool("no pool", "z", everything))
	tr.Pools[1].Disabled = true
	tr.Listeners[0].DefaultPool = "b"
	off := tr.Listeners[0]
	off.Key, off.Port, off.Disabled = "http-81", 81, true
	tr.Listeners = append(tr.Listeners, off)

	if got := evaluator(t, tr).Route(get("h", "/")); got.Kind != NoPool || got.Code != 503 {
		t.Errorf("got %s, want 503", got)
	}
	if got := evaluator(t, tr).Route(Request{Port: 81, Path: "/"}); got.Kind != NoListener {
		t.Errorf("disabled listener: got %s", got)
	}
	tr.Pools[1].Disabled = false
	if got := evaluator(t, tr).Route(get("h", "/")); got.Policy != "pool disabled" {
		t.Errorf("after enabling the pool: got %s", got)
	}
	tr.Disabled = true
	if got := evaluator(t, tr).Route(get("h", "/")); got.Kind != NoListener {
		t.Errorf("disabled load balancer: got %s", got)
	}
	if got := evaluator(t, &lb.Tree{}).Route(get("h", "/")); got.Kind != NoListener {
		t.Errorf("empty tree: got %s", got)
	}
}

func TestRoute_leavesOutDisabledRules(t *testing.T) {
	t.Parallel()
	off := func(r lb.Rule) lb.Rule { r.Disabled = true; return r }
	tr := tree(toPool("none left", "a", off(everything)), toPool("wider", "a", prefix("^/x"), off(host("^other$"))), toPool("rest", "b", everything))
	for path, want := range map[string]string{"/x": "wider", "/": "rest"} {
		if got := evaluator(t, tr).Route(get("h", path)); got.Policy != want {
			t.Errorf("%s: got %s, want policy %s", path, got, want)
		}
	}
}

func TestRoute_matchesLikeHAProxy(t *testing.T) {
	t.Parallel()
	exactHost := host(`^foo\.example\.com(:[0-9]*)?$`)
	wildcard := host(`^[^:]+\.example\.com(:[0-9]*)?$`)
	v1 := []lb.Rule{header("X-V", lb.Regex, "^v1$"), not(header("x-v", lb.Regex, "^(?!v1$)"))}
	with := func(values ...string) Request {
		return Request{Port: 80, Host: "h", Path: "/", Header: map[string][]string{"x-V": values}}
	}
	for _, c := range []struct {
		name    string
		rules   []lb.Rule
		request Request
		want    bool
	}{
		{"host", []lb.Rule{exactHost}, get("foo.example.com", "/"), true},
		{"host ignores case", []lb.Rule{exactHost}, get("FOO.Example.com", "/"), true},
		{"host keeps its port", []lb.Rule{exactHost}, get("foo.example.com:8080", "/"), true},
		{"equal host has no port", []lb.Rule{{Type: lb.RuleHost, Compare: lb.EqualTo, Value: "foo.example.com"}}, get("foo.example.com:80", "/"), false},
		{"equal host ignores case", []lb.Rule{{Type: lb.RuleHost, Compare: lb.EqualTo, Value: "Foo.example.com"}}, get("fOO.example.com", "/"), true},
		{"host ends", []lb.Rule{{Type: lb.RuleHost, Compare: lb.EndsWith, Value: ".com"}}, get("a.COM", "/"), true},
		{"host contains", []lb.Rule{{Type: lb.RuleHost, Compare: lb.Contains, Value: "b"}}, get("aBc", "/"), true},
		{"other host", []lb.Rule{exactHost}, get("xfoo.example.com", "/"), false},
		{"wildcard host, one label", []lb.Rule{wildcard}, get("a.example.com", "/"), true},
		{"wildcard host, two labels", []lb.Rule{wildcard}, get("a.b.example.com:80", "/"), true},
		{"wildcard host, none", []lb.Rule{wildcard}, get("example.com", "/"), false},
		{"no host at all, inverted", []lb.Rule{not(exactHost)}, get("", "/"), true},

		{"path without query", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a"}}, get("h", "/a?/b"), true},
		{"path is case-sensitive", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a"}}, get("h", "/A"), false},
		{"path is not decoded", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a"}}, get("h", "/%61"), false},
		{"path starts as a string", []lb.Rule{{Type: lb.RulePath, Compare: lb.StartsWith, Value: "/a"}}, get("h", "/ab"), true},
		{"path prefix by element", []lb.Rule{prefix("^/a(/|$)")}, get("h", "/ab"), false},
		{"path prefix itself", []lb.Rule{prefix("^/a(/|$)")}, get("h", "/a?x"), true},
		{"path prefix below", []lb.Rule{prefix("^/a(/|$)")}, get("h", "/a/b"), true},
		{"dot segments stay", []lb.Rule{prefix("^/a(/|$)")}, get("h", "/a/../b"), true},
		{"regex is unanchored", []lb.Rule{prefix("b+")}, get("h", "/abbc"), true},
		{"hex escapes", []lb.Rule{prefix(`^/a\x26b$`)}, get("h", "/a&b"), true},
		{"bytes above ASCII", []lb.Rule{prefix(`^/\xc3\xa9$`)}, get("h", "/é"), true},
		{"a lookahead beyond our own", []lb.Rule{prefix(`^/(?!a|b$)`)}, get("h", "/b"), false},
		{"a lookahead for alternatives", []lb.Rule{prefix(`^(?!/a|/b$)`)}, get("h", "/ax"), false},
		{"the end belongs to the last alternative", []lb.Rule{prefix(`^(?!/a|/b$)`)}, get("h", "/bx"), true},
		{"a lookahead for a group", []lb.Rule{prefix(`^(?!(?:/a|/b)$)`)}, get("h", "/ax"), true},
		{"a lookahead that binds differently", []lb.Rule{prefix(`^(?!/a)(/b$)`)}, get("h", "/b"), true},
		{"ampersand is escaped by the template", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a&b"}}, get("h", "/a&b"), false},
		{"and matches its entity", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a&b"}}, get("h", "/a&amp;b"), true},
		{"everything matches a target without path", []lb.Rule{everything}, get("h", "*"), true},
		{"a target without path has no slash", []lb.Rule{{Type: lb.RulePath, Compare: lb.StartsWith, Value: "/"}}, get("h", "*"), false},
		{"an absolute target has a path", []lb.Rule{prefix("^/a(/|$)")}, get("h", "http://h/a/b?x"), true},
		{"an absolute target without path has one", []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/"}}, get("h", "http://h"), true},
		{"and hides the port that needs no saying", []lb.Rule{{Type: lb.RuleHost, Compare: lb.EqualTo, Value: "h"}}, get("h:80", "http://h:80/a"), true},
		{"but no other port", []lb.Rule{{Type: lb.RuleHost, Compare: lb.EqualTo, Value: "h"}}, get("h:8080", "http://h:8080/a"), false},
		{"and its authority is no part of it", []lb.Rule{prefix("^/h")}, get("h", "http://h/a"), false},
		{"nothing", []lb.Rule{not(everything)}, get("h", "/"), false},

		{"header", v1, with("v1"), true},
		{"header, blanks", v1, with(" v1 "), true},
		{"header is case-sensitive", v1, with("V1"), false},
		{"header twice the same", v1, with("v1", "v1"), true},
		{"header, two lines", v1, with("v1", "v2"), false},
		{"header, two elements", v1, with("v2, v1"), false},
		{"header, empty element", v1, with("v1,"), false},
		{"header absent", v1, get("h", "/"), false},
		{"header absent, inverted", []lb.Rule{not(header("x-v", lb.EqualTo, "v1"))}, get("h", "/"), true},
		{"any element", []lb.Rule{header("X-V", lb.EqualTo, "v1")}, with("v2,v1"), true},
		{"a quoted comma does not split", []lb.Rule{header("X-V", lb.Regex, `^\x22a,b\x22$`)}, with(`"a,b"`), true},
		{"an escaped quote", []lb.Rule{header("X-V", lb.Regex, `^\x22a\x5c\x22,b\x22$`)}, with(`"a\",b"`), true},
		{"an empty header is there", []lb.Rule{header("X-V", lb.Regex, `^$`)}, with(""), true},
		{"host by header rule", []lb.Rule{header("Host", lb.EqualTo, "h")}, get("h", "/"), true},
		{"all rules must hold", []lb.Rule{exactHost, prefix("^/a")}, get("foo.example.com", "/b"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := evaluator(t, tree(toPool("p", "a", c.rules...)))
			if got := e.Route(c.request); (got.Policy == "p") != c.want {
				t.Errorf("got %s, want a match: %v\n%s", got, c.want, e.Explain(c.request))
			}
		})
	}
}

func TestNew_refusesWhatBreaksTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy lb.Policy
		want   string
	}{
		{toPool("p", "a", prefix("^/a#b$")), "cut HAProxy's configuration line"},
		{toPool("p", "a", prefix("^/a'b$")), "cut HAProxy's configuration line"},
		{toPool("p", "a", prefix("^/a\nb$")), "cut HAProxy's configuration line"},
		{toPool("p", "a", prefix("-i")), "flag"},
		{toPool("p", "a", prefix("")), "empty"},
		{toPool("p", "a", prefix("(")), "does not compile"},
		{toPool("p", "a", prefix(`(a)\1`)), "does not compile"},
		{toPool("p", "a", header("", lb.Regex, "x")), "header name"},
		{toPool("p", "a", lb.Rule{Type: "COOKIE", Compare: lb.Regex, Value: "x"}), "not known"},
		{toPool("p", "a", lb.Rule{Type: lb.RulePath, Compare: "LIKE", Value: "x"}), "not known"},
		{lb.Policy{Meta: lb.Meta{Key: "p"}, Action: "DANCE", Rules: []lb.Rule{everything}}, "not known"},
		{lb.Policy{Meta: lb.Meta{Key: "p"}, Action: lb.RedirectToURL, URL: "https://a/#b", Rules: []lb.Rule{everything}}, "cut HAProxy's"},
	} {
		_, err := New(tree(c.policy))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "policy p") {
			t.Errorf("%+v: got %v, want %q", c.policy, err, c.want)
		}
		c.policy.Disabled = true
		if _, err := New(tree(c.policy)); err != nil {
			t.Errorf("disabled %+v: got %v", c.policy, err)
		}
	}
}

func TestExplain_saysWhyEachPolicyDidOrDidNot(t *testing.T) {
	t.Parallel()
	off := toPool("off", "a", everything)
	off.Disabled = true
	tr := tree(toPool("path", "a", host("^h$"), prefix("^/x")), toPool("all", "b", everything), off, toPool("late", "c", everything))
	got := evaluator(t, tr).Explain(get("h", "/")).String()
	want := `pool b by policy all
  path: does not match: PATH REGEX "^/x"
  all: matches, and decides
  late: matches, but an earlier policy decides
  off: not in HAProxy's configuration: the policy is disabled
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRoute_boundsBacktracking(t *testing.T) {
	t.Parallel()
	e := evaluator(t, tree(toPool("p", "a", prefix(`^/(?=a)(a+)+$`))))
	if got := e.Route(get("h", "/"+strings.Repeat("a", 60)+"b")); got.Kind != NoPool {
		t.Errorf("got %s", got)
	}
}

func BenchmarkRoute_1000Policies(b *testing.B) {
	var policies []lb.Policy
	for range 1000 {
		policies = append(policies, toPool("p", "a", host(`^foo\.example\.com(:[0-9]*)?$`), prefix(`^/never(/|$)`)))
	}
	e, err := New(tree(policies...))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e.Route(get("foo.example.com", "/x"))
	}
}
