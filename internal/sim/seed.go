package sim

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// seed makes the project and its networks.
func (c *Cloud) seed() error {
	c.seedKeystone()
	c.seedOctavia()
	c.keys = barbicanState{secrets: map[string]*secret{}, containers: map[string]*container{}}
	c.net = neutronState{objects: map[string]map[string]record{}, order: map[string]int{}, quotas: map[string]int{},
		cursor: map[string]netip.Addr{}, used: map[string]map[netip.Addr]bool{}}
	cidrs := []*string{&c.opts.VIPCIDR, &c.opts.PublicCIDR, &c.opts.MemberCIDR}
	for i, def := range []string{"10.0.0.0/16", "198.18.0.0/16", "10.1.0.0/16"} {
		if *cidrs[i] == "" {
			*cidrs[i] = def
		}
		if _, err := netip.ParsePrefix(*cidrs[i]); err != nil {
			return fmt.Errorf("network of the simulator: %w", err)
		}
	}
	project := c.ks.projectID
	network := func(name, owner, cidr string, external bool, pools ...record) (string, string) {
		n := record{"name": name, "description": "", "admin_state_up": true, "shared": false, "router:external": external,
			"port_security_enabled": true, "mtu": 1500, "status": "ACTIVE", "availability_zones": []string{}}
		n = c.add("networks", owner, n)
		s := record{}
		for k, def := range neutronResources["subnets"].create {
			s[k] = def
		}
		s["name"], s["network_id"], s["cidr"] = name+"-subnet", n.id(), cidr
		if len(pools) > 0 {
			s["allocation_pools"] = pools
		}
		s, err := c.makeSubnet(owner, s)
		if err != nil {
			panic(err)
		}
		return n.id(), s.id()
	}
	c.net.publicNet, c.net.publicSubnet = network("public", c.ks.adminProjectID, c.opts.PublicCIDR, true)
	c.net.vipNet, c.net.vipSubnet = network("vips", project, c.opts.VIPCIDR, false)
	c.net.memberNet, c.net.memberSubnet = network("nodes", project, c.opts.MemberCIDR, false, c.memberPool...)
	r := c.add("routers", project, record{"name": "router", "description": "", "admin_state_up": true, "status": "ACTIVE", "routes": []any{},
		"external_gateway_info": map[string]any{"network_id": c.net.publicNet, "enable_snat": true}})
	c.net.router = r.id()
	for _, s := range []string{c.net.vipSubnet, c.net.memberSubnet} {
		if _, err := c.addInterface(r, s); err != nil {
			return err
		}
	}
	c.defaultSG(project)
	return nil
}

// VIPSubnetID is the seeded subnet for VIPs.
func (c *Cloud) VIPSubnetID() string { return c.net.vipSubnet }

// VIPNetworkID is the seeded network for VIPs.
func (c *Cloud) VIPNetworkID() string { return c.net.vipNet }

// MemberSubnetID is the seeded subnet of the nodes.
func (c *Cloud) MemberSubnetID() string { return c.net.memberSubnet }

// MemberNetworkID is the seeded network of the nodes.
func (c *Cloud) MemberNetworkID() string { return c.net.memberNet }

// PublicNetworkID is the seeded external network, for floating IPs.
func (c *Cloud) PublicNetworkID() string { return c.net.publicNet }

// claimLoopback finds two neighbouring /16 blocks of 127/8 that no other
// simulator on this machine uses. The returned listener holds the claim.
func (c *Cloud) claimLoopback() (net.Listener, error) {
	if c.opts.VIPCIDR != "" && c.opts.PublicCIDR != "" {
		return nil, nil
	}
	const guardPort = "61999"
	for i := range 60 {
		n := 64 + (2*i+int(c.opts.Seed%30)*2)%120
		ln, err := listen(fmt.Sprintf("127.%d.0.1:%s", n, guardPort))
		if err != nil {
			continue
		}
		if c.opts.VIPCIDR == "" {
			c.opts.VIPCIDR = fmt.Sprintf("127.%d.0.0/17", n)
		}
		if c.opts.PublicCIDR == "" {
			c.opts.PublicCIDR = fmt.Sprintf("127.%d.0.0/16", n+1)
		}
		if c.opts.MemberCIDR == "" {
			// Members are anywhere on this machine, but VIPs on their subnet
			// must not meet those of other simulators.
			c.opts.MemberCIDR = "127.0.0.0/8"
			c.memberPool = []record{{"start": fmt.Sprintf("127.%d.128.2", n), "end": fmt.Sprintf("127.%d.255.254", n)}}
		}
		return ln, nil
	}
	return nil, fmt.Errorf("no free loopback block for VIPs (%w); close other simulators, or set VIPCIDR and PublicCIDR", syscall.EADDRINUSE)
}
