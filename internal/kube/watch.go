package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// A watch is one kind of object: which of its events can matter at all, and which Gateways an object concerns. The mapping runs
// for the old and the new object of an update.
type watch struct {
	object client.Object
	// metadata watches only the metadata: for kinds whose content must not be cached.
	metadata bool
	matters  predicate.Predicate
	gateways func(context.Context, client.Object) ([]types.NamespacedName, error)
	// bursts says that events of this kind come in bursts, such as a rollout's, which shall become one change.
	bursts bool
}

// Watches adds to b everything that can change a Gateway, including Gateways themselves. The requests are keys of Gateways that
// are ours by class or by finalizer, or that are gone but still named in a route's status by us.
func (r *Reader) Watches(b *builder.Builder) *builder.Builder {
	for _, w := range r.watches() {
		b = r.addWatch(b, w)
	}
	return b
}

// ClassWatches adds to b everything that can change the status of a GatewayClass of ours or its finalizer. The requests are names
// of GatewayClasses.
func (r *Reader) ClassWatches(b *builder.Builder) *builder.Builder {
	for _, w := range r.classWatches() {
		b = r.addWatch(b, w)
	}
	return b
}

func (r *Reader) addWatch(b *builder.Builder, w watch) *builder.Builder {
	h := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return w.requests(ctx, o)
	})
	if w.bursts && r.Debounce > 0 {
		h = debounced(h, r.Debounce)
	}
	if w.metadata {
		return b.WatchesMetadata(w.object, h, builder.WithPredicates(w.matters))
	}
	return b.Watches(w.object, h, builder.WithPredicates(w.matters))
}

// requests maps an object. The reads are from caches that have synced, so an error is a bug, such as a missing index; it must not be
// silent.
func (w watch) requests(ctx context.Context, o client.Object) []reconcile.Request {
	keys, err := w.gateways(ctx, o)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "an event could not be mapped and is lost until the next resync",
			"kind", fmt.Sprintf("%T", o), "object", client.ObjectKeyFromObject(o))
	}
	out := make([]reconcile.Request, len(keys))
	for i, k := range keys {
		out[i] = reconcile.Request{NamespacedName: k}
	}
	return out
}

// Concerned are the keys that an event enqueues in the Gateway loop and in the GatewayClass loop, by the same watches: for whoever makes
// events without a manager. before is nil for a creation, after for a deletion.
func (r *Reader) Concerned(ctx context.Context, before, after client.Object) (gateways, classes []types.NamespacedName, err error) {
	gateways, err = concerned(ctx, r.watches(), before, after)
	if err != nil {
		return gateways, nil, err
	}
	classes, err = concerned(ctx, r.classWatches(), before, after)
	return gateways, classes, err
}

func concerned(ctx context.Context, watches []watch, before, after client.Object) ([]types.NamespacedName, error) {
	var keys ordered[types.NamespacedName]
	for _, w := range watches {
		if !w.passes(before, after) {
			continue
		}
		for _, o := range []client.Object{before, after} {
			if o == nil {
				continue
			}
			found, err := w.gateways(ctx, o)
			keys.add(found...)
			if err != nil {
				return keys.list, err
			}
		}
	}
	return keys.list, nil
}

