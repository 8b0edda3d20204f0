package compile

import (
	"cmp"
	"slices"
	"strings"
)

// match is what a request must fulfil: all of it.
type match struct {
	hosts   hosts
	path    path
	headers []header
}

// unconditional says whether every request matches.
func (m match) unconditional() bool {
	return len(m.hosts) == 0 && m.path.kind == anyPath && len(m.headers) == 0
}

// disjoint says whether provably no request matches both.
func (m match) disjoint(o match) bool {
	if m.hosts.disjoint(o.hosts) || m.path.disjoint(o.path) {
		return true
	}
	for _, h := range m.headers {
		if slices.ContainsFunc(o.headers, h.disjoint) {
			return true
		}
	}
	return false
}

// identity is equal for equal matches only.
func (m match) identity() string {
	var b strings.Builder
	for _, h := range m.hosts {
		b.WriteString(string(h))
		b.WriteByte(' ')
	}
	b.WriteByte(byte('0' + m.path.kind))
	b.WriteString(m.path.value)
	for _, h := range m.headers {
		b.WriteByte('\n')
		b.WriteString(h.name)
		if h.exact {
			b.WriteByte('=')
		}
		b.WriteByte(' ')
		b.WriteString(h.pattern)
	}
	return b.String()
}

// entry is one match of one rule on one listener, for hostnames of one class; or a listener's barrier. It forwards to pool, or it has
// redirects, which together take all of its requests.
type entry struct {
	match
	listener *listener
	// class is that of the route's hostname.
	class int
	// rule is nil for barriers, which come after all entries of their listener.
	rule      *rule
	index     int
	pool      *pool
	redirects []*redirect
}

// compareEntries is the one total order of everything on a port. Listeners come first, since a request belongs to the most
// specific one; then Gateway API's precedence of HTTPRoute hostnames and matches. Regular expressions, which it leaves open, stand between
// exact paths and prefixes. Nothing depends on the order of the input.
func compareEntries(a, b *entry) int {
	if c := compareHostnames(a.listener.hostname, b.listener.hostname); c != 0 {
		return c
	}
	switch {
	case a.rule == nil && b.rule == nil:
		return 0
	case a.rule == nil:
		return 1
	case b.rule == nil:
		return -1
	}
	ra, rb := a.rule.route, b.rule.route
	if c := cmp.Or(
		cmp.Compare(b.class, a.class),
		cmp.Compare(a.path.rank(), b.path.rank()),
		cmp.Compare(b.path.length, a.path.length),
		cmp.Compare(len(b.headers), len(a.headers)),
	); c != 0 {
		return c
	}
	if c := ra.created.Compare(rb.created); c != 0 {
		return c
	}
	if c := strings.Compare(ra.id, rb.id); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.rule.index, b.rule.index),
		cmp.Compare(a.index, b.index),
		slices.CompareFunc(a.hosts, b.hosts, compareHostnames),
	)
}

func (p path) rank() int {
	switch p.kind {
	case exactPath:
		return 0
	case regexPath:
		return 1
	default:
		return 2
	}
}
