package contract

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// keyPath is the path of tests for a reference that Barbican gave.
func keyPath(ref string) string {
	_, after, _ := strings.Cut(ref, "/v1/")
	return "/keys/" + after
}

// secret stores a secret, which the end of the test deletes, and returns its
// reference.
func (c *cloud) secret(body o) string {
	c.t.Helper()
	doc := c.must(201, "POST", "/keys/secrets", body)
	ref := str(doc, "secret_ref")
	c.t.Cleanup(func() {
		if status, doc := c.call("DELETE", keyPath(ref), nil); status != 204 && status != 404 {
			c.t.Errorf("delete secret: %d %s", status, compact(doc))
		}
	})
	return ref
}

func binary(name string, payload []byte) o {
	return o{"name": name, "payload": base64.StdEncoding.EncodeToString(payload), "payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"}
}

type keyPair struct {
	cert         *x509.Certificate
	certPEM, key []byte
	pkcs12       []byte
}

// newPair makes a self-signed certificate. No names make one without a subject.
func newPair(t *testing.T, names ...string) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if len(names) > 0 {
		tmpl.Subject = pkix.Name{CommonName: names[0]}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pk8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := pkcs12.Passwordless.Encode(key, cert, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pk8}), bundle}
}

func TestBarbican_storesSecrets(t *testing.T) {
	c := begin(t)
	name := "contract-" + time.Now().Format("150405.000000000")
	payload := []byte{0, 1, 2, 255}
	ref := c.secret(binary(name, payload))
	path := keyPath(ref)
	doc := c.must(200, "GET", path, nil)
	equal(t, "fields", keys(doc), l{"algorithm", "bit_length", "content_types", "created", "creator_id", "expiration", "mode", "name", "secret_ref", "secret_type", "status", "updated"})
	equal(t, "secret", l{doc["name"], doc["secret_type"], doc["status"], doc["secret_ref"], doc["content_types"]}, l{name, "opaque", "ACTIVE", ref, o{"default": "application/octet-stream"}})
	status, raw, err := c.raw(t.Context(), "GET", path+"/payload", nil, "Accept", "application/octet-stream")
	if err != nil || status != 200 || string(raw) != string(payload) {
		t.Errorf("payload: %d %q %v", status, raw, err)
	}
	c.refused(409, "Secret already has data, cannot modify it.", "PUT", path, "x", "Content-Type", "text/plain")

	second := c.secret(o{"name": name, "payload": "-----", "payload_content_type": "text/plain", "secret_type": "certificate"})
	doc = c.must(200, "GET", "/keys/secrets?name="+name, nil)
	equal(t, "names need not be unique", l{num(doc, "total"), len(list(doc, "secrets"))}, l{2, 2})
	doc = c.must(200, "GET", "/keys/secrets?limit=1&name="+name, nil)
	equal(t, "a page", l{num(doc, "total"), len(list(doc, "secrets")), doc["next"] != nil}, l{2, 1, true})
	doc = c.must(200, "GET", "/keys/secrets?limit=1&offset=1&name="+name, nil)
	equal(t, "the last page", l{len(list(doc, "secrets")), doc["next"] != nil, doc["previous"] != nil}, l{1, false, true})
	doc = c.must(200, "GET", "/keys/secrets?name="+name+"&secret_type=certificate", nil)
	equal(t, "by type", l{len(list(doc, "secrets")), str(doc, "secrets", "0", "secret_ref")}, l{1, second})
	doc = c.must(200, "GET", "/keys/secrets?name="+name[:len(name)-3]+"%25", nil)
	equal(t, "by the beginning of the name", num(doc, "total"), 2)
	doc = c.must(200, "GET", "/keys/secrets?name="+name+"x", nil)
	equal(t, "by another name", num(doc, "total"), 0)

	c.must(201, "PUT", path+"/metadata", o{"metadata": o{"Owner": "a", "b": "c"}})
	doc = c.must(200, "GET", path+"/metadata", nil)
	equal(t, "metadata keys are lower-cased", doc["metadata"], o{"owner": "a", "b": "c"})

	doc = c.must(200, "GET", path+"/acl", nil)
	equal(t, "default ACL", doc, o{"read": o{"project-access": true}})

	c.must(204, "DELETE", path, nil)
	c.refused(404, "~not found|in another castle", "GET", path, nil)
	c.refused(404, "~not found|in another castle", "DELETE", path, nil)
	c.secret(o{"name": name, "payload": "!!", "payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"}) // bad base64 passes

	for _, tc := range []refusal{
		{"no such type", "POST", "/keys/secrets", o{"secret_type": "riddle"}, 400, "~^Provided object does not match schema 'Secret': 'riddle' is not one of .*Invalid property: 'secret_type'$"},
		{"a payload without a type", "POST", "/keys/secrets", o{"payload": "x"}, 400, "~^Provided object does not match schema 'Secret': If 'payload' is supplied, 'payload_content_type' must also be supplied"},
		{"an empty payload", "POST", "/keys/secrets", o{"payload": "", "payload_content_type": "text/plain"}, 400, "~^Provided object does not match schema 'Secret': "},
		{"binary without an encoding", "POST", "/keys/secrets", o{"payload": "x", "payload_content_type": "application/octet-stream"}, 400, "~^Provided object does not match schema 'Secret': payload_content_encoding is not one of \\['base64', 'binary'\\]. Invalid property: 'payload_content_encoding'$"},
		{"name too long", "POST", "/keys/secrets", o{"name": long(256)}, 400, "~^Provided object does not match schema 'Secret': .*too long"},
		{"a secret that is too long", "POST", "/keys/secrets", o{"name": "contract", "payload": long(20001), "payload_content_type": "text/plain"}, 413, "~."},
		{"a request that is too long is cut", "POST", "/keys/secrets", o{"name": "contract", "payload": long(26000), "payload_content_type": "text/plain"}, 400, "Malformed JSON"},
	} {
		t.Run(tc.quirk, func(t *testing.T) {
			c.within(t).refused(tc.status, tc.message, tc.method, tc.path, tc.body)
		})
	}
}

