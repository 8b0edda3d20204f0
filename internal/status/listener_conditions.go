package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// condition makes a Condition of the Gateway API's typed names.
func condition[T, R ~string](conditionType T, status metav1.ConditionStatus, reason R, message string) Condition {
	return Condition{Type: string(conditionType), Status: status, Reason: string(reason), Message: message}
}

// ListenerAccepted says that the listener is valid.
func ListenerAccepted() Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionTrue, gwv1.ListenerReasonAccepted, "The listener is accepted.")
}

// ListenerUnsupportedProtocol refuses a protocol that Octavia cannot route as Gateway API defines it.
func ListenerUnsupportedProtocol(protocol gwv1.ProtocolType) Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonUnsupportedProtocol,
		fmt.Sprintf("Protocol %s is not supported: use HTTP or HTTPS.", printable(string(protocol))))
}

// ListenerUnsupportedValue refuses a listener for one of its values.
func ListenerUnsupportedValue(why string) Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonUnsupportedValue, asSentence(why))
}

// ListenerNotAcceptedConflict refuses a listener because of its Conflicted condition.
func ListenerNotAcceptedConflict(reason gwv1.ListenerConditionReason, port gwv1.PortNumber) Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, reason,
		fmt.Sprintf("The listener conflicts with another one on port %d: see the Conflicted condition.", port))
}

// ListenerProtocolConflict says which listeners want one port for different protocols.
func ListenerProtocolConflict(port gwv1.PortNumber, others []string) Condition {
	return condition(gwv1.ListenerConditionConflicted, metav1.ConditionTrue, gwv1.ListenerReasonProtocolConflict,
		fmt.Sprintf("Port %d is wanted for different protocols, also by %s: give each protocol its own port.", port, strings.Join(atMost(others), ", ")))
}

// ListenerHostnameConflict says which listeners want one hostname on one port.
func ListenerHostnameConflict(port gwv1.PortNumber, others []string) Condition {
	return condition(gwv1.ListenerConditionConflicted, metav1.ConditionTrue, gwv1.ListenerReasonHostnameConflict,
		fmt.Sprintf("The same hostname on port %d is wanted by %s too: give each listener its own hostname.", port, strings.Join(atMost(others), ", ")))
}

// ListenerNoConflicts says that the listener is distinct.
func ListenerNoConflicts() Condition {
	return condition(gwv1.ListenerConditionConflicted, metav1.ConditionFalse, gwv1.ListenerReasonNoConflicts, "No other listener conflicts with this one.")
}

// ListenerResolvedRefs says that everything the listener refers to exists and may be used.
func ListenerResolvedRefs() Condition {
	return condition(gwv1.ListenerConditionResolvedRefs, metav1.ConditionTrue, gwv1.ListenerReasonResolvedRefs, "All references are resolved.")
}

// ListenerInvalidRouteKinds names the kinds in allowedRoutes.kinds that cannot be routed.
func ListenerInvalidRouteKinds(kinds []string) Condition {
	return condition(gwv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gwv1.ListenerReasonInvalidRouteKinds,
		fmt.Sprintf("allowedRoutes.kinds names %s: only HTTPRoute of gateway.networking.k8s.io is supported here.", printable(strings.Join(atMost(kinds), ", "))))
}

// ListenerNotProgrammed says that the load balancer does not serve the listener because it is not valid.
func ListenerNotProgrammed(reason gwv1.ListenerConditionReason, why string) Condition {
	return condition(gwv1.ListenerConditionProgrammed, metav1.ConditionFalse, reason, asSentence(why))
}
