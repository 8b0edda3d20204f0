//go:build e2e

package e2e

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// secureEcho is an echo backend that answers over TLS only, on port 443 of its Service.
func (g *ground) secureEcho(namespace, name string, replicas int32, certificate *corev1.Secret) {
	g.Helper()
	g.echo(namespace, name, replicas, func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(3443)}}
	})
	// Who serves it wants the leaf first, and needs nothing else.
	text := string(certificate.Data[corev1.TLSCertKey])
	text = text[strings.LastIndex(text, "-----BEGIN"):]
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	update(g, d, func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "TLS_PORT", Value: "3443"},
			corev1.EnvVar{Name: "TLS_CERTIFICATE", Value: text},
			corev1.EnvVar{Name: "TLS_KEY", Value: string(certificate.Data[corev1.TLSPrivateKeyKey])})
	})
	g.eventually(2*time.Minute, "the new Pods are ready", func() error {
		g.must(g.kube.Get(g.Context(), client.ObjectKeyFromObject(d), d))
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != replicas || d.Status.Replicas != replicas || d.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
}

// policyCondition is what a policy says about the Gateway.
func (g *ground) policyCondition(o client.Object, gw *gwv1.Gateway, kind string) *metav1.Condition {
	g.Helper()
	g.must(g.kube.Get(g.Context(), client.ObjectKeyFromObject(o), o))
	var s gwv1.PolicyStatus
	switch o := o.(type) {
	case *v1alpha1.OpenStackBackendPolicy:
		s = o.Status
	case *gwv1.BackendTLSPolicy:
		s = o.Status
	}
	for _, a := range s.Ancestors {
		if string(a.AncestorRef.Name) == gw.Name {
			if c := meta.FindStatusCondition(a.Conditions, kind); c != nil && c.ObservedGeneration == o.GetGeneration() {
				return c
			}
		}
	}
	return nil
}

// says waits until a policy says this about the Gateway.
func (g *ground) says(o client.Object, gw *gwv1.Gateway, reason, message string) {
	g.Helper()
	g.eventually(2*time.Minute, fmt.Sprintf("%T %s says %s %q", o, o.GetName(), reason, message), func() error {
		c := g.policyCondition(o, gw, "Accepted")
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// over sends one request and returns what the backend saw of TLS.
func (g *ground) over(c *http.Client, url, host string) answer {
	g.Helper()
	a, err := get(g.Context(), c, url, host)
	g.must(err)
	return a
}

// TLS to backends: the right CA, the wrong one, one that changes, one that cannot be read; whose name is checked and whose is not; client
// certificates; checks over TLS; what a BackendTLSPolicy gets. Nothing is ever sent in plain text, and nothing is left behind.
func TestPolicy_backendsOverTLS(t *testing.T) {
	g := newGround(t)
	infra := g.namespace("e2e-policy", map[string]string{"e2e": "yes"})
	root, stranger := newAuthority(g, "e2e backends", nil), newAuthority(g, "e2e stranger", nil)
	front := newAuthority(g, "e2e front", nil)
	text := func(a *authority) string {
		return "# a bundle\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})) + "\n\n"
	}
	g.secureEcho(infra, "secure", 2, root.leaf(g, newECDSA(g), "site.policy.test"))

	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "backends"}, Data: map[string]string{"service-ca.pem": text(root), "README": "whose it is"}}
	policy := &v1alpha1.OpenStackBackendPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "secure"},
		Spec: v1alpha1.OpenStackBackendPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Kind: "Service", Name: "secure"}, SectionName: new(gwv1.SectionName("https"))}},
			TLS: &v1alpha1.BackendTLS{CACertificateRefs: []v1alpha1.CACertificateRef{{Name: "backends"}}},
		},
	}
	site := named(front.leaf(g, newECDSA(g), "site.policy.test", "other.policy.test"), infra, "site")
	gw := gateway(infra, "policy", listener("http", 80, ""), httpsListener("https", "", "site"))
	to443 := backend("secure", 1)
	to443.Port = new(gwv1.PortNumber(443))
	through := route(infra, "secure", gw, nil, rule(nil, to443))
	for _, o := range []client.Object{ca, site, policy, through, gw} {
		g.apply(o)
	}
	public := g.programmed(gw)
	roots := x509.NewCertPool()
	roots.AddCert(front.certificate)
	plainURL, secureURL := "http://"+public+"/", "https://"+public+"/"
	asSite, asOther := g.tlsClient(g.outside, "site.policy.test", roots), g.tlsClient(g.outside, "other.policy.test", roots)

	g.says(policy, gw, "Accepted", "The policy is used.")
	g.expect(g.outside, plainURL, "any.policy.test", "secure")
	if a := g.over(g.outside, plainURL, "any.policy.test"); a.TLS.ServerName != "" || a.TLS.Protocol != "http/1.1" || a.TLS.Client != "" {
		t.Errorf("from the HTTP listener the backend saw %+v", a.TLS)
	}
	g.expect(asSite, secureURL, "site.policy.test", "secure")
	if a := g.over(asSite, secureURL, "site.policy.test"); a.TLS.ServerName != "site.policy.test" {
		t.Errorf("from the HTTPS listener the backend saw %+v", a.TLS)
	}
	// Its certificate does not name what the client asked for.
	g.expect(asOther, secureURL, "other.policy.test", "503")

	// follows changes the CA and waits for what becomes of requests.
	follows := func(t *testing.T, to, want string) {
		g := g.in(t)
		calls, started := g.calls(), time.Now()
		update(g, ca, func(c *corev1.ConfigMap) { c.Data["service-ca.pem"] = to })
		g.expect(g.outside, plainURL, "any.policy.test", want)
		g.eventually(time.Minute, "only the secrets in use are left", func() error {
			if got := g.secrets(gw); len(got) != 2 {
				return fmt.Errorf("Barbican has %d", len(got))
			}
			return nil
		})
		made := g.calls().since(calls)
		t.Logf("followed after %v: %s", time.Since(started).Round(100*time.Millisecond), made)
		if made.writes("load-balancer") != 1 || made.writes("key-manager") != 2 {
			t.Errorf("want one writing call to Octavia, two to Barbican; got %s", made)
		}
	}
	t.Run("the wrong CA", func(t *testing.T) { follows(t, text(stranger), "503") })
	t.Run("a second CA beside it", func(t *testing.T) { follows(t, text(stranger)+text(root), "secure") })

	t.Run("a CA that cannot be read", func(t *testing.T) {
		g := g.in(t)
		update(g, ca, func(c *corev1.ConfigMap) { c.Data["service-ca.pem"] = "-----BEGIN CERTIFICATE-----\nnone\n" })
		g.says(policy, gw, "Invalid", "service-ca.pem of ConfigMap e2e-policy/backends begins 1 certificates, of which 0 can be read")
		g.eventually(time.Minute, "requests get no backend", func() error {
			a, err := get(g.Context(), g.outside, plainURL, "any.policy.test")
			if err != nil {
				return err
			}
			if a.Status != http.StatusInternalServerError && a.Status != http.StatusServiceUnavailable {
				return fmt.Errorf("answered by %s", a)
			}
			return nil
		})
		update(g, ca, func(c *corev1.ConfigMap) { c.Data["service-ca.pem"] = text(root) })
		g.expect(g.outside, plainURL, "any.policy.test", "secure")
		g.says(policy, gw, "Accepted", "The policy is used.")
	})

	t.Run("a certificate for backends, from an HTTP check over TLS too", func(t *testing.T) {
		g := g.in(t)
		key := newECDSA(g)
		secret := root.leaf(g, key, "lb.policy.test")
		// A common name is what the echo backend shows.
		leaf := root.issue(g, key, &x509.Certificate{Subject: pkix.Name{CommonName: "the load balancer"}, DNSNames: []string{"lb.policy.test"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		secret.Data[corev1.TLSCertKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
		g.apply(named(secret, infra, "own"))
		update(g, policy, func(p *v1alpha1.OpenStackBackendPolicy) {
			p.Spec.TLS.ClientCertificateRef = &v1alpha1.SecretName{Name: "own"}
			p.Spec.HealthMonitor = &v1alpha1.HealthMonitor{Type: v1alpha1.HealthMonitorHTTP, Path: "/healthz", DelaySeconds: 2, TimeoutSeconds: 1}
		})
		g.eventually(2*time.Minute, "the backend sees the certificate", func() error {
			a, err := get(g.Context(), g.outside, plainURL, "any.policy.test")
			if err == nil && a.TLS.Client != "the load balancer" {
				err = fmt.Errorf("answered by %s, which saw %+v", a, a.TLS)
			}
			return err
		})
		g.monitored(gw, "HTTP", "ONLINE")
		g.expect(g.outside, plainURL, "any.policy.test", "secure")
	})

	t.Run("a check that fails", func(t *testing.T) {
		g := g.in(t)
		update(g, policy, func(p *v1alpha1.OpenStackBackendPolicy) { p.Spec.HealthMonitor.ExpectedCodes = "204" })
		g.expect(g.outside, plainURL, "any.policy.test", "503")
		update(g, policy, func(p *v1alpha1.OpenStackBackendPolicy) {
			p.Spec.HealthMonitor = &v1alpha1.HealthMonitor{DelaySeconds: 2, TimeoutSeconds: 1}
		})
		g.expect(g.outside, plainURL, "any.policy.test", "secure")
		g.monitored(gw, "TCP", "ONLINE")
	})

	t.Run("an older policy for the same port", func(t *testing.T) {
		g := g.in(t)
		younger := &v1alpha1.OpenStackBackendPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "a-younger"}, Spec: *policy.Spec.DeepCopy()}
		younger.Spec.TLS, younger.Spec.Algorithm = nil, v1alpha1.AlgorithmLeastConnections
		younger.Spec.TargetRefs[0].SectionName = new(gwv1.SectionName("443"))
		g.apply(younger)
		g.says(younger, gw, "Conflicted", "OpenStackBackendPolicy e2e-policy/secure is older")
		g.expect(g.outside, plainURL, "any.policy.test", "secure")
		g.delete(younger)
	})

	t.Run("a BackendTLSPolicy", func(t *testing.T) {
		g := g.in(t)
		standard := &gwv1.BackendTLSPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "standard"},
			Spec: gwv1.BackendTLSPolicySpec{
				TargetRefs: policy.Spec.TargetRefs,
				Validation: gwv1.BackendTLSPolicyValidation{Hostname: "site.policy.test", WellKnownCACertificates: new(gwv1.WellKnownCACertificatesSystem)},
			},
		}
		g.apply(standard)
		g.says(standard, gw, "Invalid", "Used instead: OpenStackBackendPolicy e2e-policy/secure")
		g.expect(g.outside, plainURL, "any.policy.test", "secure")
		g.delete(policy)
		g.says(standard, gw, "Invalid", "nothing is sent to its Services. Use an OpenStackBackendPolicy with tls")
		g.eventually(time.Minute, "requests get no backend", func() error {
			a, err := get(g.Context(), g.outside, plainURL, "any.policy.test")
			if err == nil && a.Status != http.StatusInternalServerError && a.Status != http.StatusServiceUnavailable {
				err = fmt.Errorf("answered by %s", a)
			}
			return err
		})
		g.eventually(time.Minute, "nothing for backends is in Barbican", func() error {
			if got := g.secrets(gw); len(got) != 1 {
				return fmt.Errorf("Barbican has %d", len(got))
			}
			return nil
		})
		g.delete(standard)
		// Nobody asks for TLS any more: plain text, which this backend refuses.
		g.expect(g.outside, plainURL, "any.policy.test", "400")
	})

	g.delete(through, gw)
	if got := g.secrets(gw); len(got) > 0 {
		t.Errorf("left in Barbican: %q", got)
	}
	g.nothingLeft()
}

