package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func policyAccepted(s metav1.ConditionStatus, reason gwv1.PolicyConditionReason, message string) Condition {
	return condition(gwv1.PolicyConditionAccepted, s, reason, message)
}

// PolicyAccepted says that the policy is used, and where or in what not.
func PolicyAccepted(but []string) Condition {
	message := "The policy is used."
	if len(but) > 0 {
		message = "The policy is used, but: " + joined(but) + "."
	}
	return policyAccepted(metav1.ConditionTrue, gwv1.PolicyReasonAccepted, message)
}

// PolicyConflicted names the older policies that are used instead.
func PolicyConflicted(why []string) Condition {
	return policyAccepted(metav1.ConditionFalse, gwv1.PolicyReasonConflicted, "Another policy is used: "+joined(why)+".")
}

// PolicyTargetNotFound names the targets that do not exist.
func PolicyTargetNotFound(missing []string) Condition {
	return policyAccepted(metav1.ConditionFalse, gwv1.PolicyReasonTargetNotFound, asSentence(joined(missing)))
}

// PolicyInvalid says what of the policy cannot be used.
func PolicyInvalid(why string) Condition {
	return policyAccepted(metav1.ConditionFalse, gwv1.PolicyReasonInvalid, asSentence(why))
}

// BackendTLSPolicyInvalid refuses a BackendTLSPolicy, and says what is used instead.
func BackendTLSPolicyInvalid(instead []string) Condition {
	const why = "Octavia cannot send and check validation.hostname: HAProxy sends the name that the client sent, and checks no name for clients that sent none. "
	if len(instead) > 0 {
		return policyAccepted(metav1.ConditionFalse, gwv1.PolicyReasonInvalid, fmt.Sprintf("%sUsed instead: %s.", why, joined(instead)))
	}
	return policyAccepted(metav1.ConditionFalse, gwv1.PolicyReasonInvalid, why+
		"So nothing is sent to its Services. Use an OpenStackBackendPolicy with tls for them, which says what Octavia does check.")
}

// PolicyNoValidCACertificate says that no CA of a BackendTLSPolicy can be read.
func PolicyNoValidCACertificate() Condition {
	return policyAccepted(metav1.ConditionFalse, gwv1.BackendTLSPolicyReasonNoValidCACertificate,
		"No CA certificate can be used: see the ResolvedRefs condition. Besides, Octavia cannot check validation.hostname: use an OpenStackBackendPolicy with tls.")
}

// PolicyResolvedRefs says that all CA certificates can be read.
func PolicyResolvedRefs() Condition {
	return condition(gwv1.BackendTLSPolicyConditionResolvedRefs, metav1.ConditionTrue, gwv1.BackendTLSPolicyReasonResolvedRefs, "All references are resolved.")
}

// PolicyInvalidCAKind refuses a reference to CA certificates in another kind of object.
func PolicyInvalidCAKind() Condition {
	return condition(gwv1.BackendTLSPolicyConditionResolvedRefs, metav1.ConditionFalse, gwv1.BackendTLSPolicyReasonInvalidKind,
		"The caCertificateRefs can name ConfigMaps only.")
}

// PolicyInvalidCACertificateRef says what is wrong with CA certificates.
func PolicyInvalidCACertificateRef(why string) Condition {
	return condition(gwv1.BackendTLSPolicyConditionResolvedRefs, metav1.ConditionFalse, gwv1.BackendTLSPolicyReasonInvalidCACertificateRef, asSentence(why))
}
