package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestDebounced_makesOnePassOfABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		h := debounced(handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "edge"}}}
		}), time.Second)
		for i := range 500 {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}, q)
			if i%100 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if q.Len() != 0 {
			t.Fatal("enqueued before the window was over")
		}
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		if q.Len() != 1 {
			t.Fatalf("%d passes, want 1, at most one window after the first event", q.Len())
		}
		key, _ := q.Get()
		q.Done(key)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if q.Len() != 0 {
			t.Fatalf("%d further passes without an event", q.Len())
		}
	})
}

// What is there when the process starts is no burst. Its passes come after those for changes, which may not wait for a thousand Gateways.
func TestDebounced_leavesTheFirstListToLowPriority(t *testing.T) {
	t.Parallel()
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	h := debounced(handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "infra", Name: o.GetName()}}}
	}), time.Millisecond)
	h.Create(t.Context(), event.CreateEvent{Object: node("listed"), IsInInitialList: true}, q)
	key, priority, _ := q.GetWithPriority()
	if key.Name != "listed" || priority != handler.LowPriority {
		t.Errorf("%s has priority %d", key.Name, priority)
	}
	q.Done(key)
	h.Create(t.Context(), event.CreateEvent{Object: node("new")}, q)
	if key, priority, _ = q.GetWithPriority(); key.Name != "new" || priority != 0 {
		t.Errorf("%s has priority %d", key.Name, priority)
	}
}
