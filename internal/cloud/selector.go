package cloud

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// identity is what an object is selected by.
type identity struct {
	id, name string
	tags     []string
}

// only says what among networks can serve the purpose of a selector that takes the only one.
type only string

const (
	externalOnly only = "true"
	internalOnly only = "false"
)

func (c *Client) network(ctx context.Context, field string, sel lb.Selector, which only) (wireNetwork, error) {
	query := url.Values{"fields": {"id", "name", "tags", "router:external"}}
	if sel.Only {
		query.Set("router:external", string(which))
	}
	return one[wireNetwork](ctx, c, field, sel, collection{neutron, "/networks", "networks", query})
}

// subnet finds a subnet. The only one is looked for among those of internal networks: every project sees the external ones.
func (c *Client) subnet(ctx context.Context, field string, sel lb.Selector) (wireSubnet, error) {
	query := url.Values{"fields": {"id", "name", "tags", "network_id", "cidr"}}
	if sel.Only {
		networks, err := list[wireNetwork](ctx, c, neutron, "/networks", "networks", "the networks for "+field,
			url.Values{"fields": {"id", "router:external"}, "router:external": {string(internalOnly)}})
		if err != nil {
			return wireSubnet{}, err
		}
		for _, n := range networks {
			query.Add("network_id", n.ID)
		}
		if len(networks) == 0 {
			return wireSubnet{}, selectorFault(field, "the project sees no internal network: name the subnet, or create it")
		}
	}
	return one[wireSubnet](ctx, c, field, sel, collection{neutron, "/subnets", "subnets", query})
}

func (c *Client) securityGroup(ctx context.Context, field string, sel lb.Selector) (wireSecurityGroup, error) {
	return one[wireSecurityGroup](ctx, c, field, sel, collection{neutron, "/security-groups", "security_groups", url.Values{"fields": {"id", "name", "tags"}}})
}

func (c *Client) flavor(ctx context.Context, field string, sel lb.Selector) (wireFlavor, error) {
	flavor, err := one[wireFlavor](ctx, c, field, sel, collection{octavia, "/flavors", "flavors", nil})
	if err == nil && !flavor.Enabled {
		return flavor, selectorFault(field, "the flavor is disabled: select another one, or ask the cloud's operator to enable it")
	}
	return flavor, err
}

// zone makes sure that an availability zone of Octavia can be used.
func (c *Client) zone(ctx context.Context, field, name string) error {
	zones, err := list[wireZone](ctx, c, octavia, "/availabilityzones", "availability_zones", "the availability zones for "+field, nil)
	if err != nil {
		return err
	}
	var names []string
	for _, z := range zones {
		switch {
		case !z.Enabled:
		case z.Name == name:
			return nil
		default:
			names = append(names, z.Name)
		}
	}
	if len(names) == 0 {
		return selectorFault(field, fmt.Sprintf("Octavia has no availability zone %q, and no other one either (those of Nova and Neutron are not Octavia's): leave it out, "+
			"or ask the cloud's operator to create it", name))
	}
	slices.Sort(names)
	return selectorFault(field, fmt.Sprintf("Octavia has no availability zone %q; it has: %s", name, strings.Join(names, ", ")))
}

// preferred is the subnet of a network that Octavia takes for a VIP as long as it has free addresses: the first one, an IPv4 one if there is one.
// It has no id, since the choice is Octavia's.
func (c *Client) preferred(ctx context.Context, network wireNetwork) (lb.Subnet, error) {
	subnets, err := list[wireSubnet](ctx, c, neutron, "/subnets", "subnets", "the subnets of spec.vipNetwork",
		url.Values{"network_id": {network.ID}, "fields": {"id", "network_id", "cidr"}})
	if err != nil {
		return lb.Subnet{}, err
	}
	subnets = slices.DeleteFunc(subnets, func(w wireSubnet) bool { return w.NetworkID != network.ID })
	if len(subnets) == 0 {
		return lb.Subnet{}, selectorFault("spec.vipNetwork", "the network has no subnet that the project sees: select another one, or create a subnet")
	}
	at := max(slices.IndexFunc(subnets, func(w wireSubnet) bool { return !isIPv6(w.CIDR) }), 0)
	return lb.Subnet{NetworkID: network.ID, CIDR: subnets[at].CIDR}, nil
}

// collection is where to look for an object.
type collection struct {
	service   service
	path, key string
	query     url.Values
}

// one resolves a selector to exactly one object that the credentials can see.
func one[T interface{ identity() identity }](ctx context.Context, c *Client, field string, sel lb.Selector, in collection) (T, error) {
	var zero T
	query := url.Values{}
	for name, values := range in.query {
		query[name] = values
	}
	by := ""
	ways := 0
	for _, way := range []struct {
		set   bool
		by    string
		name  string
		value string
	}{
		{sel.ID != "", fmt.Sprintf("the id %q", sel.ID), "id", sel.ID},
		{sel.Name != "", fmt.Sprintf("the name %q", sel.Name), "name", sel.Name},
		{len(sel.Tags) > 0, fmt.Sprintf("the tags %q", sel.Tags), "tags", strings.Join(sel.Tags, ",")},
		{sel.Only, "", "", ""},
	} {
		if !way.set {
			continue
		}
		ways++
		by = way.by
		if way.name != "" {
			query.Set(way.name, way.value)
		}
	}
	if ways != 1 {
		return zero, selectorFault(field, "set exactly one of id, name, tags and discovery")
	}
	found, err := list[T](ctx, c, in.service, in.path, in.key, "what matches "+field, query)
	if err != nil {
		return zero, err
	}
	// Filters are checked again: Octavia compares names without case, and a filter that a cloud does not know is ignored there.
	found = slices.DeleteFunc(found, func(o T) bool {
		is := o.identity()
		missing := slices.ContainsFunc(sel.Tags, func(t string) bool { return !slices.Contains(is.tags, t) })
		return sel.ID != "" && is.id != sel.ID || sel.Name != "" && is.name != sel.Name || missing
	})
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && sel.Only:
		return zero, selectorFault(field, "discovery finds nothing that the project sees: name one, or create it")
	case len(found) == 0:
		return zero, selectorFault(field, fmt.Sprintf("nothing that the project sees has %s: correct it, create the object, or share it with the project", by))
	case sel.Only:
		return zero, selectorFault(field, fmt.Sprintf("discovery finds %d: set id, name or tags to choose one", len(found)))
	}
	return zero, selectorFault(field, fmt.Sprintf("%d have %s: select by id", len(found), by))
}

func selectorFault(field, message string) error {
	return &Error{Class: UserFault, Reason: ReasonSelector, Op: "resolve", Resource: field, Message: message}
}
