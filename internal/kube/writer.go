package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Limits of the CRDs on status lists.
const (
	maxParents    = 32
	maxConditions = 8
)

// The condition types that are ours in what we write.
var (
	gatewayConditions = []string{
		string(gwv1.GatewayConditionAccepted), string(gwv1.GatewayConditionProgrammed), string(gwv1.GatewayConditionResolvedRefs),
	}
	listenerConditions = []string{
		string(gwv1.ListenerConditionAccepted), string(gwv1.ListenerConditionProgrammed), string(gwv1.ListenerConditionResolvedRefs),
		string(gwv1.ListenerConditionConflicted), string(gwv1.ListenerConditionOverlappingTLSConfig),
	}
	routeConditions = []string{
		string(gwv1.RouteConditionAccepted), string(gwv1.RouteConditionResolvedRefs), string(gwv1.RouteConditionPartiallyInvalid),
	}
	setConditions = []string{
		string(gwv1.ListenerSetConditionAccepted), string(gwv1.ListenerSetConditionProgrammed),
	}
	classConditions = []string{
		string(gwv1.GatewayClassConditionStatusAccepted), string(gwv1.GatewayClassConditionStatusSupportedVersion),
	}
)

// Writer writes what is ours: conditions, listeners and addresses of a Gateway, our parent entries of routes, finalizers. Each
// write holds for the version that it was computed from; on a conflict the object is read again and the write computed anew.
// Nothing is written when nothing changed.
type Writer struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, for the retry after a conflict.
	Live client.Reader
	// Controller is our controllerName.
	Controller string
	// Events tells transitions; nil tells nobody.
	Events *Events
	// Now is the clock of lastTransitionTime; nil is time.Now.
	Now func() time.Time
}

// attempts bounds the retries after conflicts within one call; the caller's requeue is the next resort.
const attempts = 4

// Write brings the statuses of the Gateway, the ListenerSets, the routes and the policies of s to want. Routes and policies of s without a
// status in want lose our entries for this Gateway; when nothing is known of routes, those that do not name it any more do. All objects
// are tried; the error joins what failed. An object that is gone is no error.
func (w *Writer) Write(ctx context.Context, s compile.Snapshot, want status.Statuses) error {
	errs := []error{w.writeGateway(ctx, s.Gateway, want.Gateway)}
	if want.KeepRoutes {
		return errors.Join(errs[0], w.ReleaseLeft(ctx, s))
	}
	for _, want := range want.ListenerSets {
		i := slices.IndexFunc(s.ListenerSets, func(set *gwv1.ListenerSet) bool {
			return set.Namespace == want.Object.Namespace && set.Name == want.Object.Name
		})
		if i >= 0 {
			errs = append(errs, w.writeListenerSet(ctx, s.ListenerSets[i], want))
		}
	}
	wanted := map[types.NamespacedName]status.RouteStatus{}
	for _, r := range want.Routes {
		wanted[types.NamespacedName{Namespace: r.Object.Namespace, Name: r.Object.Name}] = r
	}
	scope := scopeOf(s)
	for _, route := range s.HTTPRoutes {
		errs = append(errs, w.writeRoute(ctx, route, scope, wanted[client.ObjectKeyFromObject(route)]))
	}
	errs = append(errs, w.writePolicies(ctx, client.ObjectKeyFromObject(s.Gateway), policiesOf(s), want.Policies))
	return errors.Join(errs...)
}

// ReleaseLeft removes our entries for the parents of s from routes that do not name them any more. All other entries stay as they are.
func (w *Writer) ReleaseLeft(ctx context.Context, s compile.Snapshot) error {
	var errs []error
	scope := scopeOf(s)
	for _, route := range s.HTTPRoutes {
		errs = append(errs, patchStatus(ctx, w, route, &gwv1.HTTPRoute{}, func(route *gwv1.HTTPRoute) ([]operation, []transition) {
			var ops []operation
			for i, entry := range slices.Backward(route.Status.Parents) {
				if !namesParent(route, entry.ParentRef) && string(entry.ControllerName) == w.Controller && scope.has(entry.ParentRef, route.Namespace) {
					ops = append(ops, operation{Op: "remove", Path: fmt.Sprintf("/status/parents/%d", i)})
				}
			}
			return ops, nil
		}))
	}
	return errors.Join(errs...)
}

