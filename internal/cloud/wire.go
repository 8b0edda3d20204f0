package cloud

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// The wire types hold what we read of the APIs' objects, and how that becomes the model in its one normal form: the
// service's defaults are zero values again, and lists that have no order are sorted.

type wireSubnet struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Tags      []string `json:"tags"`
	NetworkID string   `json:"network_id"`
	CIDR      string   `json:"cidr"`
}

func (w wireSubnet) identity() identity { return identity{w.ID, w.Name, w.Tags} }

func (w wireSubnet) model() lb.Subnet {
	return lb.Subnet{ID: w.ID, NetworkID: w.NetworkID, CIDR: w.CIDR}
}

type wireNetwork struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Tags     []string `json:"tags"`
	External bool     `json:"router:external"`
}

func (w wireNetwork) identity() identity { return identity{w.ID, w.Name, w.Tags} }

type wireSecurityGroup struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

func (w wireSecurityGroup) identity() identity { return identity{w.ID, w.Name, w.Tags} }

type wireFlavor struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

func (w wireFlavor) identity() identity { return identity{id: w.ID, name: w.Name} }

type wireZone struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

type wirePort struct {
	ID          string `json:"id"`
	NetworkID   string `json:"network_id"`
	DeviceOwner string `json:"device_owner"`
}

type wireFloatingIP struct {
	ID          string `json:"id"`
	NetworkID   string `json:"floating_network_id"`
	Address     string `json:"floating_ip_address"`
	PortID      string `json:"port_id"`
	Description string `json:"description"`
	ProjectID   string `json:"project_id"`
}

func (w wireFloatingIP) model(owner lb.Owner) *lb.FloatingIP {
	return &lb.FloatingIP{ID: w.ID, NetworkID: w.NetworkID, Address: w.Address, PortID: w.PortID, OfOther: owner.MarksOther(w.Description),
		Description: w.Description, Supplied: !owner.OwnsDescription(w.Description)}
}

type wireRef struct {
	ID string `json:"id"`
}

func hasRef(refs []wireRef, id string) bool {
	return slices.ContainsFunc(refs, func(r wireRef) bool { return r.ID == id })
}

// wireMeta is common to all Octavia objects.
type wireMeta struct {
	ID                 string                `json:"id"`
	Name               string                `json:"name"`
	Tags               []string              `json:"tags"`
	ProvisioningStatus lb.ProvisioningStatus `json:"provisioning_status"`
	OperatingStatus    string                `json:"operating_status"`
	AdminStateUp       *bool                 `json:"admin_state_up"`
}

func (w wireMeta) disabled() bool { return w.AdminStateUp != nil && !*w.AdminStateUp }

func (w wireMeta) model() lb.Meta {
	tags := slices.Clone(w.Tags)
	slices.Sort(tags)
	return lb.Meta{ID: w.ID, Key: lb.KeyFromTags(w.Tags), Name: w.Name, Tags: tags,
		ProvisioningStatus: w.ProvisioningStatus, OperatingStatus: w.OperatingStatus, Disabled: w.disabled()}
}

func (w wireMeta) meta() wireMeta { return w }

type hasMeta interface{ meta() wireMeta }

type wireLoadBalancer struct {
	wireMeta
	ProjectID         string   `json:"project_id"`
	Description       string   `json:"description"`
	Provider          string   `json:"provider"`
	FlavorID          string   `json:"flavor_id"`
	AvailabilityZone  string   `json:"availability_zone"`
	VIPAddress        string   `json:"vip_address"`
	VIPPortID         string   `json:"vip_port_id"`
	VIPSubnetID       string   `json:"vip_subnet_id"`
	VIPNetworkID      string   `json:"vip_network_id"`
	VIPSecurityGroups []string `json:"vip_sg_ids"`
	AdditionalVIPs    []struct {
		SubnetID string `json:"subnet_id"`
		Address  string `json:"ip_address"`
	} `json:"additional_vips"`
	UpdatedAt string         `json:"updated_at"`
	CreatedAt string         `json:"created_at"`
	Listeners []wireListener `json:"listeners"`
	Pools     []wirePool     `json:"pools"`
}

// loadBalancerFields are what Observe asks for. Without the lists of children the answer stays cheap for Octavia.
var loadBalancerFields = []string{"id", "name", "tags", "provisioning_status", "operating_status", "admin_state_up",
	"project_id", "description", "provider", "flavor_id", "availability_zone",
	"vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id", "vip_sg_ids", "additional_vips", "updated_at", "created_at"}

