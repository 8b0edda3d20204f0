package compile

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// backendTLS is how a pool speaks TLS to its members.
type backendTLS struct {
	pool lb.PoolTLS
	// secrets are what pool refers to.
	secrets []lb.Secret
	// until is when the last of the CAs expires; zero without any.
	until time.Time
	// client is what HAProxy presents.
	client *certificate
}

// backendALPN is what HAProxy offers to members: its own choice would also be HTTP/2, for which nobody asked.
var backendALPN = []string{"http/1.1"}

// sameBackendTLS says whether one pool can have both.
func sameBackendTLS(a, b *backendTLS) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.pool.CA == b.pool.CA && a.pool.Certificate == b.pool.Certificate && a.pool.Ciphers == b.pool.Ciphers && slices.Equal(a.pool.Versions, b.pool.Versions)
}

// backendTLS reads what a policy asks for.
func (p *policies) backendTLS(namespace string, spec *v1alpha1.BackendTLS) (*backendTLS, error) {
	t := &backendTLS{}
	if err := p.addBackendOptions(t, spec); err != nil {
		return nil, err
	}
	unverified := spec.Verification == v1alpha1.BackendVerificationNone
	// Validation of the CRD refuses these; an old CRD may have let them pass.
	if unverified && len(spec.CACertificateRefs) > 0 {
		return nil, errors.New("caCertificateRefs are not looked at with verification None")
	}
	if !unverified && len(spec.CACertificateRefs) == 0 {
		return nil, errors.New("caCertificateRefs are missing")
	}
	if !p.in.Facts.KeyManager && (!unverified || spec.ClientCertificateRef != nil) {
		return nil, errors.New("certificates need Barbican, and the service catalog of this cloud has no key manager")
	}
	if !unverified {
		if err := p.addCA(t, namespace, spec.CACertificateRefs); err != nil {
			return nil, err
		}
	}
	if ref := spec.ClientCertificateRef; ref != nil {
		key := name{namespace, ref.Name}
		secret := p.in.secret(key)
		if secret == nil {
			return nil, fmt.Errorf("there is no Secret %s", key)
		}
		c, err := readCertificate(secret)
		if err != nil {
			return nil, fmt.Errorf("the client certificate in Secret %s cannot be used: %w", key, err)
		}
		t.client, t.pool.Certificate = c, c.key
		t.secrets = append(t.secrets, lb.Secret{Key: c.key, Certificate: &c.Certificate})
	}
	return t, nil
}

// The API versions of Octavia that brought TLS of pools and its attributes.
const (
	minorPoolTLS      = 8
	minorPoolVersions = 18
	minorPoolALPN     = 24
)

// addBackendOptions reads versions and ciphers. As for listeners everything is said to Octavia in so many words, and nothing that Octavia
// would refuse, because that holds up the whole load balancer, or that would stop HAProxy.
func (p *policies) addBackendOptions(t *backendTLS, spec *v1alpha1.BackendTLS) error {
	cloud := p.in.Facts
	switch {
	case !cloud.Octavia(minorPoolTLS):
		return fmt.Errorf("it needs version 2.%d of Octavia's API, which this cloud does not have", minorPoolTLS)
	case len(spec.Versions) > 0 && !cloud.Octavia(minorPoolVersions):
		return fmt.Errorf("versions need version 2.%d of Octavia's API, which this cloud does not have", minorPoolVersions)
	case len(spec.Ciphers) > 0 && !cloud.Octavia(minorCiphers):
		return fmt.Errorf("ciphers need version 2.%d of Octavia's API, which this cloud does not have", minorCiphers)
	}
	standard := standardOptions(cloud)
	if cloud.Octavia(minorPoolVersions) {
		t.pool.Versions = standard.versions
	}
	if cloud.Octavia(minorPoolALPN) {
		t.pool.ALPN = backendALPN
	}
	ciphers := standard.ciphers
	if len(spec.Versions) > 0 {
		t.pool.Versions = nil
		for _, v := range allowedVersions {
			if slices.Contains(spec.Versions, v1alpha1.TLSVersion(v)) {
				t.pool.Versions = append(t.pool.Versions, v)
			}
		}
		switch {
		case len(t.pool.Versions) != len(spec.Versions):
			return fmt.Errorf("versions must be of %s", strings.Join(allowedVersions, ", "))
		case t.pool.Versions[0] < cloud.MinimumTLSVersion:
			return fmt.Errorf("versions has one below %s, which is the least that the administrator of this cloud's Octavia allows", cloud.MinimumTLSVersion)
		}
	}
	if len(spec.Ciphers) > 0 {
		ciphers = ciphersNamed(func(c cipher) bool { return slices.Contains(spec.Ciphers, v1alpha1.TLSCipher(c.name)) })
		switch {
		case len(ciphers) != len(spec.Ciphers):
			return fmt.Errorf("ciphers must be of %s", strings.Join(ciphersNamed(func(cipher) bool { return true }), ", "))
		case slices.ContainsFunc(ciphers, func(c string) bool { return slices.Contains(cloud.ProhibitedCiphers, c) }):
			return errors.New("ciphers has one that the administrator of this cloud's Octavia has prohibited")
		case !slices.Contains(t.pool.Versions, "TLSv1.2"):
			return errors.New("ciphers would have no effect: they are those of TLSv1.2, which versions leaves out")
		}
	}
	t.pool.Ciphers = strings.Join(ciphers, ":")
	return nil
}

