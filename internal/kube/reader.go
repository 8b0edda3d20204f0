package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Reader reads what a Gateway depends on. Its results may share memory with the cache and must not be changed, except
// for the Gateway, the class and its configuration, which are copies.
type Reader struct {
	// Client is the manager's client: it reads from caches with the indexes of SetupIndexes, and Secrets and
	// ConfigMaps from the API server (ClientOptions).
	Client client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Controller is our controllerName; ClusterID goes into the ownership mark.
	Controller string
	ClusterID  string
	Served     Served
	// Debounce is the window in which events of Nodes and EndpointSlices become one pass; 0 makes a pass of each.
	Debounce time.Duration
}

// ParametersError says that a parametersRef does not lead to a usable configuration. It is its author's fault, not a failed read: for
// GatewayClass and Gateway statuses.
type ParametersError struct {
	// Class is the class whose parametersRef it is; "" when it is the Gateway's own.
	Class   string
	Message string
}

func (e *ParametersError) Error() string {
	if e.Class == "" {
		return e.Message
	}
	return fmt.Sprintf("GatewayClass %s: %s", e.Class, e.Message)
}

// Snapshot reads all that the Gateway key depends on. Any failed read is an error, and then there is no snapshot:
//
//   - apierrors.IsNotFound: the Gateway is gone. Use Attached to find what still names it.
//   - *ParametersError: the snapshot is returned too and is complete, but for Config.
//
// When the class is not ours, or there is none (Snapshot.Class nil), only Gateway, Class, ListenerSets and HTTPRoutes are filled: enough to
// clean up after ourselves (see Ours). Facts is left to the caller.
func (r *Reader) Snapshot(ctx context.Context, key types.NamespacedName) (compile.Snapshot, error) {
	s, err := r.snapshot(ctx, key)
	if err != nil {
		return compile.Snapshot{}, fmt.Errorf("reading Gateway %s: %w", key, err)
	}
	if !r.Selects(s.Class) {
		return s, nil
	}
	if s.Config, err = r.Parameters(ctx, s.Class); err != nil {
		return s, err
	}
	if err := r.override(ctx, &s); err != nil {
		return s, err
	}
	if err := r.responder(ctx, &s); err != nil {
		return compile.Snapshot{}, fmt.Errorf("reading Gateway %s: %w", key, err)
	}
	return s, nil
}

// Selects says whether a class, which may be nil, is one that this controller serves.
func (r *Reader) Selects(class *gwv1.GatewayClass) bool {
	return class != nil && string(class.Spec.ControllerName) == r.Controller
}

// Finalizer is the one that holds our Gateways.
func (r *Reader) Finalizer() string { return api.FinalizerFor(r.Controller) }

// Ours says whether we may have something in the cloud for the Gateway of s: its class is ours, or it has our finalizer,
// whatever its class is now.
func (r *Reader) Ours(s compile.Snapshot) bool {
	return r.Selects(s.Class) || controllerutil.ContainsFinalizer(s.Gateway, r.Finalizer())
}

