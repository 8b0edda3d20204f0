//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// How long people wait, over how long Octavia itself needed for the same calls: the time of the writing calls and the time that the load
// balancer was PENDING. A benchmark, not a timed test: it prints, and fails only when something does not work. The same on the
// simulator, for more sizes and changes: test/bench.
func TestBench_timeOverOctaviasOwn(t *testing.T) {
	g := newGround(t)
	namespace := g.namespace("e2e-bench", map[string]string{"e2e": "yes"})
	g.echo(namespace, "a", 1)
	g.echo(namespace, "b", 1)
	gw := gateway(namespace, "edge", listener("http", 80, ""))
	var rules []gwv1.HTTPRouteRule
	for i := range 10 {
		name := "a"
		if i%2 == 1 {
			name = "b"
		}
		rules = append(rules, rule([]gwv1.HTTPRouteMatch{path(gwv1.PathMatchPathPrefix, fmt.Sprintf("/p%d", i))}, backend(name, 1)))
	}
	r := route(namespace, "bench", gw, []gwv1.Hostname{"bench.test"}, rules...)

	measure := func(what string, change func(), done func()) {
		calls, seconds := g.calls(), g.writingSeconds()
		pending := g.watchPending(gw)
		began := time.Now()
		change()
		done()
		took := time.Since(began)
		waited := pending()
		own := waited + time.Duration((g.writingSeconds()-seconds)*float64(time.Second))
		t.Logf("%s: %d writing calls, %.1f s, Octavia's own %.1f s: x %.2f",
			what, g.calls().since(calls).writes("load-balancer"), took.Seconds(), own.Seconds(), took.Seconds()/own.Seconds())
	}
	measure("a new Gateway with 10 rules", func() { g.apply(r); g.apply(gw) }, func() { g.programmed(gw) })
	public := g.programmed(gw)
	g.expect(g.outside, "http://"+public+"/p9", "bench.test", "b")
	// The load balancer's health settles first: that is a change of it too.
	time.Sleep(15 * time.Second)
	measure("one path changed", func() {
		update(g, r, func(r *gwv1.HTTPRoute) { r.Spec.Rules[3].Matches[0].Path.Value = new("/changed") })
	}, func() { g.expect(g.outside, "http://"+public+"/changed", "bench.test", "b") })
	g.delete(gw)
	g.nothingLeft()
}

// watchPending looks at the Gateway's load balancer until its result is asked for: how long it was PENDING.
func (g *ground) watchPending(gw *gwv1.Gateway) func() time.Duration {
	ctx, cancel := context.WithCancel(g.Context())
	opts := loadbalancers.ListOpts{Tags: []string{"gateway=" + gw.Namespace + "/" + gw.Name}}
	var total time.Duration
	var wait sync.WaitGroup
	wait.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			pending := false
			pages, err := loadbalancers.List(g.cloud.octavia, opts).AllPages(ctx)
			if err == nil {
				all, _ := loadbalancers.ExtractLoadBalancers(pages)
				pending = slices.ContainsFunc(all, func(l loadbalancers.LoadBalancer) bool {
					return strings.HasPrefix(l.ProvisioningStatus, "PENDING")
				})
			}
			now := time.Now()
			if pending {
				total += now.Sub(last)
			}
			last = now
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() time.Duration {
		cancel()
		wait.Wait()
		return total
	}
}
