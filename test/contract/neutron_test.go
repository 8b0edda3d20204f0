package contract

import (
	"fmt"
	"strings"
	"testing"
)

// floating makes a floating IP, which the end of the test deletes.
func (c *cloud) floating(body o) o {
	c.t.Helper()
	if body["floating_network_id"] == nil {
		body["floating_network_id"] = c.external
	}
	doc := c.must(201, "POST", "/network/floatingips", o{"floatingip": body})
	f, _ := doc["floatingip"].(o)
	c.t.Cleanup(func() {
		if status, doc := c.call("DELETE", "/network/floatingips/"+str(f, "id"), nil); status != 204 && status != 404 {
			c.t.Errorf("delete floating IP: %d %s", status, compact(doc))
		}
	})
	return f
}

const none = "00000000-0000-0000-0000-000000000000"

func TestFloatingIP_followsAndSurvivesALoadBalancer(t *testing.T) {
	c := begin(t)
	lb := c.create(o{"name": "contract-fip"})
	id, portID := str(lb, "id"), str(lb, "vip_port_id")

	doc := c.must(200, "GET", "/network/ports/"+portID, nil)
	port, _ := doc["port"].(o)
	equal(t, "VIP port", l{port["name"], port["device_owner"], port["device_id"], port["status"], port["project_id"], port["network_id"], port["admin_state_up"]},
		l{"octavia-lb-" + id, "Octavia", "lb-" + id, "DOWN", c.project, c.network, false})
	equal(t, "VIP address", list(port, "fixed_ips"), l{o{"subnet_id": c.subnet, "ip_address": lb["vip_address"]}})

	f := c.floating(o{"port_id": portID, "description": "contract=1"})
	path := "/network/floatingips/" + str(f, "id")
	equal(t, "floating IP", l{f["port_id"], f["fixed_ip_address"], f["description"], f["status"], f["router_id"] != nil, f["tags"], f["project_id"]},
		l{portID, lb["vip_address"], "contract=1", "DOWN", true, l{}, c.project})
	equal(t, "port details", l{str(f, "port_details", "device_owner"), str(f, "port_details", "device_id")}, l{"Octavia", "lb-" + id})

	c.refused(409, fmt.Sprintf("~^Cannot associate floating IP [0-9.]+ \\([-0-9a-f]+\\) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s\\.$", portID, str(lb, "vip_address"), c.external),
		"POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.external, "port_id": portID}})

	g := c.floating(o{"description": "spare"})
	equal(t, "an unattached floating IP", l{g["port_id"], g["fixed_ip_address"], g["router_id"], g["status"], g["port_details"]}, l{nil, nil, nil, "DOWN", nil})
	c.refused(409, "~^Cannot associate floating IP ", "PUT", "/network/floatingips/"+str(g, "id"), o{"floatingip": o{"port_id": portID}})

	doc = c.must(200, "PUT", path, o{"floatingip": o{"port_id": nil}})
	equal(t, "detached", l{dig(doc, "floatingip", "port_id"), dig(doc, "floatingip", "fixed_ip_address"), dig(doc, "floatingip", "description")}, l{nil, nil, "contract=1"})
	before := num(doc, "floatingip", "revision_number")
	doc = c.must(200, "PUT", path, o{"floatingip": o{"port_id": portID, "description": "contract=2"}})
	equal(t, "attached again", l{dig(doc, "floatingip", "port_id"), dig(doc, "floatingip", "description")}, l{portID, "contract=2"})
	if num(doc, "floatingip", "revision_number") <= before {
		t.Errorf("revision number %d after %d", num(doc, "floatingip", "revision_number"), before)
	}
	c.refused(412, "~^Constrained to 0, but current revision is [0-9]+$", "PUT", path, o{"floatingip": o{"description": "x"}}, "If-Match", "revision_number=0")

	for _, q := range []string{"port_id=" + portID, "floating_ip_address=" + str(f, "floating_ip_address"), "description=contract%3D2", "fixed_ip_address=" + str(lb, "vip_address"), "router_id=" + str(dig(doc, "floatingip"), "router_id") + "&port_id=" + portID} {
		found := list(c.must(200, "GET", "/network/floatingips?"+q, nil), "floatingips")
		equal(t, "found by "+q, l{len(found), str(found[0], "id")}, l{1, f["id"]})
	}
	doc = c.must(200, "GET", "/network/floatingips?port_id="+portID+"&fields=id", nil)
	equal(t, "fields", list(doc, "floatingips"), l{o{"id": f["id"]}})

	c.must(204, "DELETE", "/lb/loadbalancers/"+id, nil)
	equal(t, "load balancer", c.wait(id), "")
	doc = c.must(200, "GET", path, nil)
	equal(t, "after its load balancer", l{dig(doc, "floatingip", "port_id"), dig(doc, "floatingip", "fixed_ip_address"), dig(doc, "floatingip", "router_id"), dig(doc, "floatingip", "description")}, l{nil, nil, nil, "contract=2"})
	c.refused(404, "Port "+portID+" could not be found.", "GET", "/network/ports/"+portID, nil)
	c.must(204, "DELETE", path, nil)
	c.refused(404, "Floating IP "+str(f, "id")+" could not be found", "DELETE", path, nil)
}

func TestFloatingIP_refusals(t *testing.T) {
	c := begin(t)
	f := c.floating(o{})
	path := "/network/floatingips/" + str(f, "id")
	for _, tc := range []refusal{
		{"network that is not external", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.network}}, 400, "Bad floatingip request: Network " + c.network + " is not a valid external network."},
		{"no such network", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": none}}, 404, "Network " + none + " could not be found."},
		{"no network", "POST", "/network/floatingips", o{"floatingip": o{}}, 400, "Failed to parse request. Required attribute 'floating_network_id' not specified"},
		{"no such port", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.external, "port_id": none}}, 404, "Port " + none + " could not be found."},
		{"unknown attribute", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.external, "foo": 1}}, 400, "Unrecognized attribute(s) 'foo'"},
		{"description too long", "PUT", path, o{"floatingip": o{"description": long(256)}}, 400, "Invalid input for description. Reason: '" + long(256) + "' exceeds maximum length of 255."},
		{"read-only attribute", "PUT", path, o{"floatingip": o{"floating_ip_address": "172.31.0.99"}}, 400, "Cannot update read-only attribute floating_ip_address"},
		{"no such floating IP", "GET", "/network/floatingips/" + none, nil, 404, "Floating IP " + none + " could not be found"},
		{"unknown filter", "GET", "/network/floatingips?foo=1", nil, 400, "['foo'] is invalid attribute for filtering"},
		{"a given address needs more rights", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.external, "floating_ip_address": "172.31.0.249"}}, 403, "~disallowed by policy$"},
	} {
		t.Run(tc.quirk, func(t *testing.T) {
			c.within(t).refused(tc.status, tc.message, tc.method, tc.path, tc.body)
		})
	}
	admin := c.admin()
	used := num(admin.must(200, "GET", "/network/quotas/"+c.project+"/details", nil), "quota", "floatingip", "used")
	admin.refused(400, fmt.Sprintf("Quota limit 0 for floatingip must be greater than or equal to already used %d", used), "PUT", "/network/quotas/"+c.project, o{"quota": o{"floatingip": 0}})
	admin.must(200, "PUT", "/network/quotas/"+c.project, o{"quota": o{"floatingip": used}})
	defer admin.must(204, "DELETE", "/network/quotas/"+c.project, nil)
	c.refused(409, "Quota exceeded for resources: ['floatingip'].", "POST", "/network/floatingips", o{"floatingip": o{"floating_network_id": c.external}})
}

