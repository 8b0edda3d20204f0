package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// OpenStackGatewayClassConfig describes the part of an OpenStack cloud that the Gateways of a GatewayClass use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=gateway-api,shortName=osgcc
// +kubebuilder:printcolumn:name="VIP subnet",type=string,JSONPath=`.spec.vipSubnet`
// +kubebuilder:printcolumn:name="VIP network",type=string,priority=1,JSONPath=`.spec.vipNetwork`
// +kubebuilder:printcolumn:name="Floating network",type=string,priority=1,JSONPath=`.spec.floatingNetwork`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.spec.memberMode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackGatewayClassConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec OpenStackGatewayClassConfigSpec `json:"spec"`
}

// OpenStackGatewayClassConfigSpec is how load balancers of the class are built.
//
// What Octavia can change is changed for the Gateways that exist already. What it cannot change (the VIP, the flavor, the availability
// zone) is for new Gateways; those that exist keep what they were created with, and their status says so.
//
// +kubebuilder:validation:XValidation:rule="has(self.vipSubnet) != has(self.vipNetwork)",message="set exactly one of vipSubnet and vipNetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalVIPSubnets) || has(self.vipSubnet)",message="additionalVIPSubnets needs vipSubnet: with vipNetwork, Octavia could choose one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.floatingIPMode) || self.floatingIPMode != 'Allocate' || has(self.floatingNetwork)",message="floatingIPMode Allocate needs floatingNetwork, where floating IPs come from"
// +kubebuilder:validation:XValidation:rule="!has(self.allowedCIDRs) || !has(self.vipSecurityGroups)",message="set only one of allowedCIDRs and vipSecurityGroups: Octavia does not take both"
// +kubebuilder:validation:XValidation:rule="!has(self.responder) || !has(self.insertHeaders) || (self.insertHeaders.exists(h, h == 'X-Forwarded-Proto') && self.insertHeaders.exists(h, h == 'X-Forwarded-Port'))",message="with a responder, insertHeaders needs X-Forwarded-Proto and X-Forwarded-Port: it makes redirects from them"
type OpenStackGatewayClassConfigSpec struct {
	// VIPSubnet is the Neutron subnet in which each load balancer gets its virtual IP. Set this or vipNetwork.
	// A Gateway keeps the subnet it was created with.
	// +optional
	VIPSubnet *Selector `json:"vipSubnet,omitempty"`

	// VIPNetwork is the Neutron network in which each load balancer gets its virtual IP. Octavia takes the first subnet that has free
	// addresses, an IPv4 one when there is one. Set this or vipSubnet. A Gateway keeps the network it was created with.
	// +optional
	VIPNetwork *Selector `json:"vipNetwork,omitempty"`

	// AdditionalVIPSubnets are subnets, of the same network as the virtual IP, in which each load balancer gets one more virtual IP
	// each: typically one IPv6 subnet beside an IPv4 one. It needs Octavia API 2.26. A Gateway keeps those it was created with.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	AdditionalVIPSubnets []Selector `json:"additionalVIPSubnets,omitempty"`

	// FloatingNetwork is the external Neutron network of floating IPs.
	// +optional
	FloatingNetwork *Selector `json:"floatingNetwork,omitempty"`

	// FloatingIPMode says whether Gateways get a floating IP: Allocate, each gets one of floatingNetwork, which is then its address; or
	// None, the virtual IP is the address. Without it, it is Allocate when floatingNetwork is set.
	// +optional
	FloatingIPMode FloatingIPMode `json:"floatingIPMode,omitempty"`

	// MemberSubnet is the Neutron subnet through which the load balancer reaches the members of its pools. Without it they are reached by
	// routing from the VIP subnet.
	// +optional
	MemberSubnet *Selector `json:"memberSubnet,omitempty"`

	// MemberMode is what the load balancer sends requests to: NodePort, the node port of a Service on the ready Nodes;
	// or PodIP, the endpoints themselves, which the member subnet must be able to reach.
	// +kubebuilder:default=NodePort
	// +optional
	MemberMode MemberMode `json:"memberMode,omitempty"`

	// NodeAddressType is the Node address used for NodePort members.
	// +kubebuilder:default=InternalIP
	// +optional
	NodeAddressType NodeAddressType `json:"nodeAddressType,omitempty"`

	// NodeSelector limits NodePort members to the Nodes with these labels. Nodes with the label
	// node.kubernetes.io/exclude-from-external-load-balancers are never members.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// Flavor is the Octavia flavor of the load balancers, of the provider amphora: for instance one with a standby amphora. Without it
	// Octavia's defaults apply. A Gateway keeps the flavor it was created with.
	// +optional
	Flavor *FlavorSelector `json:"flavor,omitempty"`

	// AvailabilityZone is the name of the Octavia availability zone of the load balancers. It needs Octavia API 2.14. A Gateway keeps the
	// zone it was created with.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AvailabilityZone string `json:"availabilityZone,omitempty"`

	// Algorithm chooses among the endpoints of one Service. A rule that divides requests among several backends by weight always uses
	// RoundRobin: the others do not keep weights.
	// +kubebuilder:default=RoundRobin
	// +optional
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// ConnectionLimit is how many connections each port of a load balancer takes at once; more wait. Without it there is no limit but that of
	// the amphora.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`

	// Timeouts of connections. Without them: 50 seconds without data, 5 seconds to connect to a member.
	// +optional
	Timeouts *Timeouts `json:"timeouts,omitempty"`

	// InsertHeaders are the headers that the load balancer sets in requests to backends. X-Forwarded-Port and X-Forwarded-Proto replace
	// what a client sent; X-Forwarded-For is added as the last value, so that only the last one can be trusted. A header that is not
	// in the list passes as the client sent it. An empty list sets none.
	// +kubebuilder:default={"X-Forwarded-For","X-Forwarded-Port","X-Forwarded-Proto"}
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	InsertHeaders []InsertedHeader `json:"insertHeaders"`

	// AllowedCIDRs are the only source addresses from which clients may connect, as networks such as 192.0.2.0/24. Without it everyone may.
	// It needs Octavia API 2.12, and excludes vipSecurityGroups.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Format=cidr
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=set
	// +optional
	AllowedCIDRs []string `json:"allowedCIDRs,omitempty"`

	// VIPSecurityGroups are the Neutron security groups on the ports of the virtual IPs, in place of the one that Octavia makes. They must let
	// in the ports of the listeners; they are never edited. It needs Octavia API 2.29, and excludes allowedCIDRs.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	VIPSecurityGroups []Selector `json:"vipSecurityGroups,omitempty"`

	// TLS is what HTTPS listeners use unless their own tls.options say otherwise.
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// HealthMonitor is how backends are checked unless a policy on the Service says otherwise.
	// +kubebuilder:default={}
	// +optional
	HealthMonitor HealthMonitor `json:"healthMonitor,omitzero"`

	// Responder gives the answers that Octavia cannot give itself: 404 when no route takes a request, 500 when a route has no usable
	// backend, and redirects without a fixed target. Without it all of these are answered with 503, and such redirects are refused.
	// +optional
	Responder *Responder `json:"responder,omitempty"`

	// BackendSecurity is what the controller does about the security groups of the Nodes, which must let in the load balancers.
	// Without it: nothing.
	// +optional
	BackendSecurity *BackendSecurity `json:"backendSecurity,omitempty"`

	// GatewayOverrides are the fields of this configuration that an OpenStackGatewayConfig may set, which a Gateway names in
	// spec.infrastructure.parametersRef. Without it: none.
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	GatewayOverrides []GatewayOverride `json:"gatewayOverrides,omitempty"`

	// ExtraTags are tags that each load balancer gets beside those of the controller, such as a cost centre.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[!-~]([ -~]*[!-~])?$`
	// +kubebuilder:validation:XValidation:rule="self.all(t, !t.startsWith('gateway-api-openstack.dev/') && !t.matches('^(controller|gateway|role|key|route|service|label|annotation|extra)='))",message="a tag must not look like one of the controller's own: gateway-api-openstack.dev/, controller=, gateway=, role=, key=, route=, service=, label=, annotation=, extra="
	// +listType=set
	// +optional
	ExtraTags []string `json:"extraTags,omitempty"`
}

