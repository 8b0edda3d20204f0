package kube

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// Served says which optional kinds the API server serves. Only these are indexed, watched and read; a kind that appears
// later is used after a restart.
type Served struct {
	// ListenerSets says whether gateway.networking.k8s.io/v1 ListenerSet is served.
	ListenerSets bool
	// BackendTLSPolicies says whether gateway.networking.k8s.io/v1 BackendTLSPolicy is served.
	BackendTLSPolicies bool
	// ReferenceGrants is the version of ReferenceGrant to read: "v1", "v1beta1", or "" when there is none, and then no reference
	// crosses namespaces.
	ReferenceGrants string
}

// String lists the optional kinds that are in use.
func (s Served) String() string {
	var kinds []string
	if s.ListenerSets {
		kinds = append(kinds, "ListenerSet/v1")
	}
	if s.BackendTLSPolicies {
		kinds = append(kinds, kindBackendTLSPolicy+"/v1")
	}
	if s.ReferenceGrants != "" {
		kinds = append(kinds, "ReferenceGrant/"+s.ReferenceGrants)
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}

// MissingKindsError says that the cluster lacks kinds without which the controller has nothing to do.
type MissingKindsError struct {
	// Kinds are "Kind.group/version", sorted.
	Kinds []string
}

func (e *MissingKindsError) Error() string {
	return "the API server does not serve " + strings.Join(e.Kinds, ", ") +
		"; install the Gateway API standard channel CRDs (v1.6 or compatible) and the controller's own CRDs, then the controller goes on"
}

// ServedKinds asks the API server which kinds there are. It returns a *MissingKindsError when a required one is missing.
func ServedKinds(d discovery.DiscoveryInterface) (Served, error) {
	v1, err := kindsOf(d, gwv1.GroupVersion.String())
	if err != nil {
		return Served{}, err
	}
	v1beta1, err := kindsOf(d, gwv1beta1.GroupVersion.String())
	if err != nil {
		return Served{}, err
	}
	own, err := kindsOf(d, v1alpha1.GroupVersion.String())
	if err != nil {
		return Served{}, err
	}

	var missing []string
	for _, kind := range []string{"GatewayClass", "Gateway", "HTTPRoute"} {
		if !slices.Contains(v1, kind) {
			missing = append(missing, kind+"."+gwv1.GroupVersion.String())
		}
	}
	for _, kind := range []string{kindClassConfig, kindGatewayConfig, kindBackendPolicy} {
		if !slices.Contains(own, kind) {
			missing = append(missing, kind+"."+v1alpha1.GroupVersion.String())
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return Served{}, &MissingKindsError{Kinds: missing}
	}

	served := Served{ListenerSets: slices.Contains(v1, kindListenerSet), BackendTLSPolicies: slices.Contains(v1, kindBackendTLSPolicy)}
	switch {
	case slices.Contains(v1, "ReferenceGrant"):
		served.ReferenceGrants = "v1"
	case slices.Contains(v1beta1, "ReferenceGrant"):
		served.ReferenceGrants = "v1beta1"
	}
	return served, nil
}

func kindsOf(d discovery.DiscoveryInterface, groupVersion string) ([]string, error) {
	list, err := d.ServerResourcesForGroupVersion(groupVersion)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the API server for the kinds of %s: %w", groupVersion, err)
	}
	kinds := make([]string, 0, len(list.APIResources))
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds, nil
}