func TestBarbican_containersHoldReferences(t *testing.T) {
	c := begin(t)
	p := newPair(t, "container.example")
	cert := c.secret(o{"name": "contract-cert", "payload": string(p.certPEM), "payload_content_type": "text/plain"})
	key := c.secret(o{"name": "contract-key", "payload": string(p.key), "payload_content_type": "text/plain"})
	doc := c.must(201, "POST", "/keys/containers", o{"name": "contract", "type": "certificate", "secret_refs": l{o{"name": "certificate", "secret_ref": cert}, o{"name": "private_key", "secret_ref": key}}})
	ref := str(doc, "container_ref")
	t.Cleanup(func() { c.call("DELETE", keyPath(ref), nil) })
	doc = c.must(200, "GET", keyPath(ref), nil)
	equal(t, "fields", keys(doc), l{"consumers", "container_ref", "created", "creator_id", "name", "secret_refs", "status", "type", "updated"})
	equal(t, "container", l{doc["name"], doc["type"], len(list(doc, "secret_refs"))}, l{"contract", "certificate", 2})
	c.refused(404, "~.", "POST", "/keys/containers", o{"type": "generic", "secret_refs": l{o{"name": "x", "secret_ref": cert[:len(cert)-36] + none}}})
	c.refused(400, "~^Provided object does not match schema 'Container': ", "POST", "/keys/containers", o{"type": "bag", "secret_refs": l{}})
	c.must(204, "DELETE", keyPath(ref), nil)
	c.must(200, "GET", keyPath(cert), nil)
}

