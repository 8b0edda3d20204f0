package compile

import (
	"fmt"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// fault is why a rule cannot be served.
type fault struct {
	reason gwv1.RouteConditionReason
	// message is a clause without the rule's number.
	message string
}

func unsupported(format string, args ...any) *fault {
	return &fault{gwv1.RouteReasonUnsupportedValue, fmt.Sprintf(format, args...)}
}

// rule is one rule of a route.
type rule struct {
	route *route
	index int
	// matches have no hosts yet.
	matches []match
	// dropped: the matches cannot be expressed, so the rule has no place anywhere.
	dropped *fault
	// blocked: only what to do cannot be expressed. The rule keeps its place, on the pool for invalid backends.
	blocked  *fault
	redirect *gwv1.HTTPRequestRedirectFilter
	// patient says that nothing may end the wait for a response.
	patient bool
	pool    *pool
}

// fault is why the rule cannot be served on any listener; nil when it can.
func (r *rule) fault() *fault {
	if r.dropped != nil {
		return r.dropped
	}
	return r.blocked
}

// newRoute reads a route.
func (c *compiler) newRoute(object *gwv1.HTTPRoute) *route {
	r := &route{object: object, id: object.Namespace + "/" + object.Name, created: object.CreationTimestamp.Time, instead: 503, services: map[name]bool{}}
	if c.responder.on {
		r.instead = 500
	}
	var list []hostname
	var tooLong *fault
	for _, h := range object.Spec.Hostnames {
		parsed, ok := parseHostname(string(h))
		switch {
		case ok && !hostFits(parsed):
			tooLong = unsupported("a hostname is too long: Octavia takes %d characters after escaping", maxValue)
			list = append(list, parsed)
		case ok:
			list = append(list, parsed)
		}
	}
	r.hosts = newHosts(list...)
	for i := range object.Spec.Rules {
		rule := c.newRule(r, i, &object.Spec.Rules[i])
		if tooLong != nil {
			rule.dropped = tooLong
		}
		r.rules = append(r.rules, rule)
	}
	return r
}

func (c *compiler) newRule(r *route, index int, spec *gwv1.HTTPRouteRule) *rule {
	rule := &rule{route: r, index: index}
	matches := spec.Matches
	if len(matches) == 0 {
		matches = []gwv1.HTTPRouteMatch{{}}
	}
	for _, m := range matches {
		parsed, why := newMatch(m)
		if why != nil {
			rule.dropped = why
			rule.matches = nil
			break
		}
		rule.matches = append(rule.matches, parsed)
	}
	rule.blocked = rule.filters(spec)
	persistence, exact := persistenceOf(spec.SessionPersistence)
	if !exact && rule.blocked == nil {
		rule.blocked = unsupported("sessionPersistence is supported only as a session cookie without a name and without timeouts")
	}
	shares := c.shares(rule, spec.BackendRefs)
	rule.pool = c.pools.invalidBackend
	if slices.ContainsFunc(shares, func(s share) bool { return s.weight > 0 && s.backend.answers == 0 }) && rule.blocked == nil {
		shares = normalShares(shares)
		set := settings(fmt.Sprintf("rule %d of HTTPRoute %s", index, r.id), shares, persistence)
		if set.tls != nil {
			// The responder does not speak TLS. Without it the shares of what cannot be used go to the others.
			shares = normalShares(slices.DeleteFunc(shares, func(s share) bool { return s.backend.answers != 0 }))
		}
		rule.pool = c.pools.get(shares, set, fmt.Sprintf("%s/%05d", r.id, index))
	}
	return rule
}

// newMatch reads a match. One that Octavia cannot express is never widened.
func newMatch(m gwv1.HTTPRouteMatch) (match, *fault) {
	switch {
	case m.Method != nil:
		return match{}, unsupported("method matches are not supported by Octavia")
	case len(m.QueryParams) > 0:
		return match{}, unsupported("queryParams matches are not supported by Octavia")
	}
	matched, err := parsePath(m.Path)
	if err != nil {
		return match{}, unsupported("%s", err)
	}
	headers, err := parseHeaders(m.Headers)
	if err != nil {
		return match{}, unsupported("%s", err)
	}
	// A host, a path and two for each header.
	if 2+2*len(headers) > maxRules {
		return match{}, unsupported("a match has too many headers: Octavia takes %d conditions", maxRules)
	}
	return match{path: matched, headers: headers}, nil
}

// filters reads what to do besides forwarding.
func (r *rule) filters(spec *gwv1.HTTPRouteRule) *fault {
	for _, f := range spec.Filters {
		switch {
		case f.Type != gwv1.HTTPRouteFilterRequestRedirect:
			return &fault{gwv1.RouteReasonIncompatibleFilters, fmt.Sprintf("filter %s is not supported by Octavia", f.Type)}
		case f.RequestRedirect == nil || r.redirect != nil || len(spec.BackendRefs) > 0:
			return &fault{gwv1.RouteReasonIncompatibleFilters, "filter RequestRedirect must stand alone, once and without backendRefs"}
		}
		r.redirect = f.RequestRedirect
	}
	for _, ref := range spec.BackendRefs {
		for _, f := range ref.Filters {
			return &fault{gwv1.RouteReasonIncompatibleFilters, fmt.Sprintf("filter %s of a backendRef is not supported by Octavia", f.Type)}
		}
	}
	switch {
	case !r.timeouts(spec.Timeouts):
		return unsupported("timeouts other than 0s are not supported by Octavia")
	case spec.Retry != nil:
		return unsupported("retry is not supported by Octavia")
	}
	return nil
}

// timeouts reads the timeouts; false when they ask for one. Octavia has only one for inactivity, which each listener can raise so far that
// it never ends a request.
func (r *rule) timeouts(t *gwv1.HTTPRouteTimeouts) bool {
	if t == nil {
		return true
	}
	for _, d := range []*gwv1.Duration{t.Request, t.BackendRequest} {
		if d == nil {
			continue
		}
		if strings.ContainsAny(string(*d), "123456789") {
			return false
		}
		r.patient = true
	}
	return true
}

// shares resolves the backends of a rule. Those that cannot be used are told in the route's status.
func (c *compiler) shares(r *rule, refs []gwv1.HTTPBackendRef) []share {
	var shares []share
	// first is the first backend that gets requests. It decides on TLS.
	var first *backend
	for i, ref := range refs {
		weight := int64(1)
		if ref.Weight != nil {
			weight = max(int64(*ref.Weight), 0)
		}
		namespace := r.route.object.Namespace
		if service, ok := serviceOf(namespace, ref.BackendObjectReference); ok && c.in.granted(routeToService(namespace, service.namespace, service.name)) {
			r.route.services[service] = true
		}
		found, problem := c.backends.resolve(namespace, ref.BackendObjectReference)
		switch {
		case problem != nil || weight == 0:
		case first == nil:
			first = found
		case !sameBackendTLS(first.tls(), found.tls()):
			id, other := found.String(), first.String()
			for _, p := range []*backendPolicy{first.policy, found.policy} {
				if p != nil && p.tls != nil {
					p.warn(fmt.Sprintf("rule %d of HTTPRoute %s sends nothing to %s, which needs another TLS than %s", r.index, r.route.id, id, other))
				}
			}
			problem = func(where string) status.RouteBackendProblem { return status.BackendTLSDiffers(where, id, other) }
		}
		if problem != nil {
			r.route.problems = append(r.route.problems, problem(fmt.Sprintf("rule %d, backendRef %d", r.index, i)))
			if !c.responder.on || weight == 0 {
				continue
			}
			found = c.responder.backend(answer.InvalidBackend)
		}
		shares = append(shares, share{backend: found, weight: weight})
	}
	return shares
}

// verdict is the status of one parent of the route.
func (r *route) verdict(p *parent) status.Verdict {
	v := status.Verdict{
		Object: status.Object{Kind: status.KindHTTPRoute, Namespace: r.object.Namespace, Name: r.object.Name, Generation: r.object.Generation},
		Parent: p.ref,
	}
	accepted, partially := p.conditions(r)
	v.Conditions = append(v.Conditions, accepted)
	if len(r.problems) > 0 {
		v.Conditions = append(v.Conditions, status.RouteRefsNotResolved(r.problems))
	} else {
		v.Conditions = append(v.Conditions, status.RouteResolvedRefs())
	}
	if partially != nil {
		v.Conditions = append(v.Conditions, *partially)
	}
	return v
}

// conditions are Accepted and, when it holds, PartiallyInvalid.
func (p *parent) conditions(r *route) (status.Condition, *status.Condition) {
	if len(p.attached) == 0 {
		return p.refused, nil
	}
	var reason gwv1.RouteConditionReason
	var bad []int
	var why []string
	for _, rule := range r.rules {
		for _, a := range p.attached {
			found, message := rule.fault(), ""
			if found != nil {
				message = fmt.Sprintf("rule %d: %s", rule.index, found.message)
			} else if found = a.faults[rule]; found != nil {
				message = fmt.Sprintf("rule %d on listener %s: %s", rule.index, a.listener.label(), found.message)
			} else {
				continue
			}
			if rule.dropped == nil && !a.detached {
				message += fmt.Sprintf(" (its requests are answered with %d)", r.instead)
			}
			if reason == "" {
				reason = found.reason
			}
			if len(bad) == 0 || bad[len(bad)-1] != rule.index {
				bad = append(bad, rule.index)
			}
			why = append(why, message)
		}
	}
	if !slices.ContainsFunc(p.attached, func(a *attachment) bool { return !a.detached }) {
		return status.RouteNotAccepted(reason, why), nil
	}
	if len(bad) == 0 {
		return status.RouteAccepted(), nil
	}
	partially := status.RoutePartiallyInvalid(bad, why)
	return status.RouteAccepted(), &partially
}
