// Package controller is the two loops, and nothing but their order: everything they decide is decided elsewhere.
//
// GatewayReconciler: snapshot, compile, observe, diff, apply, status (gateway.go). Every pass ends in an outcome of a closed
// set with one policy for requeue and Event each (outcome.go). What a pass remembers (settled.go) is only ever a reason
// to skip calls to the cloud, never to make one.
//
// ClassReconciler: accepts a GatewayClass once its parameters exist and the cloud has what they name (class.go).
package controller
