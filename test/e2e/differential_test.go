//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	router "github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// Generated Gateways and routes answer generated requests through the real Octavia and HAProxy exactly as package route says of their
// trees. More Gateways and requests than here come with GATEWAY_API_OPENSTACK_E2E_GATEWAYS and _REQUESTS (of each Gateway).
func TestDifferential_realAnswersAreThoseOfRoute(t *testing.T) {
	g := newGround(t)
	g.steady()
	number, requests, start := number(t, "GATEWAYS", 3), number(t, "REQUESTS", 4000), seed(t)
	s := g.site("e2e-diff", "e2e-diff-b")
	c := g.cloudClient()
	facts := g.facts(c)

	all := make([]drawn, number)
	w := g.world(facts, s.namespaces...)
	for i := range all {
		all[i] = s.drawSized(t, w, newDice(start, uint64(i)), fmt.Sprintf("g%d", i))
	}
	began := time.Now()
	for _, one := range all {
		for _, r := range one.routes {
			g.apply(r)
		}
	}
	for _, one := range all {
		g.apply(one.gateway)
	}
	for _, one := range all {
		g.healthy(one.gateway)
	}
	t.Logf("%d Gateways are programmed after %v", number, time.Since(began).Round(time.Second))

	w = g.world(facts, s.namespaces...)
	for i, one := range all {
		t.Run(one.gateway.Name, func(t *testing.T) {
			g := g.in(t)
			tree := w.compile(one.gateway, w.HTTPRoutes).Tree
			if i == 0 {
				// Reading back costs Octavia a call for each policy, so one Gateway stands for all.
				g.isAsWanted(c, &tree)
			}
			l, err := g.loadBalancer(one.gateway)
			g.must(err)
			g.validConfiguration(l.ID)
			o, err := w.oracle(&tree)
			g.must(err)
			one.routes = w.HTTPRoutes[:0:0]
			for _, r := range w.HTTPRoutes {
				if string(r.Spec.ParentRefs[0].Name) == one.gateway.Name {
					one.routes = append(one.routes, r)
				}
			}
			d := newDice(start, uint64(1000+i))
			questions := make([]question, requests)
			for j := range questions {
				questions[j] = one.question(d)
			}
			g.compare(o, l.VipAddress, questions)
		})
	}
	for _, one := range all {
		g.must(client.IgnoreNotFound(g.kube.Delete(t.Context(), one.gateway)))
	}
	for _, one := range all {
		g.delete(one.gateway)
	}
	g.nothingLeft()
}

// site makes namespaces with three backends in the first and two in each other one. Their names are told by their answers.
func (g *ground) site(namespaces ...string) site {
	g.Helper()
	s := site{namespaces: namespaces, backends: map[string][]string{}, samples: map[string][]string{}}
	for i, n := range namespaces {
		g.namespace(n, map[string]string{"e2e": "yes"})
		for j := range 3 - min(i, 1) {
			s.backends[n] = append(s.backends[n], fmt.Sprintf("%c%d", 'a'+i, j))
		}
	}
	var wait sync.WaitGroup
	for n, names := range s.backends {
		for _, name := range names {
			wait.Go(func() { g.echo(n, name, 1) })
		}
	}
	wait.Wait()
	if g.Failed() {
		g.FailNow()
	}
	return s
}

// The size of a generated tree: large enough to overlap, small enough to be created in half a minute.
const leastPolicies, mostPolicies = 18, 32

