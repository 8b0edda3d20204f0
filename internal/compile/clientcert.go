package compile

import (
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// clientCertificate judges the certificate that the Gateway would show to backends with TLS: nil when it names none. It is shown to
// nobody, since a BackendTLSPolicy is never accepted; a reference that cannot be used is told all the same.
func (t *terminator) clientCertificate() *status.Condition {
	tls := t.in.Gateway.Spec.TLS
	if tls == nil || tls.Backend == nil || tls.Backend.ClientCertificateRef == nil {
		return nil
	}
	answer := func(c status.Condition) *status.Condition { return &c }
	ref := tls.Backend.ClientCertificateRef
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret" {
		return answer(status.GatewayInvalidClientCertificateRef("the field tls.backend.clientCertificateRef can name a Secret only"))
	}
	key := name{t.in.Gateway.Namespace, string(ref.Name)}
	if ref.Namespace != nil {
		key.namespace = string(*ref.Namespace)
	}
	if !t.in.granted(reference{
		fromGroup: gwv1.GroupName, fromKind: string(status.KindGateway), fromNamespace: t.in.Gateway.Namespace,
		toKind: "Secret", toNamespace: key.namespace, toName: key.name,
	}) {
		return answer(status.GatewayRefNotPermitted(fmt.Sprintf("no ReferenceGrant in namespace %s lets a Gateway of namespace %s use Secret %s",
			key.namespace, t.in.Gateway.Namespace, key.name)))
	}
	s := t.secrets[key]
	if s == nil {
		return answer(status.GatewayInvalidClientCertificateRef(fmt.Sprintf("Secret %s does not exist", key)))
	}
	if _, err := readCertificate(s); err != nil {
		return answer(status.GatewayInvalidClientCertificateRef(fmt.Sprintf("Secret %s cannot be used: %s", key, err)))
	}
	return answer(status.GatewayClientCertificateUnused())
}
