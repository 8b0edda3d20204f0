package status

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// SupportedBundle is the minor version of the Gateway API CRDs that this controller is built and tested for.
const SupportedBundle = "v1.6"

// ClassAccepted is for a class whose parameters can be used.
func ClassAccepted() Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionTrue, gwv1.GatewayClassReasonAccepted,
		"Gateways of this class become Octavia load balancers. Requests that no route takes, and routes without a usable "+
			"backend, are answered with 503 where Gateway API asks for 404 and 500: Octavia has no such answers.")
}

// ClassInvalidParameters is for a class that names no usable configuration; message says what to change.
func ClassInvalidParameters(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionFalse, gwv1.GatewayClassReasonInvalidParameters, message)
}

// ClassSupportedVersion judges the version of the installed Gateway API CRDs. With another one the controller goes on as well as
// it can.
func ClassSupportedVersion(bundle string) Condition {
	if bundle == SupportedBundle || strings.HasPrefix(bundle, SupportedBundle+".") {
		return condition(gwv1.GatewayClassConditionStatusSupportedVersion, metav1.ConditionTrue, gwv1.GatewayClassReasonSupportedVersion,
			fmt.Sprintf("The Gateway API CRDs are %s.", bundle))
	}
	found := fmt.Sprintf("The Gateway API CRDs are %s", bundle)
	if bundle == "" {
		found = "The Gateway API CRDs do not say their version"
	}
	return condition(gwv1.GatewayClassConditionStatusSupportedVersion, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupportedVersion,
		fmt.Sprintf("%s; this controller is tested with %s and goes on as well as it can. Install the standard channel of %s.", found, SupportedBundle, SupportedBundle))
}

// SupportedFeatures are the Gateway API features of this controller, sorted by name.
func SupportedFeatures() []gwv1.SupportedFeature {
	supported := []features.FeatureName{
		features.SupportGateway,
		features.SupportGatewayPort8080,
		features.SupportHTTPRoute,
		features.SupportHTTPRouteNamedRouteRule,
		features.SupportHTTPRouteParentRefPort,
		features.SupportReferenceGrant,
	}
	slices.Sort(supported)
	out := make([]gwv1.SupportedFeature, 0, len(supported))
	for _, name := range supported {
		out = append(out, gwv1.SupportedFeature{Name: gwv1.FeatureName(name)})
	}
	return out
}

// ClassUnsupported is for a class whose parameters are fine but whose cloud cannot serve it now; message says what is missing.
func ClassUnsupported(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupported, message)
}

// ClassPending is for a class that could not be checked against its cloud yet.
func ClassPending(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionUnknown, gwv1.GatewayClassReasonPending, message)
}
