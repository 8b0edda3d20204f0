package compile_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/responder"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// This is the text of Gateway API read literally, one request at a time, without a thought about Octavia. It shares no code with
// the compiler.

// outcome is what becomes of a request, in words that do not depend on keys.
type outcome string

const nothing outcome = "no rule"

func toService(namespace, name string) outcome {
	return outcome(fmt.Sprintf("service %s/%s:80", namespace, name))
}

// candidate is a match that took the request.
type candidate struct {
	route        *gwv1.HTTPRoute
	rule, match  int
	exactHost    int
	host         int
	exactPath    bool
	pattern      int
	prefixLength int
	headers      int
}

// refusals are the rules that the verdicts refuse on a listener: those answer "invalid", and a route of which all rules are refused is
// not on the listener at all. The key is route, rule, listener.
type refusals map[string]bool

var refusedRule = regexp.MustCompile(`rule (\d+) on listener (\S+): `)

// refusalsOf reads them from the messages, which is where users read them. It fails when a message was shortened.
func refusalsOf(result compile.Result) (refusals, bool) {
	found := refusals{}
	for _, v := range result.Verdicts {
		for _, c := range v.Conditions {
			if v.Object.Kind != status.KindHTTPRoute || c.Reason != string(gwv1.RouteReasonUnsupportedValue) {
				continue
			}
			if strings.Contains(c.Message, " more.") {
				return nil, false
			}
			for _, m := range refusedRule.FindAllStringSubmatch(c.Message, -1) {
				found[v.Object.Namespace+"/"+v.Object.Name+" "+m[1]+" "+m[2]] = true
			}
		}
	}
	return found, true
}

func (r refusals) rule(hr *gwv1.HTTPRoute, rule int, l *gwv1.Listener) bool {
	return r[fmt.Sprintf("%s/%s %d %s", hr.Namespace, hr.Name, rule, l.Name)]
}

func (r refusals) route(hr *gwv1.HTTPRoute, l *gwv1.Listener) bool {
	for i := range hr.Spec.Rules {
		if !r.rule(hr, i, l) {
			return false
		}
	}
	return true
}

// naive says what Gateway API wants for a request. All routes attach to all listeners of the Gateway by their parentRefs.
func naive(s compile.Snapshot, refused refusals, r route.Request) outcome {
	host := r.Host
	if i := strings.LastIndex(host, ":"); i >= 0 {
		host = host[:i]
	}
	host = strings.ToLower(host)
	listener := naiveListener(s.Gateway, r.Port, host)
	if listener == nil {
		if !slices.ContainsFunc(s.Gateway.Spec.Listeners, func(l gwv1.Listener) bool { return int(l.Port) == r.Port }) {
			return nothing
		}
		return unmatched(s)
	}
	var best *candidate
	for _, hr := range s.HTTPRoutes {
		if !naiveAttached(hr, listener) || refused.route(hr, listener) {
			continue
		}
		exactHost, anyHost, ok := naiveHost(hr, host)
		if !ok {
			continue
		}
		for i, rule := range hr.Spec.Rules {
			matches := rule.Matches
			if len(matches) == 0 {
				matches = []gwv1.HTTPRouteMatch{{}}
			}
			for j, m := range matches {
				c := &candidate{route: hr, rule: i, match: j, exactHost: exactHost, host: anyHost}
				if naiveMatch(m, r, c) && (best == nil || naiveBetter(c, best)) {
					best = c
				}
			}
		}
	}
	if best == nil {
		return unmatched(s)
	}
	if refused.rule(best.route, best.rule, listener) {
		return invalid(s)
	}
	return naiveAction(best, listener, host, r, s)
}

func naiveListener(gateway *gwv1.Gateway, port int, host string) *gwv1.Listener {
	var best *gwv1.Listener
	specificity := func(l *gwv1.Listener) int {
		switch h := naiveHostname(l.Hostname); {
		case h == "":
			return 0
		case strings.HasPrefix(h, "*."):
			return len(h)
		default:
			return 1000
		}
	}
	for i := range gateway.Spec.Listeners {
		l := &gateway.Spec.Listeners[i]
		h := naiveHostname(l.Hostname)
		if int(l.Port) != port || h != "" && !naiveHostMatches(h, host) {
			continue
		}
		if best == nil || specificity(l) > specificity(best) {
			best = l
		}
	}
	return best
}

func naiveHostname(h *gwv1.Hostname) string {
	if h == nil {
		return ""
	}
	return string(*h)
}

func naiveHostMatches(pattern, host string) bool {
	if rest, wildcard := strings.CutPrefix(pattern, "*"); wildcard {
		return strings.HasSuffix(host, rest) && host != rest
	}
	return pattern == host
}

