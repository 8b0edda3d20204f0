package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenStackGatewayConfig is what one Gateway has differently from its GatewayClass. A Gateway names it in spec.infrastructure.parametersRef; it lies in
// the namespace of the Gateway. It may set only the fields that the class allows in gatewayOverrides; with any other one the Gateway is
// not accepted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=gateway-api,shortName=osgc
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackGatewayConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec OpenStackGatewayConfigSpec `json:"spec"`
}

// OpenStackGatewayConfigSpec are fields of OpenStackGatewayClassConfig, with the same meaning. Each replaces the class's as a whole; one that is
// not set is the class's.
type OpenStackGatewayConfigSpec struct {
	// VIPSubnet is the Neutron subnet in which the load balancer gets its virtual IP. A Gateway keeps the subnet it was created with.
	// +optional
	VIPSubnet *Selector `json:"vipSubnet,omitempty"`

	// FloatingIPMode says whether the Gateway gets a floating IP: None makes it an internal one.
	// +optional
	FloatingIPMode FloatingIPMode `json:"floatingIPMode,omitempty"`

	// Flavor is the Octavia flavor of the load balancer. A Gateway keeps the flavor it was created with.
	// +optional
	Flavor *FlavorSelector `json:"flavor,omitempty"`

	// AvailabilityZone is the name of the Octavia availability zone of the load balancer. A Gateway keeps the zone it was created with.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AvailabilityZone string `json:"availabilityZone,omitempty"`

	// Algorithm chooses among the endpoints of one Service.
	// +optional
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// ConnectionLimit is how many connections each port of the load balancer takes at once; more wait.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`

	// Timeouts of connections.
	// +optional
	Timeouts *Timeouts `json:"timeouts,omitempty"`

	// AllowedCIDRs are the only source addresses from which clients may connect, as networks such as 192.0.2.0/24.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Format=cidr
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=set
	// +optional
	AllowedCIDRs []string `json:"allowedCIDRs,omitempty"`

	// TLS is what HTTPS listeners use unless their own tls.options say otherwise.
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// HealthMonitor is how backends are checked unless a policy on the Service says otherwise.
	// +optional
	HealthMonitor *HealthMonitor `json:"healthMonitor,omitempty"`
}

// GatewayOverride is a field of an OpenStackGatewayClassConfig that an OpenStackGatewayConfig may set.
// +kubebuilder:validation:Enum=vipSubnet;floatingIPMode;flavor;availabilityZone;algorithm;connectionLimit;timeouts;allowedCIDRs;tls;healthMonitor
type GatewayOverride string

// The fields that a class can leave to Gateways.
const (
	OverrideVIPSubnet        GatewayOverride = "vipSubnet"
	OverrideFloatingIPMode   GatewayOverride = "floatingIPMode"
	OverrideFlavor           GatewayOverride = "flavor"
	OverrideAvailabilityZone GatewayOverride = "availabilityZone"
	OverrideAlgorithm        GatewayOverride = "algorithm"
	OverrideConnectionLimit  GatewayOverride = "connectionLimit"
	OverrideTimeouts         GatewayOverride = "timeouts"
	OverrideAllowedCIDRs     GatewayOverride = "allowedCIDRs"
	OverrideTLS              GatewayOverride = "tls"
	OverrideHealthMonitor    GatewayOverride = "healthMonitor"
)

// OpenStackGatewayConfigList is a list of OpenStackGatewayConfig.
//
// +kubebuilder:object:root=true
type OpenStackGatewayConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackGatewayConfig `json:"items"`
}
