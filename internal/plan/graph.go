package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Depends returns for each step the earlier steps that must be done before it: because they touch the same object, or
// because requests to the same listener would be misrouted in another order.
func (p Plan) Depends() [][]int {
	out := make([][]int, len(p.Steps))
	last := map[string]int{}
	for i, s := range p.Steps {
		var needs []int
		names := s.touches()
		if (s.Kind == lb.KindPool || s.Kind == lb.KindSecret) && s.Verb == Delete || s.Kind == lb.KindLoadBalancer {
			// Its users left in steps that do not name it.
			names = slices.Concat(names, slices.Sorted(maps.Keys(last)))
		}
		for _, name := range names {
			if before, found := last[name]; found {
				needs = append(needs, before)
			}
		}
		for _, name := range names {
			last[name] = i
		}
		slices.Sort(needs)
		out[i] = slices.Compact(slices.DeleteFunc(needs, func(n int) bool { return n == i }))
	}
	return out
}

// touches names the objects that a step makes, changes, needs or shows.
func (s Step) touches() []string {
	pool := func(key string) string { return string(lb.KindPool) + " " + key }
	listener := func(key string) string { return string(lb.KindListener) + " " + key }
	names := []string{string(lb.KindLoadBalancer)}
	switch s.Kind {
	case lb.KindLoadBalancer:
	case lb.KindFloatingIP:
		return append(names, string(lb.KindFloatingIP))
	case lb.KindSecret:
		return []string{string(lb.KindSecret) + " " + s.Ref.Key}
	case lb.KindListener:
		names = []string{listener(s.Ref.Key)}
		if s.ListenerTo != nil {
			for _, key := range s.ListenerTo.TLS.Secrets() {
				names = append(names, string(lb.KindSecret)+" "+key)
			}
			names = append(names, fmt.Sprint("port ", s.ListenerTo.Port), pool(s.ListenerTo.DefaultPool))
		}
	case lb.KindPool, lb.KindMembers:
		names = []string{pool(s.Ref.Key)}
		if s.Pool != nil {
			for _, key := range s.Pool.TLS.Secrets() {
				names = append(names, string(lb.KindSecret)+" "+key)
			}
		}
	case lb.KindMonitor:
		names = []string{pool(s.Parent.Key)}
	case lb.KindPolicy:
		names = []string{listener(s.Parent.Key)}
		if s.Policy != nil && s.Policy.Action == lb.RedirectToPool {
			names = append(names, pool(s.Policy.Pool))
		}
	case lb.KindRule:
		names = []string{listener(s.Listener.Key)}
	}
	return names
}

// Graph prints the dependencies in the language of Graphviz.
func (p Plan) Graph() string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	depends := p.Depends()
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "  s%d [label=%q];\n", i+1, s.String())
		for _, before := range depends[i] {
			fmt.Fprintf(&b, "  s%d -> s%d;\n", before+1, i+1)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
