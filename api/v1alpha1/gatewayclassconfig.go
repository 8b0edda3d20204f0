package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenStackGatewayClassConfig describes the part of an OpenStack cloud that the Gateways of a GatewayClass use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=gateway-api,shortName=osgcc
// +kubebuilder:printcolumn:name="VIP subnet",type=string,JSONPath=`.spec.vipSubnet`
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
type OpenStackGatewayClassConfigSpec struct {
	// VIPSubnet is the Neutron subnet in which each load balancer gets its virtual IP.
	// A Gateway keeps the subnet it was created with.
	// +required
	VIPSubnet Selector `json:"vipSubnet"`

	// FloatingNetwork is the external Neutron network from which each Gateway gets a floating IP. Without it the virtual
	// IP is the Gateway's address.
	// +optional
	FloatingNetwork *Selector `json:"floatingNetwork,omitempty"`

	// MemberSubnet is the Neutron subnet through which the load balancer reaches the Nodes. Without it members are
	// reached by routing from the VIP subnet.
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

	// HealthMonitor is how backends are checked unless a policy on the Service says otherwise.
	// +kubebuilder:default={}
	// +optional
	HealthMonitor HealthMonitor `json:"healthMonitor,omitzero"`

	// Responder gives the answers that Octavia cannot give itself: 404 when no route takes a request, 500 when a route has no usable
	// backend, and redirects without a fixed target. Without it all of these are answered with 503, and such redirects are refused.
	// +optional
	Responder *Responder `json:"responder,omitempty"`
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

// Selector names one object of the cloud by exactly one of its id or its exact name. A name that matches no object or several
// refuses the class.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.name)",message="set exactly one of id and name"
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
}

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
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'HTTP') || (!has(self.path) && !has(self.expectedCodes) && !has(self.method) && !has(self.host))",message="method, host, path and expectedCodes need type HTTP"
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
	// Host is the Host header of an HTTP check, which then speaks HTTP/1.1 and not HTTP/1.0. Octavia wants a name with a dot.
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Host string `json:"host,omitempty"`
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
