//go:build e2e

package e2e

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// barbican stops or starts the key manager, and waits until its API is as that says.
func (g *ground) barbican(verb string) {
	g.Helper()
	g.must(run("../stack/openstack/enter.sh", "service", verb, "barbican"))
	g.eventually(2*time.Minute, "Barbican: "+verb, func() error {
		var out map[string]any
		_, err := g.cloud.barbican.Get(g.Context(), g.cloud.barbican.ServiceURL("secrets"), &out, nil)
		if (err == nil) != (verb == "start") {
			return errors.Join(errors.New("it is not so yet"), err)
		}
		return nil
	})
}

// gatewaySays waits until the Programmed condition of a Gateway for its generation has this in its message.
func (g *ground) gatewaySays(gw *gwv1.Gateway, status metav1.ConditionStatus, message string) {
	g.Helper()
	g.eventually(2*time.Minute, fmt.Sprintf("Gateway %s says %s %q", gw.Name, status, message), func() error {
		g.must(g.kube.Get(g.Context(), client.ObjectKeyFromObject(gw), gw))
		c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
		if c == nil || c.ObservedGeneration != gw.Generation || c.Status != status || !strings.Contains(c.Message, message) {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// Barbican is stopped and started again. Meanwhile no HTTPS request fails, HTTP Gateways are made and changed, and load balancers with
// certificates are not written to and say why. Then all of what was asked for meanwhile is done, and nothing is left behind.
func TestTLS_barbicanIsAwayAndBack(t *testing.T) {
	g := newGround(t)
	infra := g.namespace("e2e-away", map[string]string{"e2e": "yes"})
	g.echo(infra, "old", 1)
	g.echo(infra, "new", 1)
	ca := newAuthority(g, "e2e root", nil)
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	secret := named(ca.leaf(g, newECDSA(g), "away.test"), infra, "away")

	plain := gateway(infra, "plain", listener("http", 80, ""))
	secure := gateway(infra, "secure", listener("http", 80, ""), httpsListener("https", "away.test", "away"))
	going := gateway(infra, "going", httpsListener("https", "away.test", "away"))
	late := gateway(infra, "late", listener("http", 80, ""), httpsListener("https", "away.test", "away"))
	plainRoute := route(infra, "plain", plain, nil, rule(nil, backend("old", 1)))
	secureRoute := route(infra, "secure", secure, nil, rule(nil, backend("old", 1)))
	goingRoute := route(infra, "going", going, nil, rule(nil, backend("old", 1)))
	lateRoute := route(infra, "late", late, nil, rule(nil, backend("new", 1)))
	for _, o := range []client.Object{secret, plainRoute, secureRoute, goingRoute, plain, secure, going} {
		g.apply(o)
	}
	plainAt, secureAt := g.programmed(plain), g.programmed(secure)
	g.programmed(going)
	https := g.tlsClient(g.outside, "away.test", roots)
	g.expect(g.outside, "http://"+plainAt+"/", "away.test", "old")
	g.expect(https, "https://"+secureAt+"/", "away.test", "old")
	before, err := g.presentedTo(secureAt, "away.test")
	g.must(err)
	stored := g.secrets(secure)

	away := true
	g.Cleanup(func() {
		if away {
			if err := run("../stack/openstack/enter.sh", "service", "start", "barbican"); err != nil {
				t.Error(err)
			}
		}
	})
	load := g.load(2, https, secureAt, "away.test")
	calls := g.calls()
	g.barbican("stop")
	stopped := time.Now()

	// What has no certificate: a change, and the HTTP listener of a new Gateway.
	toNew := func(r *gwv1.HTTPRoute) { r.Spec.Rules[0].BackendRefs[0].Name = "new" }
	update(g, secureRoute, toNew)
	update(g, plainRoute, toNew)
	g.apply(lateRoute)
	g.apply(late)
	g.expect(g.outside, "http://"+plainAt+"/", "away.test", "new")
	// What has one.
	renewed := ca.leaf(g, newECDSA(g), "away.test")
	update(g, &corev1.Secret{ObjectMeta: secret.ObjectMeta}, func(s *corev1.Secret) { s.Data = renewed.Data })
	g.gatewaySays(secure, metav1.ConditionTrue, "Barbican")
	g.gatewaySays(secure, metav1.ConditionTrue, "Nothing is changed until then")
	g.must(g.kube.Delete(t.Context(), going))
	g.eventually(3*time.Minute, "the new Gateway serves HTTP", func() error {
		g.must(g.kube.Get(t.Context(), client.ObjectKeyFromObject(late), late))
		if len(late.Status.Addresses) == 0 {
			return fmt.Errorf("it has no address: %+v", late.Status.Conditions)
		}
		a, err := get(t.Context(), g.outside, "http://"+late.Status.Addresses[0].Value+"/", "away.test")
		if err == nil && a.String() != "new" {
			err = fmt.Errorf("answered by %s", a)
		}
		return err
	})
	lateAt := late.Status.Addresses[0].Value
	if c := g.listenerCondition(late, "https", gwv1.ListenerConditionProgrammed); c == nil || c.Status == metav1.ConditionTrue {
		t.Errorf("without Barbican the HTTPS listener of a new Gateway says %+v", c)
	}
	// A second change of the other, after all that.
	update(g, plainRoute, func(r *gwv1.HTTPRoute) { r.Spec.Rules[0].BackendRefs[0].Name = "old" })
	g.expect(g.outside, "http://"+plainAt+"/", "away.test", "old")
	if now, err := g.presentedTo(secureAt, "away.test"); err != nil || !now.Equal(before) {
		t.Errorf("the certificate is not the old one: %v", err)
	}
	a, err := get(t.Context(), https, "https://"+secureAt+"/", "away.test")
	if err != nil || a.String() != "old" {
		t.Errorf("HTTPS is answered by %s, %v; want what there was", a, err)
	}
	for _, gw := range []*gwv1.Gateway{secure, going} {
		if l, err := g.loadBalancer(gw); err != nil || l.ProvisioningStatus != "ACTIVE" {
			t.Errorf("the load balancer of %s: %+v, %v", gw.Name, l, err)
		}
	}
	t.Logf("Barbican was away for %v: %s", time.Since(stopped).Round(time.Second), g.calls().since(calls))

	g.barbican("start")
	away = false
	started := time.Now()
	g.expect(https, "https://"+secureAt+"/", "away.test", "new")
	g.expect(https, "https://"+lateAt+"/", "away.test", "new")
	g.eventually(2*time.Minute, "the renewed certificate is served", func() error {
		now, err := g.presentedTo(secureAt, "away.test")
		if err == nil && now.Equal(before) {
			err = fmt.Errorf("it is the old one")
		}
		return err
	})
	g.delete(going)
	for _, gw := range []*gwv1.Gateway{plain, secure, late} {
		g.programmed(gw)
	}
	g.gatewaySays(secure, metav1.ConditionTrue, "The load balancer serves on "+secureAt)
	g.eventually(time.Minute, "each Gateway has one secret, and the old one is gone", func() error {
		now := g.secrets(secure)
		if len(now) != 1 || now[0] == stored[0] || len(g.secrets(late)) != 1 || len(g.secrets(going)) != 0 {
			return fmt.Errorf("%q of secure, %q of late, %q of going", now, g.secrets(late), g.secrets(going))
		}
		return nil
	})
	t.Logf("all is as wanted %v after Barbican is back", time.Since(started).Round(time.Second))
	load.end()
	t.Logf("%d new HTTPS connections, by serial number %v", load.made, load.serials)
	if len(load.failed) > 0 {
		t.Errorf("%d of %d failed: %s", len(load.failed), load.made, strings.Join(load.failed[:min(5, len(load.failed))], "; "))
	}
	g.delete(plain, secure, late, plainRoute, secureRoute, goingRoute, lateRoute)
	g.nothingLeft()
}

// kubectl does what people do: with the real one, as the administrator.
func (g *ground) kubectl(input string, args ...string) {
	g.Helper()
	if input != "" {
		file := g.TempDir() + "/manifest.yaml"
		g.must(os.WriteFile(file, []byte(input), 0o600))
		args = append(args, "-f", file)
	}
	g.must(run("../stack/kubectl", args...))
}

// The manifests of the usual tutorials, as written: a Gateway with an HTTP and a wildcard HTTPS listener for all namespaces, which external-dns
// reads; a redirect of everything to HTTPS; an application in a namespace of its own, first on 8080, then over TLS on 8443. The Secrets come later
// than the Gateway, as cert-manager needs it, one of them from another namespace, whose ReferenceGrant is revoked and given again.
func TestTLS_manifestsOfTutorials(t *testing.T) {
	g := newGround(t)
	ingress, app, vault := g.namespace("e2e-ingress", nil), g.namespace("e2e-app", nil), g.namespace("e2e-vault", nil)
	ca, service := newAuthority(g, "e2e root", nil), newAuthority(g, "e2e service CA", nil)
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	// A service certificate, which names what the Service is called inside the cluster.
	g.secureEcho(app, "hello", 1, service.leaf(g, newECDSA(g), "hello.e2e-app.svc", "hello.e2e-app.svc.cluster.local"))
	update(g, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: app, Name: "hello"}}, func(s *corev1.Service) {
		s.Spec.Ports[0].Port = 8443
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "http", Port: 8080, TargetPort: intstr.FromInt32(3000)})
	})
	started := time.Now()
	g.kubectl(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: public
  namespace: e2e-ingress
spec:
  gatewayClassName: e2e-responder
  infrastructure:
    annotations:
      external-dns.alpha.kubernetes.io/hostname: "*.apps.tutorial.test"
  listeners:
  - name: http
    protocol: HTTP
    port: 80
    allowedRoutes:
      namespaces:
        from: All
  - name: https
    protocol: HTTPS
    port: 443
    hostname: "*.apps.tutorial.test"
    tls:
      mode: Terminate
      certificateRefs:
      - name: apps-tls
    allowedRoutes:
      namespaces:
        from: All
  - name: partner
    protocol: HTTPS
    port: 443
    hostname: partner.test
    tls:
      mode: Terminate
      certificateRefs:
      - name: partner-tls
        namespace: e2e-vault
    allowedRoutes:
      namespaces:
        from: All
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: https-redirect
  namespace: e2e-ingress
spec:
  parentRefs:
  - name: public
    sectionName: http
  rules:
  - filters:
    - type: RequestRedirect
      requestRedirect:
        scheme: https
        statusCode: 301
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: hello
  namespace: e2e-app
spec:
  parentRefs:
  - name: public
    namespace: e2e-ingress
    sectionName: https
  - name: public
    namespace: e2e-ingress
    sectionName: partner
  hostnames:
  - hello.apps.tutorial.test
  - partner.test
  rules:
  - backendRefs:
    - name: hello
      port: 8080
`, "apply")
	g.responderClass()
	gw := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: ingress, Name: "public"}}
	hello := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: app, Name: "hello"}}
	redirect := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: ingress, Name: "https-redirect"}}
	public := g.programmed(gw)
	refusedBy := func(name gwv1.SectionName, reason gwv1.ListenerConditionReason) {
		t.Helper()
		g.eventually(time.Minute, fmt.Sprintf("listener %s says %s", name, reason), func() error {
			resolved, programmed := g.listenerCondition(gw, name, gwv1.ListenerConditionResolvedRefs), g.listenerCondition(gw, name, gwv1.ListenerConditionProgrammed)
			if resolved == nil || resolved.Status != metav1.ConditionFalse || resolved.Reason != string(reason) || programmed == nil || programmed.Status != metav1.ConditionFalse {
				return fmt.Errorf("%+v, %+v", resolved, programmed)
			}
			return nil
		})
	}
	refusedBy("https", gwv1.ListenerReasonInvalidCertificateRef)
	refusedBy("partner", gwv1.ListenerReasonRefNotPermitted)
	redirected := func() {
		t.Helper()
		for _, host := range []string{"hello.apps.tutorial.test", "other.test"} {
			g.eventually(2*time.Minute, "http is redirected to https", func() error {
				a, err := get(t.Context(), g.outside, "http://"+public+"/a/b?c=d", host)
				if err == nil && (a.Status != 301 || a.Location != "https://"+host+"/a/b?c=d") {
					err = fmt.Errorf("answered %d to %q", a.Status, a.Location)
				}
				return err
			})
		}
	}
	redirected()

	// kubectl create secret tls wants the leaf first.
	create := func(s *corev1.Secret, namespace, name string) {
		t.Helper()
		dir := t.TempDir()
		g.must(os.WriteFile(dir+"/tls.crt", leafLast(s)[0], 0o600))
		g.must(os.WriteFile(dir+"/tls.key", s.Data[corev1.TLSPrivateKeyKey], 0o600))
		g.kubectl("", "create", "secret", "tls", name, "--namespace="+namespace, "--cert="+dir+"/tls.crt", "--key="+dir+"/tls.key")
	}
	create(ca.leaf(g, newRSA(g), "*.apps.tutorial.test"), ingress, "apps-tls")
	asHello, asPartner := g.tlsClient(g.outside, "hello.apps.tutorial.test", roots), g.tlsClient(g.outside, "partner.test", roots)
	g.expect(asHello, "https://"+public+"/", "hello.apps.tutorial.test", "hello")
	t.Logf("the manifests are served after %v", time.Since(started).Round(100*time.Millisecond))
	create(ca.leaf(g, newECDSA(g), "partner.test"), vault, "partner-tls")
	refusedBy("partner", gwv1.ListenerReasonRefNotPermitted)
	grant := `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata:
  name: public
  namespace: e2e-vault
spec:
  from:
  - group: gateway.networking.k8s.io
    kind: Gateway
    namespace: e2e-ingress
  to:
  - group: ""
    kind: Secret
    name: partner-tls
`
	stored := func(want int) {
		t.Helper()
		g.eventually(time.Minute, fmt.Sprintf("Barbican has %d", want), func() error {
			if got := g.secrets(gw); len(got) != want {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		})
	}
	g.kubectl(grant, "apply")
	g.expect(asPartner, "https://"+public+"/", "partner.test", "hello")
	stored(2)
	// Revoked while it serves: the certificate is withdrawn, and nobody else notices.
	load := g.load(1, asHello, public, "hello.apps.tutorial.test")
	g.kubectl(grant, "delete")
	refusedBy("partner", gwv1.ListenerReasonRefNotPermitted)
	g.eventually(time.Minute, "the certificate is not presented any more", func() error {
		leaf, err := g.presentedTo(public, "partner.test")
		if err == nil && leaf.DNSNames[0] == "partner.test" {
			err = fmt.Errorf("presented is %v", leaf.DNSNames)
		}
		return err
	})
	stored(1)
	g.kubectl(grant, "apply")
	g.expect(asPartner, "https://"+public+"/", "partner.test", "hello")
	load.end()
	if len(load.failed) > 0 {
		t.Errorf("the other listener: %d of %d failed: %s", len(load.failed), load.made, strings.Join(load.failed[:min(5, len(load.failed))], "; "))
	}

	// The application is switched to its TLS port, with what an OpenShift cluster puts into the ConfigMap.
	g.kubectl(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: service-ca
  namespace: e2e-app
data:
  service-ca.crt: |
    %s
---
apiVersion: gateway-api-openstack.dev/v1alpha1
kind: OpenStackBackendPolicy
metadata:
  name: hello
  namespace: e2e-app
spec:
  targetRefs:
  - group: ""
    kind: Service
    name: hello
    sectionName: https
  tls:
    verification: None
`, strings.ReplaceAll(strings.TrimSpace(string(leafLast(service.leaf(g, newECDSA(g), "any"))[1])), "\n", "\n    ")), "apply")
	g.kubectl("", "patch", "httproute", "hello", "--namespace=e2e-app", "--type=json", `--patch=[{"op": "replace", "path": "/spec/rules/0/backendRefs/0/port", "value": 8443}]`)
	overTLS := func() {
		t.Helper()
		g.eventually(2*time.Minute, "the backend is asked over TLS", func() error {
			a, err := get(t.Context(), asHello, "https://"+public+"/", "hello.apps.tutorial.test")
			if err == nil && (a.String() != "hello" || a.TLS.Protocol == "") {
				err = fmt.Errorf("answered by %s, over %+v", a, a.TLS)
			}
			return err
		})
	}
	overTLS()
	// With the CA, members behind an HTTPS listener must have the name that the client asked for: a service certificate has not.
	g.kubectl("", "patch", "openstackbackendpolicy", "hello", "--namespace=e2e-app", "--type=merge", `--patch={"spec": {"tls": {"verification": "Chain", "caCertificateRefs": [{"name": "service-ca"}]}}}`)
	g.expect(asHello, "https://"+public+"/", "hello.apps.tutorial.test", "503")
	redirected()

	g.kubectl("", "delete", "openstackbackendpolicy", "hello", "--namespace=e2e-app")
	g.delete(gw, hello, redirect)
	if got := g.secrets(gw); len(got) != 0 {
		t.Errorf("Barbican still has %q", got)
	}
	g.nothingLeft()
}