func (r *Reader) snapshot(ctx context.Context, key types.NamespacedName) (compile.Snapshot, error) {
	s := compile.Snapshot{ClusterID: r.ClusterID, Controller: r.Controller, Gateway: &gwv1.Gateway{}}
	if err := r.Client.Get(ctx, key, s.Gateway); err != nil {
		return s, err
	}
	class := &gwv1.GatewayClass{}
	found, err := r.get(ctx, types.NamespacedName{Name: string(s.Gateway.Spec.GatewayClassName)}, class)
	if err != nil {
		return s, err
	}
	if found {
		s.Class = class
	}
	if s.ListenerSets, s.HTTPRoutes, err = r.Attached(ctx, key); err != nil || !r.Selects(s.Class) {
		return s, err
	}
	for _, read := range []func(context.Context, *compile.Snapshot) error{
		r.namespaces, r.backends, r.policies, r.nodes, r.certificates, r.grants,
	} {
		if err := read(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Attached are the ListenerSets that name the Gateway key, and the HTTPRoutes that name it or one of these as a parent, or whose status
// says so with our name.
func (r *Reader) Attached(ctx context.Context, key types.NamespacedName) ([]*gwv1.ListenerSet, []*gwv1.HTTPRoute, error) {
	routes, err := r.routes(ctx, byGateway, key)
	if err != nil || !r.Served.ListenerSets {
		return nil, routes, err
	}
	var list gwv1.ListenerSetList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byGateway: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing ListenerSets of %s: %w", key, err)
	}
	known := map[types.NamespacedName]bool{}
	for _, route := range routes {
		known[client.ObjectKeyFromObject(route)] = true
	}
	for i := range list.Items {
		more, err := r.routes(ctx, byListenerSet, client.ObjectKeyFromObject(&list.Items[i]))
		if err != nil {
			return nil, nil, err
		}
		for _, route := range more {
			if k := client.ObjectKeyFromObject(route); !known[k] {
				known[k] = true
				routes = append(routes, route)
			}
		}
	}
	return pointers(list.Items), routes, nil
}

// Adrift are routes that have entries of ours for ListenerSets which are gone, or which name no Gateway of ours any more, and those
// ListenerSets. No Gateway leads to them: whoever makes a pass takes care of them.
func (r *Reader) Adrift(ctx context.Context) (sets []types.NamespacedName, routes []*gwv1.HTTPRoute, err error) {
	if !r.Served.ListenerSets {
		return nil, nil, nil
	}
	var list gwv1.HTTPRouteList
	if err := r.Client.List(ctx, &list, client.MatchingFields{bySetReported: reported}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing HTTPRoutes of ListenerSets: %w", err)
	}
	var gone ordered[types.NamespacedName]
	for _, route := range pointers(list.Items) {
		adrift := false
		for _, p := range parentsOf(route, r.Controller) {
			if p.kind != kindListenerSet || !p.reported {
				continue
			}
			served, err := r.servesSet(ctx, p.key)
			if err != nil {
				return nil, nil, err
			}
			if !served {
				gone.add(p.key)
				adrift = true
			}
		}
		if adrift {
			routes = append(routes, route)
		}
	}
	return gone.list, routes, nil
}

// servesSet says whether a ListenerSet exists and names a Gateway of ours.
func (r *Reader) servesSet(ctx context.Context, key types.NamespacedName) (bool, error) {
	set := &gwv1.ListenerSet{}
	found, err := r.get(ctx, key, set, client.UnsafeDisableDeepCopy)
	if err != nil || !found {
		return false, err
	}
	gateway, ok := gatewayOf(set)
	if !ok {
		return false, nil
	}
	ours, err := r.oursAmong(ctx, []types.NamespacedName{gateway})
	return len(ours) > 0, err
}

func (r *Reader) routes(ctx context.Context, field string, key types.NamespacedName) ([]*gwv1.HTTPRoute, error) {
	var list gwv1.HTTPRouteList
	if err := r.Client.List(ctx, &list, client.MatchingFields{field: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing HTTPRoutes of %s: %w", key, err)
	}
	return pointers(list.Items), nil
}

// namespaces adds the namespaces of routes and ListenerSets. That of the Gateway is added too: it is cheap and compile need not
// care.
func (r *Reader) namespaces(ctx context.Context, s *compile.Snapshot) error {
	var wanted ordered[string]
	wanted.add(s.Gateway.Namespace)
	for _, route := range s.HTTPRoutes {
		wanted.add(route.Namespace)
	}
	for _, set := range s.ListenerSets {
		wanted.add(set.Namespace)
	}
	for _, name := range wanted.list {
		namespace := &corev1.Namespace{}
		found, err := r.get(ctx, types.NamespacedName{Name: name}, namespace, client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		if found {
			s.Namespaces = append(s.Namespaces, namespace)
		}
	}
	return nil
}

// backends adds the Services that backendRefs name, and their EndpointSlices.
func (r *Reader) backends(ctx context.Context, s *compile.Snapshot) error {
	var wanted ordered[types.NamespacedName]
	for _, route := range s.HTTPRoutes {
		wanted.add(servicesOf(route)...)
	}
	for _, key := range wanted.list {
		if err := r.backend(ctx, s, key); err != nil {
			return err
		}
	}
	return nil
}

// backend adds a Service and its EndpointSlices.
func (r *Reader) backend(ctx context.Context, s *compile.Snapshot, key types.NamespacedName) error {
	service := &corev1.Service{}
	found, err := r.get(ctx, key, service, client.UnsafeDisableDeepCopy)
	if err != nil || !found {
		return err
	}
	s.Services = append(s.Services, service)
	var slices discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &slices, client.InNamespace(key.Namespace), client.MatchingFields{byService: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing EndpointSlices of Service %s: %w", key, err)
	}
	s.EndpointSlices = append(s.EndpointSlices, pointers(slices.Items)...)
	return nil
}

func (r *Reader) nodes(ctx context.Context, s *compile.Snapshot) error {
	var list corev1.NodeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	s.Nodes = pointers(list.Items)
	return nil
}

// certificates adds the Secrets and ConfigMaps that listeners and policies name.
func (r *Reader) certificates(ctx context.Context, s *compile.Snapshot) error {
	var secrets ordered[types.NamespacedName]
	secrets.add(secretsOfGateway(s.Gateway)...)
	for _, set := range s.ListenerSets {
		secrets.add(secretsOfSet(set)...)
	}
	var configMaps ordered[types.NamespacedName]
	configMaps.add(configMapsOfGateway(s.Gateway)...)
	for _, o := range policiesOf(*s).objects() {
		secrets.add(policySecrets(o)...)
		configMaps.add(policyConfigMaps(o)...)
	}
	for _, key := range secrets.list {
		secret := &corev1.Secret{}
		found, err := r.get(ctx, key, secret)
		if err != nil {
			return err
		}
		if found {
			s.Secrets = append(s.Secrets, secret)
		}
	}
	for _, key := range configMaps.list {
		configMap := &corev1.ConfigMap{}
		found, err := r.get(ctx, key, configMap)
		if err != nil {
			return err
		}
		if found {
			s.ConfigMaps = append(s.ConfigMaps, configMap)
		}
	}
	return nil
}

// grants adds the ReferenceGrants of every namespace that something in s refers into from another one.
func (r *Reader) grants(ctx context.Context, s *compile.Snapshot) error {
	var namespaces ordered[string]
	namespaces.add(foreignNamespaces(s.Gateway.Namespace, append(secretsOfGateway(s.Gateway), configMapsOfGateway(s.Gateway)...)...)...)
	for _, set := range s.ListenerSets {
		namespaces.add(foreignNamespaces(set.Namespace, secretsOfSet(set)...)...)
	}
	for _, route := range s.HTTPRoutes {
		namespaces.add(foreignNamespaces(route.Namespace, servicesOf(route)...)...)
	}
	for _, namespace := range namespaces.list {
		switch r.Served.ReferenceGrants {
		case "v1":
			var list gwv1.ReferenceGrantList
			if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("listing ReferenceGrants in %s: %w", namespace, err)
			}
			for i := range list.Items {
				s.ReferenceGrants = append(s.ReferenceGrants, (*gwv1beta1.ReferenceGrant)(&list.Items[i]))
			}
		case "v1beta1":
			var list gwv1beta1.ReferenceGrantList
			if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("listing ReferenceGrants in %s: %w", namespace, err)
			}
			s.ReferenceGrants = append(s.ReferenceGrants, pointers(list.Items)...)
		}
	}
	return nil
}

// Parameters reads the configuration that a class names. It returns a *ParametersError when there is none to use.
func (r *Reader) Parameters(ctx context.Context, class *gwv1.GatewayClass) (*v1alpha1.OpenStackGatewayClassConfig, error) {
	fault := func(format string, args ...any) error {
		return &ParametersError{Class: class.Name, Message: fmt.Sprintf(format, args...)}
	}
	if class.Spec.ParametersRef == nil {
		return nil, fault("spec.parametersRef is missing; name an %s (group %s), which says where load balancers get their virtual IPs", kindClassConfig, api.Domain)
	}
	name, ok := configOf(class)
	if !ok {
		return nil, fault("spec.parametersRef must have group %s and kind %s, and no namespace", api.Domain, kindClassConfig)
	}
	config := &v1alpha1.OpenStackGatewayClassConfig{}
	found, err := r.get(ctx, types.NamespacedName{Name: name}, config)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fault("spec.parametersRef names %s %q, which does not exist; create it or correct the name", kindClassConfig, name)
	case (config.Spec.VIPSubnet == nil) == (config.Spec.VIPNetwork == nil):
		// Validation of the CRD refuses this; an old CRD may have let it pass.
		return nil, fault("%s %q must set exactly one of spec.vipSubnet and spec.vipNetwork", kindClassConfig, name)
	}
	if s := config.Spec.BackendSecurity; s != nil && s.Mode != "" && s.Mode != v1alpha1.BackendSecurityUnmanaged {
		// Nothing that protects Nodes may be ignored in silence.
		return nil, fault("%s %q sets spec.backendSecurity.mode %s, which this version does not do: leave it at %s, and let the load balancers in with security groups of your own",
			kindClassConfig, name, s.Mode, v1alpha1.BackendSecurityUnmanaged)
	}
	if _, err := metav1.LabelSelectorAsSelector(config.Spec.NodeSelector); err != nil {
		return nil, fault("%s %q has a spec.nodeSelector that cannot be read; correct it: %v", kindClassConfig, name, err)
	}
	return config, nil
}

// GatewaysOfClass are the Gateways that name a class.
func (r *Reader) GatewaysOfClass(ctx context.Context, class string) ([]*gwv1.Gateway, error) {
	var list gwv1.GatewayList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byClass: class}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Gateways of class %s: %w", class, err)
	}
	return pointers(list.Items), nil
}

