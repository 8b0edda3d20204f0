package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RouteAccepted says that the parent takes the route.
func RouteAccepted() Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionTrue, gwv1.RouteReasonAccepted, "The route is accepted.")
}

// RouteNoMatchingParent says that the parent has no listener of that name and port.
func RouteNoMatchingParent(wanted string) Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionFalse, gwv1.RouteReasonNoMatchingParent,
		fmt.Sprintf("The parent has no listener with %s.", printable(wanted)))
}

// RouteParentWithoutListeners says that the parent has no listeners at all, as a ListenerSet that its Gateway does not allow.
func RouteParentWithoutListeners() Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionFalse, gwv1.RouteReasonNoMatchingParent,
		"The parent has no listeners in use: see its conditions.")
}

// RouteNotAllowedByListeners says that allowedRoutes of the listeners excludes the route.
func RouteNotAllowedByListeners(listeners []string, namespace string) Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionFalse, gwv1.RouteReasonNotAllowedByListeners,
		fmt.Sprintf("allowedRoutes of %s does not allow an HTTPRoute from namespace %s.", listenerList(listeners), namespace))
}

// RouteNoMatchingListenerHostname says that the route and the listeners share no hostname.
func RouteNoMatchingListenerHostname(listeners []string) Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionFalse, gwv1.RouteReasonNoMatchingListenerHostname,
		fmt.Sprintf("No hostname of the route lies within the hostname of %s.", listenerList(listeners)))
}

// RouteNotAccepted refuses a route of which no rule can be served.
func RouteNotAccepted(reason gwv1.RouteConditionReason, why []string) Condition {
	return condition(gwv1.RouteConditionAccepted, metav1.ConditionFalse, reason, "No rule can be served: "+joined(why)+".")
}

// RoutePartiallyInvalid names the rules that are not served; the others are.
func RoutePartiallyInvalid(rules []int, why []string) Condition {
	word := "Rule"
	numbers := make([]string, len(rules))
	for i, rule := range rules {
		numbers[i] = fmt.Sprint(rule)
	}
	if len(rules) > 1 {
		word = "Rules"
	}
	return condition(gwv1.RouteConditionPartiallyInvalid, metav1.ConditionTrue, gwv1.RouteReasonUnsupportedValue,
		fmt.Sprintf("Dropped %s %s: %s.", word, strings.Join(numbers, ", "), joined(why)))
}

// RouteResolvedRefs says that every backend exists and may be used.
func RouteResolvedRefs() Condition {
	return condition(gwv1.RouteConditionResolvedRefs, metav1.ConditionTrue, gwv1.RouteReasonResolvedRefs, "All backends are resolved.")
}

// RouteBackendProblem is why a backend cannot be used.
type RouteBackendProblem struct {
	Reason gwv1.RouteConditionReason
	// Message is a clause: it has no full stop.
	Message string
}

// RouteRefsNotResolved has the reason of the first problem and tells all.
func RouteRefsNotResolved(problems []RouteBackendProblem) Condition {
	messages := make([]string, len(problems))
	for i, p := range problems {
		messages[i] = p.Message
	}
	return condition(gwv1.RouteConditionResolvedRefs, metav1.ConditionFalse, problems[0].Reason, asSentence(joined(messages)))
}

// BackendInvalidKind says that a backendRef is no Service.
func BackendInvalidKind(where, group, kind string) RouteBackendProblem {
	if group != "" {
		kind += "." + group
	}
	return RouteBackendProblem{gwv1.RouteReasonInvalidKind,
		fmt.Sprintf("%s is of kind %s, only Service is supported", where, printable(kind))}
}

// BackendExternalName says that a Service of type ExternalName has nothing to send requests to.
func BackendExternalName(where, service string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonInvalidKind,
		fmt.Sprintf("%s: Service %s is of type ExternalName, which is not supported", where, service)}
}

// BackendRefNotPermitted says that no ReferenceGrant allows a Service of another namespace.
func BackendRefNotPermitted(where, service, namespace string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonRefNotPermitted,
		fmt.Sprintf("%s: no ReferenceGrant in namespace %s allows HTTPRoutes of this namespace to use Service %s", where, namespace, service)}
}

// BackendNotFound says that there is no such Service.
func BackendNotFound(where, service string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonBackendNotFound, fmt.Sprintf("%s: Service %s does not exist", where, service)}
}

// BackendWithoutPort says that a backendRef names no port.
func BackendWithoutPort(where, service string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonBackendNotFound, fmt.Sprintf("%s: Service %s needs a port", where, service)}
}

// BackendPortNotFound says that the Service does not have the port.
func BackendPortNotFound(where, service string, port int32) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonBackendNotFound, fmt.Sprintf("%s: Service %s has no port %d", where, service, port)}
}

// BackendWithoutNodePort says that a Service cannot be reached through the Nodes.
func BackendWithoutNodePort(where, service string, port int32) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonBackendNotFound,
		fmt.Sprintf("%s: Service %s has no node port for port %d, make it a Service of type NodePort", where, service, port)}
}

// BackendUnsupportedProtocol says that the load balancer does not speak the protocol of the Service port.
func BackendUnsupportedProtocol(where, service string, port int32, protocol string) RouteBackendProblem {
	hint := ""
	if protocol == "https" || protocol == "kubernetes.io/wss" {
		hint = " without an OpenStackBackendPolicy that has tls"
	}
	return RouteBackendProblem{gwv1.RouteReasonUnsupportedProtocol,
		fmt.Sprintf("%s: port %d of Service %s speaks %s, which is not supported%s", where, port, service, printable(protocol), hint)}
}

// BackendPolicyUnusable says that a policy asks for TLS that cannot be had; plain text is no substitute. What is wrong is told in the status
// of the policy only: the route may be another team's.
func BackendPolicyUnusable(where, service, policy string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonUnsupportedProtocol,
		fmt.Sprintf("%s: nothing is sent to Service %s because the tls of %s cannot be used: see its status", where, service, policy)}
}

// BackendPolicyFull says that a policy has no room in its status for the Gateway, and so cannot be used.
func BackendPolicyFull(where, service, policy string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonUnsupportedProtocol,
		fmt.Sprintf("%s: nothing is sent to Service %s because the tls of %s cannot be used: it is used by 16 other Gateways, and its status has no room for another one",
			where, service, policy)}
}

// BackendTLSPolicyUnsupported says that a BackendTLSPolicy stands in the way.
func BackendTLSPolicyUnsupported(where, service, policy string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonUnsupportedProtocol,
		fmt.Sprintf("%s: nothing is sent to Service %s because of BackendTLSPolicy %s, which Octavia cannot fulfil: use the tls of an OpenStackBackendPolicy", where, service, policy)}
}

// BackendTLSDiffers says that one rule has backends that are not all spoken to in the same way.
func BackendTLSDiffers(where, backend, other string) RouteBackendProblem {
	return RouteBackendProblem{gwv1.RouteReasonUnsupportedProtocol,
		fmt.Sprintf("%s: %s needs another TLS than %s, and Octavia has one for all backends of a rule", where, backend, other)}
}

func listenerList(names []string) string {
	if len(names) == 1 {
		return "listener " + names[0]
	}
	return "the listeners " + strings.Join(atMost(names), ", ")
}
