//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// number is a setting from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv("GATEWAY_API_OPENSTACK_E2E_" + name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("GATEWAY_API_OPENSTACK_E2E_%s=%q is not a number", name, text)
	}
	return n
}

// seed is the same unless GATEWAY_API_OPENSTACK_E2E_SEED is another one, or "random".
func seed(t *testing.T) uint64 {
	t.Helper()
	var n uint64
	if os.Getenv("GATEWAY_API_OPENSTACK_E2E_SEED") == "random" {
		n = uint64(time.Now().UnixNano() % 1_000_000)
	} else {
		n = uint64(number(t, "SEED", 1))
	}
	t.Logf("GATEWAY_API_OPENSTACK_E2E_SEED=%d repeats this", n)
	return n
}

// dice is a source of choices.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, list []T) T { return list[d.IntN(len(list))] }

// some picks from one to at most n different ones.
func some[T any](d dice, list []T, n int) []T {
	var out []T
	for _, i := range d.Perm(len(list))[:1+d.IntN(n)] {
		out = append(out, list[i])
	}
	return out
}

// The words are few, so that everything overlaps, and full of what means something to HTML, HAProxy or regular expressions.
var (
	routeHosts = []string{"a.test", "b.test", "x.a.test", "y.x.a.test", "*.test", "*.a.test", "*.x.a.test", "a-b.test", "xn--bcher-kva.test", "0.test", "test"}
	routePaths = []string{"/", "/", "/p", "/p/", "/p/q", "/p/q/r", "/pq", "/p.q", "/P", "/z&'$", "/p%20q", "/a;b=c", "/~u/-x", "/(p)", "/p+q", "/p*",
		"/@:!,", "/%c3%a9", "/%C3%A9", "/p%26", "/-i", "/p&amp", "/q'", "/p/q.html", "/%23", "/%22%3C%3E", "/..p"}
	// Each pattern comes with paths that it takes.
	routePatterns = []patterned{
		{"/p/.*", []string{"/p/", "/p/q"}}, {"/p.*", []string{"/p", "/pq", "/p/q/r"}}, {"/(p|z).*", []string{"/p", "/z&'$"}}, {`/.*\.html`, []string{"/p/q.html", "/x.html"}},
		{"/p/[^/]+/r", []string{"/p/q/r"}}, {`/z[&']+\$?`, []string{"/z&'$", "/z'"}}, {"/p(%20|&)q", []string{"/p%20q", "/p&q"}}, {"/[0-9]{2,3}", []string{"/12", "/123"}},
		{`/\d+(/.*)?`, []string{"/1", "/12/x"}}, {`/p\b.*`, []string{"/p", "/p/q", "/p.q"}}, {"/[^a-y]'?", []string{"/z'", "/P"}}, {"/(?:p/)*q", []string{"/q", "/p/q", "/p/p/q"}},
		{"/a;b=c|/p", []string{"/a;b=c", "/p"}}, {`/\x26\x27`, []string{"/&'"}}, {"/q'?\"?<?>?", []string{"/q'", "/q"}}, {"/.{3,8}", []string{"/pqr", "/p%20q"}},
	}
	headerNames  = []string{"X-A", "X-A", "X-B", "x-a", "X_C", "X.D~", "Accept-Language", "Cookie", "Host"}
	headerValues = []string{"v1", "v1", "v2", "v1-", "-i", "--", "a b", "a\tb", "(v1)", "v1|v2", "^v1$", "v.", "*", `\`, `\x41`, "%[src]", "a'b", `a"b, c"`, "&<>'\"#", "#", "&amp;", "a&b",
		"v1;q=0.5", "a\\ b", "{}", "$(v1)", "'", "a.test", "en", "A=1"}
	headerPatterns = []patterned{
		{"v[12]", []string{"v1", "v2"}}, {"v.*", []string{"v1", "v1-", "v"}}, {"(v1|v2)", []string{"v1"}}, {"[&<>]+", []string{"&<>"}}, {"a b", []string{"a b"}},
		{"-.*", []string{"-i", "--"}}, {`\S+`, []string{"v1", "-i"}}, {".*'.*", []string{"a'b", "'"}}, {`.*\\.*`, []string{`\`, `\x41`}}, {".+", []string{"v1", "a b"}},
	}
)

// patterned is a regular expression with texts that it takes.
type patterned struct {
	pattern string
	texts   []string
}

// drawn is a generated Gateway with its routes.
type drawn struct {
	gateway *gwv1.Gateway
	routes  []*gwv1.HTTPRoute
	// samples are texts that regular expressions match.
	samples map[string][]string
}

// site is where the generated objects live: routes are in all namespaces, and each namespace has backends.
type site struct {
	namespaces []string
	backends   map[string][]string
	samples    map[string][]string
}

// draw generates one Gateway in the first namespace.
func (s site) draw(d dice, name string) drawn {
	out := drawn{gateway: gateway(s.namespaces[0], name), samples: s.samples}
	out.gateway.Spec.GatewayClassName = steadyClass
	seen := map[string]bool{}
	for range 4 + d.IntN(3) {
		port, host := pick(d, []gwv1.PortNumber{80, 80, 8080, 8081}), ""
		if !d.oneIn(3) {
			host = pick(d, routeHosts[:8])
		}
		if at := fmt.Sprint(port, host); !seen[at] {
			seen[at] = true
			out.gateway.Spec.Listeners = append(out.gateway.Spec.Listeners, listener(fmt.Sprintf("l%d", len(seen)), port, host))
		}
	}
	for i := range 5 + d.IntN(5) {
		out.routes = append(out.routes, s.route(d, out.gateway, fmt.Sprintf("%s-%02d", name, i)))
	}
	return out
}

func (s site) route(d dice, gw *gwv1.Gateway, name string) *gwv1.HTTPRoute {
	r := route(pick(d, s.namespaces), name, gw, nil)
	parent := &r.Spec.ParentRefs[0]
	switch l := pick(d, gw.Spec.Listeners); d.IntN(6) {
	case 0:
		parent.SectionName = &l.Name
	case 1:
		parent.Port = &l.Port
	case 2:
		if other := pick(d, gw.Spec.Listeners); other.Name != l.Name {
			second := *parent
			parent.SectionName, second.SectionName = &l.Name, &other.Name
			r.Spec.ParentRefs = append(r.Spec.ParentRefs, second)
		}
	}
	if !d.oneIn(6) {
		for _, h := range some(d, routeHosts, 3) {
			r.Spec.Hostnames = append(r.Spec.Hostnames, gwv1.Hostname(h))
		}
	}
	for range 1 + d.IntN(3) {
		r.Spec.Rules = append(r.Spec.Rules, s.rule(d, r.Namespace))
	}
	return r
}

func (s site) rule(d dice, namespace string) gwv1.HTTPRouteRule {
	rule := gwv1.HTTPRouteRule{}
	for range d.IntN(3) {
		rule.Matches = append(rule.Matches, s.match(d))
	}
	names := s.backends[namespace]
	switch d.IntN(12) {
	case 0:
		rule.BackendRefs = append(rule.BackendRefs, backend("missing", 1))
	case 1:
	case 2:
		rule.BackendRefs = append(rule.BackendRefs, backend(names[0], 3), backend(names[1], 1))
	case 3, 4, 5:
		filter := &gwv1.HTTPRequestRedirectFilter{StatusCode: new(pick(d, []int{301, 302, 303, 307, 308}))}
		if !d.oneIn(3) {
			filter.Hostname = new(gwv1.PreciseHostname(pick(d, []string{"to.test", "a.test", "0.to.test"})))
		}
		if d.oneIn(2) {
			filter.Scheme = new("https")
		}
		if d.oneIn(3) {
			filter.Port = new(gwv1.PortNumber(8443))
		}
		if d.oneIn(3) {
			filter.Path = &gwv1.HTTPPathModifier{Type: gwv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new(pick(d, []string{"/", "/to", "/t%20o/", "/t(o)=@", "/%[path]", "/p", "/t'", "/t#", "/t&o"}))}
			// replacePrefixMatch is for rules with one match, of a prefix; only / can be replaced.
			rule.Matches = []gwv1.HTTPRouteMatch{path(gwv1.PathMatchPathPrefix, pick(d, []string{"/", "/", "/p"}))}
		}
		rule.Filters = []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: filter}}
	default:
		rule.BackendRefs = append(rule.BackendRefs, backend(pick(d, names), 1))
	}
	return rule
}

func (s site) match(d dice) gwv1.HTTPRouteMatch {
	m := gwv1.HTTPRouteMatch{}
	switch d.IntN(8) {
	case 0:
	case 1:
		m.Path = &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchRegularExpression), Value: new(s.pattern(d, routePatterns, "/"))}
	case 2, 3, 4:
		m.Path = &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchExact), Value: new(pick(d, routePaths))}
	default:
		m.Path = &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchPathPrefix), Value: new(pick(d, routePaths))}
	}
	names := map[string]bool{}
	for d.oneIn(3) {
		name := pick(d, headerNames)
		if names[name] {
			continue // the API server wants different names
		}
		names[name] = true
		h := gwv1.HTTPHeaderMatch{Name: gwv1.HTTPHeaderName(name), Value: pick(d, headerValues)}
		if d.oneIn(4) {
			h.Type, h.Value = new(gwv1.HeaderMatchRegularExpression), s.pattern(d, headerPatterns, "")
		}
		m.Headers = append(m.Headers, h)
	}
	return m
}

// pattern takes a known regular expression or draws a new one, and remembers texts that it takes.
func (s site) pattern(d dice, known []patterned, start string) string {
	p := pick(d, known)
	if d.oneIn(2) {
		p = drawPattern(d, 2)
		p.pattern = start + p.pattern
		for i := range p.texts {
			p.texts[i] = start + p.texts[i]
		}
	}
	s.samples[p.pattern] = p.texts
	return p.pattern
}

// drawPattern draws a sequence. Its texts are what it takes, or nearly.
func drawPattern(d dice, depth int) patterned {
	p := patterned{texts: []string{"", "", ""}}
	for range 1 + d.IntN(3) {
		atom, times := drawAtom(d, depth), pick(d, []string{"", "", "", "", "", "?", "*", "+", "{2}", "{1,2}", "{1,}", "*?", "+?"})
		if atom.pattern == "$" || atom.pattern == "^" || strings.HasPrefix(strings.ToLower(atom.pattern), `\b`) {
			times = ""
		}
		p.pattern += atom.pattern + times
		for i := range p.texts {
			n := 1
			switch times {
			case "?":
				n = d.IntN(2)
			case "*", "*?":
				n = d.IntN(3)
			case "+", "+?", "{1,2}", "{1,}":
				n = 1 + d.IntN(2)
			case "{2}":
				n = 2
			}
			p.texts[i] += strings.Repeat(pick(d, atom.texts), n)
		}
	}
	return p
}

func drawAtom(d dice, depth int) patterned {
	if depth > 0 && d.oneIn(4) {
		a, b := drawPattern(d, depth-1), drawPattern(d, depth-1)
		switch both := append(a.texts, b.texts...); d.IntN(3) {
		case 0:
			return patterned{"(" + a.pattern + "|" + b.pattern + ")", both}
		case 1:
			return patterned{"(?:" + a.pattern + "|" + b.pattern + ")", both}
		default:
			return patterned{"(" + a.pattern + ")", a.texts}
		}
	}
	return pick(d, []patterned{
		{"p", []string{"p"}}, {"q", []string{"q"}}, {"/", []string{"/"}}, {"v1", []string{"v1"}}, {"&", []string{"&"}}, {"'", []string{"'"}}, {`\'`, []string{"'"}}, {"-", []string{"-"}}, {`\-`, []string{"-"}},
		{".", []string{"p", "'", "/"}}, {`\.`, []string{"."}}, {"[pq]", []string{"p", "q"}}, {"[^p]", []string{"q", "&"}}, {"[a-q]", []string{"a", "q"}}, {"[-a]", []string{"-", "a"}}, {"[a-]", []string{"-", "a"}},
		{"[&'<>\"#]", []string{"&", "'"}}, {`[\d']`, []string{"1", "'"}}, {`[^\w/]`, []string{"&", "-"}}, {`[.*+?]`, []string{".", "*"}}, {`[\]\[\\^]`, []string{"^", "]"}}, {`\d`, []string{"0", "9"}},
		{`\w`, []string{"p", "_", "1"}}, {`\S`, []string{"p", "'"}}, {`\W`, []string{"&", "/"}}, {`\D`, []string{"p", "-"}}, {`\b`, []string{""}}, {`\B`, []string{""}}, {"$", []string{""}}, {"^", []string{""}},
		{`\x26`, []string{"&"}}, {"%20", []string{"%20"}}, {`\$`, []string{"$"}}, {"(q|)", []string{"q", ""}}, {`\{`, []string{"{"}}, {"~!@=:;,", []string{"~!@=:;,"}}, {"P", []string{"P", "p"}},
	})
}

