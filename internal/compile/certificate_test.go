package compile

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
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
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuer is a CA of these tests; its zero value signs with the subject's own key.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (i issuer) issue(t *testing.T, key crypto.Signer, template x509.Certificate) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(7)
	template.NotBefore, template.NotAfter = time.Unix(0, 0), time.Unix(1<<33, 0)
	parent, signer := &template, key
	if i.certificate != nil {
		parent, signer = i.certificate, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (i issuer) below(t *testing.T, name string) issuer {
	t.Helper()
	key := ecKey(t)
	return issuer{i.issue(t, key, x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}), key}
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pems(all ...*x509.Certificate) []byte {
	var text []byte
	for _, x := range all {
		text = append(text, block("CERTIFICATE", x.Raw, nil)...)
	}
	return text
}

func secretOf(certificate, key []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "site"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}}
}

// Every form of key and any framing of PEM that a TLS server would take.
func TestReadCertificate_takesEveryFormOfKeyAndFraming(t *testing.T) {
	t.Parallel()
	rsaPrivate, ecPrivate := rsaKey(t, 2048), ecKey(t)
	rsaDER, err := x509.MarshalPKCS8PrivateKey(rsaPrivate)
	ecDER, err2 := x509.MarshalPKCS8PrivateKey(ecPrivate)
	sec1, err3 := x509.MarshalECPrivateKey(ecPrivate)
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	// "openssl ecparam -genkey" writes the name of the curve before the key.
	parameters := block("EC PARAMETERS", []byte{0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}, nil)
	keys := []struct {
		name   string
		signer crypto.Signer
		text   []byte
	}{
		{"RSA in PKCS#8", rsaPrivate, block("PRIVATE KEY", rsaDER, nil)},
		{"RSA in PKCS#1", rsaPrivate, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaPrivate), nil)},
		{"EC in PKCS#8", ecPrivate, block("PRIVATE KEY", ecDER, nil)},
		{"EC in SEC1", ecPrivate, block("EC PRIVATE KEY", sec1, nil)},
		{"EC with its parameters", ecPrivate, append(parameters, block("EC PRIVATE KEY", sec1, nil)...)},
	}
	framings := map[string]func([]byte) []byte{
		"as it is":           func(b []byte) []byte { return b },
		"CRLF":               func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"no newline at end":  func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
		"trailing blanks":    func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(" \t\n")) },
		"text around":        func(b []byte) []byte { return slices.Concat([]byte("subject=CN = x\n\n"), b, []byte("\nthe end\n")) },
		"byte order mark":    func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		"blank lines":        func(b []byte) []byte { return slices.Concat([]byte("\n\n"), b, []byte("\n\n \n")) },
		"no break in middle": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("-----\n-----"), []byte("----------")) },
	}
	for _, k := range keys {
		issued := issuer{}.below(t, "ca").issue(t, k.signer, x509.Certificate{DNSNames: []string{"Site.test", "*.site.test"}})
		want := ""
		for name, frame := range framings {
			s := secretOf(frame(append(pems(issued), pems(issuer{}.below(t, "ca").certificate)...)), frame(k.text))
			c, err := readCertificate(s)
			if err != nil {
				t.Errorf("%s, %s: %v", k.name, name, err)
				continue
			}
			// The chain is another CA each time; the rest is always the same.
			c.Chain = nil
			if got := fmt.Sprintf("%x %x %s %v", c.Leaf, c.PrivateKey.Reveal(), c.Algorithm, c.Names); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s, %s: not the same certificate", k.name, name)
			}
			if !slices.Equal(c.Names, []string{"*.site.test", "site.test"}) {
				t.Errorf("names %q", c.Names)
			}
		}
	}
	opaque := secretOf(pems(issuer{}.issue(t, ecPrivate, x509.Certificate{DNSNames: []string{"a.test"}})), keys[3].text)
	opaque.Type = corev1.SecretTypeOpaque
	if _, err := readCertificate(opaque); err != nil {
		t.Errorf("an Opaque Secret: %v", err)
	}
}

