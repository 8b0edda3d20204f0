package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// terminator finds what the HTTPS listeners of a Gateway need. All that share a port become one TERMINATED_HTTPS listener.
type terminator struct {
	in      *input
	owner   lb.Owner
	secrets map[name]*corev1.Secret
	configs map[name]*corev1.ConfigMap
	// read has the certificates of Secrets that were read already, or why there is none.
	read map[name]readSecret
	// ports and wanted are the result.
	ports  map[gwv1.PortNumber]*lb.ListenerTLS
	wanted map[string]lb.Secret
}

var errNoSecret = errors.New("there is no such Secret")

type readSecret struct {
	certificate *certificate
	err         error
}

// terminate resolves the certificates of all HTTPS listeners, which are in the order in which they win conflicts. What is wrong with one
// never stops another.
func terminate(in *input, owner lb.Owner, listeners []*listener) *terminator {
	t := &terminator{
		in: in, owner: owner,
		secrets: map[name]*corev1.Secret{}, configs: map[name]*corev1.ConfigMap{}, read: map[name]readSecret{},
		ports: map[gwv1.PortNumber]*lb.ListenerTLS{}, wanted: map[string]lb.Secret{},
	}
	for _, o := range in.Secrets {
		if o != nil {
			t.secrets[name{o.Namespace, o.Name}] = o
		}
	}
	for _, o := range in.ConfigMaps {
		if o != nil {
			t.configs[name{o.Namespace, o.Name}] = o
		}
	}
	byPort := map[gwv1.PortNumber][]*listener{}
	resolved := map[*listener]bool{}
	for _, l := range listeners {
		if l.protocol == gwv1.HTTPSProtocolType && l.served() && t.understand(l) {
			byPort[l.port] = append(byPort[l.port], l)
			resolved[l] = t.resolve(l)
		}
	}
	for port, same := range byPort {
		// Whose options count does not depend on Secrets: one that comes late changes nothing for others.
		same = slices.DeleteFunc(agree(same), func(l *listener) bool { return !resolved[l] })
		same = slices.DeleteFunc(same, unservable)
		for _, l := range same {
			t.refused(l)
		}
		if len(same) > 0 {
			t.port(port, same)
		}
	}
	return t
}

// unservable refuses a listener that has a certificate which its options leave no client a way to use.
func unservable(l *listener) bool {
	i := slices.IndexFunc(l.certificates, func(c *certificate) bool { return !l.options.serves(c) })
	if i < 0 {
		return false
	}
	l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("no cipher of the option %s in tls.options works with the %s key of Secret %s",
		optionCiphers, l.certificates[i].Algorithm, l.certificates[i].secret)))
	return true
}

// port decides what the Octavia listener of a port needs.
func (t *terminator) port(port gwv1.PortNumber, listeners []*listener) {
	ca, ok := t.clientCA(port, listeners)
	if !ok {
		return
	}
	listeners, kept := t.settleRefusals(port, listeners)
	// What is kept has names that are not known: it takes no part in the choice.
	waiting := slices.DeleteFunc(slices.Clone(listeners), func(l *listener) bool { return len(l.certificates) > 0 })
	listeners, byDefault := distinguishable(slices.DeleteFunc(slices.Clone(listeners), func(l *listener) bool { return len(l.certificates) == 0 }))
	listeners = append(listeners, waiting...)
	if len(listeners) == 0 {
		return
	}
	markOverlaps(listeners)
	tls := &lb.ListenerTLS{Versions: listeners[0].options.versions, ALPN: listeners[0].options.alpn,
		Ciphers: strings.Join(listeners[0].options.ciphers, ":"), HSTS: listeners[0].options.hsts}
	if byDefault != nil {
		tls.Default = byDefault.key
	}
	if len(kept) > 0 && byDefault == nil {
		tls.Default = kept[0]
	}
	for _, c := range certificatesOf(listeners) {
		t.want(lb.Secret{Key: c.key, Certificate: &c.Certificate})
		tls.SNI = append(tls.SNI, c.key)
	}
	for _, key := range kept {
		t.want(lb.Secret{Key: key})
		tls.SNI = append(tls.SNI, key)
	}
	tls.SNI = slices.DeleteFunc(tls.SNI, func(key string) bool { return key == tls.Default })
	slices.Sort(tls.SNI)
	if ca != nil {
		tls.ClientCA = t.clientCASecret(port, ca)
	}
	t.ports[port] = tls
}

