package kube

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

func (w *Writer) writeListenerSet(ctx context.Context, set *gwv1.ListenerSet, want status.ListenerSetStatus) error {
	return patchStatus(ctx, w, set, &gwv1.ListenerSet{}, func(set *gwv1.ListenerSet) ([]operation, []transition) {
		return w.listenerSetPatch(set, want)
	})
}

func (w *Writer) listenerSetPatch(set *gwv1.ListenerSet, want status.ListenerSetStatus) (ops []operation, changed []transition) {
	if newer(set.Status.Conditions, setConditions, want.Object.Generation) {
		return nil, nil
	}
	if equality.Semantic.DeepEqual(set.Status, gwv1.ListenerSetStatus{}) {
		ops = append(ops, operation{"add", "/status", map[string]any{}})
	}
	conditionOps, changed := conditionsPatch(set.Status.Conditions, fits(set.Status.Conditions, want.Conditions), nil, w.now())
	ops = append(ops, conditionOps...)
	have := make([]gwv1.ListenerStatus, len(set.Status.Listeners))
	for i, l := range set.Status.Listeners {
		have[i] = gwv1.ListenerStatus(l)
	}
	listeners, more := w.mergeListeners(have, want.Listeners)
	ops = append(ops, listenersPatch(have, listeners)...)
	if len(ops) == 1 && ops[0].Path == "/status" {
		return nil, nil
	}
	return ops, append(changed, more...)
}

// ReleaseListenerSets removes what we wrote about the ListenerSets of a Gateway that is gone, or is not ours any more. A ListenerSet does
// not say who wrote its status, so this is only for Gateways that were ours.
func (w *Writer) ReleaseListenerSets(ctx context.Context, sets []*gwv1.ListenerSet) error {
	var errs []error
	for _, set := range sets {
		errs = append(errs, patchStatus(ctx, w, set, &gwv1.ListenerSet{}, func(set *gwv1.ListenerSet) ([]operation, []transition) {
			ops, _ := conditionsPatch(set.Status.Conditions, nil, setConditions, w.now())
			if len(set.Status.Listeners) > 0 {
				ops = append(ops, operation{Op: "remove", Path: "/status/listeners"})
			}
			return ops, nil
		}))
	}
	return errors.Join(errs...)
}
