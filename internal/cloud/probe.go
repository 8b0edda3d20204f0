package cloud

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	tokens "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Identity is whom the credentials stand for, as the token says.
type Identity struct {
	User      string    `json:"user"`
	Project   string    `json:"project"`
	ProjectID string    `json:"projectID"`
	Roles     []string  `json:"roles"`
	Expires   time.Time `json:"expires,omitzero"`
	// ApplicationCredential says that the token comes from one.
	ApplicationCredential bool `json:"applicationCredential"`
}

// Identity makes no call.
func (c *Client) Identity(ctx context.Context) Identity {
	s := c.session(ctx)
	out := Identity{ProjectID: s.projectID, ApplicationCredential: s.config.auth.ApplicationCredentialID != "" || s.config.auth.ApplicationCredentialName != ""}
	r, ok := s.provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return out
	}
	if user, err := r.ExtractUser(); err == nil && user != nil {
		out.User = user.Name
	}
	if project, err := r.ExtractProject(); err == nil && project != nil {
		out.Project = project.Name
	}
	if roles, err := r.ExtractRoles(); err == nil {
		for _, role := range roles {
			out.Roles = append(out.Roles, role.Name)
		}
		slices.Sort(out.Roles)
	}
	if token, err := r.ExtractToken(); err == nil && token != nil {
		out.Expires = token.ExpiresAt
	}
	return out
}

// Endpoint is where a service is, as the catalog says and the base of our calls has it.
type Endpoint struct {
	Service string `json:"service"`
	URL     string `json:"url"`
}

// Endpoints are those of the services that the catalog has, in a fixed order. No call.
func (c *Client) Endpoints(ctx context.Context) []Endpoint {
	s := c.session(ctx)
	var out []Endpoint
	for _, svc := range []service{octavia, neutron, barbican} {
		if base := s.base[svc]; base != "" {
			out = append(out, Endpoint{svc.title(), base})
		}
	}
	return out
}

// Readable makes the cheapest read of a collection and says whether it is allowed. Collections: loadbalancers, l7policies, floatingips, secrets.
func (c *Client) Readable(ctx context.Context, collection string) error {
	svc := octavia
	query := url.Values{"limit": {"1"}}
	switch collection {
	case "floatingips":
		svc = neutron
	case "secrets":
		svc = barbican
	default:
		query.Set("project_id", c.session(ctx).projectID)
	}
	return c.do(ctx, call{service: svc, method: http.MethodGet, path: "/" + collection, query: query, op: "list", what: collection})
}

// Quota is a limit of the project.
type Quota struct {
	Service  string `json:"service"`
	Resource string `json:"resource"`
	// Limit is -1 for none.
	Limit int `json:"limit"`
	// Used is -1 when it is not known.
	Used int `json:"used"`
}

// Left is how many more there may be; -1 when that is not limited or not known.
func (q Quota) Left() int {
	if q.Limit < 0 || q.Used < 0 {
		return -1
	}
	return max(q.Limit-q.Used, 0)
}

// octaviaQuotas are the names of the limits in Octavia's API, the older ones too, and the collections that count against them.
var octaviaQuotas = []struct{ resource, old, collection string }{
	{"loadbalancer", "load_balancer", "loadbalancers"},
	{"listener", "", "listeners"},
	{"pool", "", "pools"},
	{"member", "", ""},
	{"healthmonitor", "health_monitor", "healthmonitors"},
	{"l7policy", "", "l7policies"},
	{"l7rule", "", ""},
}

// OctaviaQuotas are the limits of what a load balancer consists of. Up to six calls.
func (c *Client) OctaviaQuotas(ctx context.Context) ([]Quota, error) {
	var answer struct {
		Quota map[string]*int `json:"quota"`
	}
	project := c.session(ctx).projectID
	err := c.do(ctx, call{service: octavia, method: http.MethodGet, path: "/quotas/" + element(project), out: &answer, op: "read", what: "the quotas of Octavia"})
	if err != nil {
		return nil, err
	}
	var out []Quota
	for _, q := range octaviaQuotas {
		limit, ok := answer.Quota[q.resource]
		if !ok && q.old != "" {
			limit, ok = answer.Quota[q.old]
		}
		if !ok {
			continue
		}
		found := Quota{Service: octavia.title(), Resource: plural(q.resource), Limit: -1, Used: -1}
		if limit != nil {
			found.Limit = *limit
		}
		if found.Limit >= 0 && q.collection != "" {
			all, err := list[wireMeta](ctx, c, octavia, "/"+q.collection, q.collection, q.collection, url.Values{"project_id": {project}, "fields": {"id"}})
			if err != nil {
				return nil, err
			}
			found.Used = len(all)
		}
		out = append(out, found)
	}
	return out, nil
}

