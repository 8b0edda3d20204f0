package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayAccepted is the normal case.
func GatewayAccepted() Condition {
	return condition(gwv1.GatewayConditionAccepted, metav1.ConditionTrue, gwv1.GatewayReasonAccepted,
		"The Gateway is valid and is programmed by gateway-api-openstack.")
}

// GatewayListenersNotValid says which listeners are refused. The Gateway as a whole is accepted as long as one is left.
func GatewayListenersNotValid(refused []string, valid int) Condition {
	status, rest := metav1.ConditionTrue, "All others are programmed."
	if valid == 0 {
		status, rest = metav1.ConditionFalse, "No listener is left to program."
	}
	return condition(gwv1.GatewayConditionAccepted, status, gwv1.GatewayReasonListenersNotValid,
		fmt.Sprintf("Refused, see their conditions: listener %s. %s", strings.Join(refused, ", "), rest))
}

// GatewayInvalidParameters is for Gateways whose class has no usable configuration, or, without a class, that name none themselves.
func GatewayInvalidParameters(class, message string) Condition {
	whose := "The parameters of the Gateway"
	if class != "" {
		whose = "The parameters of the GatewayClass"
	}
	return condition(gwv1.GatewayConditionAccepted, metav1.ConditionFalse, gwv1.GatewayReasonInvalidParameters, whose+" cannot be used: "+message)
}

// GatewayUnsupportedAddress is for spec.addresses that Octavia cannot give.
func GatewayUnsupportedAddress(message string) Condition {
	return condition(gwv1.GatewayConditionAccepted, metav1.ConditionFalse, gwv1.GatewayReasonUnsupportedAddress, message)
}

// GatewayAddressNotUsable is for an address in spec.addresses that cannot be had.
func GatewayAddressNotUsable(message string) Condition {
	return gatewayNotProgrammed(gwv1.GatewayReasonAddressNotUsable, message)
}

// GatewayInvalidClientCertificateRef says what is wrong with tls.backend.clientCertificateRef.
func GatewayInvalidClientCertificateRef(why string) Condition {
	return condition(gwv1.GatewayConditionResolvedRefs, metav1.ConditionFalse, gwv1.GatewayReasonInvalidClientCertificateRef, asSentence(why))
}

// GatewayRefNotPermitted says which reference of the Gateway itself no grant allows.
func GatewayRefNotPermitted(why string) Condition {
	return condition(gwv1.GatewayConditionResolvedRefs, metav1.ConditionFalse, gwv1.GatewayReasonRefNotPermitted, asSentence(why))
}

// GatewayClientCertificateUnused is for a certificate for backends that is fine, and is shown to none.
func GatewayClientCertificateUnused() Condition {
	return condition(gwv1.GatewayConditionResolvedRefs, metav1.ConditionTrue, gwv1.GatewayReasonResolvedRefs,
		"The Secret of tls.backend.clientCertificateRef can be used, but is shown to no backend: it belongs to BackendTLSPolicies, which Octavia cannot "+
			"honour. Use an OpenStackBackendPolicy with tls.")
}

func gatewayProgrammed(message string) Condition {
	return condition(gwv1.GatewayConditionProgrammed, metav1.ConditionTrue, gwv1.GatewayReasonProgrammed, message)
}

func gatewayNotProgrammed(reason gwv1.GatewayConditionReason, message string) Condition {
	return condition(gwv1.GatewayConditionProgrammed, metav1.ConditionFalse, reason, message)
}

func listenerProgrammed() Condition {
	return condition(gwv1.ListenerConditionProgrammed, metav1.ConditionTrue, gwv1.ListenerReasonProgrammed,
		"The load balancer listens on this port.")
}

func listenerNotProgrammed(reason gwv1.ListenerConditionReason, message string) Condition {
	return condition(gwv1.ListenerConditionProgrammed, metav1.ConditionFalse, reason, message)
}
