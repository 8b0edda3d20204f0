package lb

// Facts is what compile needs to know of the cloud: the selectors of the class resolved to ids. It is looked up before
// compile, which does no I/O.
type Facts struct {
	ProjectID string `json:"projectID"`
	// VIPSubnet is where the VIP goes.
	VIPSubnet Subnet `json:"vipSubnet"`
	// MemberSubnetID is the member subnet_id; "" reaches members by routing.
	MemberSubnetID string `json:"memberSubnetID,omitempty"`
	// FloatingNetworkID is the external network; "" allocates no floating IP.
	FloatingNetworkID string `json:"floatingNetworkID,omitempty"`
	// KeyManager says whether the cloud has Barbican, which HTTPS listeners need.
	KeyManager bool `json:"keyManager,omitempty"`
	// OctaviaMinor is the newest version 2.x of Octavia's API; 0 when it is not known, which is taken for new.
	OctaviaMinor int `json:"octaviaMinor,omitempty"`
	// ProhibitedCiphers and MinimumTLSVersion are what the administrator does not allow listeners, as far as Octavia has said so: no call
	// asks for it.
	ProhibitedCiphers []string `json:"prohibitedCiphers,omitempty"`
	MinimumTLSVersion string   `json:"minimumTLSVersion,omitempty"`
}

// Octavia says whether the cloud has version 2.minor of Octavia's API.
func (f Facts) Octavia(minor int) bool { return f.OctaviaMinor == 0 || f.OctaviaMinor >= minor }

// Subnet is a Neutron subnet.
type Subnet struct {
	ID        string `json:"id"`
	NetworkID string `json:"networkID"`
	CIDR      string `json:"cidr,omitempty"`
}

// Selector names one cloud object by exactly one of id and exact name. The zero value selects nothing.
type Selector struct {
	ID   string
	Name string
}
