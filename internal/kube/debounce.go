package kube

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// debounced lets an event enqueue its Gateways only after a window. The queue holds a key once, for its earliest time, so all events
// within a window become one pass, and none waits longer than the window.
func debounced(inner handler.EventHandler, window time.Duration) handler.EventHandler {
	late := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return lateQueue{q, window}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			inner.Create(ctx, e, late(q))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			inner.Update(ctx, e, late(q))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			inner.Delete(ctx, e, late(q))
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			inner.Generic(ctx, e, late(q))
		},
	}
}

// lateQueue adds after a window.
type lateQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	window time.Duration
}

func (q lateQueue) Add(r reconcile.Request) { q.AddAfter(r, q.window) }
