package lb

import (
	"fmt"
	"slices"
)

// Kind names an object of a tree. The values are also the role in the ownership mark.
type Kind string

// The kinds of objects that a plan touches. Members stands for the whole member set of one pool, which Octavia
// replaces in one call.
const (
	KindLoadBalancer Kind = "loadbalancer"
	KindListener     Kind = "listener"
	KindPool         Kind = "pool"
	KindMembers      Kind = "members"
	KindMember       Kind = "member"
	KindMonitor      Kind = "healthmonitor"
	KindPolicy       Kind = "l7policy"
	KindRule         Kind = "l7rule"
	KindFloatingIP   Kind = "floatingip"
	KindSecret       Kind = "secret"
)

// ProvisioningStatus is Octavia's provisioning_status.
type ProvisioningStatus string

// Octavia's provisioning statuses. Absent (the zero value) means that the object is only wanted, not observed.
const (
	Active        ProvisioningStatus = "ACTIVE"
	PendingCreate ProvisioningStatus = "PENDING_CREATE"
	PendingUpdate ProvisioningStatus = "PENDING_UPDATE"
	PendingDelete ProvisioningStatus = "PENDING_DELETE"
	Errored       ProvisioningStatus = "ERROR"
	Deleted       ProvisioningStatus = "DELETED"
)

// Pending says whether Octavia refuses writes (409) because a change is under way.
func (s ProvisioningStatus) Pending() bool {
	return s == PendingCreate || s == PendingUpdate || s == PendingDelete
}

// Meta is what every Octavia object has. ID and the statuses are empty in a wanted tree.
type Meta struct {
	ID                 string             `json:"id,omitempty"`
	Key                string             `json:"key,omitempty"`
	Name               string             `json:"name,omitempty"`
	Tags               []string           `json:"tags,omitempty"`
	ProvisioningStatus ProvisioningStatus `json:"provisioningStatus,omitempty"`
	OperatingStatus    string             `json:"operatingStatus,omitempty"`
	// Disabled is admin_state_up=false.
	Disabled bool `json:"disabled,omitempty"`
}

// Tree is one load balancer. A wanted tree that is Empty asks for deletion.
type Tree struct {
	Meta        `json:",inline"`
	Owner       Owner  `json:"owner"`
	ProjectID   string `json:"projectID,omitempty"`
	Description string `json:"description,omitempty"`
	// Provider is the Octavia provider that the class asks for; "" omits the field on create.
	Provider         string `json:"provider,omitempty"`
	FlavorID         string `json:"flavorID,omitempty"`
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	VIP              VIP    `json:"vip"`
	// AdditionalVIPs are sorted by subnet. Immutable after create.
	AdditionalVIPs []VIP `json:"additionalVIPs,omitempty"`
	// VIPSecurityGroupIDs are on the VIP port in place of the group that Octavia makes; sorted. Octavia takes them only while no listener
	// has AllowedCIDRs.
	VIPSecurityGroupIDs []string    `json:"vipSecurityGroupIDs,omitempty"`
	FloatingIP          *FloatingIP `json:"floatingIP,omitempty"`
	// Asked is the floating IP of the project with the address that is asked for, when that is not FloatingIP; observed only.
	Asked *FloatingIP `json:"asked,omitempty"`
	// Spare are further floating IPs of ours that are free, such as one that was asked for and is not any more; observed only.
	Spare []FloatingIP `json:"spare,omitempty"`
	// Listeners are sorted by port, then protocol.
	Listeners []Listener `json:"listeners,omitempty"`
	// Pools are sorted by key; listeners and policies name them by key.
	Pools []Pool `json:"pools,omitempty"`
	// Secrets are the Barbican secrets of the Gateway, sorted by key; listeners name them by key. They are no part of the load
	// balancer: they come before it and go after it.
	Secrets []Secret `json:"secrets,omitempty"`
	// Replaces is the id of the load balancer that the Gateway asks to replace; observed, of the one that this one was made to replace.
	Replaces string `json:"replaces,omitempty"`
	// Old is the load balancer that this one replaces, as long as there is one; observed only. A floating IP that it has is in FloatingIP of both.
	Old *Tree `json:"old,omitempty"`
	// UpdatedAt is when Octavia last changed the load balancer's record, as the API writes it; observed only. Every change below
	// takes the load balancer's lock and so moves it.
	UpdatedAt string `json:"updatedAt,omitempty"`
	// CreatedAt is when the load balancer was created, as the API writes it; observed only.
	CreatedAt string `json:"createdAt,omitempty"`
	// Foreign lists children below the load balancer whose ownership mark is not ours. Observed only: they are
	// reported, never touched, and forbid a cascade.
	Foreign []Foreign `json:"foreign,omitempty"`
}

