package main

// sample are the tests that the gate runs with a responder: each claimed feature is in at least one, and so are the ways in which requests
// are routed, redirected and refused. Where several tests ask for the same, one is here, and not the one with the most load balancers.
var sample = []string{
	// What becomes of a Gateway and its listeners: made, changed, refused.
	"GatewayClassObservedGenerationBump",
	"GatewayFrontendClientCertificateValidation",
	"GatewayHTTPListenerIsolation",
	"GatewayInvalidTLSConfiguration",
	"GatewayModifyListeners",
	"GatewayOptionalAddressValue",
	"GatewaySecretReferenceGrantSpecific",
	"GatewayStaticAddresses",
	"GatewayWithAttachedRoutesWithPort8080",
	// Which requests a rule takes.
	"HTTPRouteCrossNamespace",
	"HTTPRouteHTTPSListener",
	"HTTPRouteHeaderMatching",
	"HTTPRouteListenerHostnameMatching",
	"HTTPRouteListenerPortMatching",
	"HTTPRouteMatchingAcrossRoutes",
	"HTTPRouteNamedRule",
	"HTTPRoutePathMatchOrder",
	// Where they go.
	"HTTPRouteBackendProtocolWebSocket",
	"HTTPRouteInvalidCrossNamespaceParentRef",
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
}
