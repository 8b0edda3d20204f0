// Package api holds the one name that everything else is derived from. The API types are in its sub-packages.
package api

import (
	"crypto/sha256"
	"encoding/hex"
)

// Domain is the API group, the prefix of finalizers, labels, annotations and ownership marks, and the first part of the
// default controllerName.
const Domain = "gateway-api-openstack.dev"

// DefaultControllerName is the spec.controllerName of GatewayClasses that a default installation serves.
const DefaultControllerName = Domain + "/gateway-controller"

// ReplaceAnnotation on a Gateway asks for another load balancer in the place of the one whose id is its value: with what its class asks for by now and
// Octavia cannot change. It does so once, since the new one has another id.
const ReplaceAnnotation = Domain + "/replace-load-balancer"

// Finalizer holds a Gateway until nothing of it is left in the cloud. This is the one of a default installation: see FinalizerFor.
const Finalizer = Domain + "/cloud-resources"

// FinalizerFor is the finalizer of an installation that serves controllerName. A Gateway with our finalizer is ours to clean up whatever
// its class is now, so installations with different names in one cluster must not share one: each would release the
// Gateways of the other.
func FinalizerFor(controllerName string) string {
	if controllerName == DefaultControllerName {
		return Finalizer
	}
	sum := sha256.Sum256([]byte(controllerName))
	return Finalizer + "-" + hex.EncodeToString(sum[:8])
}