// drawSized draws until a tree has such a size and redirects as well.
func (s site) drawSized(t *testing.T, w *world, d dice, name string) drawn {
	t.Helper()
	for range 10000 {
		one := s.draw(d, name)
		one.gateway.UID = "drawn"
		tree := w.compile(one.gateway, one.routes).Tree
		one.gateway.UID = ""
		policies, redirects := 0, 0
		for _, l := range tree.Listeners {
			policies += len(l.Policies)
			for _, p := range l.Policies {
				if p.Action == lb.RedirectPrefix || p.Action == lb.RedirectToURL {
					redirects++
				}
			}
		}
		if policies >= leastPolicies && policies <= mostPolicies && redirects >= 4 && len(tree.Pools) <= 8 {
			t.Logf("%s: %d listeners, %d routes, %d policies, %d of them redirects, %d pools", name, len(tree.Listeners), len(one.routes), policies, redirects, len(tree.Pools))
			return one
		}
	}
	t.Fatal("no generated Gateway has the size that is wanted")
	return drawn{}
}

// isAsWanted reads the tree back from the cloud and returns its id.
func (g *ground) isAsWanted(c *cloud.Client, want *lb.Tree) string {
	g.Helper()
	began := time.Now()
	have, err := c.Observe(g.Context(), want.Owner)
	g.must(err)
	steps := plan.New(want, &have).Steps
	for _, s := range steps {
		g.Errorf("the cloud is not as wanted: %s %s %s: %s", s.Verb, s.Kind, s.Ref.Key, s.Reason)
	}
	g.Logf("read back in %v", time.Since(began).Round(100*time.Millisecond))
	return have.ID
}

// workers ask at the same time.
const workers = 6

// compare asks everything and reports where HAProxy and the oracle differ.
func (g *ground) compare(o *oracle, address string, questions []question) {
	g.Helper()
	began := time.Now()
	var (
		mu                              sync.Mutex
		differences                     []string
		same, refused, unsteady, silent int
		kinds                           = map[string]int{}
	)
	next := make(chan question)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			a := newAsker(address)
			defer a.close()
			for q := range next {
				want := o.wants(q.request())
				got, err := a.ask(g.Context(), q)
				first := got
				for range 3 {
					if err == nil && (want.admits(got) || refusedItself(q, got)) {
						break
					}
					// A difference is one that stays.
					time.Sleep(time.Second)
					got, err = a.ask(g.Context(), q)
				}
				mu.Lock()
				switch {
				case err != nil:
					differences = append(differences, fmt.Sprintf("%s\n  error: %v\n  route: %s", q, err, o.why(q.request())))
				case refusedItself(q, got):
					refused++
				case !want.admits(got):
					differences = append(differences, fmt.Sprintf("%q\n  real:  %s\n  route: %s, %s", q, got, want, o.why(q.request())))
				case !want.admits(first):
					unsteady++
				case got.Text == "" && got.byBackend:
					silent++
				default:
					same++
				}
				if err == nil {
					kinds[kindOf(got)]++
				}
				mu.Unlock()
			}
		})
	}
	for _, q := range questions {
		next <- q
	}
	close(next)
	wait.Wait()
	slices.Sort(differences)
	for i, d := range differences {
		if i == 10 {
			break
		}
		g.Errorf("difference: %s", d)
	}
	g.Logf("%d requests in %v: %d the same, %d to a backend that refused them, %d refused by HAProxy itself, %d only when repeated, %d different; answers %v",
		len(questions), time.Since(began).Round(100*time.Millisecond), same, silent, refused, unsteady, len(differences), kinds)
	if unsteady > len(questions)/100 {
		g.Errorf("%d answers were right only when asked again", unsteady)
	}
}

// refusedItself says that HAProxy did not like the request, as it may.
func refusedItself(q question, r reply) bool { return q.Odd && r.Status == 400 && !r.byBackend }

func kindOf(r reply) string {
	if r.byBackend {
		return "backend"
	}
	return fmt.Sprint(r.Status)
}

