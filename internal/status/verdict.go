package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Kind names the Kubernetes object that a verdict is about.
type Kind string

// The kinds that carry our conditions.
const (
	KindGatewayClass Kind = "GatewayClass"
	KindGateway      Kind = "Gateway"
	KindListenerSet  Kind = "ListenerSet"
	KindHTTPRoute    Kind = "HTTPRoute"

	KindBackendPolicy    Kind = "OpenStackBackendPolicy"
	KindBackendTLSPolicy Kind = "BackendTLSPolicy"
)

// Object is the object of a verdict. Generation is the one that was compiled: it becomes observedGeneration.
type Object struct {
	Kind       Kind   `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
}

// Verdict is everything that compile has to say about one part of one object: the object itself, one of its listeners
// (Listener is set) or one of a route's parents (Parent is set). A verdict on a policy is about the Gateway as its ancestor.
type Verdict struct {
	Object Object `json:"object"`
	// Listener is the section name for verdicts on a listener of a Gateway or ListenerSet.
	Listener gwv1.SectionName `json:"listener,omitempty"`
	// Parent is the parentRef exactly as the route's author wrote it.
	Parent *gwv1.ParentReference `json:"parent,omitempty"`
	// Conditions have type, status, reason and message only.
	Conditions []Condition `json:"conditions,omitempty"`
	// SupportedKinds and AttachedRoutes are for listeners.
	SupportedKinds []gwv1.RouteGroupKind `json:"supportedKinds,omitempty"`
	AttachedRoutes int32                 `json:"attachedRoutes,omitempty"`
	// AttachedListenerSets is for the Gateway itself.
	AttachedListenerSets int32 `json:"attachedListenerSets,omitempty"`
}

// Condition is a condition before it has an observedGeneration and a time. The constructors in this package make them:
// they hold all sentences that users read.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message,omitempty"`
}