func naiveAttached(hr *gwv1.HTTPRoute, l *gwv1.Listener) bool {
	for _, ref := range hr.Spec.ParentRefs {
		if (ref.SectionName == nil || *ref.SectionName == l.Name) && (ref.Port == nil || *ref.Port == l.Port) {
			return true
		}
	}
	return false
}

// naiveHost scores the best hostname of the route for the host of the request.
func naiveHost(hr *gwv1.HTTPRoute, host string) (exact, any int, ok bool) {
	if len(hr.Spec.Hostnames) == 0 {
		return 0, 0, true
	}
	for _, h := range hr.Spec.Hostnames {
		if !naiveHostMatches(string(h), host) {
			continue
		}
		ok = true
		any = max(any, len(h))
		if !strings.HasPrefix(string(h), "*") {
			exact = max(exact, len(h))
		}
	}
	return exact, any, ok
}

func naiveMatch(m gwv1.HTTPRouteMatch, r route.Request, c *candidate) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	kind, value := gwv1.PathMatchPathPrefix, "/"
	if m.Path != nil {
		kind, value = *m.Path.Type, *m.Path.Value
	}
	switch kind {
	case gwv1.PathMatchExact:
		if path != value {
			return false
		}
		c.exactPath = true
	case gwv1.PathMatchRegularExpression:
		// Gateway API leaves their precedence open: between Exact and PathPrefix, by length.
		if !regexp.MustCompile("^(?:" + value + ")$").MatchString(path) {
			return false
		}
		c.pattern = len(value)
	default:
		wanted := strings.Split(strings.TrimSuffix(value, "/"), "/")
		given := strings.Split(path, "/")
		if len(given) < len(wanted) {
			return false
		}
		for i := range wanted {
			if wanted[i] != given[i] {
				return false
			}
		}
		c.prefixLength = len(strings.TrimSuffix(value, "/"))
	}
	for _, h := range m.Headers {
		given := r.Header[strings.ToLower(string(h.Name))]
		if len(given) != 1 || given[0] != h.Value {
			return false
		}
	}
	c.headers = len(m.Headers)
	return true
}

func naiveBetter(a, b *candidate) bool {
	switch {
	case a.exactHost != b.exactHost:
		return a.exactHost > b.exactHost
	case a.host != b.host:
		return a.host > b.host
	case a.exactPath != b.exactPath:
		return a.exactPath
	case a.pattern != b.pattern:
		return a.pattern > b.pattern
	case a.prefixLength != b.prefixLength:
		return a.prefixLength > b.prefixLength
	case a.headers != b.headers:
		return a.headers > b.headers
	case !a.route.CreationTimestamp.Equal(&b.route.CreationTimestamp):
		return a.route.CreationTimestamp.Before(&b.route.CreationTimestamp)
	case a.route != b.route:
		return a.route.Namespace+"/"+a.route.Name < b.route.Namespace+"/"+b.route.Name
	case a.rule != b.rule:
		return a.rule < b.rule
	}
	return a.match < b.match
}

// naiveAction says what a rule does with a request: a redirect, or shares of Services and statuses.
func naiveAction(c *candidate, l *gwv1.Listener, host string, r route.Request, s compile.Snapshot) outcome {
	rule := c.route.Spec.Rules[c.rule]
	if len(rule.Filters) > 0 {
		return naiveRedirect(c, rule.Filters[0].RequestRedirect, l, host, r)
	}
	withResponder := s.Config != nil
	shares := map[outcome]int{}
	served, refused := 0, 0
	for _, ref := range rule.BackendRefs {
		weight := 1
		if ref.Weight != nil {
			weight = int(*ref.Weight)
		}
		switch {
		case weight == 0:
		case strings.HasPrefix(string(ref.Name), "missing"):
			refused += weight
		case strings.HasSuffix(string(ref.Name), "-empty"):
			shares["503"] += weight
		default:
			served += weight
			shares[toService(c.route.Namespace, string(ref.Name))] += weight
		}
	}
	switch {
	case len(shares) == 0:
		return invalid(s)
	case !withResponder && served == 0:
		return "503"
	case !withResponder:
		delete(shares, "503")
	case refused > 0:
		shares["500"] += refused
	}
	return sharesOf(shares)
}

// sharesOf writes shares with the smallest numbers.
func sharesOf(shares map[outcome]int) outcome {
	divisor := 0
	for _, n := range shares {
		for a, b := n, divisor; ; a, b = b, a%b {
			if b == 0 {
				divisor = a
				break
			}
		}
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if len(shares) == 1 {
			return name
		}
		text = append(text, fmt.Sprintf("%d of %s", shares[name]/divisor, name))
	}
	return outcome(strings.Join(text, ", "))
}

