package lb

import "net/netip"

// Facts is what compile needs to know of the cloud: the selectors of the class resolved to ids. It is looked up before
// compile, which does no I/O.
type Facts struct {
	ProjectID string `json:"projectID"`
	// Provider is the Octavia provider, in so many words: what an alias stands for can change.
	Provider string `json:"provider,omitempty"`
	// VIPSubnet is where the VIP goes. Without an ID it is any subnet of the network, and CIDR is that of the one that Octavia prefers.
	VIPSubnet Subnet `json:"vipSubnet"`
	// AdditionalVIPSubnets are where the load balancer gets further VIPs, sorted by id.
	AdditionalVIPSubnets []Subnet `json:"additionalVIPSubnets,omitempty"`
	// MemberSubnetID is the member subnet_id; "" reaches members by routing.
	MemberSubnetID string `json:"memberSubnetID,omitempty"`
	// FloatingNetworkID is the external network; "" has no floating IPs.
	FloatingNetworkID string `json:"floatingNetworkID,omitempty"`
	// KeyManager says whether the cloud has Barbican, which HTTPS listeners need.
	KeyManager bool `json:"keyManager,omitempty"`
	// OctaviaMinor is the newest version 2.x of Octavia's API; 0 when it is not known, which is taken for new.
	OctaviaMinor int `json:"octaviaMinor,omitempty"`
	// ProhibitedCiphers and MinimumTLSVersion are what the administrator does not allow listeners, as far as Octavia has said so: no call
	// asks for it.
	ProhibitedCiphers []string `json:"prohibitedCiphers,omitempty"`
	MinimumTLSVersion string   `json:"minimumTLSVersion,omitempty"`
	// FlavorID is Octavia's flavor; "" is its default.
	FlavorID string `json:"flavorID,omitempty"`
	// VIPSecurityGroupIDs are the security groups for the VIP port, sorted; none leaves it to Octavia.
	VIPSecurityGroupIDs []string `json:"vipSecurityGroupIDs,omitempty"`
}

// Octavia says whether the cloud has version 2.minor of Octavia's API.
func (f Facts) Octavia(minor int) bool { return f.OctaviaMinor == 0 || f.OctaviaMinor >= minor }

// Subnet is a Neutron subnet.
type Subnet struct {
	ID        string `json:"id"`
	NetworkID string `json:"networkID"`
	CIDR      string `json:"cidr,omitempty"`
}

// Selector names one cloud object by exactly one of id, exact name, tags, and being the only one. The zero value selects nothing.
type Selector struct {
	ID   string   `json:"id,omitempty"`
	Name string   `json:"name,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// Only takes the only one that can serve the purpose.
	Only bool `json:"only,omitempty"`
}

// None says that the selector selects nothing.
func (s Selector) None() bool { return s.ID == "" && s.Name == "" && len(s.Tags) == 0 && !s.Only }

// Recorded adds to facts what a load balancer was made with, as far as it can be seen. have is a complete observation.
func Recorded(have *Tree, facts Facts) Facts {
	facts.Provider, facts.FlavorID = have.Provider, have.FlavorID
	facts.VIPSubnet = have.VIP.subnet(have.VIP.NetworkID)
	for _, v := range have.AdditionalVIPs {
		facts.AdditionalVIPSubnets = append(facts.AdditionalVIPSubnets, v.subnet(have.VIP.NetworkID))
	}
	facts.VIPSecurityGroupIDs = have.VIPSecurityGroupIDs
	if have.FloatingIP != nil {
		facts.FloatingNetworkID = have.FloatingIP.NetworkID
	}
	for _, pool := range have.Pools {
		for _, member := range pool.Members {
			if member.SubnetID != "" {
				facts.MemberSubnetID = member.SubnetID
			}
		}
	}
	return facts
}

// subnet is where a VIP is. Of its addresses only the VIP's own is known.
func (v VIP) subnet(network string) Subnet {
	s := Subnet{ID: v.SubnetID, NetworkID: network}
	if address, err := netip.ParseAddr(v.Address); err == nil {
		s.CIDR = netip.PrefixFrom(address, address.BitLen()).String()
	}
	return s
}