// plainHost is a Host header that no HAProxy refuses.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// question draws a request that one match asks for, and then mostly changes something of it.
func (s drawn) question(d dice) question {
	q := question{Method: "GET", Target: "/"}
	r := pick(d, s.routes)
	l := s.met(d, r)
	q.Port = int(l.Port)
	host := "other.test"
	if l.Hostname != nil {
		host = string(*l.Hostname)
	}
	// Mostly a host that both the route and the listener want.
	for _, h := range some(d, append([]gwv1.Hostname{gwv1.Hostname(host)}, r.Spec.Hostnames...), 1+len(r.Spec.Hostnames)) {
		candidate := string(h)
		if (len(r.Spec.Hostnames) == 0 || candidate != host) && (l.Hostname == nil || overlap(candidate, host)) {
			host = candidate
			break
		}
	}
	q.Host = concrete(d, host)
	if rule := pick(d, r.Spec.Rules); len(rule.Matches) > 0 {
		m := pick(d, rule.Matches)
		if m.Path != nil {
			q.Target = target(d, m.Path, s.samples)
		}
		for _, h := range m.Headers {
			value := h.Value
			if h.Type != nil && *h.Type == gwv1.HeaderMatchRegularExpression {
				value = pick(d, append(s.samples[value], pick(d, headerValues)))
			}
			if strings.EqualFold(string(h.Name), "Host") {
				q.Host = value
				q.Odd = true
				continue
			}
			q.Headers = append(q.Headers, [2]string{string(h.Name), value})
		}
	}
	for d.oneIn(2) {
		q.change(d)
	}
	q.settle()
	return q
}