// invalid is what a rule without a usable backend answers.
func invalid(s compile.Snapshot) outcome {
	if s.Config != nil {
		return "500"
	}
	return "invalid"
}

// unmatched is what requests without a rule get.
func unmatched(s compile.Snapshot) outcome {
	if s.Config != nil {
		return "404"
	}
	return nothing
}

func naiveRedirect(c *candidate, f *gwv1.HTTPRequestRedirectFilter, l *gwv1.Listener, host string, r route.Request) outcome {
	if h := naiveHostname((*gwv1.Hostname)(f.Hostname)); h != "" {
		host = h
	} else if strings.HasPrefix(host, ".") {
		// No client can follow a redirect to such a name.
		return "400"
	}
	usual := map[string]int{"http": 80, "https": 443}
	scheme, port := "http", int(l.Port)
	if f.Scheme != nil {
		scheme = *f.Scheme
		port = usual[scheme]
	}
	if f.Port != nil {
		port = int(*f.Port)
	}
	location := scheme + "://" + host
	if port != usual[scheme] {
		location += fmt.Sprint(":", port)
	}
	path, query, _ := strings.Cut(r.Path, "?")
	switch {
	case f.Path == nil:
	case f.Path.ReplaceFullPath != nil:
		path = *f.Path.ReplaceFullPath
	default:
		matched := "/"
		if matches := c.route.Spec.Rules[c.rule].Matches; len(matches) > 0 && matches[c.match].Path != nil {
			matched = *matches[c.match].Path.Value
		}
		gone := len(strings.Split(strings.TrimSuffix(matched, "/"), "/"))
		kept := strings.Split(path, "/")[gone:]
		path = strings.Join(append([]string{strings.TrimSuffix(*f.Path.ReplacePrefixMatch, "/")}, kept...), "/")
		if path == "" {
			path = "/"
		}
	}
	if query != "" {
		path += "?" + query
	}
	code := 302
	if f.StatusCode != nil {
		code = *f.StatusCode
	}
	return outcome(fmt.Sprintf("%d %s%s", code, location, path))
}

// built is a compiled tree with all that can answer: HAProxy as the evaluator says, the Services, and the responder itself.
type built struct {
	evaluator *route.Evaluator
	tree      *lb.Tree
	redirects answer.Table
	// services are the Services by node port; responder are its target ports by node port.
	services  map[int]outcome
	responder map[int]int
}

func build(s compile.Snapshot, result *compile.Result) (*built, error) {
	e, err := route.New(&result.Tree)
	if err != nil {
		return nil, err
	}
	b := &built{evaluator: e, tree: &result.Tree, redirects: result.Redirects, services: map[int]outcome{}, responder: map[int]int{}}
	for _, service := range s.Services {
		for _, p := range service.Spec.Ports {
			if target := p.TargetPort.IntValue(); target != 0 {
				b.responder[int(p.NodePort)] = target
			} else {
				b.services[int(p.NodePort)] = toService(service.Namespace, service.Name)
			}
		}
	}
	return b, nil
}

// answer says what becomes of a request.
func (b *built) answer(r route.Request) outcome {
	got := b.evaluator.Route(r)
	switch got.Kind {
	case route.Redirect:
		return outcome(fmt.Sprintf("%d %s", got.Code, got.Location))
	case route.Pool:
		return b.pool(got.Pool, r)
	default:
		return nothing
	}
}

func (b *built) pool(key string, r route.Request) outcome {
	members := b.tree.PoolByKey(key).Members
	if len(members) == 0 {
		return map[string]outcome{"no-route": nothing, "invalid-backend": "invalid"}[key] + map[bool]outcome{true: "503"}[strings.Contains(key, ":")]
	}
	shares := map[outcome]int{}
	for _, m := range members {
		if service, ok := b.services[m.Port]; ok {
			shares[service] += m.Weight
		} else {
			shares[b.respond(b.responder[m.Port], r)] += m.Weight
		}
	}
	return sharesOf(shares)
}

// respond asks the responder's own handler, with what HAProxy adds.
func (b *built) respond(port int, r route.Request) outcome {
	q := httptest.NewRequest(http.MethodGet, "/", nil)
	q.Host, q.RequestURI = r.Host, r.Path
	for name, values := range r.Header {
		q.Header[http.CanonicalHeaderKey(name)] = values
	}
	q.Header.Set("X-Forwarded-Proto", "http")
	q.Header.Set("X-Forwarded-Port", fmt.Sprint(r.Port))
	w := httptest.NewRecorder()
	responder.Handler(port, func() answer.Table { return b.redirects }).ServeHTTP(w, q)
	if location := w.Header().Get("Location"); location != "" {
		return outcome(fmt.Sprintf("%d %s", w.Code, location))
	}
	return outcome(fmt.Sprint(w.Code))
}
