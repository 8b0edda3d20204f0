//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
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
			id := g.isAsWanted(c, &tree)
			g.validConfiguration(id)
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
			g.compare(o, g.vip(one.gateway), questions)
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
func (g *ground) isAsWanted(c interface {
	Observe(context.Context, lb.Owner) (lb.Tree, error)
}, want *lb.Tree) string {
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
