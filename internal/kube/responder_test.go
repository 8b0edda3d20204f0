package kube

import (
	"context"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

func responderConfig(name string) *v1alpha1.OpenStackGatewayClassConfig {
	c := config(name)
	c.Spec.Responder = &v1alpha1.Responder{Service: v1alpha1.ServiceName{Namespace: "system", Name: "responder"}}
	return c
}

func TestSnapshot_holdsTheResponder(t *testing.T) {
	t.Parallel()
	r := newReader(t, class("openstack", ourController), responderConfig("cloud"), gateway("infra", "edge", "openstack"),
		service("system", "responder"), endpoints("system", "responder", "responder-1"), service("system", "other"))
	s, err := r.Snapshot(t.Context(), key("infra", "edge"))
	if err != nil {
		t.Fatal(err)
	}
	if found := ResponderOf(s); found == nil || found.Name != "responder" || len(s.Services) != 1 || len(s.EndpointSlices) != 1 {
		t.Errorf("responder %v, %d Services, %d EndpointSlices", found, len(s.Services), len(s.EndpointSlices))
	}
}

func TestWatches_mapTheResponderToEveryGatewayOfItsClasses(t *testing.T) {
	t.Parallel()
	r := newReader(t, class("openstack", ourController), responderConfig("cloud"), gateway("infra", "edge", "openstack"), gateway("infra", "other", "foreign"))
	before := service("system", "responder")
	before.Annotations = map[string]string{answer.Annotation: "x", "other": "y"}
	want := []string{"infra/edge"}
	if got := enqueued(t, r.watches(), nil, before); !reflect.DeepEqual(got, want) {
		t.Errorf("a new Service enqueues %v", got)
	}
	after := before.DeepCopy()
	after.Annotations["other"] = "z"
	if got := enqueued(t, r.watches(), before, after); len(got) != 0 {
		t.Errorf("another annotation enqueues %v", got)
	}
	after.Annotations[answer.Annotation] = "z"
	if got := enqueued(t, r.watches(), before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("other redirects enqueue %v", got)
	}
	if got := enqueued(t, r.classWatches(), nil, before); !reflect.DeepEqual(got, []string{"openstack"}) {
		t.Errorf("a new Service enqueues the classes %v", got)
	}
}

func TestSlimService_keepsRedirects(t *testing.T) {
	t.Parallel()
	s := service("system", "responder")
	s.Annotations = map[string]string{answer.Annotation: "x", "other": "y"}
	if _, err := slimService(s); err != nil || !reflect.DeepEqual(s.Annotations, map[string]string{answer.Annotation: "x"}) {
		t.Errorf("%v, %v", s.Annotations, err)
	}
}

// The watch and the write meet on a real API server.
func TestCluster_redirectsReachTheResponder(t *testing.T) {
	t.Parallel()
	admin := cluster(t)
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "responder-redirects"}}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "responder"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9600}}}}
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "other"}, Spec: s.Spec}
	for _, o := range []client.Object{namespace, s, other} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	learned := make(chan answer.Table, 16)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- WatchRedirects(ctx, admin, types.NamespacedName{Namespace: namespace.Name, Name: "responder"}, func(t answer.Table) { learned <- t })
	}()
	next := func(want answer.Table) {
		t.Helper()
		select {
		case got := <-learned:
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("learned %v, want %v", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nothing learned")
		}
	}
	next(answer.Table{})
	w := &Writer{Client: c, Controller: "gw.test/controller"}
	first := answer.Table{9600: {Code: 301, Prefix: "/a"}}
	if err := w.WriteRedirects(t.Context(), s, first); err != nil {
		t.Fatal(err)
	}
	next(first)
	if err := w.WriteRedirects(t.Context(), s, first); !apierrors.IsConflict(err) {
		t.Errorf("an old version without a change: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteRedirects(t.Context(), s, first); err != nil {
		t.Errorf("the current version without a change: %v", err)
	}
	if err := w.WriteRedirects(t.Context(), other, answer.Table{9600: {Code: 302}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next(nil)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
