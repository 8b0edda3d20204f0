package kube

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A tool and the controller compile the same.
func TestStill_givesTheSnapshotOfTheController(t *testing.T) {
	t.Parallel()
	objects := stillObjects()
	reader := newReader(t, objects...)
	want, err := reader.Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	still, err := NewStill(reader.Live, ourController, allServed)
	if err != nil {
		t.Fatal(err)
	}
	other := *reader
	other.Client, other.Live = still, still
	got, err := other.Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	// The fake has no caches that drop anything.
	for _, s := range want.EndpointSlices {
		for i := range s.Endpoints {
			s.Endpoints[i].TargetRef = nil
		}
	}
	if got, want := marshalled(t, got), marshalled(t, want); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(got.HTTPRoutes) != 1 || len(got.Services) != 1 || len(got.EndpointSlices) != 1 || len(got.Secrets) != 1 || got.Config == nil {
		t.Errorf("the snapshot is not whole: %+v", got)
	}
	whole, ok := still.Whole(got.EndpointSlices[0]).(*discoveryv1.EndpointSlice)
	if !ok || whole.Endpoints[0].TargetRef == nil {
		t.Errorf("the whole slice has no Pod: %+v", whole)
	}
}

// Each kind is read once; Secrets and ConfigMaps are never listed.
func TestStill_readsEachKindOnce(t *testing.T) {
	t.Parallel()
	lists := map[string]int{}
	counting := interceptor.NewClient(newFake(t, stillObjects()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists[reflect.TypeOf(list).Elem().Name()]++
			return c.List(ctx, list)
		},
	})
	still, err := NewStill(counting, ourController, allServed)
	if err != nil {
		t.Fatal(err)
	}
	reader := &Reader{Client: still, Live: still, Controller: ourController, ClusterID: "blue", Served: allServed}
	for range 3 {
		if _, err := reader.Snapshot(t.Context(), key("infra", "edge")); err != nil {
			t.Fatal(err)
		}
	}
	for kind, n := range lists {
		if n != 1 || kind == "SecretList" || kind == "ConfigMapList" {
			t.Errorf("%d lists of %s", n, kind)
		}
	}
}

func TestStill_laysObjectsOverTheCluster(t *testing.T) {
	t.Parallel()
	still, err := NewStill(newFake(t, stillObjects()...), ourController, allServed)
	if err != nil {
		t.Fatal(err)
	}
	reader := &Reader{Client: still, Live: still, Controller: ourController, ClusterID: "blue", Served: allServed}
	changed := route("shop", "cart", key("infra", "edge"), key("shop", "cart"))
	changed.Spec.Hostnames = []gwv1.Hostname{"new.example.com"}
	more := route("shop", "more", key("infra", "edge"), key("shop", "cart"))
	for _, o := range []client.Object{changed, more} {
		if err := still.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	s, err := reader.Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.HTTPRoutes) != 2 || len(s.HTTPRoutes[0].Spec.Hostnames) != 1 {
		t.Errorf("got %+v", s.HTTPRoutes)
	}
	// An object that is put later is found by the indexes too.
	if err := still.Put(route("shop", "third", key("infra", "edge"), key("shop", "cart"))); err != nil {
		t.Fatal(err)
	}
	if s, err = reader.Snapshot(t.Context(), key("infra", "edge")); err != nil || len(s.HTTPRoutes) != 3 {
		t.Errorf("%d routes, %v", len(s.HTTPRoutes), err)
	}
}

func TestStill_withoutAServerHasWhatWasPut(t *testing.T) {
	t.Parallel()
	still, err := NewStill(nil, ourController, allServed)
	if err != nil {
		t.Fatal(err)
	}
	if err := still.Get(t.Context(), key("infra", "edge"), &gwv1.Gateway{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if err := still.Get(t.Context(), key("infra", "cert"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	for _, o := range stillObjects() {
		if err := still.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	reader := &Reader{Client: still, Live: still, Controller: ourController, ClusterID: "blue", Served: allServed}
	s, err := reader.Snapshot(t.Context(), key("infra", "edge"))
	if err != nil || len(s.HTTPRoutes) != 1 || len(s.Secrets) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// What cannot be read is an error, never an absence.
func TestStill_failsWhenAReadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no answer")
	failing := interceptor.NewClient(newFake(t, stillObjects()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.NodeList); ok {
				return broken
			}
			return c.List(ctx, list)
		},
	})
	still, err := NewStill(failing, ourController, allServed)
	if err != nil {
		t.Fatal(err)
	}
	reader := &Reader{Client: still, Live: still, Controller: ourController, ClusterID: "blue", Served: allServed}
	for range 2 {
		if _, err := reader.Snapshot(t.Context(), key("infra", "edge")); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func stillObjects() []client.Object {
	gw := gateway("infra", "edge", "openstack")
	gw.Spec.Listeners = []gwv1.Listener{{Name: "web", Port: 443, Protocol: gwv1.HTTPSProtocolType, TLS: &gwv1.ListenerTLSConfig{
		CertificateRefs: []gwv1.SecretObjectReference{{Name: "cert"}}}}}
	ready := true
	return []client.Object{
		class("openstack", ourController), config("cloud"), gw, route("shop", "cart", key("infra", "edge"), key("shop", "cart")),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "cert"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "nobody-names-it"}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "cart-1", Labels: map[string]string{discoveryv1.LabelServiceName: "cart"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.2.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "cart-a"}}},
		},
	}
}
