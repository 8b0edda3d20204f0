//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// foreignLoadBalancer is a load balancer that somebody made by hand, with a name and tags like ours but without our mark. It goes with
// the test.
func (g *ground) foreignLoadBalancer() string {
	g.Helper()
	made, err := loadbalancers.Create(g.Context(), g.cloud.octavia, loadbalancers.CreateOpts{
		Name:        "gw_e2e_e2e-infra_edge",
		VipSubnetID: g.demoSubnet,
		Tags:        []string{"gateway=e2e-infra/edge", "role=loadbalancer"},
		Listeners: []listeners.CreateOpts{{
			Name: "http-80", Protocol: listeners.ProtocolHTTP, ProtocolPort: 80,
			DefaultPool: &pools.CreateOpts{Name: "web", LBMethod: pools.LBMethodRoundRobin, Protocol: pools.ProtocolHTTP},
		}},
	}).Extract()
	g.must(err)
	g.Cleanup(func() {
		ctx := context.WithoutCancel(g.Context())
		if err := loadbalancers.Delete(ctx, g.cloud.octavia, made.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr(); err != nil {
			g.Errorf("deleting the load balancer of the test: %v", err)
		}
	})
	g.eventually(3*time.Minute, "the load balancer made by hand is ACTIVE", func() error {
		l, err := loadbalancers.Get(g.Context(), g.cloud.octavia, made.ID).Extract()
		if err != nil {
			return err
		}
		if l.ProvisioningStatus != "ACTIVE" || l.OperatingStatus != "ONLINE" {
			return fmt.Errorf("%s, %s", l.ProvisioningStatus, l.OperatingStatus)
		}
		// The first heartbeats of the amphora change the children's operating statuses, each at its own time.
		if strings.Contains(g.everythingOf(made.ID), `"operating_status":"OFFLINE"`) {
			return errors.New("a child is still OFFLINE")
		}
		return nil
	})
	return made.ID
}

// everythingOf is a load balancer with all its children as the API shows them.
func (g *ground) everythingOf(id string) string {
	g.Helper()
	text, err := everythingOf(g.Context(), g.cloud.octavia, id)
	g.must(err)
	return text
}

// loadBalancer is the one of a Gateway.
func (g *ground) loadBalancer(gw *gwv1.Gateway) (*loadbalancers.LoadBalancer, error) {
	pages, err := loadbalancers.List(g.cloud.octavia, loadbalancers.ListOpts{Tags: []string{"gateway=" + gw.Namespace + "/" + gw.Name}}).AllPages(g.Context())
	if err != nil {
		return nil, err
	}
	all, err := loadbalancers.ExtractLoadBalancers(pages)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if slices.ContainsFunc(all[i].Tags, func(tag string) bool { return strings.HasSuffix(tag, "/"+string(gw.UID)) }) {
			return &all[i], nil
		}
	}
	return nil, errors.New("the Gateway has no load balancer")
}

func (g *ground) vip(gw *gwv1.Gateway) string {
	g.Helper()
	l, err := g.loadBalancer(gw)
	g.must(err)
	return l.VipAddress
}

// members waits until the pool with a tag has so many members, all ONLINE.
func (g *ground) members(gw *gwv1.Gateway, tag string, want int) {
	g.Helper()
	l, err := g.loadBalancer(gw)
	g.must(err)
	g.eventually(time.Minute, fmt.Sprintf("the pool %s has %d members ONLINE", tag, want), func() error {
		pages, err := pools.List(g.cloud.octavia, pools.ListOpts{LoadbalancerID: l.ID}).AllPages(g.Context())
		if err != nil {
			return err
		}
		all, err := pools.ExtractPools(pages)
		if err != nil {
			return err
		}
		for _, p := range all {
			if !slices.Contains(p.Tags, tag) {
				continue
			}
			pages, err := pools.ListMembers(g.cloud.octavia, p.ID, nil).AllPages(g.Context())
			if err != nil {
				return err
			}
			members, err := pools.ExtractMembers(pages)
			if err != nil {
				return err
			}
			var online []string
			for _, m := range members {
				if m.OperatingStatus == "ONLINE" {
					online = append(online, m.Address)
				}
			}
			if len(members) != want || len(online) != want {
				return fmt.Errorf("it has %d, ONLINE are %v", len(members), online)
			}
			return nil
		}
		return errors.New("there is no such pool")
	})
}

// callCounts are the requests of the controller by service and method.
type callCounts map[string]int

// calls reads how many requests the controller made from its own metrics.
func (g *ground) calls() callCounts {
	g.Helper()
	counts := callCounts{}
	g.requests("count", func(operation string, value float64) { counts[operation] += int(value) })
	return counts
}

// writingSeconds is how long the controller's writing requests to Octavia took so far, all together.
func (g *ground) writingSeconds() float64 {
	g.Helper()
	var seconds float64
	g.requests("sum", func(operation string, value float64) {
		if strings.HasPrefix(operation, "load-balancer ") && !strings.HasPrefix(operation, "load-balancer GET ") {
			seconds += value
		}
	})
	return seconds
}

// requests tells the controller's metric of requests to the cloud: its count or its sum of seconds, by "service METHOD path".
func (g *ground) requests(suffix string, tell func(operation string, value float64)) {
	g.Helper()
	list := &corev1.PodList{}
	g.must(g.kube.List(g.Context(), list, client.InNamespace(controllerNamespace)))
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
			var value float64
			name, rest, ok := strings.Cut(lines.Text(), "{")
			if !ok || name != "gateway_api_openstack_cloud_request_seconds_"+suffix {
				continue
			}
			labels, number, _ := strings.Cut(rest, "} ")
			if _, err := fmt.Sscan(number, &value); err != nil {
				g.Fatal(err)
			}
			tell(label(labels, "service")+" "+label(labels, "operation"), value)
		}
		g.must(lines.Err())
		g.must(res.Body.Close())
	}
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func (c callCounts) since(before callCounts) callCounts {
	out := callCounts{}
	for k, n := range c {
		if d := n - before[k]; d != 0 {
			out[k] = d
		}
	}
	return out
}

// writes are the calls to a service that change something.
func (c callCounts) writes(service string) int {
	n := 0
	for k, count := range c {
		if rest, ok := strings.CutPrefix(k, service+" "); ok && !strings.HasPrefix(rest, "GET ") {
			n += count
		}
	}
	return n
}

func (c callCounts) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	return strings.Join(parts, ", ")
}
