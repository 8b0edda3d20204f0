package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// hurriedClock moves on when somebody sleeps.
type hurriedClock struct{ *sim.FakeClock }

func (c hurriedClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		c.Advance(d)
	}
	return ctx.Err()
}

// singly makes a load balancer with n rules object by object: what a new Gateway costs a writer that does not use the one call for all.
// It is our client with our plans, so it fills a pool in one call and shows the policies of a pool together: others need more.
func singly(t *testing.T, n int) result {
	t.Helper()
	o, clock := &octavia{}, hurriedClock{sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	simulated, err := sim.New(sim.Options{Clock: clock, Latency: o.latency})
	if err != nil {
		t.Fatal(err)
	}
	defer simulated.Close()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, simulated.CloudsYAML("bench"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cloud.New(t.Context(), cloud.Options{CloudsFile: file, Cloud: "bench", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	want := treeOf(n, simulated.VIPSubnetID(), simulated.VIPNetworkID())
	bare := *want
	bare.Listeners, bare.Pools = nil, nil
	have := &lb.Tree{Owner: want.Owner}
	if n > 50 {
		// Hours in that world, and minutes in this one: it is only counted.
		if err := plan.Apply(have, plan.Diff(&bare, have)[0]); err != nil {
			t.Fatal(err)
		}
		return result{writes: 1 + len(plan.Diff(want, have))}
	}
	started := clock.Now()
	for _, target := range []*lb.Tree{&bare, want} {
		progress, err := client.Apply(t.Context(), have, plan.Diff(target, have), 24*time.Hour, nil)
		for err == nil && progress.Pending {
			// An amphora boots: that is for a later look.
			clock.Advance(progress.RequeueAfter)
			progress, err = client.Resume(t.Context(), have, progress.Since, 24*time.Hour)
		}
		if err != nil || progress.Remaining > 0 {
			t.Fatalf("%d rules, object by object: %+v %v", n, progress, err)
		}
	}
	return result{writes: len(simulated.Mutations()), took: clock.Now().Sub(started), busy: o.reset()}
}

// treeOf is the load balancer of a Gateway with n rules, each with its own Service on two Nodes.
func treeOf(n int, subnet, network string) *lb.Tree {
	t := &lb.Tree{
		Meta:  lb.Meta{Key: "loadbalancer", Name: "bench"},
		Owner: lb.Owner{ClusterID: "blue", Controller: "bench", Namespace: "infra", Name: "edge", UID: "00000000-0000-4000-8000-000000000001"},
		VIP:   lb.VIP{SubnetID: subnet, NetworkID: network},
	}
	l := lb.Listener{Meta: lb.Meta{Key: "http-80", Name: "http-80"}, Protocol: lb.HTTP, Port: 80}
	for i := range n {
		key := fmt.Sprintf("s%03d", i)
		pool := lb.Pool{Meta: lb.Meta{Key: key, Name: key}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN",
			Monitor: &lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 2, MaxRetriesDown: 3}}
		for node := range 2 {
			pool.Members = append(pool.Members, lb.Member{Address: fmt.Sprintf("10.1.0.%d", 11+node), Port: 30000 + i, Weight: 1})
		}
		t.Pools = append(t.Pools, pool)
		l.Policies = append(l.Policies, lb.Policy{Meta: lb.Meta{Key: key, Name: key}, Action: lb.RedirectToPool, Pool: key, Rules: []lb.Rule{
			{Type: lb.RuleHost, Compare: lb.Regex, Value: fmt.Sprintf(`^r%d\.example\.com(:[0-9]*)?$`, i/perRoute)},
			{Type: lb.RulePath, Compare: lb.Regex, Value: fmt.Sprintf("^/p%d(/|$)", i)},
		}})
	}
	t.Listeners = []lb.Listener{l}
	return t
}
