//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A Gateway with 20 rules is changed at random under load: no request fails, each gets the answer that it has before or after the change
// in progress, and what a change does not concern never differs. GATEWAY_API_OPENSTACK_E2E_CHANGES is how often, _LOAD how many
// requests a second.
func TestChange_misroutesNothingUnderLoad(t *testing.T) {
	g := newGround(t)
	g.steady()
	changes, rate, start := number(t, "CHANGES", 12), number(t, "LOAD", 40), seed(t)
	const namespace = "e2e-change"
	s := g.site(namespace, "e2e-change-b")
	c := g.cloudClient()
	facts := g.facts(c)
	d := newDice(start, 7)

	gw := gateway(namespace, "edge", listener("all", 80, ""))
	gw.Spec.GatewayClassName = steadyClass
	for _, r := range s.twenty(d, gw) {
		g.apply(r)
	}
	began := time.Now()
	g.apply(gw)
	g.healthy(gw)
	g.programmed(gw)
	t.Logf("20 rules are programmed after %v", time.Since(began).Round(time.Second))

	j := &judge{ground: g, world: g.world(facts, s.namespaces...), gateway: gw, site: s}
	current := j.look()
	j.spans = []span{{from: time.Now(), oracles: []*oracle{current}}}
	j.settle(nil, current)
	load := j.load(g.vip(gw), rate, start)

	table := map[string][]string{}
	e := &editor{dice: d, site: s}
	for i := range changes {
		routes := j.routesNow()
		edit := e.next(routes)
		before, calls, from := current, g.calls(), time.Now()
		oracles := []*oracle{before}
		for _, step := range edit.steps {
			step(g)
			current = j.look()
			oracles = append(oracles, current)
		}
		to := j.settle(j.concern(before, current), current)
		made := g.calls().since(calls).writes("load-balancer")
		j.changed(from, to, oracles)
		t.Logf("%2d. %s: %d calls, %v", i+1, edit.what, made, to.Sub(from).Round(100*time.Millisecond))
		table[edit.kind] = append(table[edit.kind], fmt.Sprintf("%d (%.0f s)", made, to.Sub(from).Seconds()))
		if edit.atMost >= 0 && made > edit.atMost {
			t.Errorf("%s took %d writing calls, want at most %d", edit.what, made, edit.atMost)
		}
		if j.judge(); t.Failed() && len(j.wrong) >= 10 {
			break
		}
	}
	load()
	j.judge()
	j.report(table)
	g.isAsWanted(c, current.tree)
	g.validConfiguration(current.id)
	g.delete(gw)
	g.nothingLeft()
}

// Kinds of changes, with the writing calls that they may take at most; more where another policy has to move is in the edits.
var kinds = []struct {
	name   string
	atMost string
}{
	{"path", "1, 2 when it moves"}, {"host", "1, 2 when it moves"}, {"header value", "2: it is two conditions"}, {"backend", "1"}, {"weights", "1"}, {"add a rule", "4"},
	{"delete a rule", "1"}, {"swap two rules", "1"}, {"rename a route", "0"}, {"beside a redirect", ""},
}

// twenty are 8 routes with 20 rules: some with one rule, so that a change of it is one of one policy.
func (s site) twenty(d dice, gw *gwv1.Gateway) []*gwv1.HTTPRoute {
	names := s.backends[s.namespaces[0]]
	prefix, exact := gwv1.PathMatchPathPrefix, gwv1.PathMatchExact
	to := func() gwv1.HTTPBackendRef { return backend(pick(d, names), 1) }
	one := func(m ...gwv1.HTTPRouteMatch) gwv1.HTTPRouteRule { return rule(m[:1], to()) }
	away := func(m gwv1.HTTPRouteMatch, hostname string) gwv1.HTTPRouteRule {
		return gwv1.HTTPRouteRule{Matches: []gwv1.HTTPRouteMatch{m}, Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect,
			RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname(hostname)), StatusCode: new(301)}}}}
	}
	on := func(name, host string, rules ...gwv1.HTTPRouteRule) *gwv1.HTTPRoute {
		return route(s.namespaces[0], name, gw, []gwv1.Hostname{gwv1.Hostname(host)}, rules...)
	}
	return []*gwv1.HTTPRoute{
		on("single-0", "h0.test", one(path(prefix, "/a"))),
		on("single-1", "h1.test", one(path(exact, "/b"))),
		on("single-2", "*.w.test", one(path(prefix, "/a"))),
		on("header", "h3.test", one(path(prefix, "/", "x-v", "v1")), one(path(prefix, "/a", "x-v", "v2")), one(path(prefix, "/"))),
		on("paths", "h4.test", one(path(prefix, "/a")), one(path(prefix, "/a/b")), one(path(exact, "/a")), one(path(prefix, "/c/a"))),
		on("shop", "x.w.test", one(path(prefix, "/a/b")), one(path(prefix, "/d")), rule([]gwv1.HTTPRouteMatch{path(prefix, "/c")}, backend(names[0], 2), backend(names[1], 1))),
		// Of these two the order in the route decides.
		on("ties", "h5.test", rule([]gwv1.HTTPRouteMatch{path(prefix, "/", "x-v", "v1")}, backend(names[0], 1)), rule([]gwv1.HTTPRouteMatch{path(prefix, "/", "x-u", "v1")}, backend(names[1], 1))),
		on("split", "h6.test", rule(nil, backend(names[0], 3), backend(names[1], 1))),
		on("redirect", "h7.test", one(path(prefix, "/a")), away(path(prefix, "/"), "away.test"), away(path(prefix, "/c"), "c.test"), one(path(exact, "/c/a"))),
	}
}