// VIP is where the load balancer listens. Immutable after create.
type VIP struct {
	SubnetID  string `json:"subnetID,omitempty"`
	NetworkID string `json:"networkID,omitempty"`
	// Address is the requested or the given address.
	Address string `json:"address,omitempty"`
	PortID  string `json:"portID,omitempty"`
	// Unlisted says that it is not among the Gateway's addresses, which asks for others; wanted only.
	Unlisted bool `json:"unlisted,omitempty"`
}

// FloatingIP is the public address of the VIP port.
type FloatingIP struct {
	ID        string `json:"id,omitempty"`
	NetworkID string `json:"networkID,omitempty"`
	// Address is the requested or the given address.
	Address string `json:"address,omitempty"`
	// PortID is the port it is attached to; observed only, "" when it is free.
	PortID string `json:"portID,omitempty"`
	// Description carries the ownership mark: Neutron tags would need a second call.
	Description string `json:"description,omitempty"`
	// Supplied marks an address that the user allocated: it is attached and detached, never deleted or edited. Observed only.
	Supplied bool `json:"supplied,omitempty"`
	// OfOther says that it carries the mark of another Gateway; observed only.
	OfOther bool `json:"ofOther,omitempty"`
}

// Foreign is a child below our load balancer that we did not create.
type Foreign struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Port is set for listeners and Pool, the key of one of ours, for health monitors: these collide by more than id.
	Port int    `json:"port,omitempty"`
	Pool string `json:"pool,omitempty"`
}

// Protocol is a listener's or pool's protocol in Octavia's terms.
type Protocol string

// The protocols in use.
const (
	HTTP            Protocol = "HTTP"
	TerminatedHTTPS Protocol = "TERMINATED_HTTPS"
)

// Timeouts of listeners that stand for 0, in milliseconds.
const (
	StandardTimeoutClientData    = 50000
	StandardTimeoutMemberConnect = 5000
	StandardTimeoutMemberData    = 50000
)

// Listener is one port. Protocol and Port are immutable after create.
type Listener struct {
	Meta     `json:",inline"`
	Protocol Protocol `json:"protocol"`
	Port     int      `json:"port"`
	// DefaultPool is the key of the pool for requests that no policy takes; "" makes HAProxy answer 503.
	DefaultPool string `json:"defaultPool,omitempty"`
	// AllowedCIDRs limits the clients; empty allows all.
	AllowedCIDRs []string `json:"allowedCIDRs,omitempty"`
	// InsertHeaders are Octavia's insert_headers, such as X-Forwarded-For: "true".
	InsertHeaders map[string]string `json:"insertHeaders,omitempty"`
	// ConnectionLimit 0 is none.
	ConnectionLimit int `json:"connectionLimit,omitempty"`
	// Timeouts in milliseconds; 0 is what Octavia has as its default unless an operator changes it (50 s, 5 s, 50 s), and is said in so many
	// words, so that what somebody else has set is found.
	TimeoutClientData    int          `json:"timeoutClientData,omitempty"`
	TimeoutMemberConnect int          `json:"timeoutMemberConnect,omitempty"`
	TimeoutMemberData    int          `json:"timeoutMemberData,omitempty"`
	TLS                  *ListenerTLS `json:"tls,omitempty"`
	// Policies are in position order. Position orders only within an action class: see Action.
	Policies []Policy `json:"policies,omitempty"`
}

// ListenerTLS is what a TERMINATED_HTTPS listener needs beyond HTTP.
type ListenerTLS struct {
	// Default is the key of the secret with the certificate for clients that name no server, or one that no certificate names.
	Default string `json:"default,omitempty"`
	// SNI are the keys of the other certificates, sorted. HAProxy chooses by the names inside them.
	SNI []string `json:"sni,omitempty"`
	// ClientCA is the key of the secret with the CAs that client certificates must come from; "" asks for none.
	ClientCA string `json:"clientCA,omitempty"`
	// Versions and ALPN are in Octavia's names; Versions are sorted, ALPN is in order of preference.
	Versions []string `json:"versions,omitempty"`
	ALPN     []string `json:"alpn,omitempty"`
	// Ciphers are the suites of TLS 1.2 in OpenSSL's names, with colons; "" leaves them to Octavia.
	Ciphers string `json:"ciphers,omitempty"`
	// HSTS is nil when nothing is said about it.
	HSTS *HSTS `json:"hsts,omitempty"`
}