func (t *terminator) want(s lb.Secret) {
	s.Name = t.owner.SecretName(s.Key)
	t.wanted[s.Key] = s
}

// list are the secrets of the tree.
func (t *terminator) list() []lb.Secret {
	all := make([]lb.Secret, 0, len(t.wanted))
	for _, s := range t.wanted {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b lb.Secret) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// understand says whether what a listener asks for can be had at all, whatever it refers to.
func (t *terminator) understand(l *listener) bool {
	if !t.in.Facts.KeyManager {
		l.refuse(status.ListenerNoKeyManager())
		return false
	}
	if l.tls == nil || len(l.tls.CertificateRefs) == 0 {
		l.unresolved(status.ListenerInvalidCertificateRef("tls.certificateRefs is empty: name a Secret with a certificate"))
		return false
	}
	if l.tls.Mode != nil && *l.tls.Mode != gwv1.TLSModeTerminate {
		l.refuse(status.ListenerUnsupportedValue("tls.mode of an HTTPS listener must be Terminate"))
		return false
	}
	options, why := readTLSOptions(l.tls.Options, t.in.tlsOfClass(), t.in.Facts)
	if why != "" {
		l.refuse(status.ListenerUnsupportedValue(why))
		return false
	}
	l.options = options
	return true
}

// resolve reads the certificates of a listener, and says whether all can be used.
func (t *terminator) resolve(l *listener) bool {
	var warnings []string
	for _, ref := range l.tls.CertificateRefs {
		c, problem := t.certificate(l, ref)
		if problem != nil {
			l.unresolved(*problem)
			return false
		}
		l.certificates = append(l.certificates, c)
		if w := c.warning(t.in.Now); w != "" {
			warnings = append(warnings, w)
		}
	}
	if len(warnings) > 0 && l.resolved == status.ListenerResolvedRefs() {
		l.resolved = status.ListenerResolvedRefsBut(warnings)
	}
	return true
}

// certificate reads the certificate behind one reference.
func (t *terminator) certificate(l *listener, ref gwv1.SecretObjectReference) (*certificate, *status.Condition) {
	problem := func(c status.Condition) (*certificate, *status.Condition) { return nil, &c }
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret" {
		return problem(status.ListenerInvalidCertificateRef("tls.certificateRefs can name Secrets only"))
	}
	key := name{l.owner.Namespace, string(ref.Name)}
	if ref.Namespace != nil {
		key.namespace = string(*ref.Namespace)
	}
	if !t.in.granted(l.reference("Secret", key)) {
		return problem(status.ListenerRefNotPermitted(fmt.Sprintf(
			"no ReferenceGrant in namespace %s lets a %s of namespace %s use Secret %s", key.namespace, l.owner.Kind, l.owner.Namespace, key.name)))
	}
	known, ok := t.read[key]
	if !ok {
		if s := t.secrets[key]; s != nil {
			known.certificate, known.err = readCertificate(s)
		} else {
			known.err = errNoSecret
		}
		t.read[key] = known
	}
	if errors.Is(known.err, errNoSecret) {
		// Such as when cert-manager makes it once the Gateway serves HTTP.
		return problem(status.ListenerInvalidCertificateRef(fmt.Sprintf("Secret %s does not exist: the listener is served as soon as it does", key)))
	}
	if known.err != nil {
		return problem(status.ListenerInvalidCertificateRef(fmt.Sprintf("Secret %s cannot be used: %s", key, known.err)))
	}
	return known.certificate, nil
}

// reference is the listener's use of an object.
func (l *listener) reference(kind string, to name) reference {
	return reference{
		fromGroup: gwv1.GroupName, fromKind: string(l.owner.Kind), fromNamespace: l.owner.Namespace,
		toKind: kind, toNamespace: to.namespace, toName: to.name,
	}
}

// unresolved takes the listener out because of what it refers to.
func (l *listener) unresolved(resolved status.Condition) {
	l.resolved = resolved
	l.notProgrammed = "a reference of the listener cannot be used: " + strings.TrimSuffix(resolved.Message, ".")
}
