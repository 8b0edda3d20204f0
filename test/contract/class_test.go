package contract

import (
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// What a class can ask of a load balancer, in its create call: flavor, zone, security groups, further VIPs, and what it says about ports.
func TestClass_settingsOfALoadBalancer(t *testing.T) {
	c := begin(t)
	admin := c.admin()
	profile := str(admin.must(201, "POST", "/lb/flavorprofiles", o{"flavorprofile": o{"name": "class-test", "provider_name": "amphora",
		"flavor_data": `{"loadbalancer_topology": "SINGLE"}`}})["flavorprofile"], "id")
	defer admin.must(204, "DELETE", "/lb/flavorprofiles/"+profile, nil)
	flavor := str(admin.must(201, "POST", "/lb/flavors", o{"flavor": o{"name": "class-test", "flavor_profile_id": profile}})["flavor"], "id")
	defer admin.must(204, "DELETE", "/lb/flavors/"+flavor, nil)
	doc := c.must(200, "GET", "/lb/flavors", nil)
	found := ""
	for _, f := range list(doc, "flavors") {
		if str(f, "id") == flavor {
			found = str(f, "name")
			equal(t, "a flavor", keys(f), l{"description", "enabled", "flavor_profile_id", "id", "name"})
		}
	}
	equal(t, "users see flavors", found, "class-test")
	group := str(c.must(201, "POST", "/network/security-groups", o{"security_group": o{"name": "class-test"}})["security_group"], "id")
	defer c.must(204, "DELETE", "/network/security-groups/"+group, nil)

	none := "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
	c.refused(400, "Validation failure: Invalid flavor_id.", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "flavor_id": none}})
	c.refused(400, "Validation failure: Invalid availability zone.", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "availability_zone": "nowhere"}})
	c.refused(400, "Security Group "+none+" not found.", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "vip_sg_ids": l{none}}})
	c.refused(400, "Flavor '"+flavor+"' is not compatible with provider 'octavia'", "POST", "/lb/loadbalancers",
		o{"loadbalancer": o{"vip_subnet_id": c.subnet, "flavor_id": flavor, "provider": "octavia"}})

	made := c.create(o{"name": "class", "vip_subnet_id": c.subnet, "provider": "amphora", "flavor_id": flavor, "vip_sg_ids": l{group},
		"listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "connection_limit": 500, "timeout_client_data": 120000,
			"timeout_member_connect": 500, "timeout_member_data": 50000, "insert_headers": o{"X-Forwarded-Proto": "true"}}}})
	id, web := str(made, "id"), idsOf(made)["web"]
	equal(t, "provider, flavor, groups", l{dig(made, "provider"), dig(made, "flavor_id"), dig(made, "vip_sg_ids")}, l{"amphora", flavor, l{group}})

	// The list form shows them, and does not mind a field that it does not know.
	doc = c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=id&fields=vip_sg_ids&fields=additional_vips&fields=flavor_id&fields=unheard_of", nil)
	one := list(doc, "loadbalancers")[0]
	equal(t, "fields of a list", keys(one), l{"additional_vips", "flavor_id", "id", "vip_sg_ids"})
	equal(t, "in a list", l{dig(one, "flavor_id"), dig(one, "vip_sg_ids"), dig(one, "additional_vips")}, l{flavor, l{group}, l{}})

	// Allowed CIDRs are refused while there are security groups.
	const exclusive = "Validation failure: Allowed CIDRs are not allowed when using custom VIP Security Groups."
	c.refused(400, exclusive, "PUT", "/lb/listeners/"+web, o{"listener": o{"allowed_cidrs": l{"192.0.2.0/24"}}})
	c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"vip_sg_ids": nil}})
	c.active(id)
	doc = c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=vip_sg_ids", nil)
	equal(t, "without groups", dig(list(doc, "loadbalancers")[0], "vip_sg_ids"), l{})
	c.write(id, 200, "PUT", "/lb/listeners/"+web, o{"listener": o{"allowed_cidrs": l{"192.0.2.0/24"}, "connection_limit": -1, "timeout_client_data": 50000}})
	c.active(id)
	doc = c.must(200, "GET", "/lb/listeners/"+web, nil)
	equal(t, "limits", l{dig(doc, "listener", "connection_limit"), dig(doc, "listener", "timeout_client_data"), dig(doc, "listener", "allowed_cidrs")},
		l{-1, 50000, l{"192.0.2.0/24"}})
	c.refused(400, "Validation failure: CIDR 2001:db8::/32 IP version incompatible with all VIPs ['"+str(made, "vip_address")+"'] IP version.", "PUT", "/lb/listeners/"+web, o{"listener": o{"allowed_cidrs": l{"2001:db8::/32"}}})
	// With CIDRs there, groups are taken nevertheless, and the CIDRs cannot be set any more.
	c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"vip_sg_ids": l{group}}})
	c.refused(400, exclusive, "PUT", "/lb/listeners/"+web, o{"listener": o{"allowed_cidrs": l{"192.0.2.0/24"}}})
	c.refused(400, "Unknown attribute for argument load_balancer.loadbalancer: flavor_id", "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"flavor_id": flavor}})
	c.remove(id)
	for c.wait(id) != "" {
	}
}