// settle marks what HAProxy may refuse by itself.
func (q *question) settle() {
	for _, h := range q.Headers {
		q.Odd = q.Odd || strings.ContainsAny(h[1], "\x00\r\n")
	}
	q.Odd = q.Odd || strings.Contains(q.Target, "#") || !strings.HasPrefix(q.Target, "/") && (q.Target != "*" || q.Method != "OPTIONS") || !plainHost.MatchString(q.Host)
}

// met is a listener that a parentRef of the route names.
func (s drawn) met(d dice, r *gwv1.HTTPRoute) gwv1.Listener {
	parent := pick(d, r.Spec.ParentRefs)
	for range 100 {
		l := pick(d, s.gateway.Spec.Listeners)
		if (parent.SectionName == nil || *parent.SectionName == l.Name) && (parent.Port == nil || *parent.Port == l.Port) {
			return l
		}
	}
	return s.gateway.Spec.Listeners[0]
}

// overlap says whether some host fits both.
func overlap(a, b string) bool {
	within := func(a, b string) bool {
		rest, wildcard := strings.CutPrefix(b, "*")
		return a == b || wildcard && strings.HasSuffix(a, rest)
	}
	return within(a, b) || within(b, a)
}

// concrete is a host that a hostname takes.
func concrete(d dice, host string) string {
	if rest, wildcard := strings.CutPrefix(host, "*"); wildcard {
		return pick(d, []string{"q", "x", "q.r", "y.x", "a", "-"}) + rest
	}
	return host
}