// FloatingIPMode says whether Gateways get a floating IP.
// +kubebuilder:validation:Enum=Allocate;None
type FloatingIPMode string

// The modes of floating IPs.
const (
	// FloatingIPAllocate gives each Gateway one of the floating network.
	FloatingIPAllocate FloatingIPMode = "Allocate"
	// FloatingIPNone leaves Gateways with their virtual IPs.
	FloatingIPNone FloatingIPMode = "None"
)

// FlavorSelector names an Octavia flavor by exactly one of its id or its exact name.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.name)",message="set exactly one of id and name"
type FlavorSelector struct {
	// ID is the UUID of the flavor.
	// +kubebuilder:validation:Format=uuid
	// +optional
	ID string `json:"id,omitempty"`
	// Name is the exact name of the flavor.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
}

// Timeouts of connections, each a duration such as 30s or 1h, between 1ms and 576h.
type Timeouts struct {
	// ClientData is how long a client may send nothing.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('576h')",message="must be between 1ms and 576h"
	// +optional
	ClientData *gwv1.Duration `json:"clientData,omitempty"`
	// MemberConnect is how long connecting to a member may take.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('576h')",message="must be between 1ms and 576h"
	// +optional
	MemberConnect *gwv1.Duration `json:"memberConnect,omitempty"`
	// MemberData is how long a member may send nothing. It ends requests that take longer to answer. A route that asks for no timeout makes it
	// as long as Octavia allows, for its port.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('576h')",message="must be between 1ms and 576h"
	// +optional
	MemberData *gwv1.Duration `json:"memberData,omitempty"`
}

