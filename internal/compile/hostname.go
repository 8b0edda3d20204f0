package compile

import (
	"slices"
	"strings"
)

// hostname is a host that is matched: exact ("a.test"), wildcard ("*.a.test": one or more labels more) or any ("").
// Lower case. Two hostnames are nested or disjoint, never only overlapping.
type hostname string

// parseHostname checks what the API server should have checked.
func parseHostname(s string) (hostname, bool) {
	s = strings.ToLower(s)
	labels := strings.Split(strings.TrimPrefix(s, "*."), ".")
	if len(s) > 253 {
		return "", false
	}
	for _, label := range labels {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return "", false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return "", false
			}
		}
	}
	return hostname(s), true
}

func (h hostname) wildcard() bool { return strings.HasPrefix(string(h), "*.") }

func (h hostname) exact() bool { return h != "" && !h.wildcard() }

// HostMatches says whether the hostname of a listener ("" for any) takes a host, and how specific it is: of several listeners of a port, the
// one with the greatest number has the host.
func HostMatches(pattern, host string) (specificity int, ok bool) {
	p, valid := parseHostname(pattern)
	if pattern == "" {
		return 0, true
	}
	return p.class(), valid && p.covers(hostname(strings.ToLower(host)))
}

// parent is the next wider hostname: "*.test" of "a.test" and of "*.a.test"; "" when there is none but any.
func (h hostname) parent() hostname {
	_, rest, found := strings.Cut(strings.TrimPrefix(string(h), "*."), ".")
	if !found {
		return ""
	}
	return hostname("*." + rest)
}

// covers says whether h matches every host that o matches.
func (h hostname) covers(o hostname) bool {
	switch {
	case h == "" || h == o:
		return true
	case o == "" || !h.wildcard():
		return false
	}
	suffix := string(h[1:])
	return strings.HasSuffix(strings.TrimPrefix(string(o), "*"), suffix) && len(o) > len(suffix)
}

// class orders hostnames by specificity: exact, then longer before shorter wildcards, then any. Different hostnames of one
// class are disjoint, so their order does not matter and one policy may match several.
func (h hostname) class() int {
	switch {
	case h.exact():
		return 1 << 16
	default:
		return len(h)
	}
}

func compareHostnames(a, b hostname) int {
	if a.class() != b.class() {
		return b.class() - a.class()
	}
	return strings.Compare(string(a), string(b))
}

// intersect is the narrower of two hostnames, when they are nested.
func intersect(a, b hostname) (hostname, bool) {
	switch {
	case a.covers(b):
		return b, true
	case b.covers(a):
		return a, true
	}
	return "", false
}

// hosts is a set of hostnames in the order of compareHostnames; empty means any.
type hosts []hostname

func newHosts(list ...hostname) hosts {
	if slices.Contains(list, "") {
		return nil
	}
	slices.SortFunc(list, compareHostnames)
	return slices.Compact(list)
}

// all lists the hostnames, with "" for any.
func (h hosts) all() []hostname {
	if len(h) == 0 {
		return []hostname{""}
	}
	return h
}

// covers says whether each host in o is in h.
func (h hosts) covers(o hosts) bool {
	if len(h) == 0 {
		return true
	}
	for _, other := range o.all() {
		if !slices.ContainsFunc(h, func(mine hostname) bool { return mine.covers(other) }) {
			return false
		}
	}
	return true
}

// intersect is the hosts in both; false when there are none.
func (h hosts) intersect(o hosts) (hosts, bool) {
	var both []hostname
	for _, a := range h.all() {
		for _, b := range o.all() {
			if c, ok := intersect(a, b); ok {
				both = append(both, c)
			}
		}
	}
	return newHosts(both...), len(both) > 0
}

func (h hosts) disjoint(o hosts) bool {
	for _, a := range h.all() {
		for _, b := range o.all() {
			if a.covers(b) || b.covers(a) {
				return false
			}
		}
	}
	return true
}

// claim is a hostname on which a route meets a listener, and the hostname of the route that it comes from.
type claim struct{ host, origin hostname }

// claims are what a route with these hostnames gets of a listener: most specific origin first, each host once. Precedence goes by
// the route's own hostnames: of two routes that meet a listener on the same host, the one that asked for it more precisely comes
// first.
func claims(listener hostname, route hosts) []claim {
	var list []claim
	for _, origin := range route.all() {
		if host, ok := intersect(listener, origin); ok && !slices.ContainsFunc(list, func(c claim) bool { return c.host == host }) {
			list = append(list, claim{host, origin})
		}
	}
	return list
}

// tier is a set of claims of one precedence: hosts of one origin class are disjoint.
type tier struct {
	hosts hosts
	class int
}

// tiers groups claims by precedence.
func tiers(list []claim) []tier {
	var all []tier
	for _, c := range list {
		if n := len(all); n == 0 || all[n-1].class != c.origin.class() {
			all = append(all, tier{class: c.origin.class()})
		}
		last := &all[len(all)-1]
		if c.host != "" {
			last.hosts = append(last.hosts, c.host)
		}
	}
	for i := range all {
		all[i].hosts = newHosts(all[i].hosts...)
	}
	return all
}
