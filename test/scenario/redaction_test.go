package scenario

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// A whole life with HTTPS, with everything that goes wrong: no log line, Event, status, or call other than that which stores the secret
// has anything of a private key, a certificate or a credential.
func TestSecrets_areNowhereInWhatARunWrites(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	var written strings.Builder
	note := func(what string, v any) { fmt.Fprintf(&written, "%s: %v\n", what, v) }
	ctx = ctrl.LoggerInto(ctx, funcr.New(func(prefix, args string) { note("log "+prefix, args) }, funcr.Options{Verbosity: 10}))
	w, err := newWorld(ctx, t.TempDir(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	secrets := map[string]string{}
	run := func(command string) {
		t.Helper()
		out, err := w.run(ctx, parse(command, ""))
		note(command, fmt.Sprint(out, err))
		for i, c := range w.cloud.Calls() {
			// The one place where they belong.
			if c.Service == sim.Barbican || c.Service == sim.Keystone {
				c.Body = ""
			}
			text, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			note(fmt.Sprint("call ", i), string(text))
		}
		var found corev1.SecretList
		if err := w.kube.admin.List(ctx, &found); err != nil {
			t.Fatal(err)
		}
		for _, s := range found.Items {
			for key, value := range s.Data {
				for _, form := range formsOf(value) {
					secrets[form] = s.Name + " " + key
				}
			}
		}
		for _, list := range []client.ObjectList{&gwv1.GatewayList{}, &gwv1.HTTPRouteList{}, &gwv1.GatewayClassList{}, &v1alpha1.OpenStackBackendPolicyList{}} {
			if err := w.kube.admin.List(ctx, list); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			note("objects", string(text))
		}
	}
	for _, command := range []string{
		"apply class.yaml nodes.yaml shop.yaml blog.yaml https.yaml",
		"certificate infra/shop names=shop.example.com key=RSA",
		"fault POST ^/secrets service=barbican status=500 message=a_failure",
		"reconcile", "tick 1m",
		"certificate infra/blog names=blog.example.com fault=mismatched", "reconcile",
		"certificate infra/blog names=blog.example.com",
		"fault PUT ^/listeners status=400 message=Could_not_retrieve_certificate", "reconcile", "tick 10m",
		"certificate infra/shop names=shop.example.com", "reconcile",
		"authority shop/ca", "certificate shop/client names=client.example.com", "apply policy.yaml", "reconcile",
		"status gateway/infra/edge", "events", "tree", "cloud",
		"restart", "delete gateway/infra/edge", "reconcile", "tick 10m", "events", "cloud",
	} {
		run(command)
	}
	note("state", fmt.Sprintf("%+v", w.process.gateways.Writer))
	text := written.String()
	if len(secrets) < 20 || strings.Count(text, "\n") < 100 || !strings.Contains(text, "POST") || !strings.Contains(text, "log ") {
		t.Fatalf("the test sees too little: %d forms in %d bytes", len(secrets), len(text))
	}
	for form, name := range secrets {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s is written: ...%s...", name, text[max(i-120, 0):min(i+40, len(text))])
		}
	}
}

// formsOf are the ways in which a PEM block could be written, without what all such blocks begin with.
func formsOf(text []byte) []string {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	der := block.Bytes[len(block.Bytes)/2:]
	forms := []string{hex.EncodeToString(der)[:32], strings.ToUpper(hex.EncodeToString(der)[:32]), strings.Trim(fmt.Sprintf("%d", der[:12]), "[]")}
	// A base64 text that does not begin here may be shifted by one or two bytes.
	for shift := range 3 {
		forms = append(forms, base64.StdEncoding.EncodeToString(der[shift:shift+24]), base64.RawURLEncoding.EncodeToString(der[shift:shift+24]))
	}
	return forms
}