// OurGateways are the Gateways that we may have something in the cloud for.
func (r *Reader) OurGateways(ctx context.Context) ([]*gwv1.Gateway, error) {
	var list gwv1.GatewayList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Gateways: %w", err)
	}
	var out []*gwv1.Gateway
	for _, gw := range pointers(list.Items) {
		ok, err := r.ours(ctx, gw)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, gw)
		}
	}
	return out, nil
}

// Bundle are the Gateway API CRDs that are in use.
func (r *Reader) Bundle(ctx context.Context) ([]status.CRD, error) {
	resources := []string{"gatewayclasses", "gateways", "httproutes"}
	if r.Served.ListenerSets {
		resources = append(resources, "listenersets")
	}
	if r.Served.ReferenceGrants != "" {
		resources = append(resources, "referencegrants")
	}
	var bundle []status.CRD
	for _, resource := range resources {
		crd := &metav1.PartialObjectMetadata{}
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		err := r.Live.Get(ctx, types.NamespacedName{Name: resource + "." + gwv1.GroupName}, crd)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the version of the Gateway API CRDs: %w", err)
		}
		bundle = append(bundle, status.CRD{Resource: resource, Version: crd.Annotations[consts.BundleVersionAnnotation], Missing: err != nil})
	}
	return bundle, nil
}

// get reads one object; found is false when it does not exist.
func (r *Reader) get(ctx context.Context, key types.NamespacedName, into client.Object, opts ...client.GetOption) (found bool, err error) {
	err = r.Client.Get(ctx, key, into, opts...)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return true, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