// target is a path that a match takes.
func target(d dice, m *gwv1.HTTPPathMatch, samples map[string][]string) string {
	switch *m.Type {
	case gwv1.PathMatchRegularExpression:
		return pick(d, append([]string{"/"}, samples[*m.Value]...))
	case gwv1.PathMatchExact:
		return *m.Value
	}
	return *m.Value + pick(d, []string{"", "", "/", "/x", "/x/y?z"})
}

// change makes a request differ a little from what a match asks for.
func (q *question) change(d dice) {
	switch d.IntN(10) {
	case 0, 1:
		q.changeHost(d)
	case 2, 3, 4:
		q.changeTarget(d)
	case 5, 6, 7, 8:
		q.changeHeaders(d)
	default:
		q.Method = pick(d, []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"})
	}
}

func (q *question) changeHost(d dice) {
	switch d.IntN(14) {
	case 0:
		q.Host = strings.ToUpper(q.Host)
	case 1, 2:
		q.Host += pick(d, []string{":80", ":8080", ":1", ":"})
	case 3:
		q.Host += pick(d, []string{".", ":x", "..", "-", ":80:80", ",b.test", "/", "\"", "#", "'", "&", "%2e"})
		q.Odd = true
	case 4:
		q.Host = pick(d, []string{"x", "q.", "q.r.", "-"}) + q.Host
	case 5:
		q.Host = pick(d, []string{".", ":", "*.", "a.test,", "\"", "a:"}) + q.Host
		q.Odd = true
	case 6:
		q.Host = concrete(d, pick(d, routeHosts))
	case 7:
		q.Host = pick(d, []string{"other.test", "other", "10.88.0.9", "[::1]:80", "test"})
	case 8:
		_, q.Host, _ = strings.Cut(q.Host, ".")
		q.Odd = q.Odd || q.Host == ""
	case 9:
		q.NoHost = true
	case 10:
		q.Host, q.Odd = "", true
	case 11:
		q.Host = " " + q.Host + pick(d, []string{"", " ", "\t"})
	case 12:
		q.Host = strings.ReplaceAll(q.Host, ".", "x")
	default:
		if strings.HasPrefix(q.Target, "/") && !q.NoHost {
			q.Target, q.Odd = "http://"+strings.Trim(q.Host, " \t")+pick(d, []string{q.Target, q.Target, ""}), true
		}
	}
}

func (q *question) changeTarget(d dice) {
	switch d.IntN(16) {
	case 0, 1:
		q.Target += "/"
	case 2:
		q.Target += pick(d, []string{"/x", "/q", "/q/r", "//", "/../p", "/."})
	case 3:
		q.Target += pick(d, []string{"x", "q", ";v=1", "%20", "%2F", ".html", "'", "&", "$", "!", "*", "&amp;", "%"})
	case 4, 5:
		q.Target += pick(d, []string{"?", "?x=/p", "?a=b&c='d'", "?/p/q", "??"})
	case 6:
		q.Target = strings.ToUpper(q.Target)
	case 7:
		q.Target = strings.ToLower(q.Target)
	case 8:
		q.Target = pick(d, []string{"//p", "/./p", "/p//q", "/", "/%70", "/p/%71", "/x", "/p?", "/z&#39;$", "/z&amp;'$", "/healthy"})
	case 9:
		q.Target = pick(d, routePaths)
	case 10:
		q.Target = pick(d, pick(d, routePatterns).texts)
	case 11:
		q.Target = strings.TrimRight(q.Target, "/") + "?" + pick(d, []string{"", "q=1"})
	case 12:
		q.Target, q.Method = "*", "OPTIONS"
	case 13:
		q.Target += pick(d, []string{"#x", "\"", "<", ">", "\\", "^", "`", "{", "|", "\xc3\xa9", "\x7f", "\x01", "[", "]"})
		q.Odd = true
	case 14:
		if len(q.Target) > 1 && strings.HasPrefix(q.Target, "/") {
			q.Target = q.Target[:len(q.Target)-1]
		}
	default:
		q.Target = strings.ReplaceAll(q.Target, "/", "/p/")
	}
}

func (q *question) changeHeaders(d dice) {
	if len(q.Headers) == 0 {
		name := pick(d, headerNames[:8])
		q.Headers = append(q.Headers, [2]string{name, pick(d, headerValues)})
		return
	}
	i := d.IntN(len(q.Headers))
	h := &q.Headers[i]
	switch d.IntN(14) {
	case 0:
		q.Headers = append(q.Headers[:i], q.Headers[i+1:]...)
	case 1:
		h[1] = pick(d, headerValues)
	case 2:
		h[1] += pick(d, []string{",", ", v2", ",v1", " , ", ",,", "\"", `", v2"`, `\`, " x", "x", "#"})
	case 3:
		h[1] = pick(d, []string{",", "v2, ", "v2,", ", ", "x", "\"", "- "}) + h[1]
	case 4:
		h[1] += ", " + h[1]
	case 5:
		q.Headers = append(q.Headers, *h)
	case 6, 7:
		q.Headers = append(q.Headers, [2]string{h[0], pick(d, headerValues)})
	case 8:
		h[1] = pick(d, []string{" ", "\t", "  "}) + h[1] + pick(d, []string{" ", "\t "})
	case 9:
		h[1] = ""
	case 10:
		h[1] = strings.ToUpper(h[1])
	case 11:
		h[0] = pick(d, []string{strings.ToUpper(h[0]), strings.ToLower(h[0])})
	case 12:
		h[1] = pick(d, []string{`"v1"`, `"v1`, `\"v1`, `"v1,v2"`, `"v1\",v2"`, "v1\xe9", "\xff", "\x80,v1", strings.Repeat("v", 300)})
	default:
		h[1] = strings.ReplaceAll(h[1], "v1", "v2")
	}
}