var (
	editHosts  = []gwv1.Hostname{"h0.test", "h1.test", "h2.test", "h8.test", "h9.test", "*.w.test", "x.w.test", "*.test"}
	editPaths  = []string{"/a", "/a/b", "/a/b/c", "/b", "/c", "/c/a", "/d", "/d&e'", "/a-b"}
	editValues = []string{"v1", "v2", "v3", "a'b"}
)

// editor draws changes.
type editor struct {
	dice
	site
	left    []string
	renamed int
}

type edit struct {
	kind, what string
	// atMost is how many writing calls the change may take; -1 for as many as it likes.
	atMost int
	// steps are writes to Kubernetes. Each is followed by a look at what is wanted then.
	steps []func(*ground)
}

// next draws a change of the next kind; every kind has its turn.
func (e *editor) next(routes []*gwv1.HTTPRoute) edit {
	for {
		if len(e.left) == 0 {
			for _, i := range e.Perm(len(kinds)) {
				e.left = append(e.left, kinds[i].name)
			}
		}
		kind := e.left[0]
		e.left = e.left[1:]
		for range 50 {
			r := pick(e.dice, routes).DeepCopy()
			i := e.IntN(len(r.Spec.Rules))
			if found, ok := e.draw(kind, r, i); ok && !twice(routes, r) {
				found.kind, found.what = kind, fmt.Sprintf("%s: %s", kind, found.what)
				return found
			}
		}
	}
}

// twice says whether two rules would have the same match once r is changed. The second would be without effect, and changes would have
// other costs than they seem to have.
func twice(routes []*gwv1.HTTPRoute, r *gwv1.HTTPRoute) bool {
	seen := map[string]bool{}
	for _, o := range routes {
		if o.Name == r.Name {
			o = r
		}
		for _, rule := range o.Spec.Rules {
			text, err := json.Marshal([]any{o.Spec.Hostnames, rule.Matches})
			if err != nil || seen[string(text)] {
				return true
			}
			seen[string(text)] = true
		}
	}
	return false
}

func redirects(r *gwv1.HTTPRoute) bool {
	return slices.ContainsFunc(r.Spec.Rules, func(r gwv1.HTTPRouteRule) bool { return len(r.Filters) > 0 })
}

