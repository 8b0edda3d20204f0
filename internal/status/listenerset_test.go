package status

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func TestFor_listenerSets(t *testing.T) {
	t.Parallel()
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", Generation: 3}}
	gateway.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	set := func(name string, listeners ...gwv1.ListenerEntry) *gwv1.ListenerSet {
		s := &gwv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 5}}
		s.Spec.Listeners = listeners
		return s
	}
	object := func(name string) Object {
		return Object{Kind: KindListenerSet, Namespace: "team", Name: name, Generation: 5}
	}
	own := set("own", gwv1.ListenerEntry{Name: "b", Port: 81, Protocol: gwv1.HTTPProtocolType}, gwv1.ListenerEntry{Name: "a", Port: 80, Protocol: gwv1.HTTPProtocolType})
	verdicts := []Verdict{
		{Object: Object{Kind: KindGateway, Namespace: "infra", Name: "edge", Generation: 3}, AttachedListenerSets: 1},
		{Object: Object{Kind: KindGateway, Namespace: "infra", Name: "edge", Generation: 3}, Listener: "http", Conditions: []Condition{ListenerAccepted()}},
		{Object: object("own"), Conditions: ListenerSetPartlyValid([]string{"a"})},
		{Object: object("own"), Listener: "a", Conditions: []Condition{ListenerNotAcceptedConflict(gwv1.ListenerReasonHostnameConflict, 80), ListenerHostnameConflict(80, []string{"the Gateway"})}},
		{Object: object("own"), Listener: "b", AttachedRoutes: 2, Conditions: []Condition{ListenerAccepted()}},
		{Object: object("stranger"), Conditions: ListenerSetNotAllowed()},
	}
	text := func(conditions []metav1.Condition) string {
		var all []string
		for _, c := range conditions {
			if c.ObservedGeneration != 5 {
				t.Errorf("%s was observed for %d", c.Type, c.ObservedGeneration)
			}
			all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		return strings.Join(all, " ")
	}
	have := func(ports ...int) *lb.Tree {
		tree := &lb.Tree{Meta: lb.Meta{ID: "lb", Name: "lb", ProvisioningStatus: lb.Active}, VIP: lb.VIP{Address: "192.0.2.1"}}
		for _, p := range ports {
			tree.Listeners = append(tree.Listeners, lb.Listener{Meta: lb.Meta{ID: "l", ProvisioningStatus: lb.Active}, Port: p})
		}
		return tree
	}
	for _, c := range []struct {
		name    string
		have    *lb.Tree
		outcome OutcomeKind
		set, b  string
	}{
		{"programmed", have(80, 81), Programmed, "Programmed=True/Programmed", "Programmed=True/Programmed"},
		{"on the way", have(80), Pending, "Programmed=Unknown/Pending", "Programmed=False/Pending"},
		{"no load balancer yet", &lb.Tree{}, Pending, "Programmed=False/ParentNotProgrammed", "Programmed=False/Pending"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := For(Input{
				Gateway: gateway, ListenerSets: []*gwv1.ListenerSet{own, set("stranger", own.Spec.Listeners...)}, Compiled: true, Verdicts: verdicts,
				Want: lb.Tree{Meta: lb.Meta{Name: "lb"}}, Have: c.have, Outcome: Outcome{Kind: c.outcome},
			})
			if n := out.Gateway.AttachedListenerSets; n == nil || *n != 1 {
				t.Errorf("attachedListenerSets %v", n)
			}
			if len(out.ListenerSets) != 2 || len(out.ListenerSets[0].Listeners) != 2 {
				t.Fatalf("statuses %+v", out.ListenerSets)
			}
			first, stranger := out.ListenerSets[0], out.ListenerSets[1]
			if got, want := text(first.Conditions), "Accepted=True/ListenersNotValid "+c.set; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if l := first.Listeners[0]; l.Name != "b" || l.AttachedRoutes != 2 || !strings.Contains(text(l.Conditions), c.b) {
				t.Errorf("listener %+v", l)
			}
			if l := first.Listeners[1]; !strings.Contains(text(l.Conditions), "Programmed=False/Invalid") || !strings.Contains(text(l.Conditions), "Conflicted=True/HostnameConflict") {
				t.Errorf("listener %+v", l)
			}
			if got, want := text(stranger.Conditions), "Accepted=False/NotAllowed Programmed=False/NotAllowed"; got != want || len(stranger.Listeners) != 0 {
				t.Errorf("got %s %v, want %s", got, stranger.Listeners, want)
			}
		})
	}
	if out := For(Input{Gateway: gateway, Compiled: true}); out.Gateway.AttachedListenerSets != nil || out.ListenerSets != nil {
		t.Errorf("without ListenerSets: %+v", out)
	}
	if out := For(Input{Gateway: gateway, ListenerSets: []*gwv1.ListenerSet{own}}); out.Gateway.AttachedListenerSets != nil || out.ListenerSets != nil || !out.KeepRoutes {
		t.Errorf("without a compile: %+v", out)
	}
}
