package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

func targets(services ...string) []gwv1.LocalPolicyTargetReferenceWithSectionName {
	var out []gwv1.LocalPolicyTargetReferenceWithSectionName
	for _, s := range services {
		out = append(out, gwv1.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Kind: "Service", Name: gwv1.ObjectName(s)}})
	}
	return out
}

// backendPolicy is for a Service of web, with a CA in a ConfigMap and in a Secret, and a client certificate.
func backendPolicy(name, service string) *v1alpha1.OpenStackBackendPolicy {
	return &v1alpha1.OpenStackBackendPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, Generation: 1, UID: "p-1"},
		Spec: v1alpha1.OpenStackBackendPolicySpec{TargetRefs: targets(service), TLS: &v1alpha1.BackendTLS{
			CACertificateRefs:    []v1alpha1.CACertificateRef{{Name: "ca"}, {Kind: v1alpha1.CACertificateSecret, Name: "ca"}},
			ClientCertificateRef: &v1alpha1.SecretName{Name: "client"},
		}},
	}
}

func backendTLSPolicy(name, service string) *gwv1.BackendTLSPolicy {
	return &gwv1.BackendTLSPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, Generation: 1},
		Spec: gwv1.BackendTLSPolicySpec{TargetRefs: targets(service), Validation: gwv1.BackendTLSPolicyValidation{
			Hostname: "web.example.com", CACertificateRefs: []gwv1.LocalObjectReference{{Kind: "ConfigMap", Name: "standard-ca"}}}},
	}
}

func withPolicies() []client.Object {
	stale := backendPolicy("stale", "unused")
	stale.Status.Ancestors = []gwv1.PolicyAncestorStatus{{AncestorRef: parentRef(key("infra", "edge")), ControllerName: ourController}}
	return append(world(), backendPolicy("site", "site"), backendPolicy("unused", "unused"), stale, backendTLSPolicy("standard", "site"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ca"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "standard-ca"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ca"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "client"}})
}

func TestSnapshot_holdsPoliciesAndWhatTheyName(t *testing.T) {
	t.Parallel()
	s, err := newReader(t, withPolicies()...).Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"backend policies":     {namesOf(s.BackendPolicies), "web/site web/stale"},
		"backend TLS policies": {namesOf(s.BackendTLSPolicies), "web/standard"},
		"secrets":              {namesOf(s.Secrets), "certs/edge-tls web/ca web/client"},
		"configMaps":           {namesOf(s.ConfigMaps), "web/ca web/standard-ca"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestWatches_mapPoliciesAndWhatTheyNameToGateways(t *testing.T) {
	t.Parallel()
	site := backendPolicy("site", "site")
	full := edit(site, func(p *v1alpha1.OpenStackBackendPolicy) {
		for i := range maxAncestors {
			p.Status.Ancestors = append(p.Status.Ancestors, gwv1.PolicyAncestorStatus{AncestorRef: parentRef(key("infra", fmt.Sprint(i))), ControllerName: "example.test/other"})
		}
	})
	ours := edit(site, func(p *v1alpha1.OpenStackBackendPolicy) {
		p.Status.Ancestors = []gwv1.PolicyAncestorStatus{{AncestorRef: parentRef(key("infra", "edge")), ControllerName: ourController, Conditions: []metav1.Condition{{Type: "Accepted"}}}}
	})
	for name, c := range map[string]struct {
		before, after client.Object
		want          string
	}{
		"policy created":            {nil, site, "infra/edge infra/inner"},
		"policy changed":            {site, spec(site, func(p *v1alpha1.OpenStackBackendPolicy) { p.Spec.TLS = nil }), "infra/edge infra/inner"},
		"policy moved":              {site, spec(site, func(p *v1alpha1.OpenStackBackendPolicy) { p.Spec.TargetRefs = targets("unused") }), "infra/edge infra/inner"},
		"policy nobody uses":        {nil, backendPolicy("x", "unused"), ""},
		"policy with an old status": {nil, edit(ours, func(p *v1alpha1.OpenStackBackendPolicy) { p.Spec.TargetRefs = targets("unused") }), "infra/edge"},
		"status written":            {site, ours, ""},
		"status lost":               {ours, site, "infra/edge infra/inner"},
		"status has room":           {full, edit(full, func(p *v1alpha1.OpenStackBackendPolicy) { p.Status.Ancestors = p.Status.Ancestors[1:] }), "infra/edge infra/inner"},
		"standard policy":           {nil, backendTLSPolicy("y", "site"), "infra/edge infra/inner"},
	} {
		if got := strings.Join(enqueued(t, newReader(t, withPolicies()...).watches(), c.before, c.after), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	r := newReader(t, withPolicies()...)
	for what, o := range map[string]client.Object{
		"CA ConfigMap": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ca"}},
		"CA Secret":    &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ca"}},
		"client":       &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "client"}},
		"standard CA":  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "standard-ca"}},
	} {
		find := r.ofConfigMap
		if _, ok := o.(*corev1.Secret); ok {
			find = r.ofSecret
		}
		keys, err := find(t.Context(), o)
		got := names(keys)
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != "infra/edge infra/inner" {
			t.Errorf("%s: got %q, %v", what, got, err)
		}
	}
}

