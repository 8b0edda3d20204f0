package compile_test

import (
	"fmt"
	"regexp"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
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
		return nothing
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
		return nothing
	}
	if refused.rule(best.route, best.rule, listener) {
		return "invalid"
	}
	return naiveAction(best, listener, host, r)
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

func naiveAction(c *candidate, l *gwv1.Listener, host string, r route.Request) outcome {
	rule := c.route.Spec.Rules[c.rule]
	if len(rule.Filters) > 0 {
		f := rule.Filters[0]
		if h := naiveHostname((*gwv1.Hostname)(f.RequestRedirect.Hostname)); h != "" {
			host = h
		}
		port := int(l.Port)
		if f.RequestRedirect.Scheme != nil {
			port = map[string]int{"http": 80, "https": 443}[*f.RequestRedirect.Scheme]
		}
		scheme := "http"
		if f.RequestRedirect.Scheme != nil {
			scheme = *f.RequestRedirect.Scheme
		}
		location := scheme + "://" + host
		if port != map[string]int{"http": 80, "https": 443}[scheme] {
			location += fmt.Sprint(":", port)
		}
		return outcome(fmt.Sprintf("%d %s%s", *f.RequestRedirect.StatusCode, location, r.Path))
	}
	if len(rule.BackendRefs) == 0 {
		return "invalid"
	}
	ref := rule.BackendRefs[0]
	if ref.Name == "missing" {
		return "invalid"
	}
	return toService(c.route.Namespace, string(ref.Name))
}

// compiled says what the compiled tree does with a request.
func compiled(e *route.Evaluator, r route.Request) outcome {
	answer := e.Route(r)
	switch answer.Kind {
	case route.Redirect:
		return outcome(fmt.Sprintf("%d %s", answer.Code, answer.Location))
	case route.Pool:
		switch answer.Pool {
		case "no-route":
			return nothing
		case "invalid-backend":
			return "invalid"
		}
		return outcome("service " + answer.Pool)
	default:
		return nothing
	}
}