func TestTLS_takesBundlesAndContainers(t *testing.T) {
	c := begin(t)
	p, q := newPair(t, "one.example"), newPair(t, "two.example")
	bundle := c.secret(binary("contract-1", p.pkcs12))
	bundle2 := c.secret(binary("contract-2", q.pkcs12))
	junk := c.secret(binary("contract-junk", []byte("this is no bundle")))
	nameless := c.secret(binary("contract-nameless", newPair(t).pkcs12))
	ca := c.secret(o{"name": "contract-ca", "payload": string(p.certPEM), "payload_content_type": "text/plain"})
	lb := c.create(o{"name": "contract-tls"})
	id := str(lb, "id")
	listener := func(more o) o {
		out := o{"name": "tls", "protocol": "TERMINATED_HTTPS", "protocol_port": 443, "loadbalancer_id": id}
		for k, v := range more {
			out[k] = v
		}
		return o{"listener": out}
	}
	unknown := bundle[:len(bundle)-36] + none
	c.refused(400, "Could not retrieve certificate: ['"+unknown+"']", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": unknown}))
	c.refused(400, "~^The PKCS12 bundle is unreadable\\. Please check the PKCS12 bundle validity\\. In addition, make sure it does not require a pass phrase\\. Error: ", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": junk}))
	c.refused(400, "No CN or DNSName(s) found in certificate. The certificate is invalid.", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": nameless}))
	c.refused(400, "Validation failure: Empty TLS version list. Either specify at least one TLS version or remove this parameter to use the default.", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "tls_versions": l{}}))
	c.refused(400, "Validation failure: Invalid TLS versions: TLSv9", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "tls_versions": l{"TLSv9"}}))
	c.refused(400, "Validation failure: Empty ALPN protocol list. Either specify at least one ALPN protocol or remove this parameter to use the default.", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "alpn_protocols": l{}}))
	c.refused(400, "~Value should be a valid ALPN protocol ID$", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "alpn_protocols": l{"h9"}}))
	c.refused(400, "Validation failure: HSTS configuration options hsts_include_subdomains and hsts_preload only make sense if hsts_max_age is set as well.", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "hsts_preload": true}))
	c.refused(400, "~^Validation failure: The client authentication CA certificate is invalid. It must be a valid x509 PEM format certificate. Error: ", "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "client_authentication": "MANDATORY", "client_ca_tls_container_ref": bundle2}))

	doc := c.write(id, 201, "POST", "/lb/listeners", listener(o{"default_tls_container_ref": bundle, "sni_container_refs": l{bundle2}, "hsts_max_age": 0}))
	li, _ := doc["listener"].(o)
	web := str(li, "id")
	equal(t, "defaults", l{li["tls_versions"], li["alpn_protocols"], li["client_authentication"], li["hsts_max_age"], li["sni_container_refs"]},
		l{l{"TLSv1.2", "TLSv1.3"}, l{"h2", "http/1.1", "http/1.0"}, "NONE", 0, l{bundle2}})
	if !strings.HasPrefix(str(li, "tls_ciphers"), "TLS_AES_256_GCM_SHA384:") {
		t.Errorf("ciphers %v", li["tls_ciphers"])
	}
	doc = c.must(200, "GET", keyPath(bundle)+"/acl", nil)
	users, _ := dig(doc, "read", "users").(l)
	equal(t, "Octavia lets itself read the secret", l{len(users), dig(doc, "read", "project-access")}, l{1, true})

	doc = c.write(id, 200, "PUT", "/lb/listeners/"+web, o{"listener": o{"default_tls_container_ref": bundle2, "sni_container_refs": l{bundle}, "client_authentication": "OPTIONAL", "client_ca_tls_container_ref": ca, "alpn_protocols": l{"http/1.1"}}})
	equal(t, "certificates can be exchanged", l{dig(doc, "listener", "default_tls_container_ref"), dig(doc, "listener", "sni_container_refs"), dig(doc, "listener", "client_authentication"), dig(doc, "listener", "alpn_protocols")}, l{bundle2, l{bundle}, "OPTIONAL", l{"http/1.1"}})
	doc = c.write(id, 200, "PUT", "/lb/listeners/"+web, o{"listener": o{"sni_container_refs": l{}, "alpn_protocols": nil, "hsts_max_age": nil}})
	equal(t, "null is the default", l{dig(doc, "listener", "sni_container_refs"), dig(doc, "listener", "alpn_protocols"), dig(doc, "listener", "hsts_max_age")}, l{l{}, l{"h2", "http/1.1", "http/1.0"}, nil})
	c.must(204, "DELETE", keyPath(bundle), nil)
	equal(t, "a secret in nobody's use can go, and one in use could too", c.wait(id), "ACTIVE")
}
