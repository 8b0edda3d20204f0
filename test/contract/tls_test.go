package contract

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// rsaBundle is a PKCS#12 bundle with an RSA key.
func rsaBundle(t *testing.T, name string) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := pkcs12.Passwordless.Encode(key, cert, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestTLS_takesCiphersAndHSTS(t *testing.T) {
	c := begin(t)
	bundle := c.secret(binary("contract-options", newPair(t, "options.example").pkcs12))
	id := str(c.create(o{"name": "contract-options"}), "id")
	listener := func(more o) o {
		out := o{"name": "tls", "protocol": "TERMINATED_HTTPS", "protocol_port": 443, "loadbalancer_id": id, "default_tls_container_ref": bundle}
		for k, v := range more {
			out[k] = v
		}
		return o{"listener": out}
	}
	c.refused(400, "Validation failure: Invalid characters in cipher string. Only alphanumeric, -, +, !, :, @, =, _, and . are allowed.", "POST", "/lb/listeners", listener(o{"tls_ciphers": "A B"}))
	c.refused(400, "~tls_ciphers", "POST", "/lb/listeners", listener(o{"tls_ciphers": long(2049)}))
	c.refused(400, "~hsts_max_age", "POST", "/lb/listeners", listener(o{"hsts_max_age": -1}))
	doc := c.write(id, 201, "POST", "/lb/listeners", listener(o{"tls_ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384", "hsts_max_age": 60, "hsts_include_subdomains": true, "hsts_preload": true}))
	web := str(doc, "listener", "id")
	settings := func(doc o) l {
		return l{dig(doc, "listener", "tls_ciphers"), dig(doc, "listener", "hsts_max_age"), dig(doc, "listener", "hsts_include_subdomains"), dig(doc, "listener", "hsts_preload")}
	}
	equal(t, "as they were given", settings(doc), l{"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384", 60, true, true})
	doc = c.write(id, 200, "PUT", "/lb/listeners/"+web, o{"listener": o{"tls_ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384", "hsts_max_age": 2147483647, "hsts_include_subdomains": false, "hsts_preload": false}})
	equal(t, "changed", settings(doc), l{"ECDHE-ECDSA-AES256-GCM-SHA384", 2147483647, false, false})
	doc = c.write(id, 200, "PUT", "/lb/listeners/"+web, o{"listener": o{"hsts_max_age": nil, "hsts_include_subdomains": nil, "hsts_preload": nil}})
	equal(t, "null ends HSTS", settings(doc), l{"ECDHE-ECDSA-AES256-GCM-SHA384", nil, false, false})
}

// What a listener's options mean for clients: ciphers are those of TLS 1.2, and Octavia's own default has none for ECDSA there.
func TestDataPlane_servesTLSOptions(t *testing.T) {
	c := beginForwarding(t)
	ec, rsaRef := c.secret(binary("contract-ec", newPair(t, "ec.example").pkcs12)), c.secret(binary("contract-rsa", rsaBundle(t, "rsa.example")))
	a := c.backend("a")
	port := 8440
	listener := func(name string, more o) o {
		port++
		out := o{"name": name, "protocol": "TERMINATED_HTTPS", "protocol_port": port, "default_tls_container_ref": ec, "default_pool": o{"name": "a"}}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	lb := c.create(o{"name": "contract-tls-options", "pools": l{pool("a", a)}, "listeners": l{
		listener("standard", nil),
		listener("ciphers", o{"tls_ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "sni_container_refs": l{rsaRef}}),
		listener("old", o{"tls_versions": l{"TLSv1", "TLSv1.1", "TLSv1.2"}, "tls_ciphers": "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA"}),
		listener("new", o{"tls_versions": l{"TLSv1.3"}}),
		listener("hsts", o{"hsts_max_age": 0, "hsts_include_subdomains": true, "l7policies": l{policy("REDIRECT_PREFIX", o{"redirect_prefix": "https://x.example"}, rule("PATH", "STARTS_WITH", "/away"))}}),
	}})
	vip := str(lb, "vip_address")
	for p := 8441; p <= port; p++ {
		c.reach(fmt.Sprintf("%s:%d", vip, p))
	}
	try := func(port int, path string, min, max uint16, suites ...uint16) (answer, error) {
		cfg := &tls.Config{InsecureSkipVerify: true, ServerName: "rsa.example", MinVersion: min, MaxVersion: max, CipherSuites: suites}
		got, err := ask(t.Context(), &http.Client{Timeout: 10 * time.Second, CheckRedirect: noRedirects.CheckRedirect,
			Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}, fmt.Sprintf("https://%s:%d%s", vip, port, path))
		return got, err
	}
	for _, tc := range []struct {
		quirk    string
		port     int
		min, max uint16
		suites   []uint16
		works    bool
	}{
		{"Octavia's default has no cipher for ECDSA in TLS 1.2", 8441, tls.VersionTLS12, tls.VersionTLS12, nil, false},
		{"it does not matter in TLS 1.3", 8441, tls.VersionTLS13, tls.VersionTLS13, nil, true},
		{"a named cipher", 8442, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, true},
		{"one that is not named", 8442, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, false},
		{"a named one for a server with another kind of key", 8442, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, true},
		{"the list says nothing about TLS 1.3", 8442, tls.VersionTLS13, tls.VersionTLS13, nil, true},
		{"TLS 1.1 is taken and never served", 8443, tls.VersionTLS10, tls.VersionTLS11, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}, false},
		{"but TLS 1.2 beside it, with an old cipher", 8443, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}, true},
		{"a version that is not named", 8444, tls.VersionTLS12, tls.VersionTLS12, nil, false},
		{"one that is", 8444, tls.VersionTLS13, tls.VersionTLS13, nil, true},
	} {
		got, err := try(tc.port, "/", tc.min, tc.max, tc.suites...)
		if tc.works != (err == nil && got.status == 200) {
			t.Errorf("%s: %d %v", tc.quirk, got.status, err)
		}
	}
	if got, err := try(8445, "/", tls.VersionTLS12, tls.VersionTLS13); err != nil || got.header.Get("Strict-Transport-Security") != "max-age=0; includeSubDomains;" {
		t.Errorf("HSTS %v %v", got, err)
	}
	if got, err := try(8445, "/away", tls.VersionTLS12, tls.VersionTLS13); err != nil || got.status != 302 || got.header.Get("Strict-Transport-Security") != "" {
		t.Errorf("HAProxy's own answers have no HSTS header: %v %v", got, err)
	}
}