// ReleaseRoutes removes our parent entries for the Gateway key, and for its ListenerSets, from routes: when it is gone, or is not ours
// any more.
func (w *Writer) ReleaseRoutes(ctx context.Context, key types.NamespacedName, sets []*gwv1.ListenerSet, routes []*gwv1.HTTPRoute) error {
	released := scope{{kindGateway, key}: true}
	for _, set := range sets {
		released[parentKey{kindListenerSet, client.ObjectKeyFromObject(set)}] = true
	}
	var errs []error
	for _, route := range routes {
		errs = append(errs, w.writeRoute(ctx, route, released, status.RouteStatus{}))
	}
	return errors.Join(errs...)
}

// ReleaseAdrift removes our parent entries for ListenerSets from routes, see Reader.Adrift.
func (w *Writer) ReleaseAdrift(ctx context.Context, sets []types.NamespacedName, routes []*gwv1.HTTPRoute) error {
	released := scope{}
	for _, key := range sets {
		released[parentKey{kindListenerSet, key}] = true
	}
	var errs []error
	for _, route := range routes {
		errs = append(errs, w.writeRoute(ctx, route, released, status.RouteStatus{}))
	}
	return errors.Join(errs...)
}

// ReleaseGateway removes our conditions, the listener statuses and the addresses from a Gateway that is not ours any more.
func (w *Writer) ReleaseGateway(ctx context.Context, gw *gwv1.Gateway) error {
	return patchStatus(ctx, w, gw, &gwv1.Gateway{}, func(gw *gwv1.Gateway) ([]operation, []transition) {
		ops, _ := conditionsPatch(gw.Status.Conditions, nil, gatewayConditions, w.now())
		if len(gw.Status.Listeners) > 0 {
			ops = append(ops, operation{Op: "remove", Path: "/status/listeners"})
		}
		if len(gw.Status.Addresses) > 0 {
			ops = append(ops, operation{Op: "remove", Path: "/status/addresses"})
		}
		if gw.Status.AttachedListenerSets != nil {
			ops = append(ops, operation{Op: "remove", Path: "/status/attachedListenerSets"})
		}
		return ops, nil
	})
}

func (w *Writer) writeGateway(ctx context.Context, gw *gwv1.Gateway, want status.GatewayStatus) error {
	return patchStatus(ctx, w, gw, &gwv1.Gateway{}, func(gw *gwv1.Gateway) ([]operation, []transition) {
		return w.gatewayPatch(gw, want)
	})
}

func (w *Writer) gatewayPatch(gw *gwv1.Gateway, want status.GatewayStatus) (ops []operation, changed []transition) {
	if newer(gw.Status.Conditions, gatewayConditions, want.Object.Generation) {
		return nil, nil
	}
	if equality.Semantic.DeepEqual(gw.Status, gwv1.GatewayStatus{}) {
		// The CRD's default fills the status of a new Gateway, so this is rare; a patch needs something to patch.
		ops = append(ops, operation{"add", "/status", map[string]any{}})
	}
	conditionOps, changed := conditionsPatch(gw.Status.Conditions, fits(gw.Status.Conditions, want.Conditions), want.Remove, w.now())
	ops = append(ops, conditionOps...)
	if !want.KeepListeners {
		listeners, more := w.mergeListeners(gw.Status.Listeners, want.Listeners)
		changed = append(changed, more...)
		ops = append(ops, listenersPatch(gw.Status.Listeners, listeners)...)
	}
	if n := want.AttachedListenerSets; n != nil && (gw.Status.AttachedListenerSets == nil || *gw.Status.AttachedListenerSets != *n) {
		ops = append(ops, operation{"add", "/status/attachedListenerSets", *n})
	}
	if !sameAddresses(gw.Status.Addresses, want.Addresses) {
		if len(want.Addresses) == 0 {
			ops = append(ops, operation{Op: "remove", Path: "/status/addresses"})
		} else {
			ops = append(ops, operation{"add", "/status/addresses", want.Addresses})
		}
	}
	if len(ops) == 1 && ops[0].Path == "/status" {
		return nil, nil
	}
	return ops, changed
}

// mergeListeners keeps of what the status has for each listener the conditions that are not ours, and the times.
func (w *Writer) mergeListeners(have, want []gwv1.ListenerStatus) (merged []gwv1.ListenerStatus, changed []transition) {
	merged = make([]gwv1.ListenerStatus, 0, len(want))
	for _, l := range want {
		var old []metav1.Condition
		for i := range have {
			if have[i].Name == l.Name {
				old = have[i].Conditions
			}
		}
		var more []transition
		l.Conditions, more = mergeConditions(old, fits(old, l.Conditions), listenerConditions, w.now())
		for _, t := range more {
			t.listener = string(l.Name)
			changed = append(changed, t)
		}
		merged = append(merged, l)
	}
	return merged, changed
}