// passes says whether an event is one of this watch that can matter.
func (w watch) passes(before, after client.Object) bool {
	kind := reflect.TypeOf(w.object)
	switch {
	case before == nil:
		return reflect.TypeOf(after) == kind && w.matters.Create(event.CreateEvent{Object: after})
	case after == nil:
		return reflect.TypeOf(before) == kind && w.matters.Delete(event.DeleteEvent{Object: before})
	default:
		return reflect.TypeOf(after) == kind && w.matters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
}

func (r *Reader) watches() []watch {
	all := []watch{
		{object: &gwv1.Gateway{}, matters: changed(gatewayChanged), gateways: r.ofGateway},
		{object: &gwv1.GatewayClass{}, matters: changed(generationChanged), gateways: r.ofClass},
		{object: &v1alpha1.OpenStackGatewayClassConfig{}, matters: changed(generationChanged), gateways: r.ofConfig},
		{object: &v1alpha1.OpenStackGatewayConfig{}, matters: changed(generationChanged), gateways: r.ofGatewayConfig},
		{object: &gwv1.HTTPRoute{}, matters: changed(routeChanged(r.Controller)), gateways: r.ofRoute},
		{object: &corev1.Service{}, matters: changed(serviceChanged), gateways: r.ofService},
		{object: &discoveryv1.EndpointSlice{}, matters: changed(sliceChanged), gateways: r.ofSlice, bursts: true},
		{object: &corev1.Node{}, matters: changed(nodeChanged), gateways: r.ofNode, bursts: true},
		{object: &corev1.Namespace{}, matters: changed(labelsChanged), gateways: r.ofNamespace},
		{object: &corev1.Secret{}, metadata: true, matters: changed(versionChanged), gateways: r.ofSecret},
		{object: &corev1.ConfigMap{}, metadata: true, matters: changed(versionChanged), gateways: r.ofConfigMap},
		{object: &v1alpha1.OpenStackBackendPolicy{}, matters: changed(policyChanged(r.Controller)), gateways: r.ofPolicy},
		r.late(&gwv1.HTTPRoute{}, func(o client.Object) []types.NamespacedName { return reportedOf(o.(*gwv1.HTTPRoute), r.Controller) }),
		r.late(&v1alpha1.OpenStackBackendPolicy{}, func(o client.Object) []types.NamespacedName { return ancestorsOf(o, r.Controller) }),
	}
	if r.Served.BackendTLSPolicies {
		all = append(all, watch{object: &gwv1.BackendTLSPolicy{}, matters: changed(policyChanged(r.Controller)), gateways: r.ofPolicy},
			r.late(&gwv1.BackendTLSPolicy{}, func(o client.Object) []types.NamespacedName { return ancestorsOf(o, r.Controller) }))
	}
	if r.Served.ListenerSets {
		all = append(all, watch{object: &gwv1.ListenerSet{}, matters: changed(setChanged), gateways: r.ofListenerSet})
	}
	switch r.Served.ReferenceGrants {
	case "v1":
		all = append(all, watch{object: &gwv1.ReferenceGrant{}, matters: changed(generationChanged), gateways: r.ofGrant})
	case "v1beta1":
		all = append(all, watch{object: &gwv1beta1.ReferenceGrant{}, matters: changed(generationChanged), gateways: r.ofGrant})
	}
	return all
}

// late is the watch for status entries of ours that reach the cache when their Gateway has been released already: the pass that released
// it did not see them. For Gateways that are ours nothing is enqueued, so that our own status writes cost nothing.
func (r *Reader) late(object client.Object, reported func(client.Object) []types.NamespacedName) watch {
	return watch{object: object, matters: changed(gained(reported)), gateways: func(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
		keys := reported(o)
		ours, err := r.oursAmong(ctx, keys)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(slices.Clone(keys), func(key types.NamespacedName) bool { return slices.Contains(ours, key) }), nil
	}}
}

func (r *Reader) classWatches() []watch {
	selected := func(class *gwv1.GatewayClass) []types.NamespacedName {
		if !r.Selects(class) {
			return nil
		}
		return []types.NamespacedName{{Name: class.Name}}
	}
	return []watch{
		{object: &gwv1.GatewayClass{}, matters: changed(classChanged), gateways: func(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
			return selected(o.(*gwv1.GatewayClass)), nil
		}},
		{object: &v1alpha1.OpenStackGatewayClassConfig{}, matters: changed(generationChanged), gateways: func(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
			classes, err := r.classesOf(ctx, o.GetName())
			return clusterScoped(classes), err
		}},
		// Whether the Service of a responder exists.
		{object: &corev1.Service{}, matters: changed(deletionChanged), gateways: func(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
			classes, err := r.classesOfResponder(ctx, client.ObjectKeyFromObject(o))
			return clusterScoped(classes), err
		}},
		// The first and the last Gateway of a class move its finalizer.
		{object: &gwv1.Gateway{}, matters: changed(classNameChanged), gateways: func(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
			class := &gwv1.GatewayClass{}
			found, err := r.get(ctx, types.NamespacedName{Name: string(o.(*gwv1.Gateway).Spec.GatewayClassName)}, class, client.UnsafeDisableDeepCopy)
			if err != nil || !found {
				return nil, err
			}
			return selected(class), nil
		}},
	}
}

func clusterScoped(names []string) []types.NamespacedName {
	keys := make([]types.NamespacedName, len(names))
	for i, name := range names {
		keys[i] = types.NamespacedName{Name: name}
	}
	return keys
}

// ours says whether a Gateway concerns this controller.
func (r *Reader) ours(ctx context.Context, gw *gwv1.Gateway) (bool, error) {
	if controllerutil.ContainsFinalizer(gw, r.Finalizer()) {
		return true, nil
	}
	class := &gwv1.GatewayClass{}
	found, err := r.get(ctx, types.NamespacedName{Name: string(gw.Spec.GatewayClassName)}, class, client.UnsafeDisableDeepCopy)
	return found && r.Selects(class), err
}

func (r *Reader) ofGateway(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	ok, err := r.ours(ctx, o.(*gwv1.Gateway))
	if !ok {
		return nil, err
	}
	return []types.NamespacedName{client.ObjectKeyFromObject(o)}, nil
}

// oursAmong keeps the keys of Gateways that are ours.
func (r *Reader) oursAmong(ctx context.Context, keys []types.NamespacedName) ([]types.NamespacedName, error) {
	var out []types.NamespacedName
	for _, key := range keys {
		gw := &gwv1.Gateway{}
		err := r.Client.Get(ctx, key, gw, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("reading Gateway %s: %w", key, err)
		}
		ok, err := r.ours(ctx, gw)
		if err != nil {
			return out, err
		}
		if ok {
			out = append(out, key)
		}
	}
	return out, nil
}

// ofRoute maps a route to its parents. A parent that is not ours, or gone, is enqueued too when the route's status has an entry of ours
// for it, which must go.
func (r *Reader) ofRoute(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.ofRoutes(ctx, []*gwv1.HTTPRoute{o.(*gwv1.HTTPRoute)})
}

func (r *Reader) ofRoutes(ctx context.Context, routes []*gwv1.HTTPRoute) ([]types.NamespacedName, error) {
	var candidates, reported ordered[types.NamespacedName]
	for _, route := range routes {
		for _, p := range parentsOf(route, r.Controller) {
			key := p.key
			if p.kind == kindListenerSet {
				set := &gwv1.ListenerSet{}
				if !r.Served.ListenerSets {
					continue
				}
				found, err := r.get(ctx, p.key, set, client.UnsafeDisableDeepCopy)
				if err != nil {
					return nil, err
				}
				gateway, ok := gatewayOf(set)
				if !found || !ok {
					continue
				}
				key = gateway
			}
			if p.reported {
				reported.add(key)
			} else {
				candidates.add(key)
			}
		}
	}
	ours, err := r.oursAmong(ctx, candidates.list)
	reported.add(ours...)
	return reported.list, err
}

func (r *Reader) ofListenerSet(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	key, ok := gatewayOf(o.(*gwv1.ListenerSet))
	if !ok {
		return nil, nil
	}
	return r.oursAmong(ctx, []types.NamespacedName{key})
}

func (r *Reader) ofClass(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	gateways, err := r.GatewaysOfClass(ctx, o.GetName())
	if err != nil {
		return nil, err
	}
	// The old object of an update may have been ours: class objects are judged by themselves, not by the cache.
	selected := r.Selects(o.(*gwv1.GatewayClass))
	var keys []types.NamespacedName
	for _, gw := range gateways {
		if selected || controllerutil.ContainsFinalizer(gw, r.Finalizer()) {
			keys = append(keys, client.ObjectKeyFromObject(gw))
		}
	}
	return keys, nil
}

// classesOf are the names of our classes that use a configuration.
func (r *Reader) classesOf(ctx context.Context, config string) ([]string, error) {
	var list gwv1.GatewayClassList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byConfig: config}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing GatewayClasses of %s: %w", config, err)
	}
	var classes []string
	for i := range list.Items {
		if r.Selects(&list.Items[i]) {
			classes = append(classes, list.Items[i].Name)
		}
	}
	return classes, nil
}