// addCA reads the CAs of members: all of them, or none is used.
func (p *policies) addCA(t *backendTLS, namespace string, refs []v1alpha1.CACertificateRef) error {
	ca := &lb.ClientCA{}
	size := 0
	for _, ref := range refs {
		certificates, err := p.in.caCertificates(namespace, ref)
		if err != nil {
			return err
		}
		for _, x := range certificates {
			if slices.ContainsFunc(ca.Certificates, func(der []byte) bool { return bytes.Equal(der, x.Raw) }) {
				continue
			}
			ca.Certificates = append(ca.Certificates, x.Raw)
			// PEM is a third longer.
			size += len(x.Raw) * 4 / 3
			if x.NotAfter.After(t.until) {
				t.until = x.NotAfter
			}
		}
	}
	if size > maxSecretBytes {
		return fmt.Errorf("the CA certificates have more than %d bytes, which Barbican does not take", maxSecretBytes)
	}
	t.pool.CA = lb.ClientCAKey(ca)
	t.secrets = append(t.secrets, lb.Secret{Key: t.pool.CA, ClientCA: ca})
	return nil
}

// caCertificates reads one reference of a policy. Errors never quote what is in it.
func (in *input) caCertificates(namespace string, ref v1alpha1.CACertificateRef) ([]*x509.Certificate, error) {
	key := name{namespace, ref.Name}
	kind := string(ref.Kind)
	if kind == "" {
		kind = string(v1alpha1.CACertificateConfigMap)
	}
	data, found := in.dataOf(kind, key)
	if !found {
		return nil, fmt.Errorf("%s %s does not exist", kind, key)
	}
	at, err := keyOfCertificates(data, ref.Key)
	if err != nil {
		return nil, fmt.Errorf("%s %s %w", kind, key, err)
	}
	certificates, err := readCertificates(data[at])
	if err != nil {
		return nil, fmt.Errorf("%s of %s %s %w", at, kind, key, err)
	}
	return certificates, nil
}

// keyOfCertificates is the key that is asked for; when none is, ca.crt, or else the only one that holds certificates.
func keyOfCertificates(data map[string][]byte, asked string) (string, error) {
	if asked == "" {
		asked = caKey
		if _, ok := data[asked]; !ok {
			var with []string
			for key, text := range data {
				if bytes.Contains(text, []byte("-----BEGIN "+certificateBlock+"-----")) {
					with = append(with, key)
				}
			}
			slices.Sort(with)
			switch len(with) {
			case 0:
				return "", fmt.Errorf("has no %s, and no other key with certificates in PEM form", caKey)
			case 1:
				return with[0], nil
			}
			return "", fmt.Errorf("has no %s, and certificates under %d keys: name one of them as key", caKey, len(with))
		}
	}
	text, ok := data[asked]
	if !ok || len(bytes.TrimSpace(text)) == 0 {
		return "", fmt.Errorf("has no %s", asked)
	}
	return asked, nil
}

// dataOf is what a ConfigMap or a Secret holds.
func (in *input) dataOf(kind string, key name) (map[string][]byte, bool) {
	if kind == string(v1alpha1.CACertificateSecret) {
		s := in.secret(key)
		if s == nil {
			return nil, false
		}
		return s.Data, true
	}
	for _, c := range in.ConfigMaps {
		if c != nil && c.Namespace == key.namespace && c.Name == key.name {
			data := map[string][]byte{}
			for k, v := range c.Data {
				data[k] = []byte(v)
			}
			for k, v := range c.BinaryData {
				data[k] = v
			}
			return data, true
		}
	}
	return nil, false
}

func (in *input) secret(key name) *corev1.Secret {
	for _, s := range in.Secrets {
		if s != nil && s.Namespace == key.namespace && s.Name == key.name {
			return s
		}
	}
	return nil
}

// warning says what will fail though all of it can be read; "" when nothing is known to.
func (t *backendTLS) warning(now time.Time) string {
	switch {
	case now.IsZero():
	case !t.until.IsZero() && now.After(t.until):
		return fmt.Sprintf("the last of the CA certificates expired on %s: no member can be verified", t.until.UTC().Format(time.DateOnly))
	case t.client != nil:
		return t.client.warning(now)
	}
	return ""
}