// listenersPatch replaces single entries when the listeners are the same ones, else the whole list.
func listenersPatch(have, want []gwv1.ListenerStatus) []operation {
	if len(want) == 0 {
		if len(have) == 0 {
			return nil
		}
		return []operation{{Op: "remove", Path: "/status/listeners"}}
	}
	sameNames := slices.EqualFunc(have, want, func(a, b gwv1.ListenerStatus) bool { return a.Name == b.Name })
	if !sameNames {
		return []operation{{"add", "/status/listeners", want}}
	}
	var ops []operation
	for i := range want {
		if !equality.Semantic.DeepEqual(have[i], want[i]) {
			ops = append(ops, operation{"replace", fmt.Sprintf("/status/listeners/%d", i), want[i]})
		}
	}
	return ops
}

func sameAddresses(a, b []gwv1.GatewayStatusAddress) bool {
	return slices.EqualFunc(a, b, func(a, b gwv1.GatewayStatusAddress) bool {
		return a.Value == b.Value && valueOr(a.Type, gwv1.IPAddressType) == valueOr(b.Type, gwv1.IPAddressType)
	})
}

// scope holds the parents that one pass speaks for: the Gateway and its ListenerSets.
type scope map[parentKey]bool

type parentKey struct {
	kind string
	key  types.NamespacedName
}

func scopeOf(s compile.Snapshot) scope {
	out := scope{{kindGateway, client.ObjectKeyFromObject(s.Gateway)}: true}
	for _, set := range s.ListenerSets {
		out[parentKey{kindListenerSet, client.ObjectKeyFromObject(set)}] = true
	}
	return out
}

func (sc scope) has(ref gwv1.ParentReference, namespace string) bool {
	kind, key, ok := parentOf(ref, namespace)
	return ok && sc[parentKey{kind, key}]
}

func (w *Writer) writeRoute(ctx context.Context, route *gwv1.HTTPRoute, sc scope, want status.RouteStatus) error {
	return patchStatus(ctx, w, route, &gwv1.HTTPRoute{}, func(route *gwv1.HTTPRoute) ([]operation, []transition) {
		return w.routePatch(ctx, route, sc, want)
	})
}

func (w *Writer) routePatch(ctx context.Context, route *gwv1.HTTPRoute, sc scope, wanted status.RouteStatus) (ops []operation, changed []transition) {
	have, want := route.Status.Parents, wanted.Parents
	if route.Generation > wanted.Object.Generation {
		// It was edited since: what it does not name any more is no parent, and the pass for that edit may have been.
		want = slices.DeleteFunc(slices.Clone(want), func(p gwv1.RouteParentStatus) bool { return !namesParent(route, p.ParentRef) })
	}
	matched := make([]bool, len(want))
	var stale []int
	for i := range have {
		if string(have[i].ControllerName) != w.Controller || !sc.has(have[i].ParentRef, route.Namespace) {
			continue
		}
		j := slices.IndexFunc(want, func(p gwv1.RouteParentStatus) bool {
			return sameParent(p.ParentRef, have[i].ParentRef, route.Namespace)
		})
		if j < 0 || matched[j] {
			stale = append(stale, i)
			continue
		}
		matched[j] = true
		entry := want[j]
		if newer(have[i].Conditions, routeConditions, wanted.Object.Generation) {
			continue
		}
		var more []transition
		entry.Conditions, more = mergeConditions(have[i].Conditions, fits(have[i].Conditions, entry.Conditions), routeConditions, w.now())
		if !equality.Semantic.DeepEqual(entry, have[i]) {
			ops = append(ops, operation{"replace", fmt.Sprintf("/status/parents/%d", i), entry})
			changed = append(changed, more...)
		}
	}
	for _, i := range slices.Backward(stale) {
		ops = append(ops, operation{Op: "remove", Path: fmt.Sprintf("/status/parents/%d", i)})
	}
	room := maxParents - (len(have) - len(stale))
	var missing []gwv1.RouteParentStatus
	for j := range want {
		if matched[j] {
			continue
		}
		if len(missing) == room {
			// Others filled the list. Their entries are not ours to remove.
			ctrl.LoggerFrom(ctx).Info("status.parents is full, not reporting a parent", "httpRoute", client.ObjectKeyFromObject(route), "parent", want[j].ParentRef.Name)
			continue
		}
		entry := want[j]
		var more []transition
		entry.Conditions, more = mergeConditions(nil, entry.Conditions, nil, w.now())
		missing = append(missing, entry)
		changed = append(changed, more...)
	}
	if len(missing) > 0 && len(have) == 0 {
		// The status of a route that nobody reported on yet may be missing altogether.
		return append(ops, operation{"add", "/status", gwv1.RouteStatus{Parents: missing}}), changed
	}
	for _, m := range missing {
		ops = append(ops, operation{"add", "/status/parents/-", m})
	}
	return ops, changed
}