// Rules, comparisons and actions that the compiler never emits are evaluated by package route too, since plans meet what others did to a
// load balancer. Here a drawn load balancer has all of them, and its answers tell which policy decided.
func TestDifferential_rulesAndActionsOfAllKinds(t *testing.T) {
	g := newGround(t)
	start := seed(t)
	d := newDice(start, 50)
	c := g.cloudClient()
	owner := lb.Owner{ClusterID: "e2e-raw", Controller: api.DefaultControllerName, Namespace: "e2e", Name: "kinds", UID: fmt.Sprint("drawn-", start)}
	want := drawTree(d, owner, g.nodeSubnet)
	e, err := router.New(want)
	g.must(err)
	began := time.Now()
	have := &lb.Tree{Owner: owner}
	t.Cleanup(func() {
		// A load balancer that is left fails the tests after this one: an amphora that still boots is waited for.
		ctx := context.WithoutCancel(t.Context())
		for limit := time.Now().Add(5 * time.Minute); have.ID != ""; time.Sleep(2 * time.Second) {
			err := loadbalancers.Delete(ctx, g.cloud.octavia, have.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr()
			if gophercloud.ResponseCodeIs(err, http.StatusConflict) && time.Now().Before(limit) {
				continue
			}
			if err != nil {
				t.Errorf("deleting the load balancer of the test: %v", err)
			}
			break
		}
	})
	progress, err := c.Apply(t.Context(), have, plan.New(want, have).Steps, 10*time.Minute, nil)
	for limit := began.Add(10 * time.Minute); err == nil && progress.Pending && time.Now().Before(limit); {
		time.Sleep(progress.RequeueAfter)
		progress, err = c.Resume(t.Context(), have, progress.Since, time.Minute)
	}
	g.must(err)
	if progress.Remaining > 0 || progress.Pending {
		t.Fatalf("not there after %v: %+v", time.Since(began), progress)
	}
	t.Logf("%d policies are there after %v", len(want.Listeners[0].Policies), time.Since(began).Round(time.Second))
	g.validConfiguration(have.ID)
	questions := make([]question, number(t, "REQUESTS", 4000))
	for i := range questions {
		questions[i] = anyQuestion(d)
	}
	g.compare(&oracle{Evaluator: e, tree: want}, have.VIP.Address, questions)
}

// drawTree draws a load balancer whose policies mostly redirect, each to a place of its own.
func drawTree(d dice, owner lb.Owner, subnet string) *lb.Tree {
	meta := func(kind lb.Kind, key string) lb.Meta {
		return lb.Meta{Key: key, Name: key, Tags: owner.Tags(kind, key)}
	}
	tree := &lb.Tree{Meta: meta(lb.KindLoadBalancer, "loadbalancer"), Owner: owner, VIP: lb.VIP{SubnetID: subnet},
		Listeners: []lb.Listener{{Meta: meta(lb.KindListener, "http-80"), Protocol: lb.HTTP, Port: 80}},
		Pools:     []lb.Pool{{Meta: meta(lb.KindPool, "off"), Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN"}, {Meta: meta(lb.KindPool, "on"), Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN"}}}
	tree.Pools[0].Disabled = true
	sample := make([]question, 300)
	for i := range sample {
		sample[i] = anyQuestion(d)
	}
	for i := 0; i < 40; {
		p := lb.Policy{Meta: meta(lb.KindPolicy, fmt.Sprintf("p%02d", i)), Action: lb.RedirectToURL, URL: fmt.Sprintf("https://p%02d.test/x?y", i), Code: pick(d, []int{301, 302, 303, 307, 308})}
		switch d.IntN(8) {
		case 0:
			p.Action, p.URL, p.Code = lb.Reject, "", 0
		case 1:
			p.Action, p.URL, p.Code, p.Pool = lb.RedirectToPool, "", 0, pick(d, []string{"on", "off"})
		case 2, 3:
			p.Action, p.URL = lb.RedirectPrefix, fmt.Sprintf("http://p%02d.test:8080/&<b>%%20", i)
		}
		p.Disabled = d.oneIn(15)
		for range 1 + d.IntN(3) {
			p.Rules = append(p.Rules, drawRule(d))
		}
		if d.oneIn(10) {
			p.Rules[0].Disabled = true
		}
		if share := shareOf(p, tree, sample); share > 0.004 && share < 0.08 {
			tree.Listeners[0].Policies = append(tree.Listeners[0].Policies, p)
			i++
		}
	}
	return tree
}

// shareOf is how many of the requests a policy takes when it is the only one, and on. Those that take nearly all or nothing show little.
func shareOf(p lb.Policy, tree *lb.Tree, sample []question) float64 {
	p.Disabled, p.Action, p.URL = false, lb.Reject, ""
	alone := *tree
	alone.Listeners = []lb.Listener{{Meta: tree.Listeners[0].Meta, Protocol: lb.HTTP, Port: 80, Policies: []lb.Policy{p}}}
	e, err := router.New(&alone)
	if err != nil {
		return 0
	}
	taken := 0
	for _, q := range sample {
		if e.Route(q.request()).Policy != "" {
			taken++
		}
	}
	return float64(taken) / float64(len(sample))
}

// The values are literal for all comparisons but REGEX. Those that break HAProxy's configuration are not among them: route.New refuses them.
var (
	anyHosts  = []string{"a.test", "A.test", "test", ".test", "a", ":80", "x.a", "b&c", "."}
	anyPaths  = []string{"/p", "/p/q", "q", "/", "/p&q", "/p<q>", `/p\q`, "%20", "/p$", "${HOME}", "@", ".html", "P", "-", "/p;v=1", "|", "(", "[a-z]", "^", "*"}
	anyValues = []string{"v1", "v", "1", "v1;q=1", "&", "<v>", `v\1`, "%[src]", "$1", "V1", "=", "(v1)"}
	anyRegex  = []string{"a", "^a", "test$", `^[^:]+\.test(:[0-9]*)?$`, "(?!)", "^(?!v1$)", "^(?!/p)", "v1|v2", "[A-Z]", `\.`, `^/p(/|$)`, "&", "<", `^$`, "^.{3}$", `\x26`, "(p)(q)?", `\d`, "(?i)V1", `(\w)/\1`, "a b|v1", "%20", `[\]\\]`, "v1, v2", "^(/p|/q)*$"}
)

func drawRule(d dice) lb.Rule {
	r := lb.Rule{Type: pick(d, []lb.RuleType{lb.RuleHost, lb.RulePath, lb.RulePath, lb.RuleHeader}), Compare: pick(d, []lb.Compare{lb.EqualTo, lb.StartsWith, lb.EndsWith, lb.Contains, lb.Regex}), Invert: d.oneIn(5)}
	switch r.Type {
	case lb.RuleHost:
		r.Value = pick(d, anyHosts)
	case lb.RulePath:
		r.Value = pick(d, anyPaths)
	default:
		r.Key, r.Value = pick(d, []string{"X-A", "x-b", "User-Agent"}), pick(d, anyValues)
	}
	if r.Compare == lb.Regex {
		r.Value = pick(d, anyRegex)
	}
	if r.Value == "-" {
		r.Value = "/-"
	}
	return r
}

func anyQuestion(d dice) question {
	q := question{Port: 80, Method: "GET", Host: pick(d, []string{"a.test", "A.TEST", "a.test:80", "x.a.test", "test", "b", "b&amp;c"}), Target: "/"}
	for range d.IntN(3) {
		q.Target += pick(d, []string{"p", "q", "p/q", "P", "/", "p&amp;q", "p&q", "%20", "$", "@", ".html", "-", ";v=1", "pp", "x", "*", "(", "?p/q"})
	}
	for _, name := range []string{"X-A", "X-B", "user-agent"} {
		for d.oneIn(2) {
			value := pick(d, append(anyValues, "v1, v2", "v2,v1", "", " ", "&amp;", "&lt;v&gt;", "a b", `"v1, v2"`, "abc", "xV1x"))
			q.Headers = append(q.Headers, [2]string{name, value})
		}
	}
	for d.oneIn(3) {
		q.change(d)
	}
	q.settle()
	return q
}