// draw draws a change of a kind to a rule of a route, if the rule is one that can be changed so.
func (e *editor) draw(kind string, r *gwv1.HTTPRoute, i int) (edit, bool) {
	if redirects(r) != (kind == "beside a redirect") {
		return edit{}, false
	}
	one := &r.Spec.Rules[i]
	hasPath := len(one.Matches) == 1 && one.Matches[0].Path != nil && len(one.Matches[0].Headers) == 0
	spec := func(atMost int, format string, args ...any) (edit, bool) {
		wanted := r.Spec.DeepCopy()
		return edit{what: fmt.Sprintf(r.Name+": "+format, args...), atMost: atMost, steps: []func(*ground){func(g *ground) {
			update(g, r, func(r *gwv1.HTTPRoute) { r.Spec = *wanted })
		}}}, true
	}
	switch kind {
	case "path":
		to := pick(e.dice, editPaths)
		if !hasPath || *one.Matches[0].Path.Value == to {
			return edit{}, false
		}
		was := *one.Matches[0].Path.Value
		one.Matches[0].Path.Value = &to
		return spec(2, "rule %d from %s to %s", i, was, to)
	case "host":
		to := pick(e.dice, editHosts)
		if len(r.Spec.Rules) > 1 || r.Spec.Hostnames[0] == to {
			return edit{}, false
		}
		was := r.Spec.Hostnames[0]
		r.Spec.Hostnames[0] = to
		return spec(2, "from %s to %s", was, to)
	case "header value":
		to := pick(e.dice, editValues)
		if len(one.Matches) == 0 || len(one.Matches[0].Headers) == 0 || one.Matches[0].Headers[0].Value == to {
			return edit{}, false
		}
		h := &one.Matches[0].Headers[0]
		was := h.Value
		h.Value = to
		return spec(2, "rule %d, %s from %s to %s", i, h.Name, was, to)
	case "backend":
		to := pick(e.dice, e.backends[r.Namespace])
		if len(one.BackendRefs) != 1 || string(one.BackendRefs[0].Name) == to {
			return edit{}, false
		}
		was := one.BackendRefs[0].Name
		one.BackendRefs[0].Name = gwv1.ObjectName(to)
		return spec(-1, "rule %d from %s to %s", i, was, to)
	case "weights":
		if len(one.BackendRefs) != 2 {
			return edit{}, false
		}
		a, b := int32(1+e.IntN(5)), int32(1+e.IntN(5))
		if *one.BackendRefs[0].Weight*b == *one.BackendRefs[1].Weight*a {
			return edit{}, false
		}
		one.BackendRefs[0].Weight, one.BackendRefs[1].Weight = &a, &b
		return spec(-1, "rule %d to %d and %d", i, a, b)
	case "add a rule":
		if len(r.Spec.Rules) > 5 || strings.HasPrefix(r.Name, "ties") {
			return edit{}, false
		}
		m := path(gwv1.PathMatchPathPrefix, pick(e.dice, editPaths))
		added := rule([]gwv1.HTTPRouteMatch{m}, backend(pick(e.dice, e.backends[r.Namespace]), 1))
		r.Spec.Rules = slices.Insert(r.Spec.Rules, i, added)
		return spec(4, "%s to %s at %d", *m.Path.Value, added.BackendRefs[0].Name, i)
	case "delete a rule":
		if len(r.Spec.Rules) < 3 {
			return edit{}, false
		}
		r.Spec.Rules = slices.Delete(r.Spec.Rules, i, i+1)
		return spec(2, "rule %d", i)
	case "swap two rules":
		if !strings.HasPrefix(r.Name, "ties") || len(r.Spec.Rules) != 2 || r.Spec.Rules[0].BackendRefs[0].Name == r.Spec.Rules[1].BackendRefs[0].Name {
			return edit{}, false
		}
		slices.Reverse(r.Spec.Rules)
		return spec(1, "which of two headers comes first")
	case "rename a route":
		e.renamed++
		name, _, _ := strings.Cut(r.Name, "-renamed-")
		young := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: fmt.Sprintf("%s-renamed-%d", name, e.renamed)}}
		young.Spec = *r.Spec.DeepCopy()
		return edit{what: r.Name + " to " + young.Name, atMost: -1, steps: []func(*ground){
			func(g *ground) { g.apply(young) },
			func(g *ground) {
				g.must(g.kube.Delete(g.Context(), &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}))
			},
		}}, true
	case "beside a redirect":
		switch to := pick(e.dice, editPaths); {
		case len(one.Filters) > 0 && e.oneIn(2):
			one.Filters[0].RequestRedirect.Hostname = new(gwv1.PreciseHostname(fmt.Sprintf("to-%d.test", e.IntN(100))))
			return spec(-1, "rule %d redirects to %s", i, *one.Filters[0].RequestRedirect.Hostname)
		case len(one.Filters) > 0:
			one.Matches[0].Path.Value = &to
			return spec(-1, "the redirect of rule %d is for %s", i, to)
		case *one.Matches[0].Path.Value != to:
			one.Matches[0].Path.Value = &to
			return spec(-1, "rule %d is for %s", i, to)
		}
	}
	return edit{}, false
}

// judge knows what was wanted at which time, and what was answered.
type judge struct {
	*ground
	*world
	site    site
	gateway *gwv1.Gateway

	mu      sync.Mutex
	records []record
	// looking are the routes that the load asks for.
	looking []*gwv1.HTTPRoute
	// concerned are requests that the last change concerns.
	concerned []question

	spans  []span
	wrong  []string
	judged struct{ all, during, old, young int }
}

// record is one request and its answer.
type record struct {
	question
	from, to time.Time
	reply    reply
	err      error
}

// span is a time in which the trees of some oracles could be in force. The last one has no end.
type span struct {
	from, to time.Time
	oracles  []*oracle
}

