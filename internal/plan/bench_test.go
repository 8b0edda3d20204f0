package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// bigTree has n rules over n/20 hosts and n/10 Services.
func bigTree(n int) *lb.Tree {
	tree := &lb.Tree{Meta: lb.Meta{Name: "gw", Key: loadBalancerKey}}
	l := lb.Listener{Meta: lb.Meta{Key: "http-80"}, Protocol: lb.HTTP, Port: 80}
	for i := range n {
		p := testPolicy(fmt.Sprintf("r/%d", i), fmt.Sprintf("s%d", i%(n/10)), fmt.Sprintf("h%d", i/20), fmt.Sprintf("/p%d", i%20))
		l.Policies = append(l.Policies, p)
	}
	tree.Listeners = []lb.Listener{l}
	for i := range n / 10 {
		tree.Pools = append(tree.Pools, testPool(fmt.Sprintf("s%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	return tree
}

// BenchmarkDiff shows how the time grows with the number of rules.
func BenchmarkDiff(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		for _, c := range []struct {
			name   string
			change func(*lb.Tree)
		}{
			{"equal", func(*lb.Tree) {}},
			{"one path", func(t *lb.Tree) {
				t.Listeners[0].Policies[n/2].Rules[1] = path(lb.EqualTo, "/new")
			}},
			{"twenty changes", func(t *lb.Tree) {
				l := &t.Listeners[0]
				for i := range 5 {
					at := n / 7 * (i + 1)
					l.Policies[at].Rules[1] = path(lb.EqualTo, "/new")
					l.Policies[at+1].Pool = "s7"
					l.Policies = slices.Delete(l.Policies, at+2, at+3)
					l.Policies = slices.Insert(l.Policies, at+3, testPolicy("n", "s8", fmt.Sprintf("n%d", i), "/n"))
				}
			}},
			{"shuffled", func(t *lb.Tree) {
				slices.SortFunc(t.Listeners[0].Policies, func(a, b lb.Policy) int { return strings.Compare(a.Key, b.Key) })
			}},
			{"all hosts", func(t *lb.Tree) {
				for i := range t.Listeners[0].Policies {
					t.Listeners[0].Policies[i].Rules[0].Value += "x"
				}
			}},
			{"all Services", func(t *lb.Tree) {
				for i := range t.Pools {
					t.Pools[i].Members[0].Weight++
				}
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				have, want := built(b, bigTree(n)), bigTree(n)
				c.change(want)
				steps := 0
				for b.Loop() {
					steps = len(Diff(want, have))
				}
				b.ReportMetric(float64(steps), "steps")
			})
		}
	}
}