// A VIP on a network without a subnet goes to an IPv4 subnet, and further VIPs are of other subnets of the network.
func TestClass_vipsOfANetwork(t *testing.T) {
	c := begin(t)
	network := str(c.must(201, "POST", "/network/networks", o{"network": o{"name": "class-vips"}})["network"], "id")
	defer c.must(204, "DELETE", "/network/networks/"+network, nil)
	six := str(c.must(201, "POST", "/network/subnets", o{"subnet": o{"network_id": network, "ip_version": 6, "cidr": "2001:db8:1::/64"}})["subnet"], "id")
	four := str(c.must(201, "POST", "/network/subnets", o{"subnet": o{"network_id": network, "ip_version": 4, "cidr": "10.78.0.0/24"}})["subnet"], "id")
	c.refused(400, "Validation failure: Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.", "POST", "/lb/loadbalancers",
		o{"loadbalancer": o{"vip_subnet_id": four, "additional_vips": l{o{"subnet_id": four}}}})
	c.refused(400, "Validation failure: All VIP subnets must belong to the same network.", "POST", "/lb/loadbalancers",
		o{"loadbalancer": o{"vip_subnet_id": four, "additional_vips": l{o{"subnet_id": c.subnet}}}})
	if c.real {
		return // The test cloud has no IPv6 to boot an amphora with.
	}
	made := c.create(o{"name": "network", "vip_network_id": network})
	equal(t, "subnet", dig(made, "vip_subnet_id"), four)
	both := c.create(o{"name": "both", "vip_subnet_id": four, "additional_vips": l{o{"subnet_id": six}}})
	more := list(both, "additional_vips")
	equal(t, "additional", l{len(more), str(more[0], "subnet_id"), strings.HasPrefix(str(more[0], "ip_address"), "2001:db8:1:")}, l{1, six, true})
	for _, lb := range []o{made, both} {
		c.remove(str(lb, "id"))
		for c.wait(str(lb, "id")) != "" {
		}
	}
}

// Older releases do not know what came later.
func TestClass_olderReleasesRefuseWhatCameLater(t *testing.T) {
	if onRealCloud() {
		t.Skip("one release at a time")
	}
	c := beginWith(t, sim.Options{MaxAPIVersion: "v2.25"})
	c.refused(400, "Unknown attribute for argument load_balancer.loadbalancer: additional_vips", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "additional_vips": l{}}})
	c.refused(400, "Unknown attribute for argument load_balancer.loadbalancer: vip_sg_ids", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "vip_sg_ids": l{}}})
}
