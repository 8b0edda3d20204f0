package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// The pools for answers and not for backends of users. Without a responder they have no members: HAProxy answers 503 for them.
const (
	// invalidBackendPool is for rules that have no usable backend, or that cannot be served: they keep their place, so that their requests
	// do not fall to another rule.
	invalidBackendPool = "invalid-backend"
	// noRoutePool is for requests that belong to a listener and match none of its rules.
	noRoutePool = "no-route"
)

// pool is one set of members, shared by all rules that want the same.
type pool struct {
	// base names the backends without their weights, so that a change of weights changes members only.
	base     string
	shares   []share
	settings poolSettings
	// user is the first rule that wants the pool. It orders pools of one base.
	user string
	// key is base, or base#2 and so on.
	key string
}

// pools makes each distinct pool once.
type pools struct {
	byContent      map[string]*pool
	invalidBackend *pool
	noRoute        *pool
}

func newPools(r *responder) *pools {
	return &pools{
		byContent:      map[string]*pool{},
		invalidBackend: &pool{base: invalidBackendPool, shares: r.shares(answer.InvalidBackend), key: invalidBackendPool},
		noRoute:        &pool{base: noRoutePool, shares: r.shares(answer.NotFound), key: noRoutePool},
	}
}

// get returns the pool of shares, which are in normal form.
func (p *pools) get(shares []share, settings poolSettings, user string) *pool {
	names := make([]string, len(shares))
	var content strings.Builder
	for i, s := range shares {
		names[i] = s.backend.String()
		fmt.Fprintf(&content, "%s=%d+", names[i], s.weight)
	}
	content.WriteString(settings.id())
	found := p.byContent[content.String()]
	if found == nil {
		found = &pool{base: strings.Join(names, "+"), shares: shares, settings: settings, user: user}
		p.byContent[content.String()] = found
	}
	found.user = min(found.user, user)
	return found
}

// assignKeys gives the used pools their keys.
func assignKeys(used []*pool) {
	byBase := map[string][]*pool{}
	for _, p := range used {
		byBase[p.base] = append(byBase[p.base], p)
	}
	for base, same := range byBase {
		slices.SortFunc(same, func(a, b *pool) int { return strings.Compare(a.user, b.user) })
		for i, p := range same {
			p.key = base
			if i > 0 {
				p.key = fmt.Sprintf("%s#%d", base, i+1)
			}
		}
	}
}

// pool renders p.
func (c *compiler) pool(p *pool) lb.Pool {
	var services []string
	for _, s := range p.shares {
		if s.backend.answers == 0 {
			services = append(services, lb.ServiceTag(s.backend.service.namespace, s.backend.service.name, s.backend.port))
		}
	}
	rendered := lb.Pool{
		Meta:      c.meta(lb.KindPool, p.key, services...),
		Protocol:  lb.HTTP,
		Algorithm: cmp.Or(p.settings.algorithm, c.algorithm(p)),

		Persistence: p.settings.persistence,
	}
	shares := p.shares
	if tls := p.settings.tls; tls != nil {
		over := tls.pool
		rendered.TLS = &over
	} else {
		shares = c.responder.filled(shares)
	}
	if len(p.shares) == 0 {
		return rendered
	}
	monitor := c.monitor()
	if p.settings.monitor != nil {
		monitor = *p.settings.monitor
	}
	if !slices.ContainsFunc(p.shares, func(s share) bool { return s.backend.answers == 0 }) {
		// How users want their backends to be checked says nothing about the responder.
		monitor.Type, monitor.HTTPMethod, monitor.URLPath, monitor.ExpectedCodes = "TCP", "", "", ""
	}
	checkNodes := monitor.Type == "TCP" && !slices.ContainsFunc(shares, func(s share) bool { return s.backend.check == 0 })
	for _, m := range weigh(shares) {
		member := lb.Member{
			Name: lb.Shorten(m.name), Address: m.address, Port: int(m.port),
			SubnetID: c.in.Facts.MemberSubnetID, Weight: int(m.weight),
		}
		if checkNodes {
			member.MonitorPort = int(m.check)
		}
		rendered.Members = append(rendered.Members, member)
	}
	if checkNodes {
		// All Services here answer only on Nodes with an endpoint: kube-proxy knows which these are before the endpoints change here. It is
		// asked in plain text: HAProxy does not take over TLS for checks on a port of their own.
		monitor.Type, monitor.HTTPMethod, monitor.URLPath, monitor.ExpectedCodes = "HTTP", "GET", "/healthz", "200"
	}
	monitor.Name, monitor.Tags = rendered.Name, c.owner.Tags(lb.KindMonitor, p.key)
	rendered.Monitor = &monitor
	return rendered
}

// monitor is how the class wants backends to be checked.
func (c *compiler) monitor() lb.Monitor {
	if c.in.Config == nil {
		return monitorOf(v1alpha1.HealthMonitor{})
	}
	return monitorOf(c.in.Config.Spec.HealthMonitor)
}

// monitorOf is a health check in Octavia's terms. TCP is the default: it takes down no backend for having no page. The type is never HTTPS:
// on a pool with TLS that would switch off the verification of requests too. HTTP is checked over TLS there.
func monitorOf(wanted v1alpha1.HealthMonitor) lb.Monitor {
	m := lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 2, MaxRetriesDown: 3}
	set := func(field *int, value int32) {
		if value > 0 {
			*field = int(value)
		}
	}
	set(&m.Delay, wanted.DelaySeconds)
	set(&m.Timeout, wanted.TimeoutSeconds)
	set(&m.MaxRetries, wanted.HealthyThreshold)
	set(&m.MaxRetriesDown, wanted.UnhealthyThreshold)
	m.Timeout = min(m.Timeout, m.Delay)
	if wanted.Type == v1alpha1.HealthMonitorHTTP {
		m.Type, m.HTTPMethod, m.URLPath, m.ExpectedCodes = "HTTP", "GET", "/", "200"
		if wanted.Path != "" {
			m.URLPath = wanted.Path
		}
		if wanted.ExpectedCodes != "" {
			m.ExpectedCodes = wanted.ExpectedCodes
		}
		if wanted.Method != "" {
			m.HTTPMethod = string(wanted.Method)
		}
		// There is no Host: Octavia of 2025.1 renders HTTP/1.1 checks with an option at which HAProxy stops.
	}
	return m
}
