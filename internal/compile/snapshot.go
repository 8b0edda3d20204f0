package compile

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Snapshot is all that one Gateway's load balancer and statuses depend on. Whoever fills it has read everything or
// fails: an absent object means that it does not exist. The order of the slices does not matter. Nothing in it is changed.
type Snapshot struct {
	// ClusterID and Controller go into the ownership mark.
	ClusterID  string
	Controller string
	Class      *gwv1.GatewayClass
	// Config is what the class's parametersRef names; nil when it names nothing.
	Config  *v1alpha1.OpenStackGatewayClassConfig
	Gateway *gwv1.Gateway
	// HTTPRoutes are the routes with a parentRef to the Gateway (or one of its ListenerSets).
	HTTPRoutes      []*gwv1.HTTPRoute
	ListenerSets    []*gwv1.ListenerSet
	ReferenceGrants []*gwv1beta1.ReferenceGrant
	// Namespaces are those of the routes and ListenerSets (for allowedRoutes selectors).
	Namespaces []*corev1.Namespace
	// Services and EndpointSlices are those that the routes' backendRefs and the class's responder name.
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Nodes          []*corev1.Node
	// Secrets and ConfigMaps are those that listeners and policies name.
	Secrets    Secrets
	ConfigMaps []*corev1.ConfigMap
	// BackendPolicies and BackendTLSPolicies are those for the Services, and those with a status entry for the Gateway.
	BackendPolicies    []*v1alpha1.OpenStackBackendPolicy
	BackendTLSPolicies []*gwv1.BackendTLSPolicy
	// Refusals are what the cloud did not take of what it was asked for before.
	Refusals Refusals
	// RedirectsFixed says that the responder's ports for redirects cannot get another meaning than they have.
	RedirectsFixed bool
	// Now is when the snapshot was taken, to tell expired certificates; zero tells none.
	Now time.Time
	// Facts is what is known of the cloud before compile.
	Facts lb.Facts
}

// Secrets are objects whose content no print and no document shows; a corev1.Secret itself prints it with every verb.
type Secrets []*corev1.Secret

// Format tells how many there are, whatever the verb.
func (s Secrets) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "[%d Secrets]", len(s)) }

// MarshalJSON tells their names.
func (s Secrets) MarshalJSON() ([]byte, error) {
	names := []string{}
	for _, one := range s {
		if one != nil {
			names = append(names, one.Namespace+"/"+one.Name)
		}
	}
	return json.Marshal(names)
}

// Result is what a Gateway means.
type Result struct {
	// Tree is the wanted load balancer; Empty when there is none to have: the Gateway is deleted.
	Tree lb.Tree
	// Hold says that the Gateway is refused as a whole. Nothing is to be created, but what exists stays as it is: a mistake in
	// a Gateway must not take down what it serves. Tree is Empty.
	Hold bool
	// Redirects are the redirects that the tree takes from the responder, by its ports. The Service must say so before the tree is made.
	Redirects answer.Table
	// Verdicts are sorted by object, then listener or parent.
	Verdicts []status.Verdict
}
