package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

func mustDo(t *testing.T, c *sim.Cloud, service, method, path string, body any) map[string]any {
	t.Helper()
	out, err := c.Do(service, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

func only(t *testing.T, objects map[string]map[string]any) string {
	t.Helper()
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one", len(objects))
	}
	for id := range objects {
		return id
	}
	return ""
}

func TestQuota_leaksPoliciesAndRules(t *testing.T) {
	t.Parallel()
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.SetQuota("l7policy", 2)
	c.SetQuota("l7rule", 2)
	round := func() (first, second error) {
		id, _ := create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 80}}})
		l := only(t, c.Snapshot()["listeners"])
		_, first = c.Do(sim.Octavia, "POST", "/l7policies", tree{"l7policy": tree{"listener_id": l, "action": "REJECT"}})
		if first == nil {
			p := only(t, c.Snapshot()["l7policies"])
			_, second = c.Do(sim.Octavia, "POST", "/l7policies/"+p+"/rules", tree{"rule": ruleTree("PATH", "EQUAL_TO", "/a")})
		}
		mustDo(t, c, sim.Octavia, "DELETE", "/loadbalancers/"+id+"?cascade=true", nil)
		return first, second
	}
	for i := range 2 {
		if a, b := round(); a != nil || b != nil {
			t.Fatalf("round %d: %v %v", i, a, b)
		}
	}
	if a, _ := round(); a == nil || a.Error() != "Quota has been met for resources: L7 Policy" {
		t.Errorf("a cascade gives no policies back: %v", a)
	}
	// A fully-populated create counts none.
	id, _ := create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 80, "l7policies": []tree{
		policyTree("REJECT", nil, ruleTree("PATH", "EQUAL_TO", "/a")), policyTree("REJECT", nil, ruleTree("PATH", "EQUAL_TO", "/b")), policyTree("REJECT", nil, ruleTree("PATH", "EQUAL_TO", "/c"))}}}})
	mustDo(t, c, sim.Octavia, "DELETE", "/loadbalancers/"+id+"?cascade=true", nil)
}

