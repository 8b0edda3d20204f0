package compile

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// certificate is what a Secret holds, checked as HAProxy and Octavia would: one that they do not take leaves the whole port without
// TLS, so it must not get there.
type certificate struct {
	lb.Certificate
	// key is its content address.
	key string
	// secret is where it was found, for people.
	secret              name
	notBefore, notAfter time.Time
}

const (
	// maxSecretBytes is what Barbican takes of a payload by default, 20,000 characters in base64, less what PKCS#12 adds.
	maxSecretBytes = 14000
	// minRSABits is what OpenSSL takes at the security level of current distributions.
	minRSABits = 2048
)

// readCertificate reads a Secret of type kubernetes.io/tls, or an Opaque one with the same keys. Errors never quote what is in it.
func readCertificate(s *corev1.Secret) (*certificate, error) {
	if s.Type != corev1.SecretTypeTLS && s.Type != corev1.SecretTypeOpaque && s.Type != "" {
		return nil, fmt.Errorf("its type is neither %s nor %s", corev1.SecretTypeTLS, corev1.SecretTypeOpaque)
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(bytes.TrimSpace(s.Data[key])) == 0 {
			return nil, fmt.Errorf("it has no %s", key)
		}
	}
	chain, err := readCertificates(s.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s %w", corev1.TLSCertKey, err)
	}
	// Before anything that takes time in proportion to it.
	size := len(s.Data[corev1.TLSPrivateKeyKey]) / 2
	for _, x := range chain {
		size += len(x.Raw)
	}
	if size > maxSecretBytes {
		return nil, fmt.Errorf("it is too large: Barbican takes %d bytes of certificates and key", maxSecretBytes)
	}
	key, err := readPrivateKey(s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s %w", corev1.TLSPrivateKeyKey, err)
	}
	if chain, err = orderChain(chain, key); err != nil {
		return nil, err
	}
	leaf := chain[0]
	c := &certificate{secret: name{s.Namespace, s.Name}, notBefore: leaf.NotBefore, notAfter: leaf.NotAfter}
	if c.Names = namesIn(leaf); len(c.Names) == 0 {
		return nil, errors.New("the certificate has neither a DNS name nor a common name, which Octavia requires")
	}
	for _, x := range chain {
		if weak(x) {
			return nil, errors.New("a certificate in it is signed with SHA-1 or MD5, which HAProxy refuses to load")
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("the private key cannot be encoded")
	}
	c.Leaf, c.PrivateKey, c.Algorithm = leaf.Raw, lb.NewPrivateKey(der), "RSA"
	if _, ok := key.(*ecdsa.PrivateKey); ok {
		c.Algorithm = "ECDSA"
	}
	for _, x := range chain[1:] {
		c.Chain = append(c.Chain, x.Raw)
	}
	c.key = lb.CertificateKey(&c.Certificate)
	return c, nil
}

// warning says what is wrong with a certificate that is served all the same; "" when nothing is. A server presents what it has: an
// expired certificate is better than none.
func (c *certificate) warning(now time.Time) string {
	switch {
	case now.IsZero():
	case now.After(c.notAfter):
		return fmt.Sprintf("the certificate of Secret %s expired on %s", c.secret, c.notAfter.UTC().Format(time.DateOnly))
	case now.Before(c.notBefore):
		return fmt.Sprintf("the certificate of Secret %s is not valid before %s", c.secret, c.notBefore.UTC().Format(time.DateOnly))
	}
	return ""
}

const certificateBlock = "CERTIFICATE"

// blocks finds PEM blocks in text with anything around them, also without a line break between two blocks.
func blocks(text []byte) []*pem.Block {
	text = bytes.ReplaceAll(text, []byte("-----BEGIN "), []byte("\n-----BEGIN "))
	var all []*pem.Block
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return all
		}
		all, text = append(all, block), rest
	}
}