func TestWrite_keepsPoliciesOfOthersAndRemovesStaleEntries(t *testing.T) {
	t.Parallel()
	gw := gateway("infra", "edge", "openstack")
	foreign := gwv1.PolicyAncestorStatus{AncestorRef: parentRef(key("infra", "edge")), ControllerName: "example.test/other",
		Conditions: []metav1.Condition{condition("Accepted", metav1.ConditionFalse, "Invalid", 1)}}
	used, left, full := backendPolicy("used", "site"), backendPolicy("left", "site"), backendPolicy("full", "site")
	used.Status.Ancestors = []gwv1.PolicyAncestorStatus{foreign}
	left.Status.Ancestors = []gwv1.PolicyAncestorStatus{
		foreign, {AncestorRef: parentRef(key("infra", "edge")), ControllerName: ourController, Conditions: []metav1.Condition{condition("Accepted", metav1.ConditionTrue, "Accepted", 1)}},
		{AncestorRef: parentRef(key("infra", "inner")), ControllerName: ourController, Conditions: []metav1.Condition{condition("Accepted", metav1.ConditionTrue, "Accepted", 1)}},
	}
	for i := range maxAncestors {
		a := foreign
		a.AncestorRef = parentRef(key("infra", fmt.Sprint(i)))
		full.Status.Ancestors = append(full.Status.Ancestors, a)
	}
	used.UID, left.UID, full.UID = "u", "l", "f"
	standard := backendTLSPolicy("standard", "site")
	d := newDesk(t, gw, used, left, full, standard)
	want := func(kind status.Kind, name string) status.PolicyStatus {
		return status.PolicyStatus{Object: status.Object{Kind: kind, Namespace: "web", Name: name, Generation: 1},
			Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: 1}}}
	}
	write := func() {
		t.Helper()
		var have Policies
		for _, name := range []string{"used", "left", "full"} {
			have.Backend = append(have.Backend, get(t, d.client, backendPolicy(name, "site")))
		}
		have.BackendTLS = append(have.BackendTLS, get(t, d.client, backendTLSPolicy("standard", "site")))
		if err := d.Writer.writePolicies(t.Context(), key("infra", "edge"), have, []status.PolicyStatus{
			want(status.KindBackendPolicy, "used"), want(status.KindBackendPolicy, "full"), want(status.KindBackendTLSPolicy, "standard")}); err != nil {
			t.Fatal(err)
		}
	}
	ancestors := func(o client.Object) string {
		var out []string
		for _, a := range policyStatus(get(t, d.client, o)).Ancestors {
			out = append(out, fmt.Sprintf("%s/%s=%s", a.AncestorRef.Name, a.ControllerName[strings.LastIndex(string(a.ControllerName), "/")+1:], a.Conditions[0].Reason))
		}
		return strings.Join(out, " ")
	}
	for range 2 {
		write()
		for name, expected := range map[string]string{
			"used": "edge/other=Invalid edge/gateway-controller=Accepted",
			"left": "edge/other=Invalid inner/gateway-controller=Accepted",
		} {
			if got := ancestors(backendPolicy(name, "site")); got != expected {
				t.Errorf("%s: got %q, want %q", name, got, expected)
			}
		}
		if got := ancestors(backendTLSPolicy("standard", "site")); got != "edge/gateway-controller=Accepted" {
			t.Errorf("standard: got %q", got)
		}
		if got := policyStatus(get(t, d.client, backendPolicy("full", "site"))).Ancestors; len(got) != maxAncestors {
			t.Errorf("a full status has %d entries", len(got))
		}
	}
	if err := d.Writer.ReleasePolicies(t.Context(), key("infra", "edge"), Policies{Backend: []*v1alpha1.OpenStackBackendPolicy{get(t, d.client, backendPolicy("used", "site"))}}); err != nil {
		t.Fatal(err)
	}
	if got := ancestors(backendPolicy("used", "site")); got != "edge/other=Invalid" {
		t.Errorf("after the release: %q", got)
	}
}