func (w wireLoadBalancer) model(owner lb.Owner) lb.Tree {
	t := lb.Tree{Meta: w.wireMeta.model(), Owner: owner, ProjectID: w.ProjectID, Description: w.Description,
		UpdatedAt: w.UpdatedAt, CreatedAt: w.CreatedAt, Provider: w.Provider, FlavorID: w.FlavorID, AvailabilityZone: w.AvailabilityZone,
		VIP: lb.VIP{SubnetID: w.VIPSubnetID, NetworkID: w.VIPNetworkID, Address: w.VIPAddress, PortID: w.VIPPortID}}
	t.Replaces = lb.ReplacesFromTags(t.Tags)
	t.VIPSecurityGroupIDs = slices.Clone(w.VIPSecurityGroups)
	slices.Sort(t.VIPSecurityGroupIDs)
	for _, v := range w.AdditionalVIPs {
		t.AdditionalVIPs = append(t.AdditionalVIPs, lb.VIP{SubnetID: v.SubnetID, Address: v.Address})
	}
	slices.SortFunc(t.AdditionalVIPs, func(a, b lb.VIP) int { return cmp.Compare(a.SubnetID, b.SubnetID) })
	return t
}

// Octavia reports its defaults as values. An operator can configure others in octavia.conf, so these are always asked for.
const (
	defaultConnectionLimit      = -1
	defaultTimeoutClientData    = lb.StandardTimeoutClientData
	defaultTimeoutMemberConnect = lb.StandardTimeoutMemberConnect
	defaultTimeoutMemberData    = lb.StandardTimeoutMemberData
)

type wireListener struct {
	wireMeta
	Protocol             lb.Protocol       `json:"protocol"`
	Port                 int               `json:"protocol_port"`
	DefaultPoolID        string            `json:"default_pool_id"`
	AllowedCIDRs         []string          `json:"allowed_cidrs"`
	InsertHeaders        map[string]string `json:"insert_headers"`
	ConnectionLimit      int               `json:"connection_limit"`
	TimeoutClientData    int               `json:"timeout_client_data"`
	TimeoutMemberConnect int               `json:"timeout_member_connect"`
	TimeoutMemberData    int               `json:"timeout_member_data"`
	DefaultRef           string            `json:"default_tls_container_ref"`
	SNIRefs              []string          `json:"sni_container_refs"`
	ClientCARef          string            `json:"client_ca_tls_container_ref"`
	ClientAuthentication string            `json:"client_authentication"`
	TLSVersions          []string          `json:"tls_versions"`
	ALPNProtocols        []string          `json:"alpn_protocols"`
	TLSCiphers           string            `json:"tls_ciphers"`
	HSTSMaxAge           *int              `json:"hsts_max_age"`
	HSTSSubdomains       bool              `json:"hsts_include_subdomains"`
	HSTSPreload          bool              `json:"hsts_preload"`
	LoadBalancers        []wireRef         `json:"loadbalancers"`
	// Policies are ids in a list, and whole objects in the answer to a fully-populated create.
	Policies []wirePolicy `json:"l7policies"`
}

func (w wireListener) model() lb.Listener {
	l := lb.Listener{Meta: w.wireMeta.model(), Protocol: w.Protocol, Port: w.Port, AllowedCIDRs: slices.Clone(w.AllowedCIDRs),
		ConnectionLimit:      without(w.ConnectionLimit, defaultConnectionLimit),
		TimeoutClientData:    without(w.TimeoutClientData, defaultTimeoutClientData),
		TimeoutMemberConnect: without(w.TimeoutMemberConnect, defaultTimeoutMemberConnect),
		TimeoutMemberData:    without(w.TimeoutMemberData, defaultTimeoutMemberData)}
	slices.Sort(l.AllowedCIDRs)
	if len(w.InsertHeaders) > 0 {
		l.InsertHeaders = w.InsertHeaders
	}
	if w.Protocol == lb.TerminatedHTTPS {
		// These are references until nameSecrets.
		l.TLS = &lb.ListenerTLS{Default: w.DefaultRef, SNI: slices.Clone(w.SNIRefs),
			Versions: slices.Sorted(slices.Values(w.TLSVersions)), ALPN: slices.Clone(w.ALPNProtocols), Ciphers: w.TLSCiphers}
		if w.HSTSMaxAge != nil {
			l.TLS.HSTS = &lb.HSTS{MaxAge: *w.HSTSMaxAge, IncludeSubdomains: w.HSTSSubdomains, Preload: w.HSTSPreload}
		}
		if w.ClientAuthentication == "MANDATORY" {
			l.TLS.ClientCA = w.ClientCARef
		}
	}
	return l
}

func without(v, standard int) int {
	if v == standard {
		return 0
	}
	return v
}

type wirePolicy struct {
	wireMeta
	ListenerID     string     `json:"listener_id"`
	Position       int        `json:"position"`
	Action         lb.Action  `json:"action"`
	RedirectPoolID string     `json:"redirect_pool_id"`
	RedirectURL    string     `json:"redirect_url"`
	RedirectPrefix string     `json:"redirect_prefix"`
	RedirectCode   int        `json:"redirect_http_code"`
	Rules          []wireRule `json:"rules"`
}