func TestOldRelease_breaksTheFullyPopulatedCreate(t *testing.T) {
	t.Parallel()
	c, err := sim.New(sim.Options{BrokenCreate: true, MaxAPIVersion: "v2.26"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	id, _ := create(t, c, tree{"pools": []tree{poolTree("p", tree{"address": "10.1.0.9", "protocol_port": 80})}, "listeners": []tree{{"protocol": "HTTP", "protocol_port": 80}}})
	s := c.Snapshot()
	if len(s["listeners"]) != 0 || s["loadbalancers"][id]["provisioning_status"] != "ACTIVE" || s["pools"][only(t, s["pools"])]["provisioning_status"] != "PENDING_CREATE" {
		t.Errorf("%s", s.JSON())
	}
	for _, body := range []tree{{"vip_sg_ids": []string{}}, {"listeners": []tree{{"protocol": "HTTP", "protocol_port": 80, "hsts_max_age": 1}}}} {
		body["vip_subnet_id"] = c.VIPSubnetID()
		if _, err := c.Do(sim.Octavia, "POST", "/loadbalancers", tree{"loadbalancer": body}); err == nil || !strings.HasPrefix(err.Error(), "Unknown attribute for argument") {
			t.Errorf("%v: %v", body, err)
		}
	}
}

func TestSeed_makesEqualClouds(t *testing.T) {
	t.Parallel()
	dump := func(seed uint64) []byte {
		c, err := sim.New(sim.Options{Seed: seed, Clock: sim.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		create(t, c, tree{"name": "x", "listeners": []tree{{"protocol": "HTTP", "protocol_port": 80}}})
		return c.Snapshot().JSON()
	}
	if !bytes.Equal(dump(1), dump(1)) {
		t.Error("equal seeds give different clouds")
	}
	if bytes.Equal(dump(1), dump(2)) {
		t.Error("different seeds give equal clouds")
	}
}

func TestSnapshot_isACopy(t *testing.T) {
	t.Parallel()
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	id, _ := create(t, c, tree{"name": "x", "tags": []string{"a"}})
	s := c.Snapshot()
	mustDo(t, c, sim.Octavia, "PUT", "/loadbalancers/"+id, tree{"loadbalancer": tree{"name": "y", "tags": []string{"b"}}})
	if s["loadbalancers"][id]["name"] != "x" || fmt.Sprint(s["loadbalancers"][id]["tags"]) != "[a]" {
		t.Error("the snapshot changed")
	}
	mine := c.Snapshot().Only(func(collection string, o map[string]any) bool {
		return collection == "loadbalancers" && o["name"] == "y"
	})
	if mine.Counts()["loadbalancers"] != 1 || len(mine) != 1 {
		t.Errorf("%v", mine.Counts())
	}
	c.Vanish(id)
	if leaks := s.Leaks(c.Snapshot()); len(leaks) != 2 {
		t.Errorf("what vanished: %v", leaks)
	}
}

func TestMemberHealth_reachesThePool(t *testing.T) {
	t.Parallel()
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p := poolTree("p", tree{"address": "10.1.0.9", "protocol_port": 80, "name": "a"}, tree{"address": "10.1.0.10", "protocol_port": 80, "name": "b"})
	p["healthmonitor"] = tree{"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}
	create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 80, "default_pool": p}}})
	s := c.Snapshot()
	pool := only(t, s["pools"])
	for _, want := range []string{"DEGRADED", "ERROR"} {
		for id, m := range s["members"] {
			if m["name"] == map[string]string{"DEGRADED": "a", "ERROR": "b"}[want] {
				c.SetMemberHealth(id, "ERROR")
			}
		}
		if got := c.Snapshot()["pools"][pool]["operating_status"]; got != want {
			t.Errorf("pool is %v, want %s", got, want)
		}
	}
}

func TestLatency_growsWithTheLoadBalancer(t *testing.T) {
	t.Parallel()
	small, large := sim.Measured(sim.Op{Resource: "rule", Action: "update", Policies: 1, Pools: 1}), sim.Measured(sim.Op{Resource: "rule", Action: "update", Policies: 50, Pools: 50})
	if small.Pending > 2*time.Second || large.Pending < 10*time.Second || large.Pending > 20*time.Second {
		t.Errorf("%v %v", small, large)
	}
	if full := sim.Measured(sim.Op{Resource: "loadbalancer", Action: "create", Policies: 50, Pools: 50}); full.Hold < 10*time.Second || full.Hold+full.Pending < 90*time.Second {
		t.Errorf("%v", full)
	}
}

func TestPageLimit_cutsLists(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{PageLimit: 2})
	var ps []tree
	for i := range 5 {
		ps = append(ps, poolTree(fmt.Sprint("p", i)))
	}
	id, _ := create(t, c, tree{"pools": ps})
	create(t, c, tree{"pools": []tree{poolTree("foreign")}})
	pages, err := pools.List(cl.lb, pools.ListOpts{LoadbalancerID: id}).AllPages(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got, err := pools.ExtractPools(pages)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 6 {
		t.Errorf("%d pools: a client that follows next links sees what it did not ask for", len(got))
	}
}

func TestCloud_standsManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{Latency: sim.Pending(time.Millisecond)})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ctx := context.Background()
			lb, err := loadbalancers.Create(ctx, cl.lb, loadbalancers.CreateOpts{Name: fmt.Sprint(i), VipSubnetID: c.VIPSubnetID()}).Extract()
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				_, _ = listeners.Create(ctx, cl.lb, listeners.CreateOpts{Protocol: "HTTP", ProtocolPort: 80, LoadbalancerID: lb.ID}).Extract()
				_, _ = loadbalancers.Get(ctx, cl.lb, lb.ID).Extract()
				c.Snapshot()
			}
		}()
	}
	wg.Wait()
	if n := c.Snapshot().Counts()["listeners"]; n != 8 {
		t.Errorf("%d listeners", n)
	}
}

func TestCalls_areRecorded(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{})
	c.ResetCalls()
	lb, err := createLB(t, c, cl)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadbalancers.List(cl.lb, loadbalancers.ListOpts{ID: lb.ID}).AllPages(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := c.CallSummary(); !strings.Contains(got, "    1 octavia POST /loadbalancers\n") || !strings.Contains(got, "octavia GET /loadbalancers\n") {
		t.Error(got)
	}
	if m := c.Mutations(); len(m) != 1 || m[0].Status != http.StatusCreated || !strings.Contains(m[0].Body, `"name":"gw"`) {
		t.Errorf("%v", m)
	}
}