func TestNeutronTags_areACallOfTheirOwn(t *testing.T) {
	c := begin(t)
	f := c.floating(o{})
	path := "/network/floatingips/" + str(f, "id")
	doc := c.must(200, "PUT", path+"/tags", o{"tags": l{"b=2", "a=1"}})
	equal(t, "tags", len(dig(doc, "tags").(l)), 2)
	doc = c.must(200, "GET", path+"/tags", nil)
	equal(t, "tags", dig(doc, "tags"), l{"a=1", "b=2"})
	doc = c.must(200, "GET", "/network/floatingips?tags=a%3D1,b%3D2", nil)
	equal(t, "found by tags", len(list(doc, "floatingips")), 1)
	doc = c.must(200, "GET", "/network/floatingips?tags=a%3D1&not-tags=b%3D2", nil)
	equal(t, "not found", len(list(doc, "floatingips")), 0)
	c.must(204, "GET", path+"/tags/a=1", nil)
	c.must(201, "PUT", path+"/tags/c", nil)
	c.must(204, "DELETE", path+"/tags/c", nil)
	c.refused(404, "Tag c could not be found.", "DELETE", path+"/tags/c", nil)
	c.refused(404, "Tag c could not be found.", "GET", path+"/tags/c", nil)
	c.refused(400, "~Duplicate items in the list: ", "PUT", path+"/tags", o{"tags": l{"a", "a"}})
	c.refused(400, "~exceeds maximum length of 255", "PUT", path+"/tags", o{"tags": l{long(256)}})
	c.must(204, "DELETE", path+"/tags", nil)
	doc = c.must(200, "GET", path, nil)
	equal(t, "no tags", dig(doc, "floatingip", "tags"), l{})
}