func (w wirePolicy) model() lb.Policy {
	return lb.Policy{Meta: w.wireMeta.model(), Action: w.Action, URL: cmp.Or(w.RedirectURL, w.RedirectPrefix), Code: w.RedirectCode}
}

type wireRule struct {
	wireMeta
	Type    lb.RuleType `json:"type"`
	Compare lb.Compare  `json:"compare_type"`
	Key     string      `json:"key"`
	Value   string      `json:"value"`
	Invert  bool        `json:"invert"`
}

func (w wireRule) model() lb.Rule {
	return lb.Rule{ID: w.ID, Type: w.Type, Compare: w.Compare, Key: w.Key, Value: w.Value, Invert: w.Invert,
		Unapplied: w.ProvisioningStatus == lb.Errored, Disabled: w.disabled()}
}

type wirePool struct {
	wireMeta
	Protocol    lb.Protocol `json:"protocol"`
	Algorithm   string      `json:"lb_algorithm"`
	Persistence *struct {
		Type lb.Persistence `json:"type"`
	} `json:"session_persistence"`
	TLSEnabled      bool         `json:"tls_enabled"`
	CARef           string       `json:"ca_tls_container_ref"`
	CertificateRef  string       `json:"tls_container_ref"`
	TLSVersions     []string     `json:"tls_versions"`
	TLSCiphers      string       `json:"tls_ciphers"`
	ALPNProtocols   []string     `json:"alpn_protocols"`
	HealthMonitorID string       `json:"healthmonitor_id"`
	LoadBalancers   []wireRef    `json:"loadbalancers"`
	Members         []wireMember `json:"members"`
	Monitor         *wireMonitor `json:"healthmonitor"`
}

func (w wirePool) model() lb.Pool {
	p := lb.Pool{Meta: w.wireMeta.model(), Protocol: w.Protocol, Algorithm: w.Algorithm}
	if w.Persistence != nil {
		p.Persistence = w.Persistence.Type
	}
	if w.TLSEnabled || w.CARef != "" || w.CertificateRef != "" {
		// These are references until nameSecrets.
		p.TLS = &lb.PoolTLS{Disabled: !w.TLSEnabled, CA: w.CARef, Certificate: w.CertificateRef,
			Versions: slices.Sorted(slices.Values(w.TLSVersions)), ALPN: slices.Clone(w.ALPNProtocols), Ciphers: w.TLSCiphers}
	}
	return p
}

type wireMember struct {
	wireMeta
	Address        string `json:"address"`
	Port           int    `json:"protocol_port"`
	SubnetID       string `json:"subnet_id"`
	Weight         int    `json:"weight"`
	MonitorPort    int    `json:"monitor_port"`
	MonitorAddress string `json:"monitor_address"`
	Backup         bool   `json:"backup"`
}

func (w wireMember) model() lb.Member {
	return lb.Member{ID: w.ID, Name: w.Name, Address: w.Address, Port: w.Port, SubnetID: w.SubnetID, Weight: w.Weight,
		MonitorPort: w.MonitorPort, OperatingStatus: w.OperatingStatus, Unapplied: w.ProvisioningStatus == lb.Errored, Disabled: w.disabled()}
}

func (w wireMember) key() string { return memberKey(w.Address, w.Port) }

func memberKey(address string, port int) string { return address + ":" + strconv.Itoa(port) }

type wireMonitor struct {
	wireMeta
	Type           string    `json:"type"`
	Delay          int       `json:"delay"`
	Timeout        int       `json:"timeout"`
	MaxRetries     int       `json:"max_retries"`
	MaxRetriesDown int       `json:"max_retries_down"`
	HTTPMethod     string    `json:"http_method"`
	URLPath        string    `json:"url_path"`
	ExpectedCodes  string    `json:"expected_codes"`
	Pools          []wireRef `json:"pools"`
}

func (w wireMonitor) model() *lb.Monitor {
	meta := w.wireMeta.model()
	m := &lb.Monitor{ID: w.ID, Name: w.Name, Tags: meta.Tags, ProvisioningStatus: w.ProvisioningStatus, Disabled: w.disabled(),
		Type: w.Type, Delay: w.Delay, Timeout: w.Timeout, MaxRetries: w.MaxRetries, MaxRetriesDown: w.MaxRetriesDown}
	if w.Type == "HTTP" || w.Type == "HTTPS" {
		m.HTTPMethod, m.URLPath, m.ExpectedCodes = w.HTTPMethod, w.URLPath, w.ExpectedCodes
	}
	return m
}

func compareListeners(a, b lb.Listener) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.ID, b.ID))
}

func compareRules(a, b lb.Rule) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Compare, b.Compare),
		cmp.Compare(a.Value, b.Value), cmp.Compare(a.ID, b.ID))
}

func compareMembers(a, b lb.Member) int {
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
}
