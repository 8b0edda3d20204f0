package main

// sample are the tests that the gate runs with a responder: each claimed feature and each mechanism of the controller is in at least one.
// Where several tests ask for the same, it is the one with the fewest load balancers of its own.
var sample = []string{
	// What becomes of a Gateway and its listeners: made, changed, refused.
	"GatewayClassObservedGenerationBump",
	"GatewayFrontendClientCertificateValidation",
	"GatewayHTTPListenerIsolation",
	"GatewayInvalidRouteKind",
	"GatewayInvalidTLSConfiguration",
	"GatewayModifyListeners",
	"GatewayOptionalAddressValue",
	"GatewaySecretMissingReferenceGrant",
	"GatewaySecretReferenceGrantSpecific",
	"GatewayStaticAddresses",
	"GatewayWithAttachedRoutesWithPort8080",
	// Which requests a rule takes.
	"HTTPRouteCrossNamespace",
	"HTTPRouteExactPathMatching",
	"HTTPRouteHTTPSListener",
	"HTTPRouteHeaderMatching",
	"HTTPRouteHostnameIntersection",
	"HTTPRouteListenerHostnameMatching",
	"HTTPRouteListenerPortMatching",
	"HTTPRouteMatchingAcrossRoutes",
	"HTTPRouteNamedRule",
	"HTTPRoutePathMatchOrder",
	// Where they go.
	"HTTPRouteBackendProtocolWebSocket",
	"HTTPRouteInvalidCrossNamespaceParentRef",
	"HTTPRouteInvalidNonExistentBackendRef",
	"HTTPRouteInvalidParentRefNotMatchingListenerPort",
	"HTTPRouteObservedGenerationBump",
	"HTTPRoutePartiallyInvalidViaInvalidReferenceGrant",
	"HTTPRouteReferenceGrant",
	"HTTPRouteServiceTypes",
	"HTTPRouteWeight",
	// Redirects, of Octavia and of the responder.
	"HTTPRoute303Redirect",
	"HTTPRoute307Redirect",
	"HTTPRoute308Redirect",
	"HTTPRouteRedirectHostAndStatus",
	"HTTPRouteRedirectPath",
	"HTTPRouteRedirectPort",
	"HTTPRouteRedirectScheme",
	// Listeners of others.
	"ListenerSetAllowedNamespaceSame",
	"ListenerSetHTTPRouting",
	"ListenerSetProtocolConflict",
}
