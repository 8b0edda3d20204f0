package status

import (
	"fmt"
	"slices"
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

// CRD is an installed Gateway API CRD.
type CRD struct {
	// Resource is its plural, such as "httproutes".
	Resource string
	// Version is that of its bundle, such as "v1.6.3"; "" when it does not say.
	Version string
	// Missing says that it is not there, though it was when the controller started.
	Missing bool
}

// ClassSupportedVersion judges the versions of the installed Gateway API CRDs. With other ones the controller goes on as well as
// it can: nothing that exists is taken away for that.
func ClassSupportedVersion(bundle ...CRD) Condition {
	var missing, silent, versions []string
	of := map[string][]string{}
	supported := len(bundle) > 0
	for _, crd := range bundle {
		switch {
		case crd.Missing:
			missing = append(missing, crd.Resource)
		case crd.Version == "":
			silent = append(silent, crd.Resource)
		default:
			if of[crd.Version] == nil {
				versions = append(versions, crd.Version)
			}
			of[crd.Version] = append(of[crd.Version], crd.Resource)
		}
		supported = supported && (crd.Version == SupportedBundle || strings.HasPrefix(crd.Version, SupportedBundle+"."))
	}
	slices.Sort(versions)
	var found []string
	switch {
	case len(versions) == 1:
		found = append(found, "are "+versions[0])
	case len(versions) > 1:
		var each []string
		for _, v := range versions {
			each = append(each, fmt.Sprintf("%s (%s)", v, strings.Join(of[v], ", ")))
		}
		found = append(found, "are of different versions: "+strings.Join(each, ", "))
	}
	if len(silent) > 0 && len(versions) == 0 {
		found = append(found, "do not say their version")
	} else if len(silent) > 0 {
		found = append(found, "do not all say their version: "+strings.Join(silent, ", ")+" does not")
	}
	if len(missing) > 0 {
		found = append(found, "are not complete: "+strings.Join(missing, ", ")+" is missing")
	}
	text := "The Gateway API CRDs " + strings.Join(found, " and ")
	if supported && len(versions) == 1 {
		return condition(gwv1.GatewayClassConditionStatusSupportedVersion, metav1.ConditionTrue, gwv1.GatewayClassReasonSupportedVersion, text+".")
	}
	return condition(gwv1.GatewayClassConditionStatusSupportedVersion, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupportedVersion,
		fmt.Sprintf("%s; this controller is tested with %s and goes on as well as it can. Install the standard channel of %s.", text, SupportedBundle, SupportedBundle))
}

// ClassUnsupported is for a class whose parameters are fine but whose cloud cannot serve it now; message says what is missing.
func ClassUnsupported(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupported, message)
}

// ClassPending is for a class that could not be checked against its cloud yet.
func ClassPending(message string) Condition {
	return condition(gwv1.GatewayClassConditionStatusAccepted, metav1.ConditionUnknown, gwv1.GatewayClassReasonPending, message)
}

// CredentialsNotReloaded says that the credentials were replaced by what cannot be used; cause says why.
func CredentialsNotReloaded(cause string) string {
	return "The credentials were changed and the new ones cannot be used, so those before them still are: " + cause + "."
}
