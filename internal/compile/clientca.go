package compile

import (
	"crypto/x509"
	"fmt"
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// caKey is the key of CA certificates in ConfigMaps and Secrets.
const caKey = "ca.crt"

// clientCA reads the CAs that client certificates on a port must come from; nil when none are asked for. A port whose clients cannot be
// checked as the Gateway asks is not served at all: then its listeners say why, and ok is false.
func (t *terminator) clientCA(port gwv1.PortNumber, listeners []*listener) (ca *lb.ClientCA, ok bool) {
	validation := t.validation(port)
	if validation == nil {
		return nil, true
	}
	if validation.Mode != "" && validation.Mode != gwv1.AllowValidOnly {
		for _, l := range listeners {
			l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("frontend validation mode %s is not supported: HAProxy as Octavia configures it "+
				"refuses invalid client certificates also where they are optional", validation.Mode)))
		}
		return nil, false
	}
	ca = &lb.ClientCA{}
	var problems []status.Condition
	size := 0
	for _, ref := range validation.CACertificateRefs {
		certificates, problem := t.caCertificates(ref)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		for _, x := range certificates {
			if !slices.ContainsFunc(ca.Certificates, func(der []byte) bool { return slices.Equal(der, x.Raw) }) {
				ca.Certificates = append(ca.Certificates, x.Raw)
				// PEM is a third longer.
				size += len(x.Raw) * 4 / 3
			}
		}
	}
	if size > maxSecretBytes {
		problems = append(problems, status.ListenerInvalidCACertificateRef(fmt.Sprintf("the CA certificates have more than %d bytes, which Barbican does not take", maxSecretBytes)))
	}
	if len(problems) == 0 && len(ca.Certificates) > 0 {
		return ca, t.caTaken(port, ca, listeners)
	}
	if len(problems) == 0 {
		problems = append(problems, status.ListenerInvalidCACertificateRef("no CA certificate is named"))
	}
	for _, l := range listeners {
		l.unresolved(problems[0])
		if len(problems) >= len(validation.CACertificateRefs) {
			l.accepted = status.ListenerNoValidCACertificate()
		}
	}
	return nil, false
}

// caTaken says whether the CA certificates can be had. A port keeps the ones that it has while the cloud does not take others; one that has none is
// closed.
func (t *terminator) caTaken(port gwv1.PortNumber, ca *lb.ClientCA, listeners []*listener) bool {
	key := lb.ClientCAKey(ca)
	r, refused := t.in.Refusals.Secrets[key]
	if !refused {
		return true
	}
	old := t.servingCA(port)
	if r.Stored {
		t.want(lb.Secret{Key: key, ClientCA: ca})
	}
	why := "the CA certificates of tls.frontend: " + r.Why
	for _, l := range listeners {
		l.cloudRefusal = why
		if old != "" {
			l.programmed = status.ListenerRefusedByCloud(why, status.ServedAsBefore)
			continue
		}
		l.programmed = status.ListenerRefusedByCloud(why, status.NotServed)
		l.notProgrammed = "the cloud does not take the CA certificates for clients"
	}
	return old != ""
}

// servingCA is the key of the CA certificates that a port has, "" for none.
func (t *terminator) servingCA(port gwv1.PortNumber) string {
	for _, key := range t.in.Refusals.Unclaimed[int(port)] {
		if lb.IsClientCAKey(key) {
			return key
		}
	}
	return ""
}

// clientCASecret wants the CA certificates for a port and returns their key; that of the ones which the port has while the cloud does not take them.
func (t *terminator) clientCASecret(port gwv1.PortNumber, ca *lb.ClientCA) string {
	key := lb.ClientCAKey(ca)
	if _, refused := t.in.Refusals.Secrets[key]; refused {
		key, ca = t.servingCA(port), nil
	}
	t.want(lb.Secret{Key: key, ClientCA: ca})
	return key
}

// validation is what the Gateway says about client certificates on a port.
func (t *terminator) validation(port gwv1.PortNumber) *gwv1.FrontendTLSValidation {
	tls := t.in.Gateway.Spec.TLS
	if tls == nil || tls.Frontend == nil {
		return nil
	}
	for i := range tls.Frontend.PerPort {
		if p := &tls.Frontend.PerPort[i]; p.Port == port {
			return p.TLS.Validation
		}
	}
	return tls.Frontend.Default.Validation
}

// caCertificates reads one reference of the Gateway.
func (t *terminator) caCertificates(ref gwv1.ObjectReference) ([]*x509.Certificate, *status.Condition) {
	problem := func(c status.Condition) ([]*x509.Certificate, *status.Condition) { return nil, &c }
	kind := string(ref.Kind)
	if ref.Group != "" || kind != "ConfigMap" && kind != "Secret" {
		return problem(status.ListenerInvalidCACertificateKind())
	}
	key := name{t.in.Gateway.Namespace, string(ref.Name)}
	if ref.Namespace != nil {
		key.namespace = string(*ref.Namespace)
	}
	if !t.in.granted(reference{
		fromGroup: gwv1.GroupName, fromKind: string(status.KindGateway), fromNamespace: t.in.Gateway.Namespace,
		toKind: kind, toNamespace: key.namespace, toName: key.name,
	}) {
		return problem(status.ListenerRefNotPermitted(fmt.Sprintf("no ReferenceGrant in namespace %s lets a Gateway of namespace %s use %s %s",
			key.namespace, t.in.Gateway.Namespace, kind, key.name)))
	}
	var text []byte
	found := false
	if kind == "Secret" {
		if s := t.secrets[key]; s != nil {
			text, found = s.Data[caKey], true
		}
	} else if c := t.configs[key]; c != nil {
		text, found = []byte(c.Data[caKey]), true
		if len(text) == 0 {
			text = c.BinaryData[caKey]
		}
	}
	switch {
	case !found:
		return problem(status.ListenerInvalidCACertificateRef(fmt.Sprintf("%s %s does not exist", kind, key)))
	case len(text) == 0:
		return problem(status.ListenerInvalidCACertificateRef(fmt.Sprintf("%s %s has no %s", kind, key, caKey)))
	}
	certificates, err := readCertificates(text)
	if err != nil {
		return problem(status.ListenerInvalidCACertificateRef(fmt.Sprintf("%s of %s %s %s", caKey, kind, key, err)))
	}
	return certificates, nil
}
