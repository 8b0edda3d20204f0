package lb

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Secret is one Barbican secret. Its payload never changes after it was stored, so its Key is made of the content: another
// certificate is another secret. A wanted secret has a payload, an observed one has an id and a reference.
type Secret struct {
	// ID is the last element of Ref.
	ID string `json:"id,omitempty"`
	// Key is CertificateKey or ClientCAKey of the payload.
	Key string `json:"key"`
	// Name carries the ownership mark: Barbican has nothing else.
	Name string `json:"name,omitempty"`
	// Ref is the href by which Octavia takes the secret.
	Ref string `json:"ref,omitempty"`
	// Certificate is what HAProxy presents to clients or members, ClientCA what it accepts from them: a wanted secret has one of the two.
	Certificate *Certificate `json:"certificate,omitempty"`
	ClientCA    *ClientCA    `json:"clientCA,omitempty"`
}

// Certificate is a server certificate with its key, all DER.
type Certificate struct {
	Leaf []byte `json:"-"`
	// Chain is in issuing order, the issuer of Leaf first.
	Chain [][]byte `json:"-"`
	// PrivateKey is PKCS#8.
	PrivateKey PrivateKey `json:"privateKey"`
	// Names are those by which HAProxy finds the certificate: the DNS names and the common names in it, lower case, sorted.
	Names []string `json:"names"`
	// Algorithm is the kind of the key, RSA or ECDSA: HAProxy keeps one certificate of each for a name.
	Algorithm string `json:"algorithm"`
}

// ClientCA is a set of CA certificates, DER.
type ClientCA struct {
	Certificates [][]byte `json:"-"`
}

// Format tells of which names a certificate is, whatever the verb, and nothing of its content.
func (c Certificate) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%s certificate of %s %s}", c.Algorithm, strings.Join(c.Names, ","), redacted)
}

// Format tells how many CA certificates there are, whatever the verb.
func (c ClientCA) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%d CA certificates %s}", len(c.Certificates), redacted)
}

// Prefixes of the keys of secrets.
const (
	certificateKeyPrefix = "tls-"
	clientCAKeyPrefix    = "ca-"
)

// CertificateKey is the content address of a certificate: equal keys mean the same leaf, chain and private key.
func CertificateKey(c *Certificate) string {
	return certificateKeyPrefix + contentAddress(append([][]byte{c.Leaf, c.PrivateKey.Reveal()}, c.Chain...))
}

// ClientCAKey is the content address of a set of CA certificates.
func ClientCAKey(c *ClientCA) string { return clientCAKeyPrefix + contentAddress(c.Certificates) }

// IsCertificateKey says whether a key is a CertificateKey.
func IsCertificateKey(key string) bool { return strings.HasPrefix(key, certificateKeyPrefix) }

// IsClientCAKey says whether a key is a ClientCAKey.
func IsClientCAKey(key string) bool { return strings.HasPrefix(key, clientCAKeyPrefix) }

// contentAddress is 96 bits of a hash over all parts, each with its length.
func contentAddress(parts [][]byte) string {
	h := sha256.New()
	for _, p := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// PrivateKey is a private key that no print, log or document shows. It is behind a pointer because package fmt does not ask values below
// a pointer how to print them when the verb does not fit; a nested pointer is printed as an address.
type PrivateKey struct{ der *[]byte }

// NewPrivateKey hides a PKCS#8 key.
func NewPrivateKey(pkcs8 []byte) PrivateKey { return PrivateKey{der: &pkcs8} }

// Reveal returns the PKCS#8 key, for the one place that stores it.
func (k PrivateKey) Reveal() []byte {
	if k.der == nil {
		return nil
	}
	return *k.der
}

const redacted = "[redacted]"

// String hides the key.
func (k PrivateKey) String() string { return redacted }

// GoString hides the key from %#v.
func (k PrivateKey) GoString() string { return redacted }

// Format hides the key from every verb, also from %x and %d.
func (k PrivateKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the key from encoders.
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the key from JSON, and so from YAML.
func (k PrivateKey) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// SecretByKey finds a secret; nil when there is none.
func (t *Tree) SecretByKey(key string) *Secret {
	for i := range t.Secrets {
		if t.Secrets[i].Key == key {
			return &t.Secrets[i]
		}
	}
	return nil
}

// Secrets are the keys of the secrets that a pool refers to.
func (t *PoolTLS) Secrets() []string {
	if t == nil {
		return nil
	}
	var keys []string
	for _, key := range []string{t.CA, t.Certificate} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// Secrets are the keys of the secrets that a listener refers to.
func (t *ListenerTLS) Secrets() []string {
	if t == nil {
		return nil
	}
	var keys []string
	for _, key := range append([]string{t.Default, t.ClientCA}, t.SNI...) {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
