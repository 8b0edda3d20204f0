package scenario

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// stageOf runs commands in a new world and returns what the last one said.
func stageOf(t *testing.T, opts sim.Options) (w *world, run func(commands ...string) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	t.Cleanup(cancel)
	w, err := newWorld(ctx, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w, func(commands ...string) (out string) {
		t.Helper()
		for _, c := range commands {
			if out, err = w.run(ctx, parse(c, "")); err != nil {
				t.Fatalf("%s: %v", c, err)
			}
		}
		return out
	}
}

// programmed says how each listener of Gateway five is.
func programmed(t *testing.T, w *world) map[string]string {
	t.Helper()
	var gw gwv1.Gateway
	if err := w.kube.admin.Get(t.Context(), client.ObjectKey{Namespace: "infra", Name: "five"}, &gw); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range gw.Status.Listeners {
		if c := meta.FindStatusCondition(l.Conditions, string(gwv1.ListenerConditionProgrammed)); c != nil {
			out[string(l.Name)] = c.Reason + ": " + c.Message
		}
	}
	return out
}

// Octavia does not say which certificate it cannot parse. It is found all the same, and only its listener is not served.
func TestCertificates_onlyTheRefusedOnesAreLeftOut(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]string{"the first": {"a"}, "the last": {"e"}, "two": {"b", "d"}, "all": {"a", "b", "c", "d", "e"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, b := range bad {
				names = append(names, b+".example.com")
			}
			w, run := stageOf(t, sim.Options{UnreadableNames: names})
			run("apply class.yaml nodes.yaml shop.yaml five.yaml")
			for _, n := range strings.Split("abcde", "") {
				run("certificate infra/" + n + " names=" + n + ".example.com")
			}
			run("reconcile")
			check := func(when string) {
				t.Helper()
				for l, says := range programmed(t, w) {
					refused := strings.Contains(strings.Join(bad, ""), l)
					if refused != strings.HasPrefix(says, "Invalid: The cloud does not take the certificate of Secret infra/"+l) || !refused && !strings.HasPrefix(says, "Programmed") {
						t.Errorf("%s: listener %s says %s", when, l, says)
					}
				}
			}
			check("at first")
			stored := strings.Count(run("calls"), "barbican POST")
			if stored != 5 {
				t.Errorf("%d secrets were stored", stored)
			}
			run("tick 2h")
			check("after two hours")
			if calls := run("calls"); strings.Contains(calls, "barbican POST") || strings.Count(calls, " 400") > 150 {
				t.Errorf("calls in two hours:\n%s", calls)
			}
			// The Secrets are mended: everything is served, and nothing is left behind.
			for _, b := range bad {
				run("certificate infra/" + b + " names=*.example.com," + b + "2.example.com")
				run("delete secret/infra/" + b)
			}
			run("reconcile", "delete gateway/infra/five", "reconcile", "tick 10m")
			// Octavia leaves the port of a load balancer behind whose creation it refuses.
			if left := run("cloud"); left != "ports 1" {
				t.Errorf("left in the cloud:\n%s", left)
			}
		})
	}
}

// A renewed certificate that is refused leaves the old one in service, also after a restart, until one is taken.
func TestCertificates_refusedRenewalKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	w, run := stageOf(t, sim.Options{UnreadableNames: []string{"bad.example.com"}})
	run("apply class.yaml nodes.yaml shop.yaml five.yaml")
	for _, n := range strings.Split("abcde", "") {
		run("certificate infra/" + n + " names=" + n + ".example.com")
	}
	run("reconcile", "calls", "certificate infra/c names=c.example.com,bad.example.com", "certificate infra/d names=d.example.com", "reconcile")
	expect := func(when string, secrets string) {
		t.Helper()
		says := programmed(t, w)
		if !strings.Contains(says["c"], "served with what it had before") || !strings.HasPrefix(says["d"], "Programmed") {
			t.Errorf("%s: %v", when, says)
		}
		if left := run("cloud"); !strings.HasSuffix(left, secrets) {
			t.Errorf("%s: %s", when, left)
		}
	}
	expect("after the renewal", "secrets 6")
	run("restart", "reconcile")
	expect("after a restart", "secrets 6")
	run("certificate infra/c names=c.example.com", "reconcile")
	if says := programmed(t, w); !strings.HasPrefix(says["c"], "Programmed") {
		t.Errorf("after another renewal: %v", says)
	}
	if left := run("cloud"); !strings.HasSuffix(left, "secrets 5") {
		t.Errorf("after another renewal: %s", left)
	}
}

// Barbican refuses one certificate: the others are stored and served.
func TestCertificates_refusedByBarbican(t *testing.T) {
	t.Parallel()
	w, run := stageOf(t, sim.Options{})
	run("apply class.yaml nodes.yaml shop.yaml five.yaml")
	for _, n := range strings.Split("abcde", "") {
		run("certificate infra/" + n + " names=" + n + ".example.com")
	}
	run("fault POST ^/secrets service=barbican status=413 message=too_large", "reconcile")
	served := 0
	for _, says := range programmed(t, w) {
		if strings.HasPrefix(says, "Programmed") {
			served++
		}
	}
	if served != 5 {
		t.Errorf("%d listeners are served, want all but one: %v", served, programmed(t, w))
	}
	run("tick 10m")
	for l, says := range programmed(t, w) {
		if !strings.HasPrefix(says, "Programmed") {
			t.Errorf("listener %s says %s", l, says)
		}
	}
}

// What an administrator prohibits costs one refused call, and everything is served without it.
func TestCertificates_areServedWithWhatTheAdministratorAllows(t *testing.T) {
	t.Parallel()
	w, run := stageOf(t, sim.Options{ProhibitedCiphers: []string{"DHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"}, MinimumTLSVersion: "TLSv1.3"})
	run("apply class.yaml nodes.yaml shop.yaml five.yaml", "certificate infra/a names=a.example.com", "reconcile", "tick 1m")
	if says := programmed(t, w)["a"]; !strings.HasPrefix(says, "Programmed") {
		t.Errorf("listener a says %s", says)
	}
	if calls := run("calls"); strings.Count(calls, " 400") > 2 {
		t.Error(calls)
	}
}
