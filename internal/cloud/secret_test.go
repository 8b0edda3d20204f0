package cloud

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// newCertificate issues a certificate below one intermediate.
func newCertificate(t *testing.T, name string) *lb.Certificate {
	t.Helper()
	issue := func(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
		template.SerialNumber = big.NewInt(1)
		template.NotBefore, template.NotAfter = time.Unix(0, 0), time.Unix(1<<33, 0)
		if parent == nil {
			parent = template
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	ca := issue(&x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, keys[0], keys[0])
	leaf := issue(&x509.Certificate{DNSNames: []string{name}}, ca, keys[1], keys[0])
	der, err := x509.MarshalPKCS8PrivateKey(keys[1])
	if err != nil {
		t.Fatal(err)
	}
	return &lb.Certificate{Leaf: leaf.Raw, Chain: [][]byte{ca.Raw}, PrivateKey: lb.NewPrivateKey(der), Names: []string{name}, Algorithm: "ECDSA"}
}

// withTLS adds an HTTPS listener with the certificates, the first as default, to a wanted tree.
func withTLS(t *lb.Tree, certificates ...*lb.Certificate) *lb.Tree {
	l := lb.Listener{Meta: lb.Meta{Key: "https-443", Name: "https-443"}, Protocol: lb.TerminatedHTTPS, Port: 443,
		TLS: &lb.ListenerTLS{Versions: []string{"TLSv1.2", "TLSv1.3"}, ALPN: []string{"h2", "http/1.1"}}}
	t.Secrets = nil
	for i, c := range certificates {
		key := lb.CertificateKey(c)
		t.Secrets = append(t.Secrets, lb.Secret{Key: key, Name: testOwner.SecretName(key), Certificate: c})
		if i == 0 {
			l.TLS.Default = key
		} else {
			l.TLS.SNI = append(l.TLS.SNI, key)
		}
	}
	slices.Sort(l.TLS.SNI)
	slices.SortFunc(t.Secrets, func(a, b lb.Secret) int { return strings.Compare(a.Key, b.Key) })
	t.Listeners = append(t.Listeners[:1:1], l)
	return t
}

// verbs are the changing calls as method and kind, in order.
func (g *ground) verbs() string {
	var out []string
	for _, c := range g.sim.Mutations() {
		out = append(out, c.Method+" "+strings.SplitN(c.Path, "/", 3)[1])
	}
	return strings.Join(out, ", ")
}

func TestSecrets_comeBeforeAndGoAfterWhatRefersToThem(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{Latency: sim.Pending(5 * time.Second)}, Options{})
	a, b, renewed := newCertificate(t, "a.test"), newCertificate(t, "b.test"), newCertificate(t, "a.test")
	expect := func(what, want string) {
		t.Helper()
		if got := g.verbs(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		g.sim.ResetCalls()
	}
	g.reach(withTLS(g.tree(1), a))
	expect("create", "POST secrets, POST loadbalancers, POST floatingips")
	have := g.reach(withTLS(g.tree(1), a, b))
	expect("another host", "POST secrets, PUT listeners")
	if l := have.ListenerByKey("https-443"); l.TLS.Default != lb.CertificateKey(a) || !slices.Equal(l.TLS.SNI, []string{lb.CertificateKey(b)}) {
		t.Errorf("observed %+v", l.TLS)
	}
	g.reach(withTLS(g.tree(1), renewed, b))
	expect("renewal", "POST secrets, PUT listeners, DELETE secrets")
	g.reach(g.tree(1))
	expect("listener goes", "DELETE listeners, DELETE secrets, DELETE secrets")
	g.reach(withTLS(g.tree(1), renewed))
	g.sim.ResetCalls()
	for range 5 {
		have, err := g.client.ObserveFor(t.Context(), testOwner, &lb.Tree{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = g.client.Apply(t.Context(), &have, plan.Diff(&lb.Tree{}, &have), time.Hour, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect("deletion", "DELETE floatingips, DELETE loadbalancers, DELETE secrets")
	if left := g.sim.Snapshot()["secrets"]; len(left) != 0 {
		t.Errorf("Barbican still has %v", left)
	}
}

// A crash between the two calls leaves a secret, an answer that is lost a second one, and others have secrets too.
func TestSecrets_orphansAndDuplicatesGo(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	a, orphan := newCertificate(t, "a.test"), newCertificate(t, "orphan.test")
	other := testOwner
	other.UID = "another"
	foreign := []string{"", "somebody's", other.SecretName(lb.CertificateKey(a)), testOwner.Mark()}
	for _, name := range append(slices.Clone(foreign), testOwner.SecretName(lb.CertificateKey(orphan)),
		testOwner.SecretName(lb.CertificateKey(a)), testOwner.SecretName(lb.CertificateKey(a))) {
		body, err := secretBody(&lb.Secret{Certificate: a})
		if err != nil {
			t.Fatal(err)
		}
		body["name"] = name
		g.raw(barbican, "POST", "/secrets", body)
	}
	// More of them than fit into one page.
	for range 150 {
		g.raw(barbican, "POST", "/secrets", attributes{"name": testOwner.SecretName("tls-" + strings.Repeat("0", 24))})
	}
	g.sim.ResetCalls()
	want := withTLS(g.tree(1), a)
	for range 3 {
		have, err := g.client.ObserveFor(t.Context(), testOwner, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = g.client.Apply(t.Context(), &have, plan.Diff(want, &have), time.Hour, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range g.sim.Mutations() {
		if c.Service == sim.Barbican && c.Method == "POST" {
			t.Error("stored again what was there")
		}
	}
	names := map[string]int{}
	for _, s := range g.sim.Snapshot()["secrets"] {
		name, _ := s["name"].(string)
		names[name]++
	}
	if len(names) != 5 || names[testOwner.SecretName(lb.CertificateKey(a))] != 1 {
		t.Errorf("left are %v", names)
	}
	for _, name := range foreign {
		if names[name] == 0 {
			t.Errorf("%q is gone", name)
		}
	}
}

func TestSecrets_areAskedForOnlyWhereThereCanBeAny(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	asked := func(want, known *lb.Tree) int {
		t.Helper()
		g.sim.ResetCalls()
		if _, err := g.client.ObserveFor(t.Context(), testOwner, want, known); err != nil {
			t.Fatal(err)
		}
		return g.calls(sim.Barbican, "")
	}
	plain, tls := g.tree(2), withTLS(g.tree(2), newCertificate(t, "a.test"))
	have := g.reach(plain)
	for name, c := range map[string]struct {
		want, known *lb.Tree
		calls       int
	}{
		"HTTP alone":           {plain, nil, 0},
		"HTTP alone, known":    {plain, have, 0},
		"without a wish":       {nil, nil, 0},
		"HTTPS is wanted":      {tls, nil, 1},
		"HTTPS is new":         {tls, have, 1},
		"all is to be deleted": {&lb.Tree{}, nil, 1},
	} {
		if got := asked(c.want, c.known); got != c.calls {
			t.Errorf("%s: %d calls, want %d", name, got, c.calls)
		}
	}
	have = g.reach(tls)
	if got := asked(plain, nil); got != 1 {
		t.Errorf("HTTPS is there: %d calls", got)
	}
	if got := asked(tls, have); got != 1 || len(g.sim.Calls()) != 3 {
		t.Errorf("HTTPS is known: %d calls in\n%s", got, g.sim.CallSummary())
	}
}

// Somebody deletes a secret in Barbican while Octavia says that nothing has changed.
func TestSecrets_lostOnesAreStoredAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	want := withTLS(g.tree(1), newCertificate(t, "a.test"), newCertificate(t, "b.test"))
	have := g.reach(want)
	g.raw(barbican, "DELETE", "/secrets/"+have.SecretByKey(want.Listeners[1].TLS.Default).ID, nil)
	now, err := g.client.ObserveFor(t.Context(), testOwner, want, have)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, s := range plan.Diff(want, &now) {
		steps = append(steps, string(s.Verb)+" "+string(s.Kind))
	}
	if got := strings.Join(steps, ", "); got != "create secret, update listener" {
		t.Errorf("plans %s", got)
	}
	if have.ListenerByKey("https-443").TLS.Default != want.Listeners[1].TLS.Default {
		t.Error("what was known was changed")
	}
}

// What Octavia reads is the certificate, its chain in order, and the key.
func TestSecretBody_isPKCS12ThatLeadsBack(t *testing.T) {
	t.Parallel()
	c := newCertificate(t, "a.test")
	body, err := secretBody(&lb.Secret{Certificate: c})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := base64.StdEncoding.DecodeString(*body["payload"].(payload).text)
	if err != nil {
		t.Fatal(err)
	}
	key, leaf, chain, err := pkcs12.DecodeChain(bundle, "")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil || !bytes.Equal(der, c.PrivateKey.Reveal()) || !bytes.Equal(leaf.Raw, c.Leaf) || len(chain) != 1 || !bytes.Equal(chain[0].Raw, c.Chain[0]) {
		t.Errorf("the bundle holds something else: %v", err)
	}
}

// Whatever a service answers, also when it repeats the request: no error tells anything of a payload.
func TestSecrets_neverShowInErrors(t *testing.T) {
	t.Parallel()
	c := newCertificate(t, "a.test")
	body, err := secretBody(&lb.Secret{Certificate: c})
	if err != nil {
		t.Fatal(err)
	}
	stored := *body["payload"].(payload).text
	key := c.PrivateKey.Reveal()
	for _, status := range []int{400, 403, 409, 413, 500, 503} {
		g := newGround(t, sim.Options{}, Options{})
		g.sim.Inject(sim.Fault{Service: sim.Barbican, Method: "POST", Status: status, Times: -1, Message: "provided object does not match: " + stored})
		want := withTLS(g.tree(0), c)
		have := g.observe()
		_, err := g.client.Apply(t.Context(), have, plan.Diff(want, have), time.Hour, nil)
		if err == nil || !OfCertificates(err) {
			t.Fatalf("%d: %v", status, err)
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), fmt.Sprintf("%+v", have), fmt.Sprintf("%+v", plan.Diff(want, have))} {
			for _, secret := range []string{stored[:40], base64.StdEncoding.EncodeToString(key)[8:40], hex.EncodeToString(key)[16:48], strings.Trim(fmt.Sprintf("%d", key[20:30]), "[]")} {
				if strings.Contains(text, secret) {
					t.Errorf("%d: %s", status, text)
				}
			}
		}
	}
}

func TestOfCertificates_isNothingElse(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&Error{Class: OperatorFault, Reason: ReasonCertificate, Resource: "listener x"}:     true,
		&Error{Class: Retry, Reason: ReasonUnavailable, Resource: secretsResource}:          true,
		&Error{Class: Retry, Reason: ReasonTimeout, Resource: secretResource + "tls-1"}:     true,
		&Error{Class: Retry, Reason: ReasonUnavailable, Resource: "listeners"}:              false,
		&Error{Class: OperatorFault, Reason: ReasonPermission, Resource: "load balancer x"}: false,
	} {
		if OfCertificates(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
	if OfCertificates(nil) {
		t.Error("nil")
	}
}

// What an administrator prohibits can be read from no call: it is learned from the refusal.
func TestFacts_knowWhatOctaviaHasProhibited(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{ProhibitedCiphers: []string{"AES128-SHA", "AES256-SHA"}, MinimumTLSVersion: "TLSv1.3"}, Options{})
	want := withTLS(g.tree(1), newCertificate(t, "a.test"))
	tls := want.Listeners[1].TLS
	tls.HSTS, tls.Ciphers = &lb.HSTS{MaxAge: 60, Preload: true}, "AES256-GCM-SHA384:AES256-SHA"
	facts := func() lb.Facts {
		t.Helper()
		f, err := g.client.Facts(t.Context(), g.request())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	refused := func() {
		t.Helper()
		have, err := g.client.ObserveFor(t.Context(), testOwner, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = g.client.Apply(t.Context(), &have, plan.Diff(want, &have), time.Hour, nil); ReasonOf(err) != ReasonProhibited {
			t.Errorf("got %v", err)
		}
	}
	if f := facts(); f.ProhibitedCiphers != nil || f.MinimumTLSVersion != "" || f.OctaviaMinor != 30 {
		t.Errorf("before: %+v", f)
	}
	refused()
	if f := facts(); !slices.Equal(f.ProhibitedCiphers, []string{"AES256-SHA"}) {
		t.Errorf("after the ciphers: %+v", f)
	}
	tls.Ciphers = "AES256-GCM-SHA384"
	refused()
	if f := facts(); f.MinimumTLSVersion != "TLSv1.3" || len(f.ProhibitedCiphers) != 1 {
		t.Errorf("after the version: %+v", f)
	}
	tls.Versions = []string{"TLSv1.3"}
	have := g.reach(want)
	if got := have.Listeners[1].TLS; got.Ciphers != tls.Ciphers || got.HSTS == nil || *got.HSTS != *tls.HSTS {
		t.Errorf("observed %+v", got)
	}
	tls.HSTS = nil
	if steps := plan.Diff(want, have); len(steps) != 1 || strings.Join(steps[0].Fields, " ") != "hsts_include_subdomains hsts_max_age hsts_preload" {
		t.Errorf("planned %+v", steps)
	}
	if have = g.reach(want); have.Listeners[1].TLS.HSTS != nil {
		t.Errorf("HSTS stays: %+v", have.Listeners[1].TLS.HSTS)
	}
	g.clock.Advance(2 * prohibitedFor)
	if f := facts(); f.ProhibitedCiphers != nil || f.MinimumTLSVersion != "" {
		t.Errorf("an administrator may change their mind: %+v", f)
	}
}

// No print of what holds credentials or a payload shows them, not even below what package fmt cannot ask how to print it.
func TestSecrets_neverShowInPrints(t *testing.T) {
	t.Parallel()
	const hidden = "0123-top-secret"
	body, err := secretBody(&lb.Secret{ClientCA: &lb.ClientCA{Certificates: [][]byte{[]byte(strings.Repeat(hidden, 9))}}})
	if err != nil {
		t.Fatal(err)
	}
	stored := strings.Split(*body["payload"].(payload).text, "\n")[1]
	s := &session{config: config{auth: gophercloud.AuthOptions{Password: hidden, ApplicationCredentialSecret: hidden, TokenID: hidden}}, provider: &gophercloud.ProviderClient{TokenID: hidden}}
	c := &Client{}
	c.current.Store(s)
	request := call{service: barbican, method: "POST", path: "/secrets", body: body}
	for _, value := range []any{s, s.config, c, request, &request, body, execution{Client: c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, value)
			for _, form := range []string{hidden, stored, fmt.Sprintf("%x", hidden), fmt.Sprintf("%x", stored)} {
				if strings.Contains(text, form) {
					t.Errorf("%s of %T: %s", verb, value, text)
				}
			}
		}
	}
}
