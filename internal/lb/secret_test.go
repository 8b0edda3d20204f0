package lb_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// No way to print a tree shows a private key.
func TestPrivateKey_isNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = "0123-top-secret-key"
	certificate := &lb.Certificate{Leaf: []byte(secret + "leaf"), Chain: [][]byte{[]byte(secret)}, PrivateKey: lb.NewPrivateKey([]byte(secret)), Names: []string{"a.test"}, Algorithm: "RSA"}
	tree := lb.Tree{Secrets: []lb.Secret{{Key: lb.CertificateKey(certificate), Certificate: certificate}, {Key: "ca", ClientCA: &lb.ClientCA{Certificates: [][]byte{[]byte(secret)}}}}}
	forms := []string{"top-secret", fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%d", []byte(secret)), fmt.Sprintf("%#v", []byte(secret))[7:30], "MDEyMy10b3At"}
	for _, value := range []any{certificate.PrivateKey, &certificate.PrivateKey, *certificate, certificate, tree, &tree, tree.Secrets, []lb.PrivateKey{certificate.PrivateKey}} {
		var texts []string
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
		j, err := json.Marshal(value)
		y, err2 := yaml.Marshal(value)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(j), string(y), fmt.Sprint(value), fmt.Sprintln(value), fmt.Errorf("failed: %v", value).Error())
		for _, text := range texts {
			for _, form := range forms {
				if strings.Contains(text, form) {
					t.Errorf("%T shows the key: %s", value, text)
				}
			}
		}
	}
	if got := fmt.Sprint(certificate.PrivateKey); got != "[redacted]" {
		t.Errorf("got %q", got)
	}
}

func TestCertificateKey_isOfTheWholeContent(t *testing.T) {
	t.Parallel()
	base := lb.Certificate{Leaf: []byte("leaf"), Chain: [][]byte{[]byte("ab"), []byte("c")}, PrivateKey: lb.NewPrivateKey([]byte("key"))}
	seen := map[string]string{lb.CertificateKey(&base): "the first"}
	for name, change := range map[string]func(*lb.Certificate){
		"another leaf":        func(c *lb.Certificate) { c.Leaf = []byte("leaf2") },
		"another key":         func(c *lb.Certificate) { c.PrivateKey = lb.NewPrivateKey([]byte("key2")) },
		"another chain":       func(c *lb.Certificate) { c.Chain = [][]byte{[]byte("a"), []byte("bc")} },
		"another order":       func(c *lb.Certificate) { c.Chain = [][]byte{[]byte("c"), []byte("ab")} },
		"no chain":            func(c *lb.Certificate) { c.Chain = nil },
		"key and leaf change": func(c *lb.Certificate) { c.Leaf, c.PrivateKey = []byte("key"), lb.NewPrivateKey([]byte("leaf")) },
	} {
		changed := base
		change(&changed)
		key := lb.CertificateKey(&changed)
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
	same := base
	same.Names = []string{"x"}
	if lb.CertificateKey(&same) != lb.CertificateKey(&base) {
		t.Error("what is read out of the certificate changes its key")
	}
}

func TestOwner_provesSecretsByName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := owners(t)
		key := "tls-0123456789abcdef01234567"
		name := o.SecretName(key)
		if n := utf8.RuneCountInString(name); n > lb.MaxLength {
			t.Fatalf("%d characters: %q", n, name)
		}
		if got, ok := o.SecretKeyFromName(name); !ok || got != key {
			t.Fatalf("%q reads back as %q, %v", name, got, ok)
		}
		other := o
		other.UID = "0" + o.UID[1:]
		if other.UID != o.UID {
			if _, ok := other.SecretKeyFromName(name); ok {
				t.Fatal("another Gateway owns it")
			}
		}
		other = o
		other.Controller += "2"
		if _, ok := other.SecretKeyFromName(name); ok {
			t.Fatal("another controller owns it")
		}
	})
	o := lb.Owner{ClusterID: "blue", Controller: "example.com/c", Namespace: "infra", Name: "edge", UID: "u-1"}
	for _, name := range []string{"", "edge", o.SecretNamePrefix(), o.Mark(), "x" + o.SecretName("tls-1"), strings.Replace(o.SecretName("tls-1"), "/1=", "/2=", 1)} {
		if key, ok := o.SecretKeyFromName(name); ok {
			t.Errorf("%q proves %q", name, key)
		}
	}
}
