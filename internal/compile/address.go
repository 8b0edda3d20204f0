package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// addresses is what spec.addresses asks for: an address in the VIP subnet is the VIP's, any other one is a floating IP's, and one without a value
// is what the class gives by itself.
type addresses struct {
	vip      string
	floating string
	// more are by additional VIP subnet.
	more map[string]string
	// allocate says that the class's own kind of address is asked for.
	allocate bool
}

// addresses reads spec.addresses. refused says that the Gateway cannot be accepted, unusable that it cannot be programmed.
func (in *input) addresses() (a addresses, refused, unusable *status.Condition) {
	spec := in.Gateway.Spec.Addresses
	for i := range spec {
		if t := spec[i].Type; t != nil && *t != gwv1.IPAddressType {
			c := status.GatewayUnsupportedAddress(fmt.Sprintf(
				"spec.addresses[%d] has the type %s: a load balancer has addresses of type IPAddress only.", i, quote(string(*t))))
			return a, &c, nil
		}
	}
	vips, floating := in.Facts.VIPSubnet, in.Facts.FloatingNetworkID
	bad := func(i int, format string, args ...any) (addresses, *status.Condition, *status.Condition) {
		c := status.GatewayAddressNotUsable(fmt.Sprintf("spec.addresses[%d] cannot be used: ", i) + fmt.Sprintf(format, args...))
		return addresses{}, nil, &c
	}
	a.allocate = len(spec) == 0
	for i := range spec {
		value := spec[i].Value
		if value == "" {
			a.allocate = true
			continue
		}
		ip, err := netip.ParseAddr(value)
		if err != nil || ip.Zone() != "" {
			return bad(i, "%s is no IP address.", quote(value))
		}
		ip = ip.Unmap()
		more := slices.IndexFunc(in.Facts.AdditionalVIPSubnets, func(s lb.Subnet) bool { return contains(s, ip) })
		switch {
		case contains(vips, ip):
			if a.vip != "" {
				return bad(i, "a load balancer has one address in the VIP subnet %s.", vips.CIDR)
			}
			a.vip = ip.String()
		case more >= 0:
			subnet := in.Facts.AdditionalVIPSubnets[more]
			if a.more[subnet.ID] != "" {
				return bad(i, "a load balancer has one address in the VIP subnet %s.", subnet.CIDR)
			}
			if a.more == nil {
				a.more = map[string]string{}
			}
			a.more[subnet.ID] = ip.String()
		case floating == "":
			return bad(i, "%s is not in the VIP subnet %s, and Gateways of this class have no floating IPs.", ip, vips.CIDR)
		case !ip.Is4():
			return bad(i, "%s is not in the VIP subnet %s, and floating IPs are IPv4 addresses.", ip, vips.CIDR)
		case a.floating != "":
			return bad(i, "a load balancer has one floating IP, and %s is asked for too.", a.floating)
		default:
			a.floating = ip.String()
		}
	}
	return a, nil, nil
}

func contains(s lb.Subnet, ip netip.Addr) bool {
	prefix, err := netip.ParsePrefix(s.CIDR)
	return err == nil && prefix.Contains(ip)
}

// vips are the VIPs to have. Octavia makes all of them for every Gateway of the class; those that the Gateway does not ask for are not listed.
func (c *compiler) vips() (first lb.VIP, more []lb.VIP) {
	subnet, a := c.in.Facts.VIPSubnet, c.addresses
	first = lb.VIP{SubnetID: subnet.ID, NetworkID: subnet.NetworkID, Address: a.vip, Unlisted: !a.allocate && a.vip == "" && a.floating == ""}
	for _, s := range c.in.Facts.AdditionalVIPSubnets {
		address := a.more[s.ID]
		more = append(more, lb.VIP{SubnetID: s.ID, Address: address, Unlisted: !a.allocate && address == ""})
	}
	return first, more
}

// quote makes a value of a user fit for a status.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.QuoteToASCII(s)
}

// floatingIP is the floating IP to have, nil for none: who asks for a VIP alone gets no other address.
func (c *compiler) floatingIP() *lb.FloatingIP {
	network := c.in.Facts.FloatingNetworkID
	allocate := c.addresses.allocate && (c.in.Config == nil || c.in.Config.Spec.FloatingIPMode != v1alpha1.FloatingIPNone)
	if network == "" || !allocate && c.addresses.floating == "" {
		return nil
	}
	return &lb.FloatingIP{NetworkID: network, Address: c.addresses.floating, Description: c.owner.Description()}
}