func (j *judge) routesNow() []*gwv1.HTTPRoute {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.looking
}

// look compiles what Kubernetes holds now.
func (j *judge) look() *oracle {
	j.Helper()
	routes := j.ground.routes(j.site.namespaces...)
	tree := j.compile(j.gateway, routes).Tree
	o, err := j.oracle(&tree)
	j.must(err)
	l, err := j.loadBalancer(j.gateway)
	j.must(err)
	o.id = l.ID
	j.mu.Lock()
	defer j.mu.Unlock()
	j.looking = routes
	return o
}

// concern finds requests that before and after answer differently. From now on every other request of the load is one of them.
func (j *judge) concern(before, after *oracle) []question {
	var found []question
	d := newDice(1, uint64(len(j.spans)))
	for range 2000 {
		if q := j.draw(d); len(found) < 20 && !reflect.DeepEqual(before.wants(q.request()), after.wants(q.request())) {
			found = append(found, q)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.concerned = found
	return found
}

// settle waits until the controller and Octavia are done: the requests that a change concerns are answered as they shall be after it, the
// statuses are those of the routes, and nothing has moved for a while. It returns the begin of that while.
func (j *judge) settle(probes []question, after *oracle) time.Time {
	j.Helper()
	const quiet = 4 * time.Second
	vip := j.vip(j.gateway)
	var since time.Time
	writes := -1
	j.eventually(8*time.Minute, "the change is done", func() error {
		err := j.done(vip, probes, after)
		if now := j.calls().writes("load-balancer"); err == nil && now != writes {
			writes, err = now, fmt.Errorf("the controller is writing")
		}
		if err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("not quiet for %v yet", quiet)
		}
		return nil
	})
	return since
}

func (j *judge) done(vip string, probes []question, after *oracle) error {
	for _, r := range j.ground.routes(j.site.namespaces...) {
		for _, p := range r.Status.Parents {
			if c := meta.FindStatusCondition(p.Conditions, string(gwv1.RouteConditionAccepted)); c == nil || c.ObservedGeneration != r.Generation {
				return fmt.Errorf("the status of %s is old", r.Name)
			}
		}
		if len(r.Status.Parents) == 0 {
			return fmt.Errorf("%s has no status", r.Name)
		}
	}
	gw := &gwv1.Gateway{}
	if err := j.kube.Get(j.Context(), client.ObjectKeyFromObject(j.gateway), gw); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed)); c == nil || c.Status != metav1.ConditionTrue || strings.Contains(c.Message, "last") {
		return fmt.Errorf("the Gateway is not programmed: %v", c)
	}
	if n := j.atWork(); n != 0 {
		return fmt.Errorf("the controller has %v Gateways at work", n)
	}
	l, err := j.loadBalancer(j.gateway)
	if err != nil {
		return err
	}
	if l.ProvisioningStatus != "ACTIVE" {
		return fmt.Errorf("the load balancer is %s", l.ProvisioningStatus)
	}
	a := newAsker(vip)
	defer a.close()
	for _, q := range probes[:min(len(probes), 6)] {
		got, err := a.ask(j.Context(), q)
		if err != nil {
			return err
		}
		if want := after.wants(q.request()); !want.admits(got) {
			return fmt.Errorf("%s is answered by %s, not yet by %s", q, got, want)
		}
	}
	return nil
}

// atWork is how many Gateways the controller works on or has in its queue.
func (g *ground) atWork() float64 {
	g.Helper()
	list := &corev1.PodList{}
	g.must(g.kube.List(g.Context(), list, client.InNamespace(controllerNamespace)))
	var n float64
	for i := range list.Items {
		if !list.Items[i].DeletionTimestamp.IsZero() || list.Items[i].Status.PodIP == "" {
			continue
		}
		req, err := http.NewRequestWithContext(g.Context(), http.MethodGet, "http://"+list.Items[i].Status.PodIP+":8080/metrics", nil)
		g.must(err)
		res, err := g.inside.Do(req)
		g.must(err)
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			name, rest, _ := strings.Cut(lines.Text(), "{")
			labels, value, _ := strings.Cut(rest, "} ")
			if name == "controller_runtime_active_workers" && label(labels, "controller") == "gateway" || name == "workqueue_depth" && label(labels, "name") == "gateway" {
				var v float64
				_, err := fmt.Sscan(value, &v)
				g.must(err)
				n += v
			}
		}
		g.must(lines.Err())
		g.must(res.Body.Close())
	}
	return n
}