func (r *Reader) ofConfig(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	classes, err := r.classesOf(ctx, o.GetName())
	if err != nil {
		return nil, err
	}
	return r.ofClasses(ctx, classes)
}

func (r *Reader) ofGatewayConfig(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.ofMatchingGateways(ctx, client.MatchingFields{byGatewayConfig: client.ObjectKeyFromObject(o).String()})
}

func (r *Reader) ofClasses(ctx context.Context, classes []string) ([]types.NamespacedName, error) {
	var keys []types.NamespacedName
	for _, class := range classes {
		gateways, err := r.GatewaysOfClass(ctx, class)
		if err != nil {
			return keys, err
		}
		for _, gw := range gateways {
			keys = append(keys, client.ObjectKeyFromObject(gw))
		}
	}
	return keys, nil
}

// ofNode maps a Node to every Gateway of our classes: each has node ports on it. Classes are few.
func (r *Reader) ofNode(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	var list gwv1.GatewayClassList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing GatewayClasses: %w", err)
	}
	var classes []string
	for i := range list.Items {
		if r.Selects(&list.Items[i]) {
			classes = append(classes, list.Items[i].Name)
		}
	}
	return r.ofClasses(ctx, classes)
}

func (r *Reader) ofService(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.usersOfService(ctx, client.ObjectKeyFromObject(o))
}

