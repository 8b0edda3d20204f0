package kube

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A ListenerSet gets its status, also when it is not allowed, and loses it with its Gateway.
func TestCluster_listenerSetsGetTheirStatus(t *testing.T) {
	t.Parallel()
	g := newGround(t, "sets")
	gw := g.gateway("edge")
	gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: new(gwv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": g.ns("web")},
	}}}
	newSet := func(namespace, name string, listeners ...gwv1.ListenerEntry) *gwv1.ListenerSet {
		s := listenerSet(namespace, name, key(g.ns("infra"), "edge"))
		s.Generation, s.UID, s.Spec.Listeners = 0, "", listeners
		return s
	}
	all := &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}}
	extra := newSet(g.ns("web"), "extra",
		gwv1.ListenerEntry{Name: "more", Port: 81, Protocol: gwv1.HTTPProtocolType, AllowedRoutes: all},
		gwv1.ListenerEntry{Name: "taken", Port: 80, Protocol: gwv1.HTTPProtocolType, AllowedRoutes: all})
	stranger := newSet(g.ns("finance"), "stranger", gwv1.ListenerEntry{Name: "more", Port: 82, Protocol: gwv1.HTTPProtocolType})
	r := g.route("site", "edge", key(g.ns("web"), "site"))
	r.Spec.ParentRefs = []gwv1.ParentReference{{Group: new(gwv1.Group(gwv1.GroupName)), Kind: new(gwv1.Kind("ListenerSet")), Name: "extra", SectionName: new(gwv1.SectionName("more"))}}
	g.create(g.service(g.ns("web"), "site"), gw, extra, stranger, r)

	state := func(s *gwv1.ListenerSet) string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		var all []string
		tell := func(prefix string, conditions []metav1.Condition) {
			for _, c := range conditions {
				all = append(all, fmt.Sprintf("%s%s=%s/%s", prefix, c.Type, c.Status, c.Reason))
			}
		}
		tell("", s.Status.Conditions)
		for _, l := range s.Status.Listeners {
			all = append(all, fmt.Sprintf("%s:%d", l.Name, l.AttachedRoutes))
			tell(string(l.Name)+":", l.Conditions)
		}
		return strings.Join(all, " ")
	}
	becomes := func(s *gwv1.ListenerSet, want string) {
		t.Helper()
		g.eventually("ListenerSet "+s.Name, func() string {
			if got := state(s); got != want {
				return got
			}
			return ""
		})
	}
	becomes(extra, "Accepted=True/ListenersNotValid Programmed=True/Programmed "+
		"more:1 more:Accepted=True/Accepted more:Programmed=True/Programmed more:ResolvedRefs=True/ResolvedRefs more:Conflicted=False/NoConflicts "+
		"taken:0 taken:Accepted=False/HostnameConflict taken:Programmed=False/HostnameConflict taken:ResolvedRefs=True/ResolvedRefs taken:Conflicted=True/HostnameConflict")
	becomes(stranger, "Accepted=False/NotAllowed Programmed=False/NotAllowed")
	g.waitParent(r, "more", "Accepted", "True/Accepted")
	g.eventually("attachedListenerSets", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		if n := gw.Status.AttachedListenerSets; n == nil || *n != 1 {
			return fmt.Sprintf("%v", n)
		}
		return ""
	})

	_, before := g.settled()
	gw.Labels = map[string]string{"noise": "yes"}
	gw.Spec.Listeners[0].Name = "renamed"
	if err := g.Update(t.Context(), gw); err != nil {
		t.Fatal(err)
	}
	g.eventually("a new listener", func() string {
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err.Error()
		}
		if len(gw.Status.Listeners) != 1 || gw.Status.Listeners[0].Name != "renamed" {
			return fmt.Sprint(gw.Status.Listeners)
		}
		return ""
	})
	if _, after := g.settled(); after != before+1 {
		t.Errorf("%d writes, only the Gateway's status changes", after-before)
	}

	// What another one takes away comes back.
	extra.Status.Listeners = nil
	if err := g.Status().Update(t.Context(), extra); err != nil {
		t.Fatal(err)
	}
	g.eventually("the lost entries", func() string {
		if got := state(extra); !strings.Contains(got, "more:1 ") {
			return got
		}
		return ""
	})

	g.delete(gw)
	g.eventually("the status of a set without a Gateway", func() string {
		if got := state(extra); strings.Contains(got, "True") || strings.Contains(got, "more") {
			return got
		}
		return ""
	})
	g.eventually("the status of its route", func() string {
		if got, _ := g.parentCondition(r, "more", "Accepted"); got != "" {
			return got
		}
		return ""
	})
}
