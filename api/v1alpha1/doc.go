// Package v1alpha1 is the configuration API of the controller: how a platform team describes its cloud once.
//
// OpenStackGatewayClassConfig is named by GatewayClass.spec.parametersRef. Everything an application team needs is in
// the Gateway API itself.
//
// +kubebuilder:object:generate=true
// +groupName=gateway-api-openstack.dev
package v1alpha1