func (r *Reader) ofSlice(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	key, ok := serviceOfSlice(o)
	if !ok {
		return nil, nil
	}
	return r.usersOfService(ctx, key)
}

func (r *Reader) usersOfService(ctx context.Context, key types.NamespacedName) ([]types.NamespacedName, error) {
	routes, err := r.routes(ctx, byService, key)
	if err != nil {
		return nil, err
	}
	var keys ordered[types.NamespacedName]
	found, err := r.ofRoutes(ctx, routes)
	keys.add(found...)
	if err != nil {
		return keys.list, err
	}
	found, err = r.ofResponder(ctx, key)
	keys.add(found...)
	return keys.list, err
}

func (r *Reader) ofNamespace(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	var routes gwv1.HTTPRouteList
	if err := r.Client.List(ctx, &routes, client.InNamespace(o.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing HTTPRoutes in %s: %w", o.GetName(), err)
	}
	var keys ordered[types.NamespacedName]
	found, err := r.ofRoutes(ctx, pointers(routes.Items))
	keys.add(found...)
	if err != nil || !r.Served.ListenerSets {
		return keys.list, err
	}
	var sets gwv1.ListenerSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(o.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return keys.list, fmt.Errorf("listing ListenerSets in %s: %w", o.GetName(), err)
	}
	for i := range sets.Items {
		found, err := r.ofListenerSet(ctx, &sets.Items[i])
		keys.add(found...)
		if err != nil {
			return keys.list, err
		}
	}
	return keys.list, nil
}

// ofGrant maps a ReferenceGrant to the Gateways of everything that refers into its namespace.
func (r *Reader) ofGrant(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	match := client.MatchingFields{byGrantNamespace: o.GetNamespace()}
	var keys ordered[types.NamespacedName]
	found, err := r.ofListeners(ctx, match)
	keys.add(found...)
	if err != nil {
		return keys.list, err
	}
	var routes gwv1.HTTPRouteList
	if err = r.Client.List(ctx, &routes, match, client.UnsafeDisableDeepCopy); err != nil {
		return keys.list, fmt.Errorf("listing HTTPRoutes that refer into %s: %w", o.GetNamespace(), err)
	}
	found, err = r.ofRoutes(ctx, pointers(routes.Items))
	keys.add(found...)
	return keys.list, err
}

func (r *Reader) ofSecret(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return union(ctx, client.MatchingFields{bySecret: client.ObjectKeyFromObject(o).String()}, r.ofListeners, r.ofPolicies)
}

func (r *Reader) ofConfigMap(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return union(ctx, client.MatchingFields{byConfigMap: client.ObjectKeyFromObject(o).String()}, r.ofMatchingGateways, r.ofPolicies)
}

// union is what several ways of finding Gateways find.
func union(ctx context.Context, match client.MatchingFields, ways ...func(context.Context, client.MatchingFields) ([]types.NamespacedName, error)) ([]types.NamespacedName, error) {
	var keys ordered[types.NamespacedName]
	for _, find := range ways {
		found, err := find(ctx, match)
		keys.add(found...)
		if err != nil {
			return keys.list, err
		}
	}
	return keys.list, nil
}

// ofListeners are our Gateways that match in an index themselves or through a ListenerSet.
func (r *Reader) ofListeners(ctx context.Context, match client.MatchingFields) ([]types.NamespacedName, error) {
	var keys ordered[types.NamespacedName]
	found, err := r.ofMatchingGateways(ctx, match)
	keys.add(found...)
	if err != nil || !r.Served.ListenerSets {
		return keys.list, err
	}
	var sets gwv1.ListenerSetList
	if err := r.Client.List(ctx, &sets, match, client.UnsafeDisableDeepCopy); err != nil {
		return keys.list, fmt.Errorf("listing ListenerSets by %v: %w", match, err)
	}
	for i := range sets.Items {
		found, err := r.ofListenerSet(ctx, &sets.Items[i])
		keys.add(found...)
		if err != nil {
			return keys.list, err
		}
	}
	return keys.list, nil
}

func (r *Reader) ofMatchingGateways(ctx context.Context, match client.MatchingFields) ([]types.NamespacedName, error) {
	var list gwv1.GatewayList
	if err := r.Client.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Gateways by %v: %w", match, err)
	}
	var keys []types.NamespacedName
	for i := range list.Items {
		found, err := r.ofGateway(ctx, &list.Items[i])
		keys = append(keys, found...)
		if err != nil {
			return keys, err
		}
	}
	return keys, nil
}