func TestNeutron_networksPortsAndGroups(t *testing.T) {
	c := begin(t)
	doc := c.must(200, "GET", "/network/networks?router:external=true", nil)
	var found bool
	for _, n := range list(doc, "networks") {
		found = found || str(n, "id") == c.external
	}
	if !found {
		t.Errorf("the external network is not listed: %s", compact(doc))
	}
	doc = c.must(200, "GET", "/network/subnets/"+c.subnet, nil)
	for _, k := range []string{"allocation_pools", "cidr", "enable_dhcp", "gateway_ip", "host_routes", "id", "ip_version", "name", "network_id", "project_id", "tags"} {
		if _, ok := dig(doc, "subnet").(o)[k]; !ok {
			t.Errorf("a subnet has no %s", k)
		}
	}
	c.refused(404, "Subnet "+none+" could not be found.", "GET", "/network/subnets/"+none, nil)
	c.refused(404, "Network "+none+" could not be found.", "GET", "/network/networks/"+none, nil)
	doc = c.must(200, "GET", "/network/extensions", nil)
	var aliases []string
	for _, e := range list(doc, "extensions") {
		aliases = append(aliases, str(e, "alias"))
	}
	for _, want := range []string{"router", "security-group", "standard-attr-tag", "standard-attr-description", "external-net"} {
		if !strings.Contains(" "+strings.Join(aliases, " ")+" ", " "+want+" ") {
			t.Errorf("no extension %s", want)
		}
	}

	doc = c.must(201, "POST", "/network/security-groups", o{"security_group": o{"name": "contract", "description": "contract=1"}})
	group := str(doc, "security_group", "id")
	gone := func(path string) func() {
		return func() {
			if status, _ := c.call("DELETE", path, nil); status != 204 && status != 404 {
				t.Errorf("DELETE %s: %d", path, status)
			}
		}
	}
	t.Cleanup(gone("/network/security-groups/" + group))
	equal(t, "a new group lets everything out", len(list(doc, "security_group", "security_group_rules")), 2)
	ingress := o{"security_group_rule": o{"security_group_id": group, "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_ip_prefix": "10.0.0.0/24"}}
	doc = c.must(201, "POST", "/network/security-group-rules", ingress)
	rid := str(doc, "security_group_rule", "id")
	c.refused(409, "Security group rule already exists. Rule id is "+rid+".", "POST", "/network/security-group-rules", ingress)
	doc = c.must(200, "GET", "/network/security-groups?name=contract", nil)
	equal(t, "by name", len(list(doc, "security_groups")), 1)

	doc = c.must(201, "POST", "/network/ports", o{"port": o{"network_id": c.network, "name": "contract", "fixed_ips": l{o{"subnet_id": c.subnet}}, "security_groups": l{group}}})
	port := str(doc, "port", "id")
	t.Cleanup(gone("/network/ports/" + port))
	address := str(doc, "port", "fixed_ips", "0", "ip_address")
	equal(t, "port", l{dig(doc, "port", "status"), dig(doc, "port", "device_owner"), dig(doc, "port", "security_groups")}, l{"DOWN", "", l{group}})
	c.refused(409, "Security Group "+group+" in use.", "DELETE", "/network/security-groups/"+group, nil)
	c.refused(409, "IP address "+address+" already allocated in subnet "+c.subnet, "POST", "/network/ports", o{"port": o{"network_id": c.network, "fixed_ips": l{o{"subnet_id": c.subnet, "ip_address": address}}}})
	doc = c.must(200, "GET", "/network/ports?fixed_ips=ip_address%3D"+address+"&network_id="+c.network, nil)
	equal(t, "a port by its address", len(list(doc, "ports")), 1)
	doc = c.must(200, "GET", "/network/ports?network_id="+c.network+"&limit=1&sort_key=id&sort_dir=asc", nil)
	equal(t, "a page of ports", l{len(list(doc, "ports")), str(doc, "ports_links", "0", "rel")}, l{1, "next"})
	equal(t, "its link keeps the filter", strings.Contains(str(doc, "ports_links", "0", "href"), "network_id="+c.network), true)

	t.Run("an address of a VIP that is taken", func(t *testing.T) {
		c.within(t).refused(500, "~^Provider 'amphora' reports error: ConflictException: 409", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"name": "never", "vip_subnet_id": c.subnet, "vip_address": address}})
	})
	t.Run("a port for a VIP", func(t *testing.T) {
		c := c.within(t)
		c.must(200, "PUT", "/network/ports/"+port, o{"port": o{"security_groups": l{}}})
		lb := c.create(o{"name": "contract-port", "vip_port_id": port})
		equal(t, "VIP", l{lb["vip_address"], lb["vip_subnet_id"], lb["vip_network_id"]}, l{address, c.subnet, c.network})
		c.must(204, "DELETE", "/lb/loadbalancers/"+str(lb, "id"), nil)
		equal(t, "load balancer", c.wait(str(lb, "id")), "")
		doc := c.must(200, "GET", "/network/ports/"+port, nil)
		equal(t, "a given port outlives its load balancer", dig(doc, "port", "id"), port)
	})
}
