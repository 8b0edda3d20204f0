package cloud

import (
	"context"
	"net/url"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Survey is everything in the project that carries a mark of this controller, of whichever cluster: what an audit compares with Kubernetes.
// Rules and members are not in it: they are only found below their policies and pools, by Observe.
type Survey struct {
	Objects []Marked
	// Unseen are the collections that could not be listed.
	Unseen []Unseen
}

// Marked is an object with a mark.
type Marked struct {
	Kind   lb.Kind
	ID     string
	Name   string
	Mark   lb.Mark
	Status lb.ProvisioningStatus
	// LoadBalancer is the id of the load balancer that the object is or lies below; "" when it is not known.
	LoadBalancer string
	// Address is that of a load balancer's VIP or of a floating IP.
	Address string
}

// Unseen is a collection that could not be read.
type Unseen struct {
	What string
	Err  error
}

// Survey lists seven collections of the project. A collection that cannot be read is told in the result; the others are there all the same.
func (c *Client) Survey(ctx context.Context) Survey {
	var out Survey
	project := url.Values{"project_id": {c.session(ctx).projectID}}
	add := func(kind lb.Kind, w wireMeta, loadBalancer, address string) {
		if mark, ok := lb.ReadTags(w.Tags); ok && w.ProvisioningStatus != lb.Deleted {
			out.Objects = append(out.Objects, Marked{Kind: kind, ID: w.ID, Name: w.Name, Mark: mark, Status: w.ProvisioningStatus, LoadBalancer: loadBalancer, Address: address})
		}
	}
	failed := func(what string, err error) {
		if err != nil {
			out.Unseen = append(out.Unseen, Unseen{what, err})
		}
	}
	above := func(refs []wireRef) string {
		if len(refs) == 0 {
			return ""
		}
		return refs[0].ID
	}

	withFields := func(fields ...string) url.Values {
		return url.Values{"project_id": project["project_id"], "fields": append(fields, "id", "name", "tags", "provisioning_status")}
	}
	loadBalancers, err := list[wireLoadBalancer](ctx, c, octavia, "/loadbalancers", "loadbalancers", "load balancers", withFields("vip_address"))
	failed("load balancers", err)
	for _, w := range loadBalancers {
		add(lb.KindLoadBalancer, w.wireMeta, w.ID, w.VIPAddress)
	}
	listeners, err := list[wireListener](ctx, c, octavia, "/listeners", "listeners", "listeners", withFields("loadbalancers"))
	failed("listeners", err)
	ofListener := map[string]string{}
	for _, w := range listeners {
		ofListener[w.ID] = above(w.LoadBalancers)
		add(lb.KindListener, w.wireMeta, ofListener[w.ID], "")
	}
	pools, err := list[wirePool](ctx, c, octavia, "/pools", "pools", "pools", withFields("loadbalancers"))
	failed("pools", err)
	ofPool := map[string]string{}
	for _, w := range pools {
		ofPool[w.ID] = above(w.LoadBalancers)
		add(lb.KindPool, w.wireMeta, ofPool[w.ID], "")
	}
	policies, err := list[wirePolicy](ctx, c, octavia, "/l7policies", "l7policies", "L7 policies", withFields("listener_id"))
	failed("L7 policies", err)
	for _, w := range policies {
		add(lb.KindPolicy, w.wireMeta, ofListener[w.ListenerID], "")
	}
	monitors, err := list[wireMonitor](ctx, c, octavia, "/healthmonitors", "healthmonitors", "health monitors", withFields("pools"))
	failed("health monitors", err)
	for _, w := range monitors {
		add(lb.KindMonitor, w.wireMeta, ofPool[above(w.Pools)], "")
	}

	floatingIPs, err := c.floatingIPs(ctx, url.Values{})
	failed("floating IPs", err)
	for _, w := range floatingIPs {
		if mark, ok := lb.ReadDescription(w.Description); ok {
			out.Objects = append(out.Objects, Marked{Kind: lb.KindFloatingIP, ID: w.ID, Name: w.Address, Mark: mark, Address: w.Address})
		}
	}
	if c.session(ctx).base[barbican] != "" {
		secrets, err := c.secretsNamed(ctx, lb.SecretPrefix)
		failed("secrets", err)
		for _, w := range secrets {
			if mark, ok := lb.ReadDescription(w.Name); ok && secretID(w.Ref) != "" {
				out.Objects = append(out.Objects, Marked{Kind: lb.KindSecret, ID: secretID(w.Ref), Name: mark.Key, Mark: mark})
			}
		}
	}
	order := []lb.Kind{lb.KindLoadBalancer, lb.KindListener, lb.KindPolicy, lb.KindPool, lb.KindMonitor, lb.KindFloatingIP, lb.KindSecret}
	slices.SortStableFunc(out.Objects, func(a, b Marked) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return out
}