// readCertificates reads all certificates in text, each once. One that cannot be read is an error: without it the chain would be broken.
func readCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	found := 0
	for _, b := range blocks(text) {
		if b.Type != certificateBlock {
			continue
		}
		found++
		x, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate that cannot be parsed (number %d)", found)
		}
		if !slices.ContainsFunc(all, x.Equal) {
			all = append(all, x)
		}
	}
	switch begun := bytes.Count(text, []byte("-----BEGIN "+certificateBlock+"-----")); {
	case begun == 0:
		return nil, errors.New("has no certificate in PEM form")
	case begun != found:
		return nil, fmt.Errorf("begins %d certificates, of which %d can be read", begun, found)
	}
	return all, nil
}

// readPrivateKey reads the one private key in text: PKCS#8, PKCS#1 or SEC1, which may have its parameters before it.
func readPrivateKey(text []byte) (crypto.Signer, error) {
	var keys []crypto.Signer
	for _, b := range blocks(text) {
		var parsed any
		var err error
		switch b.Type {
		case "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(b.Bytes)
		case "RSA PRIVATE KEY":
			parsed, err = x509.ParsePKCS1PrivateKey(b.Bytes)
		case "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(b.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("is encrypted: it must be stored without a password")
		default:
			continue
		}
		if b.Headers["DEK-Info"] != "" {
			return nil, errors.New("is encrypted: it must be stored without a password")
		}
		if err != nil {
			return nil, errors.New("cannot be parsed as a private key")
		}
		switch key := parsed.(type) {
		case *rsa.PrivateKey:
			if key.N.BitLen() < minRSABits {
				return nil, fmt.Errorf("is an RSA key of %d bits; HAProxy takes %d and more", key.N.BitLen(), minRSABits)
			}
			keys = append(keys, key)
		case *ecdsa.PrivateKey:
			if key.Curve == elliptic.P224() {
				return nil, errors.New("is an ECDSA key on P-224, which TLS 1.3 does not have: use P-256, P-384 or P-521")
			}
			keys = append(keys, key)
		default:
			return nil, errors.New("is neither an RSA nor an ECDSA key")
		}
	}
	switch len(keys) {
	case 1:
		return keys[0], nil
	case 0:
		return nil, errors.New("has no private key in PEM form")
	}
	return nil, errors.New("has several private keys")
}

// orderChain puts the certificate of the key first, then its issuer, and so on. What issued none of them keeps its place at the end: a
// client ignores what it does not need.
func orderChain(all []*x509.Certificate, key crypto.Signer) ([]*x509.Certificate, error) {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	at := -1
	if ok {
		at = slices.IndexFunc(all, func(x *x509.Certificate) bool { return public.Equal(x.PublicKey) })
	}
	if at < 0 {
		return nil, fmt.Errorf("%s does not belong to a certificate in %s", corev1.TLSPrivateKeyKey, corev1.TLSCertKey)
	}
	ordered := []*x509.Certificate{all[at]}
	rest := slices.Delete(slices.Clone(all), at, at+1)
	for {
		last := ordered[len(ordered)-1]
		at = slices.IndexFunc(rest, func(x *x509.Certificate) bool {
			return bytes.Equal(x.RawSubject, last.RawIssuer) && last.CheckSignatureFrom(x) == nil
		})
		if at < 0 {
			return append(ordered, rest...), nil
		}
		ordered = append(ordered, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
}

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// namesIn are the names by which HAProxy finds a certificate: it reads the DNS names and, whether there are any or not, the common
// names.
func namesIn(x *x509.Certificate) []string {
	var names []string
	for _, n := range x.DNSNames {
		names = append(names, strings.ToLower(n))
	}
	for _, a := range x.Subject.Names {
		if text, ok := a.Value.(string); ok && a.Type.Equal(commonName) {
			names = append(names, strings.ToLower(text))
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// weak says whether the signature of a certificate is too weak for OpenSSL. Nobody checks that of a self-signed one.
func weak(x *x509.Certificate) bool {
	switch x.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return !bytes.Equal(x.RawSubject, x.RawIssuer)
	}
	return false
}