// monitored waits until the pools of a Gateway that have members are checked in this way, with this result.
func (g *ground) monitored(gw *gwv1.Gateway, kind, operating string) {
	g.Helper()
	g.eventually(2*time.Minute, fmt.Sprintf("members are checked by %s and %s", kind, operating), func() error {
		found, err := g.loadBalancer(gw)
		if err != nil {
			return err
		}
		pools, _ := g.raw(g.cloud.octavia, "lbaas", "pools?loadbalancer_id="+found.ID)["pools"].([]any)
		seen := 0
		for _, p := range pools {
			pool := p.(map[string]any)
			name, _ := pool["name"].(string)
			if !strings.Contains(name, "secure") {
				continue
			}
			id, _ := pool["id"].(string)
			monitor, _ := pool["healthmonitor_id"].(string)
			m, _ := g.raw(g.cloud.octavia, "lbaas", "healthmonitors", monitor)["healthmonitor"].(map[string]any)
			if m["type"] != kind {
				return fmt.Errorf("the monitor is %v", m["type"])
			}
			members, _ := g.raw(g.cloud.octavia, "lbaas", "pools", id, "members")["members"].([]any)
			for _, one := range members {
				seen++
				if state := one.(map[string]any)["operating_status"]; state != operating {
					return fmt.Errorf("a member is %v", state)
				}
			}
		}
		if seen == 0 {
			return fmt.Errorf("there is no member")
		}
		return nil
	})
}
