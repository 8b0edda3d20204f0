// Package v1alpha1 is the configuration API of the controller: how a platform team describes its cloud once,
// and what Services need of load balancers.
//
// OpenStackGatewayClassConfig is named by GatewayClass.spec.parametersRef. OpenStackBackendPolicy is for an application team whose Service
// needs more than the Gateway API itself can say, such as TLS to the backends.
//
// +kubebuilder:object:generate=true
// +groupName=gateway-api-openstack.dev
package v1alpha1