// draw is a request that the routes of now are about.
func (j *judge) draw(d dice) question {
	r := pick(d, j.routesNow())
	q := question{Port: 80, Method: "GET", Target: "/", Host: concrete(d, string(r.Spec.Hostnames[0]))}
	if one := pick(d, r.Spec.Rules); len(one.Matches) > 0 {
		m := one.Matches[0]
		if m.Path != nil {
			q.Target = target(d, m.Path, nil)
		}
		for _, h := range m.Headers {
			q.Headers = append(q.Headers, [2]string{string(h.Name), h.Value})
		}
	}
	switch d.IntN(9) {
	case 3:
		q.Headers = append(q.Headers[:0:0], [2]string{"x-v", "v1"}, [2]string{"x-u", "v1"})
	case 0:
		q.Target = pick(d, editPaths) + pick(d, []string{"", "/x"})
	case 1:
		q.Headers = append(q.Headers[:0:0], [2]string{"x-v", pick(d, editValues)})
	case 2:
		q.Host = concrete(d, string(pick(d, editHosts)))
	}
	return q
}

// next is a request of the load.
func (j *judge) next(d dice) question {
	j.mu.Lock()
	concerned := j.concerned
	j.mu.Unlock()
	if len(concerned) > 0 && d.oneIn(2) {
		return pick(d, concerned)
	}
	return j.draw(d)
}

// load asks at a constant rate until it is stopped. Most requests have a connection of their own, some share one.
func (j *judge) load(address string, rate int, start uint64) (stop func()) {
	const hands = 8
	ctx, cancel := context.WithCancel(j.Context())
	var wait sync.WaitGroup
	for i := range hands {
		wait.Go(func() {
			d := newDice(start, uint64(100+i))
			a := newAsker(address)
			defer a.close()
			tick := time.NewTicker(time.Second * hands / time.Duration(max(rate, 1)))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if i > 1 {
					a.close()
				}
				one := record{question: j.next(d), from: time.Now()}
				one.reply, one.err = a.ask(j.Context(), one.question)
				one.to = time.Now()
				j.mu.Lock()
				j.records = append(j.records, one)
				j.mu.Unlock()
			}
		})
	}
	return func() {
		cancel()
		wait.Wait()
	}
}

// changed says that a change was under way from a time to another.
func (j *judge) changed(from, to time.Time, oracles []*oracle) {
	j.spans[len(j.spans)-1].to = from
	j.spans = append(j.spans, span{from, to, oracles}, span{from: to, oracles: oracles[len(oracles)-1:]})
}

// judge judges what was answered up to now.
func (j *judge) judge() {
	j.Helper()
	j.mu.Lock()
	records := j.records
	j.records = nil
	j.mu.Unlock()
	for _, r := range records {
		j.judged.all++
		if why := j.verdict(r); why != "" {
			j.wrong = append(j.wrong, why)
			if len(j.wrong) <= 10 {
				j.Error(why)
			}
		}
	}
}

// verdict says what is wrong with an answer, if anything.
func (j *judge) verdict(r record) string {
	var could []string
	for _, s := range j.spans {
		if s.to.IsZero() && r.to.Before(s.from) || !s.to.IsZero() && (r.to.Before(s.from) || r.from.After(s.to)) {
			continue
		}
		if len(s.oracles) > 1 {
			j.judged.during++
		}
		for i, o := range s.oracles {
			want := o.wants(r.request())
			if r.err == nil && want.admits(r.reply) {
				if len(s.oracles) > 1 && !reflect.DeepEqual(s.oracles[0].wants(r.request()), s.oracles[len(s.oracles)-1].wants(r.request())) {
					if i == 0 {
						j.judged.old++
					} else {
						j.judged.young++
					}
				}
				return ""
			}
			could = append(could, want.String())
		}
	}
	if r.err != nil {
		return fmt.Sprintf("%s: %s failed after %v: %v", r.from.Format(time.TimeOnly), r.question, r.to.Sub(r.from), r.err)
	}
	return fmt.Sprintf("%s: %s was answered by %s; could be %v", r.from.Format("15:04:05.000"), r.question, r.reply, slices.Compact(could))
}

func (j *judge) report(table map[string][]string) {
	j.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "change\tcalls at most\twriting calls to Octavia (time)")
	for _, k := range kinds {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", k.name, k.atMost, strings.Join(table[k.name], ", "))
	}
	_ = w.Flush()
	j.Logf("\n%s%d requests, %d while something changed; of those that a change concerns %d got the old answer and %d the new one; %d wrong",
		b.String(), j.judged.all, j.judged.during, j.judged.old, j.judged.young, len(j.wrong))
	if j.judged.all == 0 {
		j.Error("there was no load")
	}
}
