package controller

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

type recorder struct{ said []string }

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.said = append(r.said, strings.Join([]string{kind, reason, action, fmt.Sprintf(note, args...)}, " "))
}

// drifts reads the metric as Prometheus would.
func drifts(t *testing.T, kind lb.Kind) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "gateway_api_openstack_drift_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" && l.GetValue() == string(kind) {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func TestTellDrift_countsEachStepByKind(t *testing.T) {
	events := &recorder{}
	r := &GatewayReconciler{Writer: &kube.Writer{Events: kube.NewEvents(events)}}
	todo := plan.Plan{Steps: []plan.Step{
		{Verb: plan.Update, Kind: lb.KindRule, Ref: plan.Ref{Key: "PATH"}, Reason: "not as wanted"},
		{Verb: plan.Update, Kind: lb.KindRule}, {Verb: plan.Update, Kind: lb.KindMembers},
	}}
	rules, members := drifts(t, lb.KindRule), drifts(t, lb.KindMembers)
	p := &pass{snapshot: compile.Snapshot{Gateway: &gwv1.Gateway{}}}

	r.tellDrift(p, todo) // The wish is new: the steps are its.
	if len(events.said) > 0 || drifts(t, lb.KindRule) != rules {
		t.Errorf("a new wish is told as drift: %q", events.said)
	}
	p.drift = true
	r.tellDrift(p, plan.Plan{})
	if len(events.said) > 0 {
		t.Errorf("nothing to do is told as drift: %q", events.said)
	}
	r.tellDrift(p, todo)
	if got := drifts(t, lb.KindRule) - rules; got != 2 {
		t.Errorf("%v rules counted", got)
	}
	if got := drifts(t, lb.KindMembers) - members; got != 1 {
		t.Errorf("%v sets of members counted", got)
	}
	if len(events.said) != 1 || !strings.HasPrefix(events.said[0], corev1.EventTypeWarning+" Drift Restore ") || !strings.Contains(events.said[0], "restore it: 3,") {
		t.Errorf("told %q", events.said)
	}
}

// Only what never served is made anew, whatever the status of the Gateway says: it can be lost.
func TestStartsAnew_onlyWhatNeverServed(t *testing.T) {
	t.Parallel()
	broken := &cloud.Error{Class: cloud.Broken}
	failed := func() *lb.Tree {
		return &lb.Tree{
			Meta: lb.Meta{ID: "lb", ProvisioningStatus: lb.Errored}, VIP: lb.VIP{PortID: "port"},
			Listeners: []lb.Listener{{Meta: lb.Meta{ID: "l", ProvisioningStatus: lb.Errored}, Policies: []lb.Policy{{Meta: lb.Meta{ID: "p", ProvisioningStatus: lb.PendingCreate}}}}},
			Pools:     []lb.Pool{{Meta: lb.Meta{ID: "pool", ProvisioningStatus: lb.PendingCreate}}},
		}
	}
	for name, c := range map[string]struct {
		change func(*lb.Tree, *gwv1.Gateway)
		err    error
		want   bool
	}{
		"a create that failed": {want: true},
		"a floating IP of the one before it": {want: true, change: func(t *lb.Tree, _ *gwv1.Gateway) {
			t.FloatingIP = &lb.FloatingIP{ID: "f", Address: "198.18.0.2"}
		}},
		"it has an address in the status": {change: func(_ *lb.Tree, gw *gwv1.Gateway) {
			gw.Status.Addresses = []gwv1.GatewayStatusAddress{{Value: "198.18.0.2"}}
		}},
		"a floating IP was put on it": {change: func(t *lb.Tree, _ *gwv1.Gateway) {
			t.FloatingIP = &lb.FloatingIP{ID: "f", Address: "198.18.0.2", PortID: "port"}
		}},
		"a listener was ACTIVE": {change: func(t *lb.Tree, _ *gwv1.Gateway) { t.Listeners[0].ProvisioningStatus = lb.Active }},
		"a policy was ACTIVE":   {change: func(t *lb.Tree, _ *gwv1.Gateway) { t.Listeners[0].Policies[0].ProvisioningStatus = lb.PendingUpdate }},
		"a pool was ACTIVE":     {change: func(t *lb.Tree, _ *gwv1.Gateway) { t.Pools[0].ProvisioningStatus = lb.Active }},
		"somebody else uses it": {change: func(t *lb.Tree, _ *gwv1.Gateway) { t.Foreign = []lb.Foreign{{Kind: lb.KindPool, ID: "x"}} }},
		"it is only busy":       {err: &cloud.Error{Class: cloud.Wait}},
	} {
		have, gw := failed(), &gwv1.Gateway{}
		if c.change != nil {
			c.change(have, gw)
		}
		if c.err == nil {
			c.err = broken
		}
		p := &pass{snapshot: compile.Snapshot{Gateway: gw}}
		if got := (&GatewayReconciler{}).startsAnew(p, &lb.Tree{Meta: lb.Meta{Name: "gw"}, Listeners: have.Listeners}, have, c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