// InsertedHeader is a header that the load balancer sets in requests.
// +kubebuilder:validation:Enum=X-Forwarded-For;X-Forwarded-Port;X-Forwarded-Proto
type InsertedHeader string

// The headers that can be inserted.
const (
	// InsertForwardedFor is the address of the client.
	InsertForwardedFor InsertedHeader = "X-Forwarded-For"
	// InsertForwardedPort is the port of the listener.
	InsertForwardedPort InsertedHeader = "X-Forwarded-Port"
	// InsertForwardedProto is http or https.
	InsertForwardedProto InsertedHeader = "X-Forwarded-Proto"
)

// TLS is what HTTPS listeners use.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ciphers) || !has(self.versions) || self.versions.exists(v, v == 'TLSv1.2')",message="ciphers are those of TLSv1.2, which versions leaves out: add it, or leave ciphers out"
type TLS struct {
	// Versions are the TLS versions that are offered: TLSv1.2 and TLSv1.3 without it. The load balancer serves nothing below. It needs Octavia
	// API 2.17.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	Versions []TLSVersion `json:"versions,omitempty"`
	// Ciphers are OpenSSL's names of the cipher suites of TLS 1.2 that are offered. Without it a list of suites with forward secrecy applies.
	// Suites of TLS 1.3 cannot be chosen. It needs Octavia API 2.15.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Enum=ECDHE-ECDSA-AES256-GCM-SHA384;ECDHE-RSA-AES256-GCM-SHA384;ECDHE-ECDSA-CHACHA20-POLY1305;ECDHE-RSA-CHACHA20-POLY1305;ECDHE-ECDSA-AES128-GCM-SHA256;ECDHE-RSA-AES128-GCM-SHA256;DHE-RSA-AES256-GCM-SHA384;DHE-RSA-AES128-GCM-SHA256;ECDHE-ECDSA-AES256-SHA384;ECDHE-RSA-AES256-SHA384;ECDHE-ECDSA-AES128-SHA256;ECDHE-RSA-AES128-SHA256;DHE-RSA-AES256-SHA256;DHE-RSA-AES128-SHA256;ECDHE-ECDSA-AES256-SHA;ECDHE-RSA-AES256-SHA;ECDHE-ECDSA-AES128-SHA;ECDHE-RSA-AES128-SHA;AES256-GCM-SHA384;AES128-GCM-SHA256;AES256-SHA256;AES128-SHA256;AES256-SHA;AES128-SHA
	// +kubebuilder:validation:XValidation:rule="self.exists(c, c.startsWith('ECDHE-') && (c.contains('GCM') || c.contains('CHACHA20')))",message="HTTP/2 needs one of the suites with ECDHE and GCM or CHACHA20: add one"
	// +listType=set
	// +optional
	Ciphers []TLSCipher `json:"ciphers,omitempty"`
}

// BackendSecurityMode is what the controller does about the security groups of the Nodes.
// +kubebuilder:validation:Enum=Unmanaged;Referenced;Managed
type BackendSecurityMode string

// The modes of backend security.
const (
	// BackendSecurityUnmanaged does nothing: whoever runs the Nodes lets the load balancers in.
	BackendSecurityUnmanaged BackendSecurityMode = "Unmanaged"
	// BackendSecurityReferenced checks that the named groups are on the ports of the Nodes and let the node ports in, and edits nothing.
	BackendSecurityReferenced BackendSecurityMode = "Referenced"
	// BackendSecurityManaged keeps a security group of the controller's own, with the node ports in use, on the ports of the Nodes.
	BackendSecurityManaged BackendSecurityMode = "Managed"
)

// BackendSecurity is what the controller does about the security groups of the Nodes.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Referenced') == has(self.securityGroups)",message="securityGroups are for mode Referenced, which needs them"
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Managed') == has(self.sources)",message="sources are for mode Managed, which needs them"
type BackendSecurity struct {
	// Mode is Unmanaged: nothing is done; Referenced: securityGroups are checked and never edited; or Managed: a security group of the
	// controller's own, with exactly the node ports in use, is added to the ports of the Nodes.
	// +kubebuilder:default=Unmanaged
	// +optional
	Mode BackendSecurityMode `json:"mode,omitempty"`
	// SecurityGroups are those that must let the load balancers in, for mode Referenced.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	SecurityGroups []Selector `json:"securityGroups,omitempty"`
	// Sources are the networks from which the node ports are opened, such as the VIP or member subnet, for mode Managed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Format=cidr
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=set
	// +optional
	Sources []string `json:"sources,omitempty"`
}

