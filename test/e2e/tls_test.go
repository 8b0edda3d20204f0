//go:build e2e

package e2e

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

// authority issues certificates for tests.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	serial      int64
}

func newAuthority(g *ground, name string, parent *authority) *authority {
	g.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	a := &authority{key: key}
	if parent == nil {
		parent = a
	}
	a.certificate = parent.issue(g, key, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) issue(g *ground, key crypto.Signer, template *x509.Certificate) *x509.Certificate {
	g.Helper()
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	g.must(err)
	made, err := x509.ParseCertificate(der)
	g.must(err)
	return made
}

// leaf issues a server certificate and its key.
func (a *authority) leaf(g *ground, key crypto.Signer, names ...string) *corev1.Secret {
	g.Helper()
	leaf := a.issue(g, key, &x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	g.must(err)
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return &corev1.Secret{
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			// The leaf comes last: the controller puts it first.
			corev1.TLSCertKey:       append(text("CERTIFICATE", a.certificate.Raw), text("CERTIFICATE", leaf.Raw)...),
			corev1.TLSPrivateKeyKey: text("PRIVATE KEY", der),
		},
	}
}

func newRSA(g *ground) crypto.Signer {
	g.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	g.must(err)
	return key
}

func newECDSA(g *ground) crypto.Signer {
	g.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	return key
}

func named(s *corev1.Secret, namespace, name string) *corev1.Secret {
	s.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name}
	return s
}

// httpsListener is an HTTPS listener that admits routes as listener does.
func httpsListener(name, hostname, secret string) gwv1.Listener {
	l := listener(name, 443, hostname)
	l.Protocol = gwv1.HTTPSProtocolType
	l.TLS = &gwv1.ListenerTLSConfig{Mode: new(gwv1.TLSModeTerminate), CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(secret)}}}
	return l
}

// tlsClient asks for a server name and verifies what it is presented.
func (g *ground) tlsClient(base *http.Client, name string, roots *x509.CertPool, own ...tls.Certificate) *http.Client {
	transport := base.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{ServerName: name, RootCAs: roots, Certificates: own}
	transport.TLSHandshakeTimeout = 4 * time.Second
	return &http.Client{Timeout: base.Timeout, Transport: transport, CheckRedirect: base.CheckRedirect}
}

// presentedTo is the leaf that a client of a server name gets, verified or not.
func (g *ground) presentedTo(address, name string) (*x509.Certificate, error) {
	c := g.tlsClient(g.outside, name, nil)
	c.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	req, err := http.NewRequestWithContext(g.Context(), http.MethodGet, "https://"+address+"/", nil)
	if err != nil {
		return nil, err
	}
	req.Host = name
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return res.TLS.PeerCertificates[0], nil
}

// secrets are the names of what Barbican has of a Gateway.
func (g *ground) secrets(gw *gwv1.Gateway) []string {
	g.Helper()
	var out []string
	list, _ := g.raw(g.cloud.barbican, "secrets?limit=100")["secrets"].([]any)
	for _, o := range list {
		name, _ := o.(map[string]any)["name"].(string)
		if strings.HasPrefix(name, api.Domain+"/") && strings.Contains(name, "/"+string(gw.UID)+" ") {
			out = append(out, name)
		}
	}
	return out
}

func (g *ground) listenerCondition(gw *gwv1.Gateway, name gwv1.SectionName, kind gwv1.ListenerConditionType) *metav1.Condition {
	g.Helper()
	g.must(g.kube.Get(g.Context(), client.ObjectKeyFromObject(gw), gw))
	for i := range gw.Status.Listeners {
		if gw.Status.Listeners[i].Name == name {
			return meta.FindStatusCondition(gw.Status.Listeners[i].Conditions, string(kind))
		}
	}
	return nil
}

// load makes new connections all the time until it is stopped, and counts.
type load struct {
	stop    context.CancelFunc
	done    sync.WaitGroup
	mu      sync.Mutex
	made    int
	failed  []string
	serials map[string]int
}

