package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func listenerUnresolved(reason gwv1.ListenerConditionReason, why string) Condition {
	return condition(gwv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, reason, asSentence(why))
}

// ListenerInvalidCertificateRef says what is wrong with a Secret of an HTTPS listener.
func ListenerInvalidCertificateRef(why string) Condition {
	return listenerUnresolved(gwv1.ListenerReasonInvalidCertificateRef, why)
}

// ListenerRefNotPermitted says which reference into another namespace is not allowed.
func ListenerRefNotPermitted(why string) Condition {
	return listenerUnresolved(gwv1.ListenerReasonRefNotPermitted, why)
}

// ListenerInvalidCACertificateRef says what is wrong with the CA certificates for clients.
func ListenerInvalidCACertificateRef(why string) Condition {
	return listenerUnresolved(gwv1.ListenerReasonInvalidCACertificateRef, why)
}

// ListenerInvalidCACertificateKind refuses a reference to CA certificates in another kind of object.
func ListenerInvalidCACertificateKind() Condition {
	return listenerUnresolved(gwv1.ListenerReasonInvalidCACertificateKind,
		"the caCertificateRefs of tls.frontend can name ConfigMaps and Secrets only")
}

// ListenerNoValidCACertificate says that no CA for clients can be used.
func ListenerNoValidCACertificate() Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonNoValidCACertificate,
		"No CA certificate for clients can be used: see the ResolvedRefs condition.")
}

// ListenerResolvedRefsBut says that everything resolves, and what should be looked at all the same.
func ListenerResolvedRefsBut(warnings []string) Condition {
	return condition(gwv1.ListenerConditionResolvedRefs, metav1.ConditionTrue, gwv1.ListenerReasonResolvedRefs,
		"All references are resolved. Warning: "+joined(warnings)+".")
}

// ListenerNoKeyManager refuses HTTPS in a cloud without Barbican.
func ListenerNoKeyManager() Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonUnsupportedProtocol,
		"HTTPS needs Barbican, and the service catalog of this cloud has no key manager: use HTTP or ask the cloud's operator.")
}

// Serving says what a listener serves whose certificate the cloud does not take.
type Serving string

// The degrees of serving.
const (
	NotServed      Serving = "The listener is not served until then."
	ServedAsBefore Serving = "Until then the listener is served with what it had before."
	ServedPartly   Serving = "Until then the listener is served with its other certificate."
)

// ListenerRefusedByCloud says that Barbican or Octavia does not take what a listener needs, although nothing is wrong with it as far as can be seen
// from here.
func ListenerRefusedByCloud(why string, serving Serving) Condition {
	return condition(gwv1.ListenerConditionProgrammed, metav1.ConditionFalse, gwv1.ListenerReasonInvalid,
		"The cloud does not take "+why+". It is tried again, less and less often. "+string(serving))
}

// ListenerCertificateConfused refuses a listener because HAProxy could not tell its certificate from that of another one.
func ListenerCertificateConfused(host, other string) Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonUnsupportedValue,
		fmt.Sprintf("Clients of %s could be presented the wrong one of the certificates of this listener and of %s: HAProxy chooses by the names in "+
			"certificates, not by listeners. Use the same Secret for both, or certificates that do not name the same host.", printable(host), other))
}

// ListenerCertificateNamesOthers refuses a listener whose certificates do not name its hostname.
func ListenerCertificateNamesOthers(host string) Condition {
	return condition(gwv1.ListenerConditionAccepted, metav1.ConditionFalse, gwv1.ListenerReasonUnsupportedValue,
		fmt.Sprintf("No certificate of the listener names %s: HAProxy would present the default certificate of the port, which is another "+
			"listener's.", printable(host)))
}

// ListenerOverlapping tells the listeners of the port whose hostnames or certificates overlap with this one's.
func ListenerOverlapping(reason gwv1.ListenerConditionReason, port gwv1.PortNumber, others []string) Condition {
	what := "hostname overlaps with that"
	if reason == gwv1.ListenerReasonOverlappingCertificates {
		what = "certificate names hosts that are named by that"
	}
	return condition(gwv1.ListenerConditionOverlappingTLSConfig, metav1.ConditionTrue, reason,
		fmt.Sprintf("Its %s of %s on port %d: clients may reuse a connection of one for the other, or be presented the other's certificate.",
			what, strings.Join(atMost(others), ", "), port))
}
