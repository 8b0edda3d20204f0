package compile_test

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// certificatesMade is when the certificates of tests were made, and the time of snapshots.
var certificatesMade = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// rsaKey is made once: that takes a tenth of a second and more.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newECDSA() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// authority issues certificates; a nil one signs them with their own keys.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// issue makes a certificate; change edits the template.
func (a *authority) issue(key crypto.Signer, change func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: certificatesMade.AddDate(0, 0, -1), NotAfter: certificatesMade.AddDate(0, 3, 0)}
	change(template)
	parent, signer := template, key
	if a != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		panic(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return made
}

func pemOf(blockType string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der})
}

func pkcs8(key crypto.Signer) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return pemOf("PRIVATE KEY", der)
}

func chainOf(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, x := range certificates {
		text = append(text, pemOf("CERTIFICATE", x.Raw)...)
	}
	return text
}

// certificateDocument is a certificate in a golden case. Secrets with equal content must be one document with one name.
type certificateDocument struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Names are DNS names, CommonName is alone.
	Names      []string `json:"names"`
	CommonName string   `json:"commonName"`
	// Algorithm is ECDSA unless it is RSA.
	Algorithm string `json:"algorithm"`
	// Keys of a CA are where the ConfigMap has it.
	Keys keys `json:"keys"`
	// Fault spoils it: mismatched, garbled, expired, type.
	Fault string `json:"fault"`
}

func (d certificateDocument) secret(t testing.TB) *corev1.Secret {
	t.Helper()
	var key crypto.Signer = newECDSA()
	if d.Algorithm == "RSA" {
		key = rsaKey()
	}
	issued := (*authority)(nil).issue(key, func(x *x509.Certificate) {
		x.DNSNames, x.Subject.CommonName = d.Names, d.CommonName
		if d.Fault == "expired" {
			x.NotAfter = certificatesMade.Add(-time.Hour)
		}
	})
	s := tlsSecret(chainOf(issued), pkcs8(key))
	s.Namespace, s.Name = d.Namespace, d.Name
	switch d.Fault {
	case "", "expired":
	case "mismatched":
		s.Data[corev1.TLSPrivateKeyKey] = pkcs8(newECDSA())
	case "garbled":
		s.Data[corev1.TLSCertKey] = bytes.ReplaceAll(s.Data[corev1.TLSCertKey], []byte("A"), []byte("!"))
	case "type":
		s.Type = corev1.SecretTypeDockercfg
	default:
		t.Fatalf("unknown fault %q", d.Fault)
	}
	return s
}

func (d certificateDocument) configMap(t testing.TB) *corev1.ConfigMap {
	t.Helper()
	key := newECDSA()
	ca := (*authority)(nil).issue(key, func(x *x509.Certificate) {
		x.Subject, x.IsCA, x.BasicConstraintsValid, x.KeyUsage = pkix.Name{CommonName: d.Name}, true, true, x509.KeyUsageCertSign
		if d.Fault == "expired" {
			x.NotAfter = certificatesMade.Add(-time.Hour)
		}
	})
	text := string(chainOf(ca))
	switch d.Fault {
	case "", "expired":
	case "garbled":
		text = strings.ReplaceAll(text, "A", "!")
	default:
		t.Fatalf("unknown fault %q", d.Fault)
	}
	out := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Data: map[string]string{"README": "no certificate"}}
	for _, key := range cmp.Or(d.Keys, "ca.crt").list() {
		out.Data[key] = text
	}
	return out
}

// keys is a list with commas.
type keys string

func (k keys) list() []string { return strings.Split(string(k), ",") }

func tlsSecret(certificate, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "site"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}
}

// nameSecrets replaces the content addresses in a tree, which differ in each run, by what is in the secrets.
func nameSecrets(tree *lb.Tree) {
	readable := map[string]string{"": ""}
	for i := range tree.Secrets {
		s := &tree.Secrets[i]
		name := ""
		if c := s.Certificate; c != nil {
			name = fmt.Sprintf("tls(%s %s)", c.Algorithm, strings.Join(c.Names, " "))
		} else {
			name = fmt.Sprintf("ca(%d)", len(s.ClientCA.Certificates))
		}
		readable[s.Key] = name
		s.Key, s.Name = name, ""
	}
	slices.SortFunc(tree.Secrets, func(a, b lb.Secret) int { return cmp.Compare(a.Key, b.Key) })
	for i := range tree.Listeners {
		if tls := tree.Listeners[i].TLS; tls != nil {
			tls.Default, tls.ClientCA = readable[tls.Default], readable[tls.ClientCA]
			for j := range tls.SNI {
				tls.SNI[j] = readable[tls.SNI[j]]
			}
			slices.Sort(tls.SNI)
		}
	}
	for i := range tree.Pools {
		if tls := tree.Pools[i].TLS; tls != nil {
			tls.CA, tls.Certificate = readable[tls.CA], readable[tls.Certificate]
		}
	}
}
