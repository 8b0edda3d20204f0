package sim_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/apiversions"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/l7policies"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/monitors"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

type clients struct {
	lb, net *gophercloud.ServiceClient
}

func start(t *testing.T, opts sim.Options) (*sim.Cloud, clients) {
	t.Helper()
	c, err := sim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, connect(t, c)
}

func connect(t *testing.T, c *sim.Cloud) clients {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ao, eo, tc, err := clouds.Parse(clouds.WithCloudName("sim"), clouds.WithCloudsYAML(bytes.NewReader(c.CloudsYAML("sim"))))
	if err != nil {
		t.Fatal(err)
	}
	ao.AllowReauth = true
	pc, err := config.NewProviderClient(ctx, ao, config.WithTLSConfig(tc))
	if err != nil {
		t.Fatal(err)
	}
	lb, err := openstack.NewLoadBalancerV2(pc, eo)
	if err != nil {
		t.Fatal(err)
	}
	net, err := openstack.NewNetworkV2(pc, eo)
	if err != nil {
		t.Fatal(err)
	}
	return clients{lb, net}
}

func TestCloud_servesAFullyPopulatedLoadBalancerWithAFloatingIP(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, cl := start(t, sim.Options{})

	before := c.Snapshot()
	weight := 3
	lb, err := loadbalancers.Create(ctx, cl.lb, loadbalancers.CreateOpts{
		Name: "gw", VipSubnetID: c.VIPSubnetID(), Tags: []string{"b=2", "a=1"},
		Listeners: []listeners.CreateOpts{{
			Name: "http", Protocol: "HTTP", ProtocolPort: 80, Tags: []string{"l"},
			L7Policies: []l7policies.CreateOpts{{Name: "go", Action: "REDIRECT_TO_URL", RedirectURL: "https://example.org/",
				Rules: []l7policies.CreateRuleOpts{{RuleType: "PATH", CompareType: "EQUAL_TO", Value: "/x"}}}},
			DefaultPool: &pools.CreateOpts{Name: "p", Protocol: "HTTP", LBMethod: "ROUND_ROBIN",
				Members: []pools.CreateMemberOpts{{Address: "10.1.0.9", ProtocolPort: 30080, Weight: &weight}},
				Monitor: monitors.CreateOpts{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 2}},
		}},
	}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	if lb.ProvisioningStatus != "PENDING_CREATE" || len(lb.Listeners) != 1 || len(lb.Listeners[0].L7Policies[0].Rules) != 1 || len(lb.Pools[0].Members) != 1 {
		t.Fatalf("create answered %+v", lb)
	}
	lb, err = loadbalancers.Get(ctx, cl.lb, lb.ID).Extract()
	if err != nil || lb.ProvisioningStatus != "ACTIVE" || lb.OperatingStatus != "ONLINE" {
		t.Fatalf("%+v %v", lb, err)
	}
	fip, err := floatingips.Create(ctx, cl.net, floatingips.CreateOpts{FloatingNetworkID: c.PublicNetworkID(), PortID: lb.VipPortID}).Extract()
	if err != nil || fip.FixedIP != lb.VipAddress {
		t.Fatalf("%+v %v", fip, err)
	}
	pages, err := loadbalancers.List(cl.lb, loadbalancers.ListOpts{Tags: []string{"a=1", "b=2"}}).AllPages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := loadbalancers.ExtractLoadBalancers(pages); err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	if _, err := loadbalancers.GetStatuses(ctx, cl.lb, lb.ID).Extract(); err != nil {
		t.Fatal(err)
	}
	if v, err := apiversions.List(cl.lb).AllPages(ctx); err != nil {
		t.Fatal(err)
	} else if vs, err := apiversions.ExtractAPIVersions(v); err != nil || vs[len(vs)-1].ID != "v2.30" {
		t.Fatalf("%v %v", vs, err)
	}
	if err := floatingips.Delete(ctx, cl.net, fip.ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	if err := loadbalancers.Delete(ctx, cl.lb, lb.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	if _, err := loadbalancers.Get(ctx, cl.lb, lb.ID).Extract(); !gophercloud.ResponseCodeIs(err, 404) {
		t.Fatalf("after delete: %v", err)
	}
	if leaks := c.Snapshot().Leaks(before); len(leaks) > 0 {
		t.Fatalf("leaked: %v", leaks)
	}
	if len(c.Mutations()) != 4 {
		t.Fatalf("recorded %v", c.Calls())
	}
}

func TestCloud_isPendingUntilTheClockMoves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, cl := start(t, sim.Options{Clock: clock, Latency: sim.Pending(10 * time.Second)})
	lb, err := loadbalancers.Create(ctx, cl.lb, loadbalancers.CreateOpts{Name: "gw", VipSubnetID: c.VIPSubnetID()}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	_, err = listeners.Create(ctx, cl.lb, listeners.CreateOpts{Name: "l", Protocol: "HTTP", ProtocolPort: 80, LoadbalancerID: lb.ID}).Extract()
	if !gophercloud.ResponseCodeIs(err, 409) {
		t.Fatalf("create while pending: %v", err)
	}
	clock.Advance(9 * time.Second)
	if got, _ := loadbalancers.Get(ctx, cl.lb, lb.ID).Extract(); got.ProvisioningStatus != "PENDING_CREATE" {
		t.Fatal(got.ProvisioningStatus)
	}
	clock.Advance(time.Second)
	if got, _ := loadbalancers.Get(ctx, cl.lb, lb.ID).Extract(); got.ProvisioningStatus != "ACTIVE" {
		t.Fatal(got.ProvisioningStatus)
	}
}
