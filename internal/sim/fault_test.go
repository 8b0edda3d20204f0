package sim_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

func createLB(t *testing.T, c *sim.Cloud, cl clients) (*loadbalancers.LoadBalancer, error) {
	t.Helper()
	return loadbalancers.Create(context.Background(), cl.lb, loadbalancers.CreateOpts{Name: "gw", VipSubnetID: c.VIPSubnetID()}).Extract()
}

func status(t *testing.T, c *sim.Cloud, collection, id string) string {
	t.Helper()
	s, _ := c.Snapshot()[collection][id]["provisioning_status"].(string)
	return s
}

func TestFault_answersWithAStatusAndHeaders(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{})
	for _, want := range []int{403, 404, 409, 429, 500, 503} {
		f := c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: `^/loadbalancers$`, Status: want, Header: http.Header{"Retry-After": {"0"}}})
		_, err := createLB(t, c, cl)
		var unexpected gophercloud.ErrUnexpectedResponseCode
		if !errors.As(err, &unexpected) || unexpected.Actual != want {
			t.Errorf("%d: %v", want, err)
		} else if unexpected.ResponseHeader.Get("Retry-After") != "0" || !strings.Contains(string(unexpected.Body), "faultstring") {
			t.Errorf("%d: %v %s", want, unexpected.ResponseHeader, unexpected.Body)
		}
		if f.Hits() != 1 {
			t.Errorf("%d: hit %d times", want, f.Hits())
		}
	}
	if _, err := createLB(t, c, cl); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestFault_losesAnswersButNotTheDeed(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{})
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: `^/loadbalancers$`, Cut: sim.CutBefore})
	if _, err := createLB(t, c, cl); err == nil {
		t.Fatal("the connection was not cut")
	}
	if n := c.Snapshot().Counts()["loadbalancers"]; n != 0 {
		t.Fatalf("%d load balancers after a request that was lost", n)
	}
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: `^/loadbalancers$`, Cut: sim.CutAfter})
	if _, err := createLB(t, c, cl); err == nil {
		t.Fatal("the connection was not cut")
	}
	if n := c.Snapshot().Counts()["loadbalancers"]; n != 1 {
		t.Fatalf("%d load balancers after an answer that was lost", n)
	}
	var cut int
	for _, call := range c.Calls() {
		if call.Status == 0 {
			cut++
		}
	}
	if cut != 2 {
		t.Errorf("%d calls recorded as cut", cut)
	}
}

func TestFault_skipsAndRepeats(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{})
	f := c.Inject(sim.Fault{Service: sim.Neutron, Path: `^/floatingips`, Body: `"description":"x"`, Skip: 1, Times: 2, Status: 503})
	var got []bool
	for range 4 {
		_, err := floatingips.Create(context.Background(), cl.net, floatingips.CreateOpts{FloatingNetworkID: c.PublicNetworkID(), Description: "x"}).Extract()
		got = append(got, err == nil)
	}
	if want := []bool{true, false, false, true}; !equalBools(got, want) || f.Hits() != 2 {
		t.Errorf("%v, %d hits", got, f.Hits())
	}
}

func equalBools(a, b []bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestFault_revokesTokens(t *testing.T) {
	t.Parallel()
	c, cl := start(t, sim.Options{})
	c.Inject(sim.Fault{Service: sim.Octavia, Revoke: true})
	if _, err := createLB(t, c, cl); err != nil {
		t.Fatalf("the client did not authenticate again: %v", err)
	}
	if n := c.CallCounts()["keystone POST /auth/tokens"]; n != 2 {
		t.Errorf("%d tokens were asked for", n)
	}
	c.RotateCredential()
	if _, err := createLB(t, c, cl); err == nil {
		t.Error("the old credential still works")
	}
	if _, err := createLB(t, c, connect(t, c)); err != nil {
		t.Errorf("the new credential: %v", err)
	}
}

func TestToken_expires(t *testing.T) {
	t.Parallel()
	clock := sim.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c, cl := start(t, sim.Options{Clock: clock, TokenTTL: time.Hour})
	if _, err := createLB(t, c, cl); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	if _, err := createLB(t, c, cl); err != nil {
		t.Fatal(err)
	}
	if n := c.CallCounts()["keystone POST /auth/tokens"]; n != 2 {
		t.Errorf("%d tokens were asked for", n)
	}
}

func TestFault_leavesObjectsStuckOrInError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, cl := start(t, sim.Options{})
	lb, err := createLB(t, c, cl)
	if err != nil {
		t.Fatal(err)
	}
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: `^/listeners$`, Error: []string{"listener"}})
	li, err := listeners.Create(ctx, cl.lb, listeners.CreateOpts{Protocol: "HTTP", ProtocolPort: 80, LoadbalancerID: lb.ID}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	if l, p := status(t, c, "listeners", li.ID), status(t, c, "loadbalancers", lb.ID); l != "ERROR" || p != "ACTIVE" {
		t.Errorf("listener %s, load balancer %s", l, p)
	}
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "DELETE", Path: `^/listeners/`, Stuck: true})
	if err := listeners.Delete(ctx, cl.lb, li.ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	if p := status(t, c, "loadbalancers", lb.ID); p != "PENDING_UPDATE" {
		t.Errorf("load balancer %s", p)
	}
	if err := loadbalancers.Delete(ctx, cl.lb, lb.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr(); !gophercloud.ResponseCodeIs(err, 409) {
		t.Errorf("delete while stuck: %v", err)
	}
	c.Unstick(lb.ID, "ERROR")
	if p := status(t, c, "loadbalancers", lb.ID); p != "ERROR" {
		t.Errorf("load balancer %s", p)
	}
	if err := loadbalancers.Delete(ctx, cl.lb, lb.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr(); err != nil {
		t.Error(err)
	}
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Path: `^/loadbalancers$`, Error: []string{"loadbalancer"}})
	lb, err = createLB(t, c, cl)
	if err != nil {
		t.Fatal(err)
	}
	if p := status(t, c, "loadbalancers", lb.ID); p != "ERROR" {
		t.Errorf("load balancer %s", p)
	}
}

func TestFault_delaysOnTheClock(t *testing.T) {
	t.Parallel()
	clock := sim.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c, cl := start(t, sim.Options{Clock: clock})
	var order []string
	c.Inject(sim.Fault{Service: sim.Octavia, Method: "POST", Delay: 5 * time.Second, Hold: 5 * time.Second, Before: func() { order = append(order, "before") }})
	done := make(chan error)
	go func() {
		_, err := createLB(t, c, cl)
		done <- err
	}()
	wait := func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); clock.Waiting() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody waits for the clock")
			}
		}
	}
	wait()
	if n := c.Snapshot().Counts()["loadbalancers"]; n != 0 || len(order) != 0 {
		t.Errorf("acted on before its time: %d", n)
	}
	clock.Advance(5 * time.Second)
	wait()
	if n := c.Snapshot().Counts()["loadbalancers"]; n != 1 || len(order) != 1 {
		t.Errorf("not acted on: %d", n)
	}
	clock.Advance(5 * time.Second)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
