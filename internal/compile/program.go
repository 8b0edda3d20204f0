package compile

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// program is what one frontend does: policies in order, then the default pool.
type program struct {
	frontend *frontend
	policies []policy
	// patient says that a rule here waits for responses without end.
	patient bool
	// catchAll takes the requests that no policy takes; nil leaves them to HAProxy's 503.
	catchAll *pool
}

// policy is an L7 policy before pools have keys.
type policy struct {
	base     string
	route    *route
	pool     *pool
	redirect *redirect
	rules    []lb.Rule
}

// program orders everything on the frontend and expresses it. Rules that cannot be expressed become faults of their
// attachment. A route that loses all its rules leaves the listener, which changes what the others have to yield to: so it goes on until
// nothing changes. Faults only ever grow, so that ends.
func (c *compiler) program(f *frontend, byListener map[*listener][]*attachment) *program {
	for {
		p, found := c.attempt(f, byListener)
		if !found {
			return p
		}
	}
}

// attempt is one pass; found says that it found new faults.
func (c *compiler) attempt(f *frontend, byListener map[*listener][]*attachment) (p *program, found bool) {
	p = &program{frontend: f}
	entries := f.barriers(c.pools.noRoute)
	owners := map[*entry]*attachment{}
	for _, l := range f.listeners {
		for _, a := range byListener[l] {
			if a.detached {
				continue
			}
			before := len(entries)
			found = c.entries(p, a, &entries) || found
			for _, e := range entries[before:] {
				owners[e] = a
			}
		}
	}
	if found {
		settle(f, byListener)
		return p, true
	}
	slices.SortFunc(entries, compareEntries)
	forwards := newForwards()
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if e.rule != nil {
			// Whoever comes second with the same match gets no request. So it needs no policy, and a route that is made under a new name
			// before it is deleted under the old one changes nothing.
			id := e.identity()
			if seen[id] {
				continue
			}
			seen[id] = true
		}
		if e.pool == nil {
			if why := c.redirect(p, e, forwards); why != nil {
				owners[e].faults[e.rule] = why
				found = true
			}
		}
		if e.pool != nil {
			if e.unconditional() {
				// Nothing after it can be reached, so it is the last that forwards.
				p.catchAll = e.pool
				break
			}
			forwards.add(e)
			p.forward(e)
		}
	}
	if found {
		settle(f, byListener)
	}
	if p.catchAll == nil && c.responder.on {
		p.catchAll = c.pools.noRoute
	}
	return p, found
}

func settle(f *frontend, byListener map[*listener][]*attachment) {
	for _, l := range f.listeners {
		for _, a := range byListener[l] {
			a.settle()
		}
	}
}

// entries makes the entries of one route on one listener. It says whether it found new faults.
func (c *compiler) entries(p *program, a *attachment, list *[]*entry) (found bool) {
	reachable := tiers(p.frontend.isolated(a.listener, a.claims))
	for _, r := range a.route.rules {
		switch {
		case r.dropped != nil:
		case r.redirect == nil || r.blocked != nil || a.faults[r] != nil:
			p.patient = p.patient || r.patient && r.blocked == nil
			r.each(reachable, func(e entry) *fault {
				e.listener, e.pool = a.listener, r.pool
				*list = append(*list, &e)
				return nil
			})
		default:
			if why := r.each(reachable, func(e entry) *fault {
				e.listener = a.listener
				*list = append(*list, &e)
				return c.target(&e)
			}); why != nil {
				a.faults[r] = why
				found = true
			}
		}
	}
	return found
}

// each makes one entry for each match and each tier of hosts, until one has a fault.
func (r *rule) each(reachable []tier, do func(entry) *fault) *fault {
	for i, m := range r.matches {
		for _, t := range reachable {
			m.hosts = t.hosts
			if why := do(entry{match: m, class: t.class, rule: r, index: i}); why != nil {
				return why
			}
		}
	}
	return nil
}

// forward adds the policies of an entry that forwards.
func (p *program) forward(e *entry) {
	for _, rules := range e.match.rules() {
		p.policies = append(p.policies, policy{base: e.base(), route: e.route(), pool: e.pool, rules: rules})
	}
}