func (g *ground) load(clients int, c *http.Client, address, host string) *load {
	ctx, stop := context.WithCancel(g.Context())
	l := &load{stop: stop, serials: map[string]int{}}
	for range clients {
		l.done.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", nil)
				if err != nil {
					return
				}
				req.Host = host
				res, err := c.Do(req)
				serial := ""
				if err == nil {
					if res.StatusCode != http.StatusOK {
						err = fmt.Errorf("status %d", res.StatusCode)
					}
					serial = res.TLS.PeerCertificates[0].SerialNumber.String()
					_ = res.Body.Close()
				}
				if ctx.Err() != nil {
					return
				}
				l.mu.Lock()
				l.made++
				if err != nil {
					l.failed = append(l.failed, time.Now().Format("15:04:05.000 ")+err.Error())
				} else {
					l.serials[serial]++
				}
				l.mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return l
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// HTTPS by server name with RSA and ECDSA certificates; a Secret that comes late; a rotation under load without a failed handshake; client
// certificates; nothing left behind, in Barbican neither.
func TestTLS_oneGatewayThroughItsLife(t *testing.T) {
	g := newGround(t)
	infra := g.namespace("e2e-tls", map[string]string{"e2e": "yes"})
	g.echo(infra, "shop", 2)
	g.echo(infra, "blog", 1)

	root := newAuthority(g, "e2e root", nil)
	intermediate := newAuthority(g, "e2e intermediate", root)
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	shopSecret := named(intermediate.leaf(g, newRSA(g), "shop.tls.test"), infra, "shop")
	blogSecret := named(intermediate.leaf(g, newECDSA(g), "blog.tls.test"), infra, "blog")

	gw := gateway(infra, "tls", listener("http", 80, ""), httpsListener("shop", "shop.tls.test", "shop"), httpsListener("blog", "blog.tls.test", "blog"))
	shopRoute := route(infra, "shop", gw, []gwv1.Hostname{"shop.tls.test"}, rule(nil, backend("shop", 1)))
	blogRoute := route(infra, "blog", gw, []gwv1.Hostname{"blog.tls.test"}, rule(nil, backend("blog", 1)))
	calls, started := g.calls(), time.Now()
	for _, o := range []client.Object{shopSecret, shopRoute, blogRoute, gw} {
		g.apply(o)
	}
	public := g.programmed(gw)
	t.Logf("programmed after %v: %s", time.Since(started).Round(100*time.Millisecond), g.calls().since(calls))
	shop, blog := g.tlsClient(g.outside, "shop.tls.test", roots), g.tlsClient(g.outside, "blog.tls.test", roots)

	g.expect(g.outside, "http://"+public+"/", "blog.tls.test", "blog")
	g.expect(shop, "https://"+public+"/", "shop.tls.test", "shop")
	if c := g.listenerCondition(gw, "blog", gwv1.ListenerConditionResolvedRefs); c == nil || c.Reason != string(gwv1.ListenerReasonInvalidCertificateRef) {
		t.Errorf("without its Secret listener blog says %+v", c)
	}
	if c := g.listenerCondition(gw, "shop", gwv1.ListenerConditionProgrammed); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("listener shop says %+v", c)
	}

	started = time.Now()
	g.apply(blogSecret)
	g.expect(blog, "https://"+public+"/", "blog.tls.test", "blog")
	t.Logf("the Secret that came late is served after %v", time.Since(started).Round(100*time.Millisecond))
	g.expect(shop, "https://"+public+"/", "shop.tls.test", "shop")
	for name, algorithm := range map[string]x509.PublicKeyAlgorithm{"shop.tls.test": x509.RSA, "blog.tls.test": x509.ECDSA, "unknown.test": x509.RSA} {
		leaf, err := g.presentedTo(public, name)
		if err != nil || leaf.PublicKeyAlgorithm != algorithm {
			t.Errorf("%s: presented %v, %v; want %v", name, leaf, err, algorithm)
		}
	}
	if got := g.secrets(gw); len(got) != 2 {
		t.Errorf("Barbican has %q, want two", got)
	}

	t.Run("rotation under load", func(t *testing.T) {
		g := g.in(t)
		onShop, onBlog := g.load(4, shop, public, "shop.tls.test"), g.load(2, blog, public, "blog.tls.test")
		time.Sleep(2 * time.Second)
		old, err := g.presentedTo(public, "shop.tls.test")
		g.must(err)
		renewed := intermediate.leaf(g, newRSA(g), "shop.tls.test")
		calls, started := g.calls(), time.Now()
		update(g, &corev1.Secret{ObjectMeta: shopSecret.ObjectMeta}, func(s *corev1.Secret) { s.Data = renewed.Data })
		g.eventually(time.Minute, "the new certificate is served", func() error {
			now, err := g.presentedTo(public, "shop.tls.test")
			if err == nil && now.Equal(old) {
				err = fmt.Errorf("it is the old one")
			}
			return err
		})
		t.Logf("the new certificate is served after %v", time.Since(started).Round(100*time.Millisecond))
		g.eventually(time.Minute, "the old secret is gone", func() error {
			if got := g.secrets(gw); len(got) != 2 {
				return fmt.Errorf("Barbican has %d", len(got))
			}
			return nil
		})
		time.Sleep(2 * time.Second)
		onShop.end()
		onBlog.end()
		made := g.calls().since(calls)
		t.Logf("calls: %s", made)
		if made.writes("load-balancer") != 1 || made.writes("key-manager") != 2 {
			t.Errorf("want one writing call to Octavia, two to Barbican; got %s", made)
		}
		for name, l := range map[string]*load{"shop": onShop, "blog": onBlog} {
			t.Logf("%s: %d new connections, by serial number %v", name, l.made, l.serials)
			if len(l.failed) > 0 {
				t.Errorf("%s: %d of %d failed: %s", name, len(l.failed), l.made, strings.Join(l.failed[:min(5, len(l.failed))], "; "))
			}
		}
	})

	t.Run("a Secret that becomes bad takes its listener only", func(t *testing.T) {
		g := g.in(t)
		good := blogSecret.Data
		update(g, &corev1.Secret{ObjectMeta: blogSecret.ObjectMeta}, func(s *corev1.Secret) {
			s.Data = map[string][]byte{corev1.TLSCertKey: good[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: shopSecret.Data[corev1.TLSPrivateKeyKey]}
		})
		g.eventually(time.Minute, "the listener says so", func() error {
			if c := g.listenerCondition(gw, "blog", gwv1.ListenerConditionResolvedRefs); c == nil || c.Status != metav1.ConditionFalse {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
		g.expect(shop, "https://"+public+"/", "shop.tls.test", "shop")
		update(g, &corev1.Secret{ObjectMeta: blogSecret.ObjectMeta}, func(s *corev1.Secret) { s.Data = good })
		g.expect(blog, "https://"+public+"/", "blog.tls.test", "blog")
	})

	t.Run("client certificates", func(t *testing.T) {
		g := g.in(t)
		clients := newAuthority(g, "e2e clients", nil)
		ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "clients"},
			Data: map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: clients.certificate.Raw}))}}
		g.apply(ca)
		update(g, gw, func(gw *gwv1.Gateway) {
			gw.Spec.TLS = &gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{Default: gwv1.TLSConfig{Validation: &gwv1.FrontendTLSValidation{
				CACertificateRefs: []gwv1.ObjectReference{{Kind: "ConfigMap", Name: "clients"}}}}}}
		})
		g.programmed(gw)
		own := func(a *authority) tls.Certificate {
			s := a.leaf(g, newECDSA(g), "client")
			pair, err := tls.X509KeyPair(slices.Concat(leafLast(s)...), s.Data[corev1.TLSPrivateKeyKey])
			g.must(err)
			return pair
		}
		g.expect(g.tlsClient(g.outside, "shop.tls.test", roots, own(clients)), "https://"+public+"/", "shop.tls.test", "shop")
		for name, c := range map[string]*http.Client{"no certificate": shop, "one of another CA": g.tlsClient(g.outside, "shop.tls.test", roots, own(intermediate))} {
			if a, err := get(t.Context(), c, "https://"+public+"/", "shop.tls.test"); err == nil {
				t.Errorf("%s: answered by %s", name, a)
			}
		}
		update(g, gw, func(gw *gwv1.Gateway) { gw.Spec.TLS = nil })
		g.programmed(gw)
		g.expect(shop, "https://"+public+"/", "shop.tls.test", "shop")
		g.delete(ca)
	})

	started = time.Now()
	g.delete(gw)
	t.Logf("deleted after %v", time.Since(started).Round(100*time.Millisecond))
	if got := g.secrets(gw); len(got) != 0 {
		t.Errorf("Barbican still has %q", got)
	}
	g.delete(shopRoute, blogRoute)
	g.nothingLeft()
}

