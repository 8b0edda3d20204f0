package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// SupportedBundle is the minor version of the Gateway API CRDs that this controller is built and tested for.
const SupportedBundle = "v1.6"

// Responder is the fallback responder that a class names; nil is a class without one.
type Responder struct {
	// Service is namespace/name.
	Service string
	// Missing says that the Service does not exist.
	Missing bool
}

// ClassAccepted is for a class whose parameters can be used.
func ClassAccepted(r *Responder) Condition {
	answers := "Requests that no route takes, and routes without a usable backend, are answered with 503 where Gateway API asks for 404 and " +
		"500: Octavia has no such answers."
	switch {
	case r != nil && r.Missing:
		answers += " The responder that the class names would give them, but its Service " + r.Service + " does not exist: create it, as " +
			"config/components/responder does."
	case r != nil:
		answers = "Requests that no route takes are answered with 404 and routes without a usable backend with 500, by the responder of Service " + r.Service + "."
	}
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionTrue, gwv1.GatewayClassReasonAccepted,
		"Gateways of this class become Octavia load balancers. "+answers)
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

// ClassUnsupported is for a class whose parameters are fine but whose cloud cannot serve it now; message says what is missing.
func ClassUnsupported(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupported, message)
}

// ClassPending is for a class that could not be checked against its cloud yet.
func ClassPending(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionUnknown, gwv1.GatewayClassReasonPending, message)
}
