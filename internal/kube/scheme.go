package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

// Scheme holds all kinds that the controller reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gwv1.Install, gwv1beta1.Install, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return s, nil
}

// CacheOptions keep the caches small: they drop what no reader looks at.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: dropManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:               {Transform: slimNode},
			&discoveryv1.EndpointSlice{}: {Transform: slimEndpointSlice},
			&corev1.Service{}:            {Transform: slimService},
			&corev1.Namespace{}:          {Transform: slimMeta},
		},
		// A kind that nobody indexed or watched must not start a cluster-wide informer by accident.
		ReaderFailOnMissingInformer: true,
	}
}

// ClientOptions make the manager's client read Secrets and ConfigMaps from the API server, one by one and only those that
// a Gateway names: their content is never cached. Their events come from metadata-only watches.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{
		DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
	}}
}

func dropManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

func slimMeta(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
	}
	return obj, nil
}

// slimService keeps the one annotation that is read.
func slimService(obj any) (any, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return slimMeta(obj)
	}
	redirects, found := service.Annotations[answer.Annotation]
	service.ManagedFields, service.Annotations = nil, nil
	if found {
		service.Annotations = map[string]string{answer.Annotation: redirects}
	}
	return service, nil
}

// slimNode keeps identity, labels, spec, addresses and conditions: image lists and volumes are most of a Node.
func slimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return slimMeta(obj)
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Status = corev1.NodeStatus{Addresses: node.Status.Addresses, Conditions: node.Status.Conditions}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		c.LastHeartbeatTime, c.Message = metav1.Time{}, ""
	}
	return node, nil
}

// slimEndpointSlice drops the trigger-time annotation and the references to Pods.
func slimEndpointSlice(obj any) (any, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return slimMeta(obj)
	}
	slice.ManagedFields, slice.Annotations = nil, nil
	for i := range slice.Endpoints {
		slice.Endpoints[i].TargetRef = nil
	}
	return slice, nil
}