// HSTS is what the Strict-Transport-Security header of a listener's answers says.
type HSTS struct {
	// MaxAge is in seconds; 0 makes clients forget.
	MaxAge            int  `json:"maxAge"`
	IncludeSubdomains bool `json:"includeSubdomains,omitempty"`
	Preload           bool `json:"preload,omitempty"`
}

// Header is the value of the header as Octavia writes it, "" for none.
func (h *HSTS) Header() string {
	if h == nil {
		return ""
	}
	value := fmt.Sprintf("max-age=%d;", h.MaxAge)
	if h.IncludeSubdomains {
		value += " includeSubDomains;"
	}
	if h.Preload {
		value += " preload;"
	}
	return value
}

// Action is what a policy does. HAProxy evaluates all REJECT first, then all redirects, then all pool policies,
// whatever their positions are.
type Action string

// Octavia's policy actions.
const (
	Reject         Action = "REJECT"
	RedirectToURL  Action = "REDIRECT_TO_URL"
	RedirectPrefix Action = "REDIRECT_PREFIX"
	RedirectToPool Action = "REDIRECT_TO_POOL"
)

// Policy is one L7 policy: it acts on requests that match all its rules that are enabled. A policy without any is not
// rendered by Octavia: it matches nothing.
type Policy struct {
	Meta   `json:",inline"`
	Action Action `json:"action"`
	// Pool is a pool key, for RedirectToPool.
	Pool string `json:"pool,omitempty"`
	// URL is the target for RedirectToURL, or the prefix for RedirectPrefix.
	URL string `json:"url,omitempty"`
	// Code is the status of a redirect.
	Code  int    `json:"code,omitempty"`
	Rules []Rule `json:"rules,omitempty"`
}

// HasRules says whether any rule is enabled.
func (p *Policy) HasRules() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return !r.Disabled })
}

// Errored says whether the policy or one of its rules is in ERROR.
func (p *Policy) Errored() bool {
	return p.ProvisioningStatus == Errored || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Unapplied })
}

// RuleType is what an L7 rule looks at.
type RuleType string

// Compare is how an L7 rule compares.
type Compare string

// Octavia's rule types and comparisons, as far as they are exact enough to be used.
const (
	RuleHost   RuleType = "HOST_NAME"
	RulePath   RuleType = "PATH"
	RuleHeader RuleType = "HEADER"

	EqualTo    Compare = "EQUAL_TO"
	StartsWith Compare = "STARTS_WITH"
	EndsWith   Compare = "ENDS_WITH"
	Contains   Compare = "CONTAINS"
	Regex      Compare = "REGEX"
)

// Rule is one L7 rule. All its fields can be updated in place.
type Rule struct {
	ID      string   `json:"id,omitempty"`
	Type    RuleType `json:"type"`
	Compare Compare  `json:"compare"`
	// Key is the header name, for RuleHeader.
	Key string `json:"key,omitempty"`
	// Value is encoded for HAProxy already: at most 255 characters.
	Value  string `json:"value"`
	Invert bool   `json:"invert,omitempty"`
	// Disabled is admin_state_up=false: Octavia does not render the rule, and so the policy takes requests that do not hold it.
	Disabled bool `json:"disabled,omitempty"`
	// Unapplied says that Octavia could not apply the rule, which is in ERROR then while all above it is ACTIVE. Never wanted.
	Unapplied bool `json:"unapplied,omitempty"`
}

// SameContent compares two rules without their ids.
func (r Rule) SameContent(o Rule) bool {
	r.ID, o.ID = "", ""
	return r == o
}

// Persistence is a type of Octavia's session_persistence.
type Persistence string

// The types of persistence in use.
const (
	// HTTPCookie persists by a session cookie that HAProxy sets.
	HTTPCookie Persistence = "HTTP_COOKIE"
	// SourceIP persists by the client's address, in a table of HAProxy.
	SourceIP Persistence = "SOURCE_IP"
)

