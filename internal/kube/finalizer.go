package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds a finalizer to object, which is not changed. It fails when the object is gone or being deleted: then nothing may
// be made for it.
func (w *Writer) AddFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return w.patchFinalizers(ctx, object, func(o client.Object) (bool, error) {
		if controllerutil.ContainsFinalizer(o, finalizer) {
			return false, nil
		}
		if !o.GetDeletionTimestamp().IsZero() {
			return false, fmt.Errorf("adding finalizer %s to %T %s: it is being deleted", finalizer, o, client.ObjectKeyFromObject(o))
		}
		return controllerutil.AddFinalizer(o, finalizer), nil
	})
}

// RemoveFinalizer removes a finalizer from object, which is not changed. An object that is gone is no error.
func (w *Writer) RemoveFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	err := w.patchFinalizers(ctx, object, func(o client.Object) (bool, error) {
		return controllerutil.RemoveFinalizer(o, finalizer), nil
	})
	return client.IgnoreNotFound(err)
}

func (w *Writer) patchFinalizers(ctx context.Context, object client.Object, change func(client.Object) (bool, error)) error {
	key, uid := client.ObjectKeyFromObject(object), object.GetUID()
	object = object.DeepCopyObject().(client.Object)
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			if err = w.Live.Get(ctx, key, object); err != nil {
				break
			}
			if object.GetUID() != uid {
				return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, key.Name)
			}
		}
		var changed bool
		if changed, err = change(object); err != nil {
			return err
		}
		if !changed {
			return nil
		}
		finalizers := slices.Clone(object.GetFinalizers())
		body, encodeErr := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": object.GetResourceVersion(), "finalizers": finalizers,
		}})
		if encodeErr != nil {
			return fmt.Errorf("encoding a finalizer patch: %w", encodeErr)
		}
		// A merge patch replaces the list: the resourceVersion makes sure that it is the list we saw.
		err = w.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body))
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("writing the finalizers of %T %s: %w", object, key, err)
	}
	return nil
}
