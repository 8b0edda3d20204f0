package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// desk is a Writer on a fake cluster that counts and keeps its patches.
type desk struct {
	*Writer
	client  client.WithWatch
	patches []string
	events  chan string
	now     time.Time
}

func newDesk(t *testing.T, objects ...client.Object) *desk {
	t.Helper()
	d := &desk{client: newFake(t, objects...), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	record := func(p client.Patch, o client.Object) {
		body, err := p.Data(o)
		if err != nil {
			t.Error(err)
		}
		d.patches = append(d.patches, string(body))
	}
	counting := interceptor.NewClient(d.client, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			record(p, o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			record(p, o)
			return c.Patch(ctx, o, p, opts...)
		},
	})
	recorder := events.NewFakeRecorder(100)
	d.events = recorder.Events
	d.Writer = &Writer{Client: counting, Live: d.client, Controller: ourController, Events: NewEvents(recorder), Now: func() time.Time { return d.now }}
	return d
}

func get[T client.Object](t *testing.T, c client.Reader, o T) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (d *desk) drain() []string {
	var out []string
	for {
		select {
		case e := <-d.events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func condition(conditionType string, s metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: s, Reason: reason, Message: reason + ".", ObservedGeneration: generation}
}

func wantGateway(gw *gwv1.Gateway, programmed metav1.ConditionStatus, reason string) status.GatewayStatus {
	g := gw.Generation
	return status.GatewayStatus{
		Object:     status.Object{Kind: status.KindGateway, Namespace: gw.Namespace, Name: gw.Name, Generation: g},
		Conditions: []metav1.Condition{condition("Accepted", "True", "Accepted", g), condition("Programmed", programmed, reason, g)},
		Listeners: []gwv1.ListenerStatus{{Name: "http", SupportedKinds: []gwv1.RouteGroupKind{}, AttachedRoutes: 1, Conditions: []metav1.Condition{
			condition("Accepted", "True", "Accepted", g), condition("Programmed", programmed, reason, g),
		}}},
		Addresses: []gwv1.GatewayStatusAddress{{Type: new(gwv1.IPAddressType), Value: "203.0.113.5"}},
	}
}

func wantRoute(r *gwv1.HTTPRoute, refs ...gwv1.ParentReference) status.RouteStatus {
	out := status.RouteStatus{Object: status.Object{Kind: status.KindHTTPRoute, Namespace: r.Namespace, Name: r.Name, Generation: r.Generation}}
	for _, ref := range refs {
		out.Parents = append(out.Parents, gwv1.RouteParentStatus{ParentRef: ref, ControllerName: ourController, Conditions: []metav1.Condition{
			condition("Accepted", "True", "Accepted", r.Generation), condition("ResolvedRefs", "True", "ResolvedRefs", r.Generation),
		}})
	}
	return out
}

func TestWrite_makesOneWriteAndThenNone(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	d := newDesk(t, gw, site)
	for pass := range 3 {
		gw, site = get(t, d.client, gw), get(t, d.client, site)
		d.now = d.now.Add(time.Hour)
		err := d.Write(t.Context(), compile.Snapshot{Gateway: gw, HTTPRoutes: []*gwv1.HTTPRoute{site}}, status.Statuses{
			Gateway: wantGateway(gw, "True", "Programmed"), Routes: []status.RouteStatus{wantRoute(site, parentRef(edge))},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.patches) != 2 {
			t.Fatalf("pass %d: %d writes, want 2 for the Gateway and the route: %v", pass, len(d.patches), d.patches)
		}
	}
	gw = get(t, d.client, gw)
	if got := gw.Status.Conditions[0].LastTransitionTime.UTC().String(); len(gw.Status.Conditions) != 2 || got != "2026-01-02 04:04:05 +0000 UTC" {
		t.Errorf("conditions %v", gw.Status.Conditions)
	}
	if len(gw.Status.Listeners) != 1 || gw.Status.Listeners[0].AttachedRoutes != 1 || gw.Status.Addresses[0].Value != "203.0.113.5" {
		t.Errorf("status %+v", gw.Status)
	}
}

func TestWrite_movesTransitionTimeOnlyWithTheStatus(t *testing.T) {
	t.Parallel()
	gw := gateway("infra", "edge", "openstack")
	d := newDesk(t, gw)
	times := map[string]metav1.Time{}
	for i, step := range []struct {
		status metav1.ConditionStatus
		reason string
		moves  bool
	}{{"False", "Pending", true}, {"False", "NoResources", false}, {"True", "Programmed", true}} {
		d.now = d.now.Add(time.Minute)
		gw = get(t, d.client, gw)
		if err := d.Write(t.Context(), compile.Snapshot{Gateway: gw}, status.Statuses{Gateway: wantGateway(gw, step.status, step.reason)}); err != nil {
			t.Fatal(err)
		}
		gw = get(t, d.client, gw)
		c := gw.Status.Conditions[1]
		before := times[c.Type]
		if moved := !c.LastTransitionTime.Equal(&before); moved != step.moves || c.Reason != step.reason {
			t.Errorf("step %d: moved %v, condition %+v", i, moved, c)
		}
		times[c.Type] = c.LastTransitionTime
	}
}

// foreignParent has what our types do not know and what a round trip through them would change.
const foreignParent = `{"parentRef":{"group":"example.test","kind":"Mesh","name":"mesh"},"controllerName":"example.test/other",` +
	`"conditions":[{"type":"example.test/Odd","status":"Unknown","reason":"Odd","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`

func TestWrite_keepsForeignParentsAndConditions(t *testing.T) {
	t.Parallel()
	edge, inner := key("infra", "edge"), key("infra", "inner")
	var foreign gwv1.RouteParentStatus
	if err := json.Unmarshal([]byte(foreignParent), &foreign); err != nil {
		t.Fatal(err)
	}
	odd := metav1.Condition{Type: "example.test/Odd", Status: "True", Reason: "Odd", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	gw.Status.Conditions = []metav1.Condition{odd}
	gw.Status.Listeners = []gwv1.ListenerStatus{{Name: "http", Conditions: []metav1.Condition{odd}}}
	otherGateway := wantRoute(site, parentRef(inner)).Parents[0]
	stale := wantRoute(site, parentRef(edge)).Parents[0]
	stale.ParentRef.SectionName = new(gwv1.SectionName("gone"))
	site.Status.Parents = []gwv1.RouteParentStatus{stale, foreign, otherGateway, stale}
	d := newDesk(t, gw, site)
	s := compile.Snapshot{Gateway: get(t, d.client, gw), HTTPRoutes: []*gwv1.HTTPRoute{get(t, d.client, site)}}
	if err := d.Write(t.Context(), s, status.Statuses{
		Gateway: wantGateway(gw, "True", "Programmed"), Routes: []status.RouteStatus{wantRoute(site, parentRef(edge))},
	}); err != nil {
		t.Fatal(err)
	}
	gw, site = get(t, d.client, gw), get(t, d.client, site)
	if len(gw.Status.Conditions) != 3 || gw.Status.Conditions[0].Type != odd.Type || gw.Status.Listeners[0].Conditions[0].Type != odd.Type {
		t.Errorf("Gateway status %+v", gw.Status)
	}
	if len(site.Status.Parents) != 3 || site.Status.Parents[0].ControllerName != otherController ||
		site.Status.Parents[1].ParentRef.Name != "inner" || site.Status.Parents[2].ParentRef.SectionName != nil {
		t.Errorf("parents %+v", site.Status.Parents)
	}
	for _, p := range d.patches {
		if strings.Contains(p, "Odd") && strings.Contains(p, "parents") {
			t.Errorf("a patch sends what is not ours: %s", p)
		}
	}
}

func TestWrite_keepsRoutesWhenNothingIsKnownOfThem(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	site.Status.Parents = wantRoute(site, parentRef(edge)).Parents
	d := newDesk(t, gw, site)
	want := wantGateway(gw, "True", "Programmed")
	want.KeepListeners, want.Listeners = true, nil
	s := compile.Snapshot{Gateway: get(t, d.client, gw), HTTPRoutes: []*gwv1.HTTPRoute{get(t, d.client, site)}}
	if err := d.Write(t.Context(), s, status.Statuses{Gateway: want, KeepRoutes: true}); err != nil {
		t.Fatal(err)
	}
	if site = get(t, d.client, site); len(site.Status.Parents) != 1 || len(d.patches) != 1 {
		t.Errorf("parents %+v after %d writes", site.Status.Parents, len(d.patches))
	}
}

func TestWrite_neverWritesOverANewerGeneration(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	gw.Generation, site.Generation = 7, 7
	d := newDesk(t, gw, site)
	write := func(generation int64) {
		gw, site = get(t, d.client, gw), get(t, d.client, site)
		old, oldRoute := gw.DeepCopy(), site.DeepCopy()
		old.Generation, oldRoute.Generation = generation, generation
		if err := d.Write(t.Context(), compile.Snapshot{Gateway: gw, HTTPRoutes: []*gwv1.HTTPRoute{site}}, status.Statuses{
			Gateway: wantGateway(old, "True", "Programmed"), Routes: []status.RouteStatus{wantRoute(oldRoute, parentRef(edge))},
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(7)
	n := len(d.patches)
	write(6)
	if len(d.patches) != n {
		t.Fatalf("wrote %v", d.patches[n:])
	}
}

func TestWrite_readsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	site := route("web", "site", edge, key("web", "site"))
	d := newDesk(t, site)
	seen := get(t, d.client, site.DeepCopy())
	// Another controller writes in between, and makes the list longer.
	now := get(t, d.client, site.DeepCopy())
	now.Status.Parents = []gwv1.RouteParentStatus{{ParentRef: parentRef(key("infra", "foreign")), ControllerName: otherController, Conditions: []metav1.Condition{}}}
	if err := d.client.Status().Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := d.writeRoute(t.Context(), seen, scope{{kindGateway, edge}: true}, wantRoute(site, parentRef(edge))); err != nil {
		t.Fatal(err)
	}
	if got := get(t, d.client, site).Status.Parents; len(got) != 2 || got[0].ControllerName != otherController || got[1].ControllerName != ourController {
		t.Errorf("parents %+v", got)
	}
	if len(d.patches) != 2 {
		t.Errorf("%d attempts", len(d.patches))
	}
	if len(seen.Status.Parents) != 0 {
		t.Error("the caller's object was changed")
	}
}

func TestWrite_ofGoneObjectsIsNoError(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	d := newDesk(t)
	if err := d.Write(t.Context(), compile.Snapshot{Gateway: gw, HTTPRoutes: []*gwv1.HTTPRoute{site}}, status.Statuses{
		Gateway: wantGateway(gw, "True", "Programmed"), Routes: []status.RouteStatus{wantRoute(site, parentRef(edge))},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestWrite_keepsListsWithinTheirLimits(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	for i := range 31 {
		site.Status.Parents = append(site.Status.Parents, gwv1.RouteParentStatus{ParentRef: parentRef(key("x", fmt.Sprint(i))), ControllerName: otherController})
	}
	for i := range 7 {
		gw.Status.Conditions = append(gw.Status.Conditions, metav1.Condition{Type: fmt.Sprintf("example.test/C%d", i), LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))})
	}
	second := parentRef(edge)
	second.SectionName = new(gwv1.SectionName("http"))
	d := newDesk(t, gw, site)
	s := compile.Snapshot{Gateway: get(t, d.client, gw), HTTPRoutes: []*gwv1.HTTPRoute{get(t, d.client, site)}}
	if err := d.Write(t.Context(), s, status.Statuses{
		Gateway: wantGateway(gw, "True", "Programmed"), Routes: []status.RouteStatus{wantRoute(site, parentRef(edge), second)},
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(get(t, d.client, site).Status.Parents); n != 32 {
		t.Errorf("%d parents", n)
	}
	if n := len(get(t, d.client, gw).Status.Conditions); n != 8 {
		t.Errorf("%d conditions", n)
	}
}

func TestRelease_removesOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	edge := key("infra", "edge")
	gw, site := gateway("infra", "edge", "openstack"), route("web", "site", edge, key("web", "site"))
	gw.Status.Conditions = []metav1.Condition{{Type: "Accepted"}, {Type: "example.test/Odd"}, {Type: "Programmed"}}
	gw.Status.Addresses = wantGateway(gw, "True", "x").Addresses
	gw.Status.Listeners = wantGateway(gw, "True", "x").Listeners
	site.Status.Parents = append(wantRoute(site, parentRef(edge), parentRef(key("infra", "inner"))).Parents,
		gwv1.RouteParentStatus{ParentRef: parentRef(edge), ControllerName: otherController})
	d := newDesk(t, gw, site)
	if err := d.ReleaseRoutes(t.Context(), edge, nil, []*gwv1.HTTPRoute{get(t, d.client, site)}); err != nil {
		t.Fatal(err)
	}
	if err := d.ReleaseGateway(t.Context(), get(t, d.client, gw)); err != nil {
		t.Fatal(err)
	}
	if p := get(t, d.client, site).Status.Parents; len(p) != 2 || p[0].ParentRef.Name != "inner" || p[1].ControllerName != otherController {
		t.Errorf("parents %+v", p)
	}
	fresh := get(t, d.client, &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}})
	if s := fresh.Status; len(s.Conditions) != 1 || s.Conditions[0].Type != "example.test/Odd" || len(s.Addresses)+len(s.Listeners) != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestWriteClass_writesOnce(t *testing.T) {
	t.Parallel()
	c := class("openstack", ourController)
	d := newDesk(t, c)
	for range 3 {
		c = get(t, d.client, c)
		if err := d.WriteClass(t.Context(), c, []status.Condition{status.ClassAccepted(nil), status.ClassSupportedVersion(status.CRD{Version: "v1.6.3"})}, status.SupportedFeatures(nil)); err != nil {
			t.Fatal(err)
		}
	}
	c = get(t, d.client, c)
	if len(d.patches) != 1 || len(c.Status.Conditions) != 2 || len(c.Status.SupportedFeatures) != len(status.SupportedFeatures(nil)) {
		t.Errorf("%d writes, status %+v", len(d.patches), c.Status)
	}
}

func TestFinalizer_isAddedAndRemovedWithoutTouchingOthers(t *testing.T) {
	t.Parallel()
	gw := gateway("infra", "edge", "openstack")
	gw.Finalizers = []string{"example.test/a"}
	d := newDesk(t, gw)
	stale := get(t, d.client, gw.DeepCopy())
	now := get(t, d.client, gw.DeepCopy())
	now.Finalizers = append(now.Finalizers, "example.test/b")
	if err := d.client.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := d.AddFinalizer(t.Context(), stale, api.Finalizer); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(get(t, d.client, gw).Finalizers, " "); got != "example.test/a example.test/b "+api.Finalizer {
		t.Errorf("finalizers %q", got)
	}
	if len(stale.Finalizers) != 1 {
		t.Error("the caller's object was changed")
	}
	if err := d.RemoveFinalizer(t.Context(), stale, api.Finalizer); err != nil {
		t.Fatal(err)
	}
	// The stale object had none: the writer believes it. With a current one it goes.
	if err := d.RemoveFinalizer(t.Context(), get(t, d.client, gw), api.Finalizer); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(get(t, d.client, gw).Finalizers, " "); got != "example.test/a example.test/b" {
		t.Errorf("finalizers %q", got)
	}
	deleting := get(t, d.client, gw).DeepCopy()
	deleting.DeletionTimestamp = new(metav1.Now())
	if err := d.AddFinalizer(t.Context(), deleting, api.Finalizer); err == nil || !strings.Contains(err.Error(), "being deleted") {
		t.Errorf("got %v", err)
	}
	gone := gateway("infra", "gone", "openstack")
	gone.Finalizers = []string{api.Finalizer}
	if err := d.RemoveFinalizer(t.Context(), gone, api.Finalizer); err != nil {
		t.Error(err)
	}
	if err := d.AddFinalizer(t.Context(), gateway("infra", "gone", "openstack"), api.Finalizer); err == nil {
		t.Error("a finalizer was added to nothing")
	}
}

func TestEvents_tellTransitionsOnce(t *testing.T) {
	t.Parallel()
	gw := gateway("infra", "edge", "openstack")
	d := newDesk(t, gw)
	clock := d.now
	d.Events.now = func() time.Time { return clock }
	write := func(s metav1.ConditionStatus, reason string) []string {
		gw = get(t, d.client, gw)
		if err := d.Write(t.Context(), compile.Snapshot{Gateway: gw}, status.Statuses{Gateway: wantGateway(gw, s, reason)}); err != nil {
			t.Fatal(err)
		}
		return d.drain()
	}
	for i, step := range []struct {
		status metav1.ConditionStatus
		reason string
		want   string
	}{
		{"False", "Pending", ""},
		{"True", "Programmed", "Normal Programmed"},
		{"True", "Programmed", ""},
		{"False", "NoResources", "Warning NoResources"},
		// It flaps: the same again within ten minutes is not told.
		{"True", "Programmed", ""},
		{"False", "NoResources", ""},
	} {
		if got := strings.Join(write(step.status, step.reason), "; "); !strings.HasPrefix(got, step.want) || (step.want == "") != (got == "") {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	clock = clock.Add(repeatAfter)
	if got := write("True", "Programmed"); len(got) != 1 {
		t.Errorf("after ten minutes: %v", got)
	}
}

func TestEvents_areSafeWithAnything(t *testing.T) {
	t.Parallel()
	var none *Events
	none.Warning(gateway("a", "b", "c"), "R", "A", "x")
	recorder := events.NewFakeRecorder(2)
	e := NewEvents(recorder)
	e.Warning(gateway("a", "b", "c"), "R", "A", strings.Repeat("100%s é", 500))
	if got := <-recorder.Events; strings.Contains(got, "MISSING") || len(got) > maxNote+20 {
		t.Errorf("%d bytes: %.60s", len(got), got)
	}
	for i := range 3 * maxRemembered {
		e.first(sentEvent{uid: types.UID(fmt.Sprint(i))})
	}
	if len(e.sent) > maxRemembered {
		t.Errorf("%d remembered", len(e.sent))
	}
}