// rules are the conditions of a match: the match is the disjunction of what it returns.
func (m match) rules() [][]lb.Rule {
	var rest []lb.Rule
	if m.path.kind != anyPath {
		rest = append(rest, m.path.rule())
	}
	for _, h := range m.headers {
		both := h.rules()
		rest = append(rest, both[:]...)
	}
	if len(m.hosts) == 0 {
		return [][]lb.Rule{rest}
	}
	var all [][]lb.Rule
	for _, host := range hostRules(m.hosts) {
		all = append(all, append([]lb.Rule{host}, rest...))
	}
	return all
}

func (e *entry) route() *route {
	if e.rule == nil {
		return nil
	}
	return e.rule.route
}

// base is the key of the entry's policies, without the number that tells several apart.
func (e *entry) base() string {
	if e.rule == nil {
		return "isolation:" + e.listener.label()
	}
	return fmt.Sprintf("%s/%d/%d", e.rule.route.id, e.rule.index, e.index)
}

// Origin says where a policy comes from.
type Origin struct {
	// Route is namespace/name of the HTTPRoute; "" for a policy that comes from no route.
	Route string `json:"route,omitempty"`
	// Rule and Match are indexes in its spec.
	Rule  int `json:"rule"`
	Match int `json:"match"`
	// Listener is that whose hosts a barrier keeps from less specific listeners, for a policy without a route.
	Listener string `json:"listener,omitempty"`
}

// OriginOf reads the origin out of the key of a policy; ok is false for a key that was not made here.
func OriginOf(key string) (o Origin, ok bool) {
	if l, ok := strings.CutPrefix(key, "isolation:"); ok {
		// The label of a listener of a ListenerSet has two slashes, and a number behind another one tells several policies apart.
		if parts := strings.Split(l, "/"); len(parts)%2 == 0 {
			l = strings.Join(parts[:len(parts)-1], "/")
		}
		return Origin{Listener: l}, true
	}
	parts := strings.Split(key, "/")
	if len(parts) < 4 {
		return Origin{}, false
	}
	rule, err1 := strconv.Atoi(parts[2])
	// Plan adds what tells a new object from the one that it replaces.
	text, _, _ := strings.Cut(parts[3], "~")
	match, err2 := strconv.Atoi(text)
	return Origin{Route: parts[0] + "/" + parts[1], Rule: rule, Match: match}, err1 == nil && err2 == nil
}

// pools are those that the program uses.
func (p *program) pools() iter.Seq[*pool] {
	return func(yield func(*pool) bool) {
		if p.catchAll != nil && !yield(p.catchAll) {
			return
		}
		for _, one := range p.policies {
			if one.pool != nil && !yield(one.pool) {
				return
			}
		}
	}
}

// longestTimeout is Octavia's limit in milliseconds: 24 days.
const longestTimeout = 2073600000

// listener renders a program.
func (c *compiler) listener(p *program) lb.Listener {
	l := lb.Listener{
		Meta:     c.meta(lb.KindListener, p.frontend.key()),
		Protocol: p.frontend.protocol,
		Port:     int(p.frontend.port),
	}
	c.frontendOfClass(&l)
	if p.frontend.protocol == lb.TerminatedHTTPS {
		l.TLS = c.tls.ports[p.frontend.port]
	}
	if p.catchAll != nil {
		l.DefaultPool = p.catchAll.key
	}
	if p.patient {
		l.TimeoutMemberData = longestTimeout
	}
	count := map[string]int{}
	for _, one := range p.policies {
		key := one.base
		count[one.base]++
		if n := count[one.base]; n > 1 {
			key = fmt.Sprintf("%s/%d", one.base, n)
		}
		var extra []string
		if one.route != nil {
			extra = append(extra, lb.RouteTag(one.route.object.Namespace, one.route.object.Name))
		}
		rendered := lb.Policy{Meta: c.meta(lb.KindPolicy, key, extra...), Rules: one.rules}
		if one.redirect != nil {
			rendered.Action, rendered.URL, rendered.Code = one.redirect.action, one.redirect.url, one.redirect.code
		} else {
			rendered.Action, rendered.Pool = lb.RedirectToPool, one.pool.key
		}
		l.Policies = append(l.Policies, rendered)
	}
	return l
}
