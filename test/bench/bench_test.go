package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// most is the target: how much longer a Gateway may take than Octavia itself.
const most = 1.1

// perRoute is how many rules one HTTPRoute has: Gateway API allows 16.
const perRoute = 10

// row is one line of the table.
type row struct {
	rules  int
	change string
	result
	// singly is a new Gateway by a writer that makes it object by object; zero for changes.
	singly result
}

func TestRatios(t *testing.T) {
	sizes := []int{1, 10, 50, 200}
	if testing.Short() || os.Getenv("GATEWAY_API_OPENSTACK_BENCH") == "" {
		sizes = sizes[:2]
	}
	var rows []row
	for _, n := range sizes {
		rows = append(rows, measure(t, n)...)
	}
	t.Log("\n" + table(rows))
	for _, r := range rows {
		if r.ratio() > most {
			t.Errorf("%d rules, %s: %.2f times what Octavia takes", r.rules, r.change, r.ratio())
		}
	}
}

// measure makes a Gateway with n rules, each with its own Service, and changes it.
func measure(t *testing.T, n int) []row {
	g := newGround(t)
	g.apply(class)
	if _, err := g.stage.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	manifests := []string{canary}
	var rules []rule
	routes := 0
	for i := range n {
		manifests = append(manifests, service(i))
		rules = append(rules, forward(i))
		if i == 0 {
			rules[0] = split(9)
		}
		if len(rules) == perRoute || i == n-1 {
			manifests = append(manifests, route(fmt.Sprintf("r%d", routes), rules...))
			rules, routes = nil, routes+1
		}
	}
	g.apply(append(manifests, gateway)...)
	var rows []row
	add := func(change string, calls int) {
		t.Helper()
		r := g.settle()
		if r.writes > calls {
			t.Errorf("%d rules, %s: %d writes to Octavia, at most %d are needed", n, change, r.writes, calls)
		}
		rows = append(rows, row{rules: n, change: change, result: r})
	}
	add("new Gateway", 1)
	rows[0].singly = singly(t, n)

	last := make([]rule, 0, perRoute)
	for i := (routes - 1) * perRoute; i < n; i++ {
		last = append(last, forward(i))
		if i == 0 {
			last[0] = split(9)
		}
	}
	name := fmt.Sprintf("r%d", routes-1)
	add("an event without effect", 0)
	changed := append([]rule{}, last...)
	changed[len(changed)-1].path = "/changed"
	g.apply(route(name, changed...))
	add("one path", 2)
	g.apply(route("more", rule{"/more", forward(n - 1).backends}))
	pool := 0
	if n == 1 {
		pool = 3 // its Service has no pool of its own yet
	}
	add("one more rule", 4+pool)
	g.apply(service(n), route("fresh", forward(n)))
	add("one more rule with its Service", 7)
	g.run("delete httproute/shop/fresh", "")
	add("one rule and its Service less", 2)
	first := append([]rule{split(4)}, rulesFrom(1, min(n, perRoute))...)
	if routes == 1 && n > 1 {
		first[len(first)-1].path = "/changed"
	}
	if routes == 1 && n == 1 {
		first[0].path = "/changed"
	}
	g.apply(route("r0", first...))
	add("one weight", 1)
	if n <= 50 {
		// One call for each pool.
		g.run("delete node/node-2", "")
		add("one Node less", n+1)
	}
	return rows
}

func rulesFrom(from, to int) []rule {
	var rules []rule
	for i := from; i < to; i++ {
		rules = append(rules, forward(i))
	}
	return rules
}

// table prints rows.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "rules\tchange\twrites\treads\ttook\tOctavia busy\tof Octavia\tobject by object\tfewer calls\tfaster\t")
	for _, r := range rows {
		compared := "\t\t"
		if r.singly.writes > 0 {
			compared = fmt.Sprintf("%d calls, %s\t%.0fx\t%.1fx", r.singly.writes, seconds(r.singly.took),
				float64(r.singly.writes)/float64(r.writes), float64(r.singly.took)/float64(r.took))
		}
		if r.singly.writes > 0 && r.singly.took == 0 {
			compared = fmt.Sprintf("%d calls\t%.0fx\t", r.singly.writes, float64(r.singly.writes)/float64(r.writes))
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%s\t%.2f\t%s\t\n", r.rules, r.change, r.writes, r.reads, seconds(r.took), seconds(r.busy), r.ratio(), compared)
	}
	_ = w.Flush()
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
