package main

// cause is whose matter a failing test is.
type cause string

const (
	ourDefect   cause = "our defect"
	environment cause = "environment"
	octavia     cause = "not expressible by Octavia"
)

// reason is why tests fail.
type reason struct {
	cause cause
	// title is short.
	title string
	// fact is what anybody can check: a part of Octavia's API, or of the HAProxy configuration that it writes.
	fact string
}

// gap is a test that fails.
type gap struct {
	test string
	// nativeOnly says that the responder mends it.
	nativeOnly bool
	reason     *reason
}

var (
	noRewriting = &reason{octavia, "Nothing of a request or response can be rewritten",
		"An L7 policy has the actions REJECT, REDIRECT_TO_URL, REDIRECT_PREFIX and REDIRECT_TO_POOL only. A listener's insert_headers sets a fixed list of " +
			"X-Forwarded and X-SSL headers for all of its requests, and its HSTS settings one header of the responses: the template (combined_listeners/templates/macros.j2) writes option forwardfor, http-request set-header and http-response set-header for these, and no other of HAProxy's directives that change a message."}
	noMirror = &reason{octavia, "A request goes to one pool",
		"The template writes one use_backend for a policy. There is no action that sends a copy, and HAProxy would need an SPOE filter for it, which the template does not have."}
	noMethod = &reason{octavia, "Rules do not see the method",
		"The types of an L7 rule are COOKIE, FILE_TYPE, HEADER, HOST_NAME, PATH, SSL_CONN_HAS_CERT, SSL_VERIFY_RESULT and SSL_DN_FIELD."}
	noQuery = &reason{octavia, "Rules do not see the query",
		"PATH is HAProxy's path, which ends before the question mark, and no other type of an L7 rule looks at the URL."}
	noH2C = &reason{octavia, "Requests to backends are HTTP/1.1",
		"A server line has no proto h2; a pool's alpn_protocols is written for pools with TLS only."}
	noTimeouts = &reason{octavia, "There is no time limit for a request",
		"timeout_client_data, timeout_member_connect and timeout_member_data of a listener are times without a byte, for all that the port serves; an L7 policy and a pool have none."}
	noRetry = &reason{octavia, "Retries are fixed",
		"The template writes retries 3 and option redispatch for connections that fail; retry-on is not written, and nothing in the API changes it."}
	noBackendName = &reason{octavia, "The name of the backend's certificate cannot be chosen",
		"A server line of a pool with TLS has sni ssl_fc_sni: the backend gets the server name that the client sent, and none on an HTTP listener; verifyhost is not written."}
	noMisdirected = &reason{octavia, "The server name of the handshake and the host of the request cannot be compared",
		"No type of an L7 rule sees the server name, and no action answers with a status of our choice."}
	noFallback = &reason{octavia, "A wrong client certificate ends the handshake",
		"client_authentication OPTIONAL is verify optional without crt-ignore-err: a client may come without a certificate, but not with one that does not verify."}
	noObject = &reason{octavia, "A Gateway makes nothing in the cluster",
		"The test looks for a ServiceAccount, Pod or Service in the namespace of the Gateway with the label gateway.networking.k8s.io/gateway-name. A Gateway is a load balancer " +
			"in OpenStack here; its infrastructure.labels and annotations are tags of that load balancer."}
	no404 = &reason{octavia, "Octavia has no 404",
		"HAProxy answers 503 when no policy takes a request and there is no default pool, and REJECT is 403. There is no action that answers with a status of our choice. With the responder the test passes."}
	no500 = &reason{octavia, "Octavia has no 500",
		"A pool without members answers 503, and there is no action that answers with a status of our choice. With the responder the test passes."}
	noOpenRedirect = &reason{octavia, "A redirect has a fixed host",
		"redirect_url and redirect_prefix are constant, absolute URLs of the policy (redirect location and redirect prefix without a variable). With the responder the test passes."}
)

// gaps are all tests of the profile that fail, and nothing else. A run fails when it sees another result.
var gaps = []gap{
	{"HTTPRouteRequestHeaderModifier", false, noRewriting},

	{"HTTPRouteExactPathMatching", true, no404},
	{"HTTPRouteHeaderMatching", true, no404},
	{"HTTPRouteHostnameIntersection", true, no404},
	{"HTTPRouteHTTPSListener", true, no404},
	{"HTTPRouteListenerHostnameMatching", true, no404},
	{"HTTPRouteInvalidBackendRefUnknownKind", true, no500},
	{"HTTPRouteInvalidCrossNamespaceBackendRef", true, no500},
	{"HTTPRouteInvalidNonExistentBackendRef", true, no500},
	{"HTTPRouteInvalidReferenceGrant", true, no500},
	{"HTTPRouteNoBackendRefs", true, no500},
	{"HTTPRoutePartiallyInvalidViaInvalidReferenceGrant", true, no500},
	{"HTTPRouteReferenceGrant", true, no500},

	{"GatewayHTTPListenerIsolation", true, no404},
	{"HTTPRouteListenerPortMatching", true, no404},
	{"ListenerSetAllowedRoutesNamespaces", true, no404},
	{"ListenerSetHTTPRouting", true, no404},
	{"ListenerSetReferenceGrant", true, no500},

	{"HTTPRoute303Redirect", true, noOpenRedirect},
	{"HTTPRoute307Redirect", true, noOpenRedirect},
	{"HTTPRoute308Redirect", true, noOpenRedirect},
	{"HTTPRouteRedirectPath", true, noOpenRedirect},
	{"HTTPRouteRedirectPort", true, noOpenRedirect},
	{"HTTPRouteRedirectScheme", true, noOpenRedirect},

	{"BackendTLSPolicy", false, noBackendName},
	{"BackendTLSPolicyConflictResolution", false, noBackendName},
	{"BackendTLSPolicyObservedGenerationBump", false, noBackendName},
	{"BackendTLSPolicySANValidation", false, noBackendName},
	{"GatewayTLSBackendClientCertificate", false, noBackendName},
	{"GatewayFrontendClientCertificateValidationInsecureFallback", false, noFallback},
	{"GatewayInfrastructureMetadata", false, noObject},
	{"HTTPRouteBackendProtocolH2C", false, noH2C},
	{"HTTPRouteBackendRequestHeaderModifier", false, noRewriting},
	{"HTTPRouteCORS", false, noRewriting},
	{"HTTPRouteHTTPSListenerDetectMisdirectedRequests", false, noMisdirected},
	{"HTTPRouteMethodMatching", false, noMethod},
	{"HTTPRouteQueryParamMatching", false, noQuery},
	{"HTTPRouteRequestHeaderModifierBackendWeights", false, noRewriting},
	{"HTTPRouteRequestMirror", false, noMirror},
	{"HTTPRouteRequestMultipleMirrors", false, noMirror},
	{"HTTPRouteRequestPercentageMirror", false, noMirror},
	{"HTTPRouteResponseHeaderModifier", false, noRewriting},
	{"HTTPRouteRetry", false, noRetry},
	{"HTTPRouteRewriteHost", false, noRewriting},
	{"HTTPRouteRewritePath", false, noRewriting},
	{"HTTPRouteTimeoutBackendRequest", false, noTimeouts},
	{"HTTPRouteTimeoutRequest", false, noTimeouts},
}

// gapOf is the gap of a test in a configuration.
func gapOf(test string, c configuration) (gap, bool) {
	for _, g := range gaps {
		if g.test == test && (c == native || !g.nativeOnly) {
			return g, true
		}
	}
	return gap{}, false
}
