package kube

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// What the API server refuses of an OpenStackBackendPolicy, and what people then read.
func TestBackendPolicyCRD_refusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	c, err := client.New(cluster(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const target = "targetRefs: [{group: '', kind: Service, name: web}]\n"
	for _, test := range []struct{ name, spec, says string }{
		{"everything", `
targetRefs:
- {group: "", kind: Service, name: web}
- {group: "", kind: Service, name: web, sectionName: https}
- {group: "", kind: Service, name: shop, sectionName: "8443"}
healthMonitor: {type: HTTP, method: HEAD, path: /healthz, expectedCodes: 200-204, delaySeconds: 10, timeoutSeconds: 5}
algorithm: LeastConnections
sessionPersistence: {type: SourceIP}
tls:
  caCertificateRefs: [{name: ca}, {kind: Secret, name: more, key: ca-bundle.pem}]
  clientCertificateRef: {name: client}
  versions: [TLSv1.2, TLSv1.3]
  ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384]
`, ""},
		{"unverified", target + "tls: {verification: None}", ""},
		{"defaults", target + "tls: {caCertificateRefs: [{name: ca}]}\nsessionPersistence: {}\nhealthMonitor: {}", ""},

		{"nothing asked for", target, "set at least one of healthMonitor, algorithm, sessionPersistence and tls"},
		{"no target", "algorithm: SourceIP\ntargetRefs: []", "spec.targetRefs in body should have at least 1 item"},
		{"another kind", "algorithm: SourceIP\ntargetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]", "targets must be Services"},
		{"a target twice", "algorithm: SourceIP\ntargetRefs: [{group: '', kind: Service, name: web}, {group: '', kind: Service, name: web}]", "targets must differ in name or sectionName"},
		{"a port twice", "algorithm: SourceIP\ntargetRefs: [{group: '', kind: Service, name: web, sectionName: a}, {group: '', kind: Service, name: web, sectionName: a}]", "targets must differ in name or sectionName"},
		{"an unknown algorithm", target + "algorithm: Random", `Unsupported value: "Random"`},
		{"tls without a CA", target + "tls: {}", "verification Chain, the default, needs caCertificateRefs"},
		{"no CA in the list", target + "tls: {caCertificateRefs: []}", "should have at least 1 item"},
		{"a CA that is not looked at", target + "tls: {verification: None, caCertificateRefs: [{name: ca}]}", "None forbids them"},
		{"a CA elsewhere", target + "tls: {caCertificateRefs: [{kind: Service, name: ca}]}", `Unsupported value: "Service"`},
		{"an unknown version", target + "tls: {verification: None, versions: [SSLv3]}", `Unsupported value: "SSLv3"`},
		{"a cipher list in one string", target + "tls: {verification: None, ciphers: ['A:B']}", "should match"},
		{"a path of a TCP check", target + "healthMonitor: {path: /healthz}", "method, path and expectedCodes need type HTTP"},
		{"an HTTPS check", target + "healthMonitor: {type: HTTPS}", `Unsupported value: "HTTPS"`},
		{"a timeout beyond the delay", target + "healthMonitor: {delaySeconds: 2, timeoutSeconds: 3}", "timeoutSeconds must not exceed delaySeconds"},
		{"a method that changes things", target + "healthMonitor: {type: HTTP, method: DELETE}", `Unsupported value: "DELETE"`},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(test.spec), &spec); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("gateway-api-openstack.dev/v1alpha1")
		o.SetKind("OpenStackBackendPolicy")
		o.SetNamespace("default")
		o.SetGenerateName("policy-")
		o.Object["spec"] = spec
		err := c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.says != "" && !apierrors.IsInvalid(err):
			t.Errorf("%s: got %v", test.name, err)
		case test.says != "" && !strings.Contains(err.Error(), test.says):
			t.Errorf("%s: the message does not say %q: %v", test.name, test.says, err)
		}
	}
}
