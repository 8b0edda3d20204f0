package sim

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

func (c *Cloud) makeSubnet(project string, o record) (record, error) {
	n := c.net.find("networks", o.str("network_id"))
	if n == nil {
		return nil, neutronFault(404, "NetworkNotFound", "Network %s could not be found.", o.str("network_id"))
	}
	p, err := netip.ParsePrefix(o.str("cidr"))
	if err != nil {
		return nil, neutronFault(400, "HTTPBadRequest", "Invalid input for cidr. Reason: '%v' is not a valid IP subnet.", o["cidr"])
	}
	p = p.Masked()
	o["cidr"] = p.String()
	if o["gateway_ip"] == "auto" {
		o["gateway_ip"] = p.Addr().Next().String()
	}
	if o["allocation_pools"] == nil {
		first := p.Addr().Next()
		if o["gateway_ip"] != nil && o.str("gateway_ip") == first.String() {
			first = first.Next()
		}
		o["allocation_pools"] = []record{{"start": first.String(), "end": lastAddr(p).Prev().String()}}
	} else {
		var pools []record
		b, _ := json.Marshal(o["allocation_pools"])
		if err := json.Unmarshal(b, &pools); err != nil {
			return nil, neutronFault(400, "HTTPBadRequest", "Invalid input for allocation_pools.")
		}
		o["allocation_pools"] = pools
	}
	return c.add("subnets", project, o), nil
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// takeAddress allocates an address of a subnet, a given one or the next.
func (c *Cloud) takeAddress(subnet record, want string) (string, error) {
	used := c.net.used[subnet.id()]
	if used == nil {
		used = map[netip.Addr]bool{}
		c.net.used[subnet.id()] = used
	}
	if want != "" {
		a, err := netip.ParseAddr(want)
		if err != nil || !netip.MustParsePrefix(subnet.str("cidr")).Contains(a) {
			return "", neutronFault(400, "InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", want)
		}
		if used[a] || want == subnet.str("gateway_ip") {
			return "", neutronFault(409, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", want, subnet.id())
		}
		used[a] = true
		return want, nil
	}
	pools, _ := subnet["allocation_pools"].([]record)
	cursor := c.net.cursor[subnet.id()]
	for range 2 { // from the cursor, then from the start
		for _, p := range pools {
			start, end := netip.MustParseAddr(p.str("start")), netip.MustParseAddr(p.str("end"))
			a := start
			if cursor.IsValid() {
				if end.Less(cursor) {
					continue
				}
				if start.Less(cursor) {
					a = cursor
				}
			}
			for ; !end.Less(a); a = a.Next() {
				if !used[a] {
					used[a] = true
					c.net.cursor[subnet.id()] = a.Next()
					return a.String(), nil
				}
			}
		}
		cursor = netip.Addr{}
	}
	return "", neutronFault(409, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", subnet.str("network_id"))
}

func (c *Cloud) freeAddress(subnet, address string) {
	if a, err := netip.ParseAddr(address); err == nil {
		delete(c.net.used[subnet], a)
	}
}

func (c *Cloud) makePort(project string, o record) (record, error) {
	n := c.net.find("networks", o.str("network_id"))
	if n == nil {
		return nil, neutronFault(404, "NetworkNotFound", "Network %s could not be found.", o.str("network_id"))
	}
	var wants []record
	if o["fixed_ips"] != nil {
		b, _ := json.Marshal(o["fixed_ips"])
		if err := json.Unmarshal(b, &wants); err != nil {
			return nil, neutronFault(400, "HTTPBadRequest", "Invalid input for fixed_ips.")
		}
	} else {
		for _, s := range c.ordered("subnets") {
			if s.str("network_id") == n.id() {
				wants = []record{{"subnet_id": s.id()}}
				break
			}
		}
	}
	fixed := []record{}
	for _, w := range wants {
		s, err := c.subnetFor(n, w)
		if err == nil {
			var a string
			if a, err = c.takeAddress(s, w.str("ip_address")); err == nil {
				fixed = append(fixed, record{"subnet_id": s.id(), "ip_address": a})
				continue
			}
		}
		for _, f := range fixed {
			c.freeAddress(f.str("subnet_id"), f.str("ip_address"))
		}
		return nil, err
	}
	o["fixed_ips"] = fixed
	if o["mac_address"] == nil {
		c.net.mac++
		o["mac_address"] = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", c.net.mac>>16&0xff, c.net.mac>>8&0xff, c.net.mac&0xff)
	}
	if o["security_groups"] == nil {
		o["security_groups"] = []string{c.defaultSG(project)}
	}
	o["status"] = "DOWN"
	return c.add("ports", project, o), nil
}

func (c *Cloud) subnetFor(network, want record) (record, error) {
	if id := want.str("subnet_id"); id != "" {
		s := c.net.find("subnets", id)
		if s == nil {
			return nil, neutronFault(404, "SubnetNotFound", "Subnet %s could not be found.", id)
		}
		if s.str("network_id") != network.id() {
			return nil, neutronFault(400, "InvalidInput", "Invalid input for operation: Failed to create port on network %s, because fixed_ips included invalid subnet %s.", network.id(), id)
		}
		return s, nil
	}
	a, err := netip.ParseAddr(want.str("ip_address"))
	if err == nil {
		for _, s := range c.ordered("subnets") {
			if s.str("network_id") == network.id() && netip.MustParsePrefix(s.str("cidr")).Contains(a) {
				return s, nil
			}
		}
	}
	return nil, neutronFault(400, "InvalidIpForNetwork", "IP address %s is not a valid IP for any of the subnets on the specified network.", want.str("ip_address"))
}

func (c *Cloud) defaultSG(project string) string {
	for _, g := range c.ordered("security_groups") {
		if g.str("project_id") == project && g.str("name") == "default" {
			return g.id()
		}
	}
	g, _ := c.makeNeutron(nil, neutronResources["security-groups"], project, record{"name": "default", "description": "Default security group", "stateful": true})
	return g.id()
}

// dropPort deletes a port; floating IPs on it stay, without a port.
func (c *Cloud) dropPort(p record) {
	for _, f := range c.net.objects["floatingips"] {
		if f.str("port_id") == p.id() {
			f["port_id"], f["fixed_ip_address"], f["router_id"], f["status"] = nil, nil, nil, "DOWN"
			c.bump(f)
		}
	}
	fixed, _ := p["fixed_ips"].([]record)
	for _, f := range fixed {
		c.freeAddress(f.str("subnet_id"), f.str("ip_address"))
	}
	delete(c.net.objects["ports"], p.id())
}

func (c *Cloud) makeFloatingIP(t *token, project string, o record) (record, error) {
	id := o.str("floating_network_id")
	if id == "" {
		return nil, neutronFault(400, "HTTPBadRequest", "Failed to parse request. Required attribute 'floating_network_id' not specified")
	}
	n := c.net.find("networks", id)
	if n == nil {
		return nil, neutronFault(404, "NetworkNotFound", "Network %s could not be found.", id)
	}
	if n["router:external"] != true {
		return nil, neutronFault(400, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", id)
	}
	if o.str("floating_ip_address") != "" && !t.admin() && !c.opts.ChooseAddress {
		return nil, neutronFault(403, "PolicyNotAuthorized", "(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy")
	}
	if o.str("fixed_ip_address") != "" && o.str("port_id") == "" {
		return nil, neutronFault(400, "BadRequest", "Bad floatingip request: fixed_ip_address cannot be specified without a port_id.")
	}
	o["router_id"], o["status"] = nil, "DOWN"
	port, want := o.str("port_id"), o.str("fixed_ip_address")
	o["port_id"], o["fixed_ip_address"] = nil, nil
	var address string
	err := neutronFault(409, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", id)
	for _, s := range c.ordered("subnets") {
		if s.str("network_id") != id || o.str("subnet_id") != "" && o.str("subnet_id") != s.id() {
			continue
		}
		if address, err = c.takeAddress(s, o.str("floating_ip_address")); err == nil {
			o["_subnet"] = s.id()
			break
		}
	}
	if err != nil {
		return nil, err
	}
	o["id"], o["floating_ip_address"] = c.newID(), address
	delete(o, "subnet_id")
	assoc, err := c.association(project, o, port, want)
	if err != nil {
		c.freeAddress(o.str("_subnet"), address)
		return nil, err
	}
	for k, v := range assoc {
		o[k] = v
	}
	return c.add("floatingips", project, o), nil
}

// association is what attaching a floating IP to a port changes.
func (c *Cloud) association(project string, fip record, port, fixed string) (record, error) {
	if port == "" {
		return record{"port_id": nil, "fixed_ip_address": nil, "router_id": nil, "status": "DOWN"}, nil
	}
	p := c.net.find("ports", port)
	if p == nil {
		return nil, neutronFault(404, "PortNotFound", "Port %s could not be found.", port)
	}
	if p.str("project_id") != project {
		return nil, neutronFault(400, "BadRequest", "Bad floatingip request: Cannot process floating IP association with Port %s, since that port is owned by a different tenant.", port)
	}
	ips, _ := p["fixed_ips"].([]record)
	if len(ips) == 0 {
		return nil, neutronFault(400, "BadRequest", "Bad floatingip request: Cannot add floating IP to port %s that has no fixed IPv4 addresses.", port)
	}
	at := ips[0]
	if fixed != "" {
		i := slices.IndexFunc(ips, func(f record) bool { return f.str("ip_address") == fixed })
		if i < 0 {
			return nil, neutronFault(400, "BadRequest", "Bad floatingip request: Port %s does not have fixed ip %s.", port, fixed)
		}
		at = ips[i]
	}
	network := fip.str("floating_network_id")
	router := c.routerBetween(at.str("subnet_id"), network)
	if router == "" {
		return nil, neutronFault(404, "ExternalGatewayForFloatingIPNotFound", "External network %s is not reachable from subnet %s.  Therefore, cannot associate Port %s with a Floating IP.", network, at.str("subnet_id"), port)
	}
	for _, other := range c.net.objects["floatingips"] {
		if other.str("port_id") == port && other.str("fixed_ip_address") == at.str("ip_address") && other.id() != fip.id() && other.str("floating_network_id") == network {
			return nil, neutronFault(409, "FloatingIPPortAlreadyAssociated", "Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s.",
				fip.str("floating_ip_address"), fip.id(), port, at.str("ip_address"), network)
		}
	}
	// Without an L3 agent the status never leaves DOWN.
	return record{"port_id": port, "fixed_ip_address": at.str("ip_address"), "router_id": router, "status": "DOWN"}, nil
}

// routerBetween is the router that joins a subnet to an external network.
func (c *Cloud) routerBetween(subnet, network string) string {
	for _, p := range c.ordered("ports") {
		if p.str("device_owner") != "network:router_interface" {
			continue
		}
		ips, _ := p["fixed_ips"].([]record)
		if !slices.ContainsFunc(ips, func(f record) bool { return f.str("subnet_id") == subnet }) {
			continue
		}
		r := c.net.find("routers", p.str("device_id"))
		if gw, _ := r["external_gateway_info"].(map[string]any); gw["network_id"] == network {
			return r.id()
		}
	}
	return ""
}

func (c *Cloud) updateFloatingIP(o, in record) error {
	if _, ok := in["port_id"]; ok {
		assoc, err := c.association(o.str("project_id"), o, in.str("port_id"), in.str("fixed_ip_address"))
		if err != nil {
			return err
		}
		for k, v := range assoc {
			o[k] = v
		}
	} else if in["fixed_ip_address"] != nil {
		return neutronFault(400, "BadRequest", "Bad floatingip request: fixed_ip_address cannot be specified without a port_id.")
	}
	if d, ok := in["description"]; ok {
		o["description"] = d
	}
	return nil
}

func (c *Cloud) routerInterface(r *request, router record) (response, error) {
	var in record
	if err := json.Unmarshal(r.body, &in); err != nil {
		return response{}, neutronFault(400, "HTTPBadRequest", "Malformed request body.")
	}
	switch r.path[2] {
	case "add_router_interface":
		p, err := c.addInterface(router, in.str("subnet_id"))
		if err != nil {
			return response{}, err
		}
		return response{status: 200, body: interfaceAnswer(router, p, in.str("subnet_id"))}, nil
	case "remove_router_interface":
		for _, p := range c.ordered("ports") {
			ips, _ := p["fixed_ips"].([]record)
			if p.str("device_id") != router.id() || p.str("device_owner") != "network:router_interface" ||
				!slices.ContainsFunc(ips, func(f record) bool { return f.str("subnet_id") == in.str("subnet_id") }) {
				continue
			}
			c.dropPort(p)
			return response{status: 200, body: interfaceAnswer(router, p, in.str("subnet_id"))}, nil
		}
		return response{}, neutronFault(404, "RouterInterfaceNotFoundForSubnet", "Router %s has no interface on subnet %s", router.id(), in.str("subnet_id"))
	}
	return response{}, neutronFault(404, "HTTPNotFound", "The resource could not be found.")
}

func interfaceAnswer(router, port record, subnet string) object {
	return object{"id": router.id(), "port_id": port.id(), "subnet_id": subnet, "subnet_ids": []string{subnet},
		"network_id": port["network_id"], "project_id": router["project_id"], "tenant_id": router["project_id"], "tags": []string{}}
}

func (c *Cloud) addInterface(router record, subnet string) (record, error) {
	s := c.net.find("subnets", subnet)
	if s == nil {
		return nil, neutronFault(404, "SubnetNotFound", "Subnet %s could not be found.", subnet)
	}
	o := record{}
	for k, def := range neutronResources["ports"].create {
		o[k] = def
	}
	o["network_id"], o["device_id"], o["device_owner"] = s["network_id"], router.id(), "network:router_interface"
	o["fixed_ips"] = []record{} // the gateway address is not in the pools
	o["security_groups"] = []string{}
	p, err := c.makePort(router.str("project_id"), o)
	if err != nil {
		return nil, err
	}
	p["fixed_ips"], p["status"] = []record{{"subnet_id": subnet, "ip_address": s.str("gateway_ip")}}, "ACTIVE"
	return p, nil
}

// vipFor validates where a new load balancer wants its VIP.
func (c *Cloud) vipFor(lb *loadBalancer, a attrs) (*vipWish, error) {
	w := &vipWish{network: a.str("vip_network_id"), subnet: a.str("vip_subnet_id"), port: a.str("vip_port_id"), address: a.str("vip_address")}
	for _, sg := range a.strs("vip_sg_ids") {
		if c.net.find("security_groups", sg) == nil {
			return nil, noSubresource("Security Group", sg)
		}
		lb.VipSGIDs = append(lb.VipSGIDs, sg)
	}
	for _, v := range a.objects("additional_vips") {
		w.more = append(w.more, additionalVip{SubnetID: v.str("subnet_id"), IPAddress: v.str("ip_address")})
	}
	switch {
	case w.port != "":
		p := c.net.find("ports", w.port)
		if p == nil {
			return nil, noSubresource("Port", w.port)
		}
		if d := p.str("device_id"); d != "" {
			return nil, invalid("Port %s is already used by device %s ", w.port, d)
		}
		ips, _ := p["fixed_ips"].([]record)
		if len(ips) != 1 && w.subnet == "" && w.address == "" {
			return nil, invalid("VIP port's subnet could not be determined. Please specify either a VIP subnet or address.")
		}
		for _, f := range ips {
			if (w.subnet == "" || w.subnet == f.str("subnet_id")) && (w.address == "" || w.address == f.str("ip_address")) {
				w.network, w.subnet, w.address = p.str("network_id"), f.str("subnet_id"), f.str("ip_address")
				break
			}
		}
		if w.subnet == "" || w.address == "" {
			return nil, invalid("Specified VIP address not found on the specified VIP port.")
		}
	case w.network != "":
		n := c.net.find("networks", w.network)
		if n == nil {
			return nil, noSubresource("Network", w.network)
		}
		// The first subnet, preferring IPv4.
		var first string
		firstIs6 := false
		for _, s := range c.ordered("subnets") {
			if s.str("network_id") != w.network {
				continue
			}
			if first == "" || firstIs6 && !isIPv6(s.str("cidr")) {
				first, firstIs6 = s.id(), isIPv6(s.str("cidr"))
			}
			if addr, err := netip.ParseAddr(w.address); err == nil && netip.MustParsePrefix(s.str("cidr")).Contains(addr) && w.subnet == "" {
				w.subnet = s.id()
			}
		}
		if w.subnet != "" && c.net.find("subnets", w.subnet).str("network_id") != w.network {
			return nil, noSubresource("Subnet", w.subnet)
		}
		switch {
		case first == "":
			return nil, invalid("Supplied network does not contain a subnet.")
		case w.subnet == "" && w.address != "":
			return nil, invalid("Supplied network does not contain a subnet for VIP address specified.")
		case w.subnet == "":
			w.subnet = first
		}
	case w.subnet != "":
		s := c.net.find("subnets", w.subnet)
		if s == nil {
			return nil, noSubresource("Subnet", w.subnet)
		}
		w.network = s.str("network_id")
	default:
		return nil, refuse(400, "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.")
	}
	seen := map[string]bool{w.subnet: true}
	for _, v := range w.more {
		s := c.net.find("subnets", v.SubnetID)
		switch {
		case seen[v.SubnetID]:
			return nil, invalid("Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.")
		case s == nil:
			return nil, invalid("Subnet %s not found", v.SubnetID)
		case s.str("network_id") != w.network:
			return nil, invalid("All VIP subnets must belong to the same network.")
		}
		seen[v.SubnetID] = true
	}
	return w, nil
}

type vipWish struct {
	network, subnet, port, address string
	more                           []additionalVip
}

// claimVIP makes the VIP port of a load balancer, or takes the given one.
func (c *Cloud) claimVIP(lb *loadBalancer, w *vipWish) error {
	lb.VipNetworkID, lb.VipSubnetID = w.network, w.subnet
	if w.port != "" {
		lb.VipPortID, lb.VipAddress = w.port, w.address
		return nil
	}
	o := record{}
	for k, def := range neutronResources["ports"].create {
		o[k] = def
	}
	ips := []record{{"subnet_id": w.subnet, "ip_address": w.address}}
	for _, v := range w.more {
		ips = append(ips, record{"subnet_id": v.SubnetID, "ip_address": v.IPAddress})
	}
	o["name"], o["network_id"], o["admin_state_up"] = "octavia-lb-"+lb.ID, w.network, false
	o["device_id"], o["device_owner"], o["fixed_ips"] = "lb-"+lb.ID, "Octavia", ips
	p, err := c.makePort(lb.ProjectID, o)
	if err != nil {
		// Whatever Neutron says, taken or used up, this is what is left of it.
		return refuse(500, "Provider '%s' reports error: ConflictException: 409", lb.Provider)
	}
	lb.ownsPort, lb.VipPortID = true, p.id()
	got, _ := p["fixed_ips"].([]record)
	lb.VipAddress = got[0].str("ip_address")
	for i, v := range w.more {
		lb.AdditionalVips = append(lb.AdditionalVips, additionalVip{SubnetID: v.SubnetID, IPAddress: got[i+1].str("ip_address"), PortID: p.id()})
	}
	return nil
}

func (c *Cloud) releaseVIPPort(lb *loadBalancer) {
	if p := c.net.find("ports", lb.VipPortID); p != nil && lb.ownsPort {
		c.dropPort(p)
	}
}
