package status

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// supported are the Gateway API features that are exact, with what they need. test/conformance compares this table with what passes,
// in both directions.
var supported = []struct {
	name features.FeatureName
	// responder says that it takes the fallback responder: its tests expect 404, 500 or redirects without a fixed target.
	responder bool
}{
	{name: features.SupportGateway},
	{name: features.SupportGatewayAddressEmpty},
	{name: features.SupportGatewayFrontendClientCertificateValidation},
	{name: features.SupportGatewayHTTPListenerIsolation, responder: true},
	{name: features.SupportGatewayPort8080},
	{name: features.SupportGatewayStaticAddresses},
	{name: features.SupportHTTPRoute},
	{name: features.SupportHTTPRoute303RedirectStatusCode, responder: true},
	{name: features.SupportHTTPRoute307RedirectStatusCode, responder: true},
	{name: features.SupportHTTPRoute308RedirectStatusCode, responder: true},
	{name: features.SupportHTTPRouteBackendProtocolWebSocket},
	{name: features.SupportHTTPRouteDestinationPortMatching},
	{name: features.SupportHTTPRouteNamedRouteRule},
	{name: features.SupportHTTPRouteParentRefPort, responder: true},
	{name: features.SupportHTTPRoutePathRedirect, responder: true},
	{name: features.SupportHTTPRoutePortRedirect, responder: true},
	{name: features.SupportHTTPRouteSchemeRedirect, responder: true},
	{name: features.SupportListenerSet, responder: true},
	{name: features.SupportReferenceGrant},
}

// SupportedFeatures are the Gateway API features of a class, sorted by name. Those that are exact with a responder only are not named
// without one.
func SupportedFeatures(r *Responder) []gwv1.SupportedFeature {
	var out []gwv1.SupportedFeature
	for _, f := range supported {
		if !f.responder || (r != nil && !r.Missing) {
			out = append(out, gwv1.SupportedFeature{Name: gwv1.FeatureName(f.name)})
		}
	}
	slices.SortFunc(out, func(a, b gwv1.SupportedFeature) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out
}