// leafLast is the chain of a Secret with its last block first.
func leafLast(s *corev1.Secret) [][]byte {
	var all [][]byte
	for rest := s.Data[corev1.TLSCertKey]; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		all = append([][]byte{pem.EncodeToMemory(block)}, all...)
	}
	return all
}

// HAProxy chooses certificates as the compiler computes it: for each kind of key the exact name before the wildcard, of both kinds what the
// client can use, and the default certificate of the port for everything else. What it could not tell apart is refused.
func TestTLS_certificatesAreChosenAsComputed(t *testing.T) {
	g := newGround(t)
	infra := g.namespace("e2e-sni", map[string]string{"e2e": "yes"})
	g.echo(infra, "web", 1)
	ca := newAuthority(g, "e2e root", nil)
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	secrets := map[string]*corev1.Secret{
		"any":       ca.leaf(g, newECDSA(g), "any.example"),
		"wild":      ca.leaf(g, newECDSA(g), "*.sni.test"),
		"exact":     ca.leaf(g, newECDSA(g), "exact.sni.test"),
		"pair-rsa":  ca.leaf(g, newRSA(g), "pair.other.test"),
		"pair-wild": ca.leaf(g, newECDSA(g), "*.other.test"),
		"thief":     ca.leaf(g, newECDSA(g), "thief.test", "exact.sni.test"),
	}
	objects := []client.Object{}
	for name, s := range secrets {
		objects = append(objects, named(s, infra, name))
	}
	pair := httpsListener("pair", "pair.other.test", "pair-rsa")
	pair.TLS.CertificateRefs = append(pair.TLS.CertificateRefs, gwv1.SecretObjectReference{Name: "pair-wild"})
	gw := gateway(infra, "sni", httpsListener("wild", "*.sni.test", "wild"), httpsListener("exact", "exact.sni.test", "exact"), pair,
		httpsListener("any", "", "any"), httpsListener("thief", "thief.test", "thief"))
	r := route(infra, "web", gw, nil, rule(nil, backend("web", 1)))
	for _, o := range append(objects, gw, r) {
		g.apply(o)
	}
	public := g.programmed(gw)
	if c := g.listenerCondition(gw, "thief", gwv1.ListenerConditionAccepted); c == nil || c.Reason != string(gwv1.ListenerReasonUnsupportedValue) {
		t.Errorf("listener thief says %+v", c)
	}
	if c := g.listenerCondition(gw, "exact", gwv1.ListenerConditionOverlappingTLSConfig); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("listener exact says %+v", c)
	}
	g.expect(g.tlsClient(g.outside, "exact.sni.test", roots), "https://"+public+"/", "exact.sni.test", "web")
	for _, c := range []struct{ server, want, rsa string }{
		{server: "exact.sni.test", want: "exact.sni.test"},
		{server: "other.sni.test", want: "*.sni.test"},
		{server: "two.labels.sni.test", want: "any.example"},
		{server: "nobody.test", want: "any.example"},
		{server: "thief.test", want: "any.example"},
		{server: "pair.other.test", want: "*.other.test", rsa: "pair.other.test"},
	} {
		leaf, err := g.presentedTo(public, c.server)
		if err != nil || leaf.DNSNames[0] != c.want {
			t.Errorf("%s: presented %v, %v; want %s", c.server, leaf, err, c.want)
		}
		if c.rsa == "" {
			continue
		}
		old := g.tlsClient(g.outside, c.server, roots)
		old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
		old.Transport.(*http.Transport).TLSClientConfig.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+public+"/", nil)
		g.must(err)
		req.Host = c.server
		res, err := old.Do(req)
		g.must(err)
		_ = res.Body.Close()
		if got := res.TLS.PeerCertificates[0].DNSNames[0]; got != c.rsa {
			t.Errorf("%s: a client without ECDSA is presented %s, want %s", c.server, got, c.rsa)
		}
	}
	// The chain comes in issuing order, whatever it was in the Secret.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+public+"/", nil)
	g.must(err)
	req.Host = "exact.sni.test"
	res, err := g.tlsClient(g.outside, "exact.sni.test", roots).Do(req)
	g.must(err)
	_ = res.Body.Close()
	if chain := res.TLS.PeerCertificates; len(chain) != 2 || !chain[1].Equal(ca.certificate) || res.TLS.Version != tls.VersionTLS13 {
		t.Errorf("presented are %d certificates with %x", len(res.TLS.PeerCertificates), res.TLS.Version)
	}
	g.delete(gw, r)
	g.nothingLeft()
}