// namesParent says whether the spec of a route names a parent.
func namesParent(route *gwv1.HTTPRoute, parent gwv1.ParentReference) bool {
	return slices.ContainsFunc(route.Spec.ParentRefs, func(ref gwv1.ParentReference) bool { return sameParent(ref, parent, route.Namespace) })
}

// sameParent compares parentRefs of one route by what they mean.
func sameParent(a, b gwv1.ParentReference, namespace string) bool {
	aKind, aKey, aOK := parentOf(a, namespace)
	bKind, bKey, bOK := parentOf(b, namespace)
	return aOK && bOK && aKind == bKind && aKey == bKey &&
		valueOr(a.SectionName, "") == valueOr(b.SectionName, "") && valueOr(a.Port, 0) == valueOr(b.Port, 0)
}

// WriteClass brings the conditions and supported features of a GatewayClass to want.
func (w *Writer) WriteClass(ctx context.Context, class *gwv1.GatewayClass, conditions []status.Condition, features []gwv1.SupportedFeature) error {
	generation := class.Generation
	want := status.Stamp(conditions, generation)
	return patchStatus(ctx, w, class, &gwv1.GatewayClass{}, func(class *gwv1.GatewayClass) ([]operation, []transition) {
		if newer(class.Status.Conditions, classConditions, generation) {
			return nil, nil
		}
		var ops []operation
		if equality.Semantic.DeepEqual(class.Status, gwv1.GatewayClassStatus{}) {
			ops = append(ops, operation{"add", "/status", map[string]any{}})
		}
		conditionOps, changed := conditionsPatch(class.Status.Conditions, fits(class.Status.Conditions, want), nil, w.now())
		ops = append(ops, conditionOps...)
		if !equality.Semantic.DeepEqual(class.Status.SupportedFeatures, features) {
			ops = append(ops, operation{"add", "/status/supportedFeatures", features})
		}
		return ops, changed
	})
}

// newer says whether one of our conditions was observed for a newer generation: then our knowledge is old, and a pass with the
// newer object is on its way.
func newer(have []metav1.Condition, ours []string, generation int64) bool {
	return slices.ContainsFunc(have, func(c metav1.Condition) bool {
		return slices.Contains(ours, c.Type) && c.ObservedGeneration > generation
	})
}

// fits leaves out conditions that would make the list longer than the CRD allows; those that are there already come first.
func fits(have, want []metav1.Condition) []metav1.Condition {
	room := maxConditions - len(have)
	out := make([]metav1.Condition, 0, len(want))
	for _, c := range want {
		if !slices.ContainsFunc(have, func(h metav1.Condition) bool { return h.Type == c.Type }) {
			if room <= 0 {
				continue
			}
			room--
		}
		out = append(out, c)
	}
	return out
}

func (w *Writer) now() time.Time {
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	// The API keeps whole seconds.
	return now().Truncate(time.Second)
}

// patchStatus computes a patch from object, which is not changed, and sends it. After a conflict it reads the object into fresh,
// an empty object of the same kind, and computes again.
func patchStatus[T client.Object](ctx context.Context, w *Writer, object, fresh T, compute func(T) ([]operation, []transition)) error {
	key := client.ObjectKeyFromObject(object)
	uid := object.GetUID()
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			if err = w.Live.Get(ctx, key, fresh); err != nil {
				return ignoreNotFound(key, object, err)
			}
			object = fresh
			if object.GetUID() != uid {
				// Another object of that name: another pass will see it.
				return nil
			}
		}
		ops, changed := compute(object)
		if len(ops) == 0 {
			return nil
		}
		var patch client.Patch
		if patch, err = jsonPatch(object.GetResourceVersion(), ops); err != nil {
			return err
		}
		// The answer is decoded into the target: never into the caller's object, which may be the cache's.
		target := object.DeepCopyObject().(client.Object)
		err = w.Client.Status().Patch(ctx, target, patch)
		if err == nil {
			w.Events.transitions(object, changed)
			return nil
		}
		// Invalid: an index of the patch does not exist in the version at the server.
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			break
		}
	}
	return ignoreNotFound(key, object, err)
}

func ignoreNotFound(key types.NamespacedName, object client.Object, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of %T %s: %w", object, key, err)
}
