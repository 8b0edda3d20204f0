package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// OpenStackBackendPolicy says how load balancers send requests to a Service: over TLS or not, how its members are checked, and which of
// them gets a request. It applies to all Gateways of this controller whose routes use the Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=gateway-api,shortName=osbp
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Direct"
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.spec.targetRefs[*].name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackBackendPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec OpenStackBackendPolicySpec `json:"spec"`
	// Status has an entry for each Gateway whose routes use a target.
	// +optional
	Status gwv1.PolicyStatus `json:"status,omitzero"`
}

// OpenStackBackendPolicySpec is what to do for the targets. Octavia has each setting once for a pool, and a pool has the backends of one
// rule of a route: all the backends of a rule must agree on a setting, else it is not used, or, for tls, the backends that differ from
// the first one are refused.
//
// +kubebuilder:validation:XValidation:rule="has(self.healthMonitor) || has(self.algorithm) || has(self.sessionPersistence) || has(self.tls)",message="set at least one of healthMonitor, algorithm, sessionPersistence and tls"
type OpenStackBackendPolicySpec struct {
	// TargetRefs are Services of the policy's namespace. With sectionName a target is one port of the Service, by its name or number,
	// and such a policy replaces, for this port, one for the whole Service. Of several policies for the same target only the oldest is
	// used.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == '' && t.kind == 'Service')",message="targets must be Services: group \"\" and kind Service"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name == a.name && (has(a.sectionName) ? has(b.sectionName) && b.sectionName == a.sectionName : !has(b.sectionName))))",message="targets must differ in name or sectionName"
	// +required
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`

	// HealthMonitor replaces that of the class as a whole. With tls the checks are made over TLS and verify what the requests verify.
	// +optional
	HealthMonitor *HealthMonitor `json:"healthMonitor,omitempty"`

	// Algorithm chooses the member for a request.
	// +optional
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// SessionPersistence keeps a client on the member that answered it first. The sessionPersistence of a route's rule comes before it.
	// +optional
	SessionPersistence *SessionPersistence `json:"sessionPersistence,omitempty"`

	// TLS makes the load balancer speak TLS to the members. When what it names cannot be used, the Service is not used either: requests
	// are never sent in plain text instead.
	// +optional
	TLS *BackendTLS `json:"tls,omitempty"`
}

// Algorithm is how the load balancer chooses among the members of a pool.
// +kubebuilder:validation:Enum=RoundRobin;LeastConnections;SourceIP
type Algorithm string

// The algorithms of the Amphora provider.
const (
	// AlgorithmRoundRobin takes the members in turn, by their weights. The default.
	AlgorithmRoundRobin Algorithm = "RoundRobin"
	// AlgorithmLeastConnections takes the member with the fewest connections for its weight.
	AlgorithmLeastConnections Algorithm = "LeastConnections"
	// AlgorithmSourceIP takes the member by a hash of the client's address.
	AlgorithmSourceIP Algorithm = "SourceIP"
)

// SessionPersistenceType is how a client is recognized.
// +kubebuilder:validation:Enum=Cookie;SourceIP
type SessionPersistenceType string

// The kinds of session persistence.
const (
	// SessionPersistenceCookie is a session cookie that the load balancer sets.
	SessionPersistenceCookie SessionPersistenceType = "Cookie"
	// SessionPersistenceSourceIP is the client's address, in a table of the load balancer that keeps the latest ones.
	SessionPersistenceSourceIP SessionPersistenceType = "SourceIP"
)

// SessionPersistence keeps a client on a member.
type SessionPersistence struct {
	// Type is how a client is recognized.
	// +kubebuilder:default=Cookie
	// +optional
	Type SessionPersistenceType `json:"type,omitempty"`
}

// BackendVerification is what the load balancer demands of a member's certificate.
// +kubebuilder:validation:Enum=Chain;None
type BackendVerification string

// The ways to verify members.
const (
	// BackendVerificationChain demands a certificate issued by one of the CAs of caCertificateRefs.
	BackendVerificationChain BackendVerification = "Chain"
	// BackendVerificationNone takes any certificate: whoever can answer in the member's place can read everything.
	BackendVerificationNone BackendVerification = "None"
)

// BackendTLS is TLS between the load balancer and the members.
//
// The load balancer cannot be told a server name. From an HTTPS listener it passes on the server name that the client asked for, and the
// member's certificate must have this name; from an HTTP listener, and for clients that send no server name, it sends none, and any
// name in a certificate of the right CA will do.
//
// +kubebuilder:validation:XValidation:rule="(has(self.verification) && self.verification == 'None') ? !has(self.caCertificateRefs) : has(self.caCertificateRefs)",message="verification Chain, the default, needs caCertificateRefs, and None forbids them"
type BackendTLS struct {
	// Verification is what is demanded of a member's certificate: Chain, that one of caCertificateRefs issued it, or None.
	// +kubebuilder:default=Chain
	// +optional
	Verification BackendVerification `json:"verification,omitempty"`

	// CACertificateRefs name the CAs of the members. What they name may change at any time, and is followed.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +optional
	CACertificateRefs []CACertificateRef `json:"caCertificateRefs,omitempty"`

	// ClientCertificateRef is a Secret of type kubernetes.io/tls with what the load balancer presents to members that ask for a
	// certificate.
	// +optional
	ClientCertificateRef *SecretName `json:"clientCertificateRef,omitempty"`

	// Versions are the TLS versions to use. The default is TLSv1.2 and TLSv1.3. It needs Octavia API 2.18.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Versions []TLSVersion `json:"versions,omitempty"`

	// Ciphers are OpenSSL's names of the cipher suites for TLS 1.2. Without them those with forward secrecy are used, and SHA-1 in none.
	// Suites of TLS 1.3 cannot be chosen. It needs Octavia API 2.15.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ciphers []TLSCipher `json:"ciphers,omitempty"`
}

// TLSVersion is a version of TLS in Octavia's names.
// +kubebuilder:validation:Enum=TLSv1.2;TLSv1.3
type TLSVersion string

// TLSCipher is the OpenSSL name of a cipher suite, such as ECDHE-RSA-AES256-GCM-SHA384.
// +kubebuilder:validation:Pattern=`^[A-Z0-9][A-Z0-9_-]*$`
// +kubebuilder:validation:MaxLength=63
type TLSCipher string

// CACertificateKind is a kind of object with CA certificates.
// +kubebuilder:validation:Enum=ConfigMap;Secret
type CACertificateKind string

// The kinds of objects with CA certificates.
const (
	CACertificateConfigMap CACertificateKind = "ConfigMap"
	CACertificateSecret    CACertificateKind = "Secret"
)

// CACertificateRef names CA certificates in PEM form, in the policy's namespace.
type CACertificateRef struct {
	// Kind of the object.
	// +kubebuilder:default=ConfigMap
	// +optional
	Kind CACertificateKind `json:"kind,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Key in the object's data. The default is ca.crt, and when there is no such key, the only one that holds certificates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretName names a Secret of the same namespace.
type SecretName struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// OpenStackBackendPolicyList is a list of OpenStackBackendPolicy.
//
// +kubebuilder:object:root=true
type OpenStackBackendPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackBackendPolicy `json:"items"`
}
