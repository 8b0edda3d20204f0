package main

import (
	"time"

	"sigs.k8s.io/gateway-api/conformance/utils/config"
)

// claimedTimeouts are the suite's own for what has to pass, with those raised that Octavia's way of working needs. It locks a load
// balancer for each change and reloads HAProxy after it, so what takes several changes takes several seconds; the machines that run
// this suite have two cores for a whole cloud. This function is the only place that changes any.
func claimedTimeouts() config.TimeoutConfig {
	t := config.DefaultTimeoutConfig()
	// A new load balancer is a machine that boots, and tests make several at once.
	t.GatewayMustHaveAddress = 10 * time.Minute
	t.GatewayMustHaveCondition = 10 * time.Minute
	t.ListenerSetMustHaveCondition = 10 * time.Minute
	t.NamespacesMustBeReady = 15 * time.Minute
	// Tests with this limit wait within it until every Gateway in the namespace is programmed, those of other tests among them.
	t.LatestObservedGenerationSet = 15 * time.Minute
	// Programmed of a listener follows the load balancer's.
	t.GatewayStatusMustHaveListeners = 5 * time.Minute
	t.GatewayListenersMustHaveConditions = 5 * time.Minute
	t.ListenerSetListenersMustHaveConditions = 5 * time.Minute
	// A route's rules are several changes; a test starts to ask as soon as the route is accepted.
	t.MaxTimeToConsistency = 10 * time.Minute
	t.DefaultTestTimeout = 10 * time.Minute
	return t
}

// unclaimedTimeouts are for tests that have to fail. What they wait for in vain is said in the status of a route within seconds: the
// suite's minute for each would only be waited out.
func unclaimedTimeouts() config.TimeoutConfig {
	t := claimedTimeouts()
	// Some wait for a condition of a Gateway that never comes: the suite's own time, in which a load balancer boots.
	t.GatewayMustHaveCondition = config.DefaultTimeoutConfig().GatewayMustHaveCondition
	t.MaxTimeToConsistency = config.DefaultTimeoutConfig().MaxTimeToConsistency
	for _, d := range []*time.Duration{&t.HTTPRouteMustHaveCondition, &t.HTTPRouteMustNotHaveParents, &t.RouteMustHaveParents, &t.DefaultTestTimeout} {
		*d = 20 * time.Second
	}
	return t
}
