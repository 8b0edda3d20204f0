package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// responderOf is the Service that a configuration names as its responder.
func responderOf(config *v1alpha1.OpenStackGatewayClassConfig) (types.NamespacedName, bool) {
	if config == nil || config.Spec.Responder == nil {
		return types.NamespacedName{}, false
	}
	ref := config.Spec.Responder.Service
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
}

// ResponderOf is the Service of the responder in a snapshot; nil when the class has none or it does not exist.
func ResponderOf(s compile.Snapshot) *corev1.Service {
	key, ok := responderOf(s.Config)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(s.Services, func(o *corev1.Service) bool { return client.ObjectKeyFromObject(o) == key })
	if i < 0 {
		return nil
	}
	return s.Services[i]
}

// Responder is the responder of a configuration, for the status of its classes; nil when there is none.
func (r *Reader) Responder(ctx context.Context, config *v1alpha1.OpenStackGatewayClassConfig) (*status.Responder, error) {
	key, ok := responderOf(config)
	if !ok {
		return nil, nil //nolint:nilnil // a class without a responder
	}
	found, err := r.get(ctx, key, &corev1.Service{}, client.UnsafeDisableDeepCopy)
	return &status.Responder{Service: key.String(), Missing: !found}, err
}

// responder adds the Service of the responder and its EndpointSlices.
func (r *Reader) responder(ctx context.Context, s *compile.Snapshot) error {
	key, ok := responderOf(s.Config)
	if !ok || ResponderOf(*s) != nil {
		return nil
	}
	return r.backend(ctx, s, key)
}

// ofResponder maps a Service to the Gateways of the classes that have it as their responder.
func (r *Reader) ofResponder(ctx context.Context, key types.NamespacedName) ([]types.NamespacedName, error) {
	classes, err := r.classesOfResponder(ctx, key)
	if err != nil {
		return nil, err
	}
	return r.ofClasses(ctx, classes)
}

// classesOfResponder are the names of our classes that have a Service as their responder. Configurations are few.
func (r *Reader) classesOfResponder(ctx context.Context, key types.NamespacedName) ([]string, error) {
	var list v1alpha1.OpenStackGatewayClassConfigList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing OpenStackGatewayClassConfigs: %w", err)
	}
	var classes []string
	for i := range list.Items {
		if of, ok := responderOf(&list.Items[i]); ok && of == key {
			found, err := r.classesOf(ctx, list.Items[i].Name)
			if err != nil {
				return nil, err
			}
			classes = append(classes, found...)
		}
	}
	return classes, nil
}

// WriteRedirects makes the Service of a responder say what its ports for redirects mean. It fails with a conflict when the Service is
// not at the version of service any more, also when nothing would change: who relies on a port relies on that version.
func (w *Writer) WriteRedirects(ctx context.Context, service *corev1.Service, table answer.Table) error {
	text, err := table.Format(w.Controller)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": service.ResourceVersion, "annotations": map[string]string{answer.Annotation: text},
	}})
	if err != nil {
		return fmt.Errorf("encoding redirects: %w", err)
	}
	target := &corev1.Service{}
	target.Namespace, target.Name = service.Namespace, service.Name
	if err := w.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("writing the redirects of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}

// WatchRedirects tells learn what the Service of a responder says, and again whenever it changes, until ctx is done. A Service that
// is gone says nothing.
func WatchRedirects(ctx context.Context, config *rest.Config, key types.NamespacedName, learn func(answer.Table)) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	resync := 10 * time.Minute
	c, err := cache.New(config, cache.Options{
		Scheme: scheme, SyncPeriod: &resync,
		ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: {
			Namespaces: map[string]cache.Config{key.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name)}},
		}},
	})
	if err != nil {
		return fmt.Errorf("watching Service %s: %w", key, err)
	}
	informer, err := c.GetInformer(ctx, &corev1.Service{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Service %s: %w", key, err)
	}
	tell := func(o any) {
		if service, ok := o.(*corev1.Service); ok {
			table, _ := answer.ParseTable(service.Annotations[answer.Annotation])
			learn(table)
		}
	}
	_, err = informer.AddEventHandler(clientcache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: func(any) { learn(nil) },
	})
	if err != nil {
		return fmt.Errorf("watching Service %s: %w", key, err)
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("watching Service %s: %w", key, err)
	}
	return nil
}
