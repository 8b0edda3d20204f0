package scenario

import (
	"context"
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
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificate makes or renews a Secret of type kubernetes.io/tls with a new key and a new self-signed certificate.
func certificate(ctx context.Context, w *world, c *command) (string, error) {
	namespace, name, ok := strings.Cut(c.arg(0), "/")
	if !ok {
		return "", fmt.Errorf("certificate: %q is not NAMESPACE/NAME", c.arg(0))
	}
	signer, err := newKey(c.option("key"))
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: strings.Split(c.option("names"), ","),
		NotBefore: w.clock.Now().Add(-time.Hour), NotAfter: w.clock.Now().AddDate(0, 3, 0),
	}
	issued, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return "", fmt.Errorf("certificate: %w", err)
	}
	if c.option("fault") == "mismatched" {
		if signer, err = newKey(""); err != nil {
			return "", err
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return "", fmt.Errorf("certificate: %w", err)
	}
	verb, err := w.kube.put(ctx, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		},
	})
	return "secret/" + namespace + "/" + name + " " + verb, err
}

// authority makes or renews a ConfigMap with a new CA under ca.crt.
func authority(ctx context.Context, w *world, c *command) (string, error) {
	namespace, name, ok := strings.Cut(c.arg(0), "/")
	if !ok {
		return "", fmt.Errorf("authority: %q is not NAMESPACE/NAME", c.arg(0))
	}
	signer, err := newKey("")
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: w.clock.Now().Add(-time.Hour), NotAfter: w.clock.Now().AddDate(1, 0, 0),
	}
	issued, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return "", fmt.Errorf("authority: %w", err)
	}
	verb, err := w.kube.put(ctx, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued}))},
	})
	return "configmap/" + namespace + "/" + name + " " + verb, err
}

func newKey(kind string) (crypto.Signer, error) {
	var key crypto.Signer
	var err error
	if kind == "RSA" {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// contentAddress is in the names of Barbican secrets, and different in each run.
var contentAddress = regexp.MustCompile(`\b(tls|ca)-[0-9a-f]{24}\b`)