// NeutronQuotas are the limits of what Octavia and we take in Neutron: ports, security groups with their rules, floating IPs. One call.
func (c *Client) NeutronQuotas(ctx context.Context) ([]Quota, error) {
	var answer struct {
		Quota map[string]struct {
			Limit int  `json:"limit"`
			Used  *int `json:"used"`
		} `json:"quota"`
	}
	project := c.session(ctx).projectID
	err := c.do(ctx, call{service: neutron, method: http.MethodGet, path: "/quotas/" + element(project) + "/details.json", out: &answer, op: "read", what: "the quotas of Neutron"})
	if err != nil {
		return nil, err
	}
	var out []Quota
	for _, resource := range []string{"floatingip", "port", "security_group", "security_group_rule"} {
		if q, ok := answer.Quota[resource]; ok {
			found := Quota{Service: neutron.title(), Resource: plural(resource), Limit: q.Limit, Used: -1}
			if q.Used != nil {
				found.Used = *q.Used
			}
			out = append(out, found)
		}
	}
	return out, nil
}

// Route is a router between a subnet and others, as far as the project sees it.
type Route struct {
	RouterID string
	// External is the external network of the router's gateway; "" when it has none, or is not visible.
	External string
	// Up says that the router is administratively up.
	Up bool
	// Subnets are those on which the router has an interface that the project sees.
	Subnets []string
}

// Routers are the routers with an interface on a subnet. Two calls and one for each router.
func (c *Client) Routers(ctx context.Context, subnetID, networkID string) ([]Route, error) {
	found, err := c.routerPorts(ctx, url.Values{"network_id": {networkID}})
	if err != nil {
		return nil, err
	}
	var out []Route
	seen := map[string]bool{}
	for _, p := range found {
		if seen[p.DeviceID] || !slices.Contains(p.subnets(), subnetID) {
			continue
		}
		seen[p.DeviceID] = true
		route := Route{RouterID: p.DeviceID, Up: true}
		var answer struct {
			Router struct {
				Up      bool `json:"admin_state_up"`
				Gateway *struct {
					NetworkID string `json:"network_id"`
				} `json:"external_gateway_info"`
			} `json:"router"`
		}
		err := c.do(ctx, call{service: neutron, method: http.MethodGet, path: "/routers/" + element(p.DeviceID), out: &answer, op: "read", what: "router " + p.DeviceID})
		switch {
		case ReasonOf(err) == ReasonNotFound:
			// It belongs to another project.
		case err != nil:
			return nil, err
		default:
			route.Up = answer.Router.Up
			if answer.Router.Gateway != nil {
				route.External = answer.Router.Gateway.NetworkID
			}
		}
		interfaces, err := c.routerPorts(ctx, url.Values{"device_id": {p.DeviceID}})
		if err != nil {
			return nil, err
		}
		for _, i := range interfaces {
			route.Subnets = append(route.Subnets, i.subnets()...)
		}
		slices.Sort(route.Subnets)
		route.Subnets = slices.Compact(route.Subnets)
		out = append(out, route)
	}
	return out, nil
}

type routerPort struct {
	DeviceID    string `json:"device_id"`
	DeviceOwner string `json:"device_owner"`
	FixedIPs    []struct {
		SubnetID string `json:"subnet_id"`
	} `json:"fixed_ips"`
}

func (p routerPort) subnets() []string {
	var out []string
	for _, f := range p.FixedIPs {
		out = append(out, f.SubnetID)
	}
	return out
}

// routerPorts lists ports of routers: plain, distributed and highly available ones.
func (c *Client) routerPorts(ctx context.Context, query url.Values) ([]routerPort, error) {
	query["device_owner"] = []string{"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"}
	query["fields"] = []string{"id", "device_id", "device_owner", "fixed_ips"}
	found, err := list[routerPort](ctx, c, neutron, "/ports", "ports", "the ports of routers", query)
	return slices.DeleteFunc(found, func(p routerPort) bool { return !strings.Contains(p.DeviceOwner, "router") || p.DeviceID == "" }), err
}

// SubnetAbout is what a probe wants to know of a subnet.
type SubnetAbout struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	NetworkID string   `json:"network_id"`
	CIDR      string   `json:"cidr"`
	IPVersion int      `json:"ip_version"`
	Gateway   string   `json:"gateway_ip"`
	Pools     []ipPool `json:"allocation_pools"`
}

type ipPool struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// Subnet reads one.
func (c *Client) Subnet(ctx context.Context, id string) (SubnetAbout, error) {
	var answer struct {
		Subnet SubnetAbout `json:"subnet"`
	}
	err := c.do(ctx, call{service: neutron, method: http.MethodGet, path: "/subnets/" + element(id), out: &answer, op: "read", what: "subnet " + id})
	return answer.Subnet, err
}

// Left is what the cloud has of an owner, whose load balancer may be gone.
func Left(t *lb.Tree) bool {
	return !t.Empty() || t.FloatingIP != nil && !t.FloatingIP.Supplied || len(t.Secrets) > 0
}