// Responder is where the fallback responder is reached.
type Responder struct {
	// Service is the one in front of the controller's Pods, as the component config/components/responder makes it. It may be used
	// without a ReferenceGrant.
	// +required
	Service ServiceName `json:"service"`
}

// ServiceName names a Service.
type ServiceName struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// Selector names one object of the cloud, by exactly one of id, name, tags and discovery. When no object matches, or several do, the class
// is not accepted, and nothing is guessed.
//
// +kubebuilder:validation:XValidation:rule="[has(self.id), has(self.name), has(self.tags), has(self.discovery)].filter(set, set).size() == 1",message="set exactly one of id, name, tags and discovery"
type Selector struct {
	// ID is the UUID of the object.
	// +kubebuilder:validation:Format=uuid
	// +optional
	ID string `json:"id,omitempty"`
	// Name is the exact name of the object, which must be unique among those that the credentials see.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
	// Tags are Neutron tags that the object has, all of them. It must be the only one among those that the credentials see.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[^,]+$`
	// +listType=set
	// +optional
	Tags []string `json:"tags,omitempty"`
	// Discovery asks to find the object without being told: Only takes the only one that the credentials see among those that can serve the
	// purpose (an external network as floating network, others for everything else).
	// +optional
	Discovery Discovery `json:"discovery,omitempty"`
}

// Discovery is how an object is found without being told.
// +kubebuilder:validation:Enum=Only
type Discovery string

// DiscoveryOnly takes the only object that can serve the purpose.
const DiscoveryOnly Discovery = "Only"

// MemberMode is what members of a pool are.
// +kubebuilder:validation:Enum=NodePort;PodIP
type MemberMode string

// The member modes.
const (
	// MemberModeNodePort uses a Service's node port on the ready Nodes.
	MemberModeNodePort MemberMode = "NodePort"
	// MemberModePodIP uses the endpoint addresses of a Service.
	MemberModePodIP MemberMode = "PodIP"
)

// NodeAddressType is a type of Node address.
// +kubebuilder:validation:Enum=InternalIP;ExternalIP
type NodeAddressType string

// The Node address types that can be members.
const (
	NodeInternalIP NodeAddressType = "InternalIP"
	NodeExternalIP NodeAddressType = "ExternalIP"
)

// HealthMonitorType is how a backend is checked.
// +kubebuilder:validation:Enum=TCP;HTTP
type HealthMonitorType string

// The health monitor types.
const (
	// HealthMonitorTCP opens a connection. The default: it never takes down a backend that has no page to show.
	HealthMonitorTCP HealthMonitorType = "TCP"
	// HealthMonitorHTTP asks for a path.
	HealthMonitorHTTP HealthMonitorType = "HTTP"
)

// HealthMonitorMethod is the method of an HTTP check.
// +kubebuilder:validation:Enum=GET;HEAD;OPTIONS;POST
type HealthMonitorMethod string

// HealthMonitor is how backends are checked.
//
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'HTTP') || (!has(self.path) && !has(self.expectedCodes) && !has(self.method))",message="method, path and expectedCodes need type HTTP"
// +kubebuilder:validation:XValidation:rule="!has(self.timeoutSeconds) || !has(self.delaySeconds) || self.timeoutSeconds <= self.delaySeconds",message="timeoutSeconds must not exceed delaySeconds"
type HealthMonitor struct {
	// Type of the check.
	// +kubebuilder:default=TCP
	// +optional
	Type HealthMonitorType `json:"type,omitempty"`
	// DelaySeconds is the time between two checks.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	DelaySeconds int32 `json:"delaySeconds,omitempty"`
	// TimeoutSeconds is how long one check may take.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// HealthyThreshold is how many checks must succeed before a backend is used again.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold int32 `json:"healthyThreshold,omitempty"`
	// UnhealthyThreshold is how many checks must fail before a backend is not used any more.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold int32 `json:"unhealthyThreshold,omitempty"`
	// Method of an HTTP check; GET when it is not set.
	// +optional
	Method HealthMonitorMethod `json:"method,omitempty"`
	// Path is what an HTTP check asks for.
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9/._~!$&()*+,;=:@%?-]*$`
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Path string `json:"path,omitempty"`
	// ExpectedCodes is one status ("200"), a list ("200,204") or one range ("200-299").
	// +kubebuilder:validation:Pattern=`^[1-5][0-9]{2}(-[1-5][0-9]{2}|(,[1-5][0-9]{2})*)$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ExpectedCodes string `json:"expectedCodes,omitempty"`
}

// OpenStackGatewayClassConfigList is a list of OpenStackGatewayClassConfig.
//
// +kubebuilder:object:root=true
type OpenStackGatewayClassConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackGatewayClassConfig `json:"items"`
}
