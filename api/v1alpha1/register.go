package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: api.Domain, Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &OpenStackGatewayClassConfig{}, &OpenStackGatewayClassConfigList{},
		&OpenStackGatewayConfig{}, &OpenStackGatewayConfigList{},
		&OpenStackBackendPolicy{}, &OpenStackBackendPolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
