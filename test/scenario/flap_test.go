package scenario

import (
	"context"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// A failure that lasts is told once: statuses are not written again by the passes that fail in the same way, whatever has failed.
func TestStatus_repeatedFailuresWriteNothing(t *testing.T) {
	t.Parallel()
	const objects = "apply class.yaml nodes.yaml shop.yaml gateway.yaml"
	before, serving := []string{objects}, []string{objects, "reconcile", "apply blog.yaml"}
	for name, c := range map[string]struct {
		commands []string
		fault    string
	}{
		"Octavia down":                     {before, "fault GET . service=octavia status=503 times=-1"},
		"Octavia down while serving":       {serving, "fault GET . service=octavia status=503 times=-1"},
		"Octavia cut off":                  {serving, "fault GET . service=octavia cut=before times=-1"},
		"Octavia refuses to write":         {serving, "fault POST ^/pools$ status=500 times=-1"},
		"Octavia is always busy":           {serving, "fault POST ^/pools$ status=409 message=is_immutable times=-1"},
		"throttled":                        {serving, "fault GET . status=429 retry-after=20 times=-1"},
		"Neutron down":                     {before, "fault GET . service=neutron status=502 times=-1"},
		"Keystone down":                    {append(serving[:3:3], "tokens"), "fault POST ^/auth/tokens$ service=keystone status=503 times=-1"},
		"credentials revoked":              {serving, "revoke"},
		"credentials revoked from the off": {before, "revoke"},
		"a permission is missing":          {before, "fault POST ^/loadbalancers$ status=403 times=-1"},
		"a permission went":                {serving, "fault POST ^/pools$ status=403 times=-1"},
		"quota of load balancers":          {before, "quota loadbalancer 0"},
		"quota of pools":                   {serving, "quota pool 2"},
		"quota of floating IPs":            {before, "quota floatingip 0"},
		"no address left":                  {before, "fault POST ^/floatingips$ status=409 message=No_more_IP_addresses_available times=-1"},
		"refused as invalid":               {before, "fault POST ^/loadbalancers$ status=400 message=Validation_failure times=-1"},
		"a worker died at a create":        {before, "fault POST ^/loadbalancers$ stuck=yes"},
		"a worker died while serving":      {serving, "fault POST ^/pools$ stuck=yes"},
		"in ERROR while serving":           {serving, "fault POST ^/pools$ error=loadbalancer times=-1"},
		"a child in ERROR":                 {serving, "fault POST ^/pools$ error=pool times=-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), hung)
			defer cancel()
			w, err := newWorld(ctx, t.TempDir(), sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			run := func(command string) string {
				out, err := w.run(ctx, parse(command, ""))
				if err != nil {
					t.Fatalf("%s: %v", command, err)
				}
				return out
			}
			for _, command := range append(c.commands, c.fault, "reconcile", "tick 1h") {
				run(command)
			}
			before := w.kube.patched
			said := run("tick 90m")
			if n := w.kube.patched - before; n != 0 {
				t.Errorf("%d statuses were written again:\n%s\n%s", n, said, run("status gateway/infra/edge"))
			}
			if !strings.Contains(said, "gateway/infra/edge") {
				t.Errorf("no pass was made:\n%s", said)
			}
		})
	}
}
