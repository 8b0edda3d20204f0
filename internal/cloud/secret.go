package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// wireSecret is a secret as Barbican's list shows it, never with its payload.
type wireSecret struct {
	Name string `json:"name"`
	Ref  string `json:"secret_ref"`
}

// secretID is the id in a reference. Barbican builds references of its own address, which need not be the one in the catalog.
func secretID(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// OfCertificates says whether an error concerns certificates alone: Barbican failed, or Octavia does not take what is in it. Everything
// else can go on.
func OfCertificates(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Reason == ReasonCertificate || e.Resource == secretsResource || strings.HasPrefix(e.Resource, secretResource))
}

// What errors call secrets.
const (
	secretsResource = "secrets"
	secretResource  = "secret "
)

// maxSecretPages bounds a list that a broken server would never end: 100 secrets a page.
const maxSecretPages = 100

// ownSecrets finds the secrets of a Gateway by their names, one call for a hundred of them. Barbican's filter takes "%" for anything,
// and is only a filter: the proof is read from the whole name.
func (c *Client) ownSecrets(ctx context.Context, owner lb.Owner) ([]lb.Secret, error) {
	if _, err := markFilter(owner); err != nil {
		return nil, err
	}
	named, err := c.secretsNamed(ctx, owner.SecretNamePrefix())
	if err != nil {
		return nil, err
	}
	var found []lb.Secret
	for _, w := range named {
		if key, ok := owner.SecretKeyFromName(w.Name); ok && secretID(w.Ref) != "" {
			found = append(found, lb.Secret{ID: secretID(w.Ref), Key: key, Name: w.Name, Ref: w.Ref})
		}
	}
	// A create that was repeated after its answer was lost leaves two: the smallest id keeps the key, the plan removes the others.
	slices.SortFunc(found, func(a, b lb.Secret) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID)) })
	for i := len(found) - 1; i > 0; i-- {
		if found[i].Key == found[i-1].Key {
			found[i].Key = strayKey(found[i].ID)
		}
	}
	slices.SortFunc(found, func(a, b lb.Secret) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

// secretsNamed lists the secrets whose names Barbican's filter takes to begin so.
func (c *Client) secretsNamed(ctx context.Context, prefix string) ([]wireSecret, error) {
	const limit = 100
	var found []wireSecret
	for page := range maxSecretPages {
		var out struct {
			Secrets []wireSecret `json:"secrets"`
			Total   int          `json:"total"`
		}
		err := c.do(ctx, call{service: barbican, method: http.MethodGet, path: "/secrets", op: "list", what: secretsResource, out: &out, query: url.Values{
			"name": {prefix + "%"}, "limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(page * limit)}}})
		if err != nil {
			return nil, err
		}
		found = append(found, out.Secrets...)
		if len(out.Secrets) == 0 || (page+1)*limit >= out.Total {
			break
		}
	}
	return found, nil
}

// mayHaveSecrets says whether Barbican has to be asked. want is nil when the caller has no wish; an empty one is a deletion, which
// leaves nothing behind.
func (c *Client) mayHaveSecrets(ctx context.Context, want, known, seen *lb.Tree) bool {
	if c.session(ctx).base[barbican] == "" {
		return false
	}
	return want != nil && (want.Empty() || len(want.Secrets) > 0) || known != nil && len(known.Secrets) > 0 ||
		seen != nil && (slices.ContainsFunc(seen.Listeners, func(l lb.Listener) bool { return l.TLS != nil }) ||
			slices.ContainsFunc(seen.Pools, func(p lb.Pool) bool { return len(p.TLS.Secrets()) > 0 }))
}

// nameSecrets replaces the references of listeners and pools by the keys of the secrets that they lead to. What leads to none of ours gets a key
// that no wanted object has.
func nameSecrets(t *lb.Tree) {
	keys := map[string]string{}
	for _, s := range t.Secrets {
		keys[s.ID] = s.Key
	}
	mapSecrets(t, func(ref string) string {
		if key, ok := keys[secretID(ref)]; ok {
			return key
		}
		return strayKey(secretID(ref))
	})
}

// renameSecrets brings the listeners and pools of a tree that was known up to the secrets of now: a secret that is gone, or that is another
// one by now, is not what they refer to.
func renameSecrets(t *lb.Tree, now []lb.Secret) {
	known := t.Secrets
	t.Secrets = now
	mapSecrets(t, func(key string) string {
		id := ""
		for _, s := range known {
			if s.Key == key {
				id = s.ID
			}
		}
		if s := t.SecretByKey(key); s != nil && s.ID == id || id == "" {
			return key
		}
		return strayKey(id)
	})
}

// mapSecrets changes the references of all listeners and pools, in copies.
func mapSecrets(t *lb.Tree, name func(string) string) {
	t.Listeners = slices.Clone(t.Listeners)
	for i := range t.Listeners {
		if t.Listeners[i].TLS == nil {
			continue
		}
		tls := *t.Listeners[i].TLS
		tls.SNI = slices.Clone(tls.SNI)
		for j := range tls.SNI {
			tls.SNI[j] = name(tls.SNI[j])
		}
		slices.Sort(tls.SNI)
		for _, one := range []*string{&tls.Default, &tls.ClientCA} {
			if *one != "" {
				*one = name(*one)
			}
		}
		t.Listeners[i].TLS = &tls
	}
	t.Pools = slices.Clone(t.Pools)
	for i := range t.Pools {
		if t.Pools[i].TLS == nil {
			continue
		}
		tls := *t.Pools[i].TLS
		for _, one := range []*string{&tls.CA, &tls.Certificate} {
			if *one != "" {
				*one = name(*one)
			}
		}
		t.Pools[i].TLS = &tls
	}
}

// tlsAttributes are a listener's references and settings by Octavia's names.
func tlsAttributes(l *lb.Listener, secrets []lb.Secret) (attributes, error) {
	a := attributes{}
	if l.TLS == nil {
		return a, nil
	}
	var missing error
	ref := func(key string) string {
		found, err := refOf(key, secrets)
		if err != nil {
			missing = err
		}
		return found
	}
	sni := make([]string, 0, len(l.TLS.SNI))
	for _, key := range l.TLS.SNI {
		sni = append(sni, ref(key))
	}
	a["default_tls_container_ref"] = ref(l.TLS.Default)
	a["sni_container_refs"] = sni
	a["client_authentication"], a["client_ca_tls_container_ref"] = "NONE", nil
	if l.TLS.ClientCA != "" {
		a["client_authentication"], a["client_ca_tls_container_ref"] = "MANDATORY", ref(l.TLS.ClientCA)
	}
	a["tls_versions"], a["alpn_protocols"], a["tls_ciphers"] = orList(l.TLS.Versions), orList(l.TLS.ALPN), or(l.TLS.Ciphers)
	a["hsts_max_age"], a["hsts_include_subdomains"], a["hsts_preload"] = nil, nil, nil
	if h := l.TLS.HSTS; h != nil {
		a["hsts_max_age"], a["hsts_include_subdomains"], a["hsts_preload"] = h.MaxAge, h.IncludeSubdomains, h.Preload
	}
	if missing != nil {
		return nil, missing
	}
	return a, nil
}

// isTLSField says whether an attribute of a listener comes from tlsAttributes.
func isTLSField(name string) bool {
	return slices.Contains([]string{"default_tls_container_ref", "sni_container_refs", "client_authentication", "client_ca_tls_container_ref",
		"tls_versions", "alpn_protocols", "tls_ciphers", "hsts_max_age", "hsts_include_subdomains", "hsts_preload"}, name)
}

// forTLSCreate leaves out what is at its default.
func forTLSCreate(a attributes) attributes {
	out := a.forCreate()
	if out["client_authentication"] == "NONE" {
		delete(out, "client_authentication")
	}
	if sni, ok := out["sni_container_refs"].([]string); ok && len(sni) == 0 {
		delete(out, "sni_container_refs")
	}
	return out
}

// secret stores or deletes a Barbican secret. The name, which holds the identity, comes with the payload in one call.
func (e execution) secret(ctx context.Context) error {
	if e.step.Verb == plan.Delete {
		id := e.step.Ref.ID
		if s := e.have.SecretByKey(e.step.Ref.Key); id == "" && s != nil {
			id = s.ID
		}
		return gone(e.do(ctx, call{service: barbican, method: http.MethodDelete, path: "/secrets/" + element(id), op: "delete", what: secretResource + id}))
	}
	s := e.step.Secret
	if e.step.Verb != plan.Create || s == nil {
		return planError("a step for a secret has no secret")
	}
	body, err := secretBody(s)
	if err != nil {
		return err
	}
	body["name"] = e.have.Owner.SecretName(s.Key)
	var out wireSecret
	if err := e.do(ctx, call{service: barbican, method: http.MethodPost, path: "/secrets", body: body, out: &out,
		op: "create", what: secretResource + s.Key}); err != nil {
		return err
	}
	if secretID(out.Ref) == "" {
		return &Error{Class: Retry, Reason: ReasonMalformed, Op: "create", Resource: secretResource + s.Key, Message: "Barbican gave no reference to it"}
	}
	e.step.Secret = &lb.Secret{ID: secretID(out.Ref), Key: s.Key, Name: e.have.Owner.SecretName(s.Key), Ref: out.Ref}
	e.step.Ref.ID = e.step.Secret.ID
	return nil
}

// payload is what a request stores in Barbican. Only its JSON shows it: in a print it is an address.
type payload struct{ text *string }

func newPayload(text string) payload { return payload{&text} }

// MarshalJSON reveals the payload, to the request.
func (p payload) MarshalJSON() ([]byte, error) { return json.Marshal(*p.text) }

// secretBody is what Octavia can read: a certificate as PKCS#12 without a password, CA certificates as PEM.
func secretBody(s *lb.Secret) (attributes, error) {
	switch {
	case s.Certificate != nil:
		bundle, err := pkcs12Of(s.Certificate)
		if err != nil {
			// The cause could quote what it could not read.
			return nil, planError("the certificate of secret %q cannot be encoded", s.Key)
		}
		return attributes{"secret_type": "opaque", "payload": newPayload(base64.StdEncoding.EncodeToString(bundle)),
			"payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"}, nil
	case s.ClientCA != nil:
		var text bytes.Buffer
		for _, der := range s.ClientCA.Certificates {
			if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
				return nil, planError("the CA certificates of secret %q cannot be encoded", s.Key)
			}
		}
		return attributes{"secret_type": "opaque", "payload": newPayload(text.String()), "payload_content_type": "text/plain"}, nil
	}
	return nil, planError("secret %q has no payload", s.Key)
}

func pkcs12Of(c *lb.Certificate) ([]byte, error) {
	key, err := x509.ParsePKCS8PrivateKey(c.PrivateKey.Reveal())
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(c.Leaf)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for _, der := range c.Chain {
		more, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, more)
	}
	return pkcs12.Passwordless.Encode(key, leaf, chain, "")
}