// The leaf first, then the issuers, whatever the order in the Secret; nothing is lost or doubled.
func TestReadCertificate_ordersTheChain(t *testing.T) {
	t.Parallel()
	root := issuer{}.below(t, "root")
	first := root.below(t, "first")
	second := first.below(t, "second")
	key := ecKey(t)
	leaf := second.issue(t, key, x509.Certificate{DNSNames: []string{"site.test"}})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	text := block("PRIVATE KEY", der, err)
	stranger := issuer{}.below(t, "stranger").certificate
	want := [][]byte{second.certificate.Raw, first.certificate.Raw}
	content := ""
	for name, order := range map[string][]*x509.Certificate{
		"right":     {leaf, second.certificate, first.certificate},
		"reversed":  {first.certificate, second.certificate, leaf},
		"mixed":     {second.certificate, leaf, first.certificate},
		"repeated":  {leaf, leaf, second.certificate, first.certificate, second.certificate},
		"with root": {leaf, root.certificate, first.certificate, second.certificate},
		"with more": {stranger, leaf, second.certificate, first.certificate},
	} {
		c, err := readCertificate(secretOf(pems(order...), text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(c.Leaf, leaf.Raw) || len(c.Chain) < 2 || !bytes.Equal(c.Chain[0], want[0]) || !bytes.Equal(c.Chain[1], want[1]) {
			t.Errorf("%s: the chain is not in issuing order", name)
		}
		switch name {
		case "with root", "with more":
			if len(c.Chain) != 3 {
				t.Errorf("%s: %d certificates in the chain", name, len(c.Chain))
			}
		default:
			if content == "" {
				content = c.key
			}
			if c.key != content || len(c.Chain) != 2 {
				t.Errorf("%s: is stored as another secret", name)
			}
		}
	}
}

func TestReadCertificate_saysWhatIsWrong(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	good, leaf := block("PRIVATE KEY", der, err), issuer{}.issue(t, key, x509.Certificate{DNSNames: []string{"a.test"}})
	_, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	edDER, err2 := x509.MarshalPKCS8PrivateKey(edPrivate)
	otherDER, err3 := x509.MarshalPKCS8PrivateKey(ecKey(t))
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	small := rsaKey(t, 1024)
	old, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	oldDER, err2 := x509.MarshalECPrivateKey(old)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	var many []*x509.Certificate
	for range 60 {
		many = append(many, issuer{}.below(t, "one of many").certificate)
	}
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: []byte{1}})
	marker := []byte("leak-me-not")
	for name, c := range map[string]struct {
		certificate, key []byte
		want             string
	}{
		"nothing":               {nil, good, "no tls.crt"},
		"blanks":                {pems(leaf), []byte(" \n"), "no tls.key"},
		"no PEM":                {marker, good, "no certificate in PEM form"},
		"key in its place":      {good, good, "no certificate in PEM form"},
		"certificate as key":    {pems(leaf), pems(leaf), "no private key in PEM form"},
		"key of another":        {pems(leaf), block("PRIVATE KEY", otherDER, nil), "does not belong"},
		"garbled certificate":   {block("CERTIFICATE", marker, nil), good, "cannot be parsed (number 1)"},
		"garbled intermediate":  {append(pems(leaf), block("CERTIFICATE", marker, nil)...), good, "cannot be parsed (number 2)"},
		"unreadable block":      {append(pems(leaf), "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"...), good, "of which 1 can be read"},
		"cut off":               {append(pems(leaf), pems(leaf)[:100]...), good, "of which 1 can be read"},
		"garbled key":           {pems(leaf), block("PRIVATE KEY", marker, nil), "cannot be parsed as a private key"},
		"encrypted PKCS#8":      {pems(leaf), block("ENCRYPTED PRIVATE KEY", marker, nil), "without a password"},
		"encrypted PKCS#1":      {pems(leaf), encrypted, "without a password"},
		"two keys":              {pems(leaf), append(slices.Clone(good), block("PRIVATE KEY", otherDER, nil)...), "several private keys"},
		"Ed25519":               {pems(leaf), block("PRIVATE KEY", edDER, nil), "neither an RSA nor an ECDSA key"},
		"P-224":                 {pems(issuer{}.issue(t, old, x509.Certificate{DNSNames: []string{"a.test"}})), block("EC PRIVATE KEY", oldDER, nil), "on P-224"},
		"small RSA":             {pems(issuer{}.issue(t, small, x509.Certificate{DNSNames: []string{"a.test"}})), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small), nil), "1024 bits"},
		"nameless":              {pems(issuer{}.issue(t, key, x509.Certificate{Subject: pkix.Name{Organization: []string{"x"}}})), good, "neither a DNS name nor a common name"},
		"larger than Barbican":  {pems(append(many, leaf)...), good, "too large"},
		"a large key":           {pems(leaf), append(slices.Clone(good), bytes.Repeat([]byte("#\n"), 50000)...), "too large"},
		"common name alone (+)": {pems(issuer{}.issue(t, key, x509.Certificate{Subject: pkix.Name{CommonName: "A.test"}})), good, ""},
	} {
		_, err := readCertificate(secretOf(c.certificate, c.key))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		case err != nil && (bytes.Contains([]byte(err.Error()), marker) || len(err.Error()) > 200):
			t.Errorf("%s: the error quotes the Secret: %v", name, err)
		}
	}
}

func TestWeak_refusesWhatOpenSSLRefuses(t *testing.T) {
	t.Parallel()
	x := &x509.Certificate{RawSubject: []byte("a"), RawIssuer: []byte("b")}
	for algorithm, want := range map[x509.SignatureAlgorithm]bool{
		x509.SHA1WithRSA: true, x509.MD5WithRSA: true, x509.ECDSAWithSHA1: true, x509.SHA256WithRSA: false, x509.ECDSAWithSHA256: false,
	} {
		x.SignatureAlgorithm = algorithm
		if weak(x) != want {
			t.Errorf("%v: %v", algorithm, !want)
		}
	}
	x.SignatureAlgorithm, x.RawIssuer = x509.SHA1WithRSA, x.RawSubject
	if weak(x) {
		t.Error("the signature of a self-signed certificate is looked at")
	}
}