// Pool is a set of members. Protocol is immutable after create.
type Pool struct {
	Meta      `json:",inline"`
	Protocol  Protocol `json:"protocol"`
	Algorithm string   `json:"algorithm"`
	// Persistence keeps a client on the member that it got first; "" does not.
	Persistence Persistence `json:"persistence,omitempty"`
	// TLS is how members are spoken to; nil is in plain text.
	TLS *PoolTLS `json:"tls,omitempty"`
	// Members are sorted by address, then port, which is also their identity.
	Members []Member `json:"members,omitempty"`
	Monitor *Monitor `json:"monitor,omitempty"`
}

// PoolTLS is TLS to the members. HAProxy sends the server name that the client sent, and checks a member's certificate against it; without
// one, and for its health checks, it sends and checks no name.
type PoolTLS struct {
	// CA is the key of the secret with the CAs that members' certificates must come from; "" verifies nothing.
	CA string `json:"ca,omitempty"`
	// Certificate is the key of the secret with what HAProxy presents to members that ask for a certificate; "" presents none.
	Certificate string `json:"certificate,omitempty"`
	// Versions and ALPN are in Octavia's names; Versions are sorted, ALPN is in order of preference.
	Versions []string `json:"versions,omitempty"`
	ALPN     []string `json:"alpn,omitempty"`
	// Ciphers is an OpenSSL list with colons; "" leaves Octavia's default, or what is there.
	Ciphers string `json:"ciphers,omitempty"`
	// Disabled says that members are spoken to in plain text though the pool refers to secrets; observed only.
	Disabled bool `json:"disabled,omitempty"`
}

// Member is one backend address. Address, Port and SubnetID are immutable after create.
type Member struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	// SubnetID is where the amphora reaches the member; "" means by routing from the VIP subnet.
	SubnetID string `json:"subnetID,omitempty"`
	// Weight is 1..256; a share of zero has no member.
	Weight int `json:"weight"`
	// MonitorPort 0 checks Port.
	MonitorPort     int    `json:"monitorPort,omitempty"`
	OperatingStatus string `json:"operatingStatus,omitempty"`
	// Unapplied says that Octavia could not apply the member, which is in ERROR then while all above it is ACTIVE. Never wanted.
	Unapplied bool `json:"unapplied,omitempty"`
	Disabled  bool `json:"disabled,omitempty"`
}

// Monitor is a pool's health monitor. Type is immutable after create.
type Monitor struct {
	ID                 string             `json:"id,omitempty"`
	Name               string             `json:"name,omitempty"`
	Tags               []string           `json:"tags,omitempty"`
	ProvisioningStatus ProvisioningStatus `json:"provisioningStatus,omitempty"`
	Disabled           bool               `json:"disabled,omitempty"`
	Type               string             `json:"type"`
	// Delay and Timeout in seconds.
	Delay          int `json:"delay"`
	Timeout        int `json:"timeout"`
	MaxRetries     int `json:"maxRetries"`
	MaxRetriesDown int `json:"maxRetriesDown"`
	// The HTTP fields are empty for other types.
	HTTPMethod    string `json:"httpMethod,omitempty"`
	URLPath       string `json:"urlPath,omitempty"`
	ExpectedCodes string `json:"expectedCodes,omitempty"`
}

// Empty says whether the tree has no load balancer: nothing wanted, or nothing observed.
func (t *Tree) Empty() bool {
	return t == nil || (t.ID == "" && t.Name == "")
}

// PoolByKey finds a pool; nil when there is none.
func (t *Tree) PoolByKey(key string) *Pool {
	for i := range t.Pools {
		if t.Pools[i].Key == key {
			return &t.Pools[i]
		}
	}
	return nil
}

// ListenerByKey finds a listener; nil when there is none.
func (t *Tree) ListenerByKey(key string) *Listener {
	for i := range t.Listeners {
		if t.Listeners[i].Key == key {
			return &t.Listeners[i]
		}
	}
	return nil
}

// SharedVIP is a VIP that one tree asks for by its address and another one has, "" when there is none.
func SharedVIP(want, have *Tree) string {
	for _, w := range append([]VIP{want.VIP}, want.AdditionalVIPs...) {
		for _, h := range append([]VIP{have.VIP}, have.AdditionalVIPs...) {
			if w.Address != "" && w.Address == h.Address {
				return w.Address
			}
		}
	}
	return ""
}
