// Package api holds the one name that everything else is derived from. The API types are in its sub-packages.
package api

// Domain is the API group, the prefix of finalizers, labels, annotations and ownership marks, and the first part of the
// default controllerName.
const Domain = "gateway-api-openstack.dev"

// DefaultControllerName is the spec.controllerName of GatewayClasses that a default installation serves.
const DefaultControllerName = Domain + "/gateway-controller"

// Finalizer holds a Gateway until nothing of it is left in the cloud.
const Finalizer = Domain + "/cloud-resources"
