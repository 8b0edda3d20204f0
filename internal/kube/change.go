package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

// changed passes creations and deletions, and the updates for which differ says yes. Each differ function names exactly what
// compile, the statuses and the finalizers depend on.
func changed(differ func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && differ(e.ObjectOld, e.ObjectNew)
	}}
}

// generationChanged is for kinds whose generation follows their spec.
func generationChanged(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || deletionChanged(before, after) || before.GetUID() != after.GetUID()
}

func deletionChanged(before, after client.Object) bool {
	return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

func labelsChanged(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) || deletionChanged(before, after)
}

// versionChanged is for objects of which only the metadata is known.
func versionChanged(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

// gatewayChanged ignores our own status writes, but sees when somebody removed what we wrote, and the last finalizer of others.
func gatewayChanged(before, after client.Object) bool {
	old, now := before.(*gwv1.Gateway), after.(*gwv1.Gateway)
	return generationChanged(before, after) ||
		old.Annotations[api.ReplaceAnnotation] != now.Annotations[api.ReplaceAnnotation] ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		lost(old.Status.Conditions, now.Status.Conditions, gatewayConditions) ||
		len(now.Status.Listeners) < len(old.Status.Listeners) ||
		len(now.Status.Addresses) < len(old.Status.Addresses)
}

func setChanged(before, after client.Object) bool {
	old, now := before.(*gwv1.ListenerSet), after.(*gwv1.ListenerSet)
	return generationChanged(before, after) ||
		lost(old.Status.Conditions, now.Status.Conditions, setConditions) ||
		len(now.Status.Listeners) < len(old.Status.Listeners)
}

func classChanged(before, after client.Object) bool {
	return generationChanged(before, after) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		lost(before.(*gwv1.GatewayClass).Status.Conditions, after.(*gwv1.GatewayClass).Status.Conditions, classConditions)
}

func classNameChanged(before, after client.Object) bool {
	return before.(*gwv1.Gateway).Spec.GatewayClassName != after.(*gwv1.Gateway).Spec.GatewayClassName
}

// routeChanged ignores status writes, but sees when entries of ours are lost: another controller that writes the whole list may drop
// them.
func routeChanged(controller string) func(before, after client.Object) bool {
	ours := func(o client.Object) map[string]int {
		out := map[string]int{}
		for _, p := range o.(*gwv1.HTTPRoute).Status.Parents {
			if string(p.ControllerName) == controller {
				kind, key, _ := parentOf(p.ParentRef, o.GetNamespace())
				out[kind+" "+key.String()] += len(p.Conditions)
			}
		}
		return out
	}
	return func(before, after client.Object) bool {
		if generationChanged(before, after) {
			return true
		}
		now := ours(after)
		for parent, conditions := range ours(before) {
			if now[parent] < conditions {
				return true
			}
		}
		return false
	}
}

// gained sees when an object reports Gateways that it did not before.
func gained(reported func(client.Object) []types.NamespacedName) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		old := reported(before)
		return slices.ContainsFunc(reported(after), func(key types.NamespacedName) bool { return !slices.Contains(old, key) })
	}
}

// lost says whether a condition of ours was there before and is not now.
func lost(before, after []metav1.Condition, ours []string) bool {
	return slices.ContainsFunc(before, func(b metav1.Condition) bool {
		return slices.Contains(ours, b.Type) && !slices.ContainsFunc(after, func(a metav1.Condition) bool { return a.Type == b.Type })
	})
}

func serviceChanged(before, after client.Object) bool {
	return deletionChanged(before, after) ||
		before.GetAnnotations()[answer.Annotation] != after.GetAnnotations()[answer.Annotation] ||
		!equality.Semantic.DeepEqual(before.(*corev1.Service).Spec, after.(*corev1.Service).Spec)
}

func sliceChanged(before, after client.Object) bool {
	old, now := before.(*discoveryv1.EndpointSlice), after.(*discoveryv1.EndpointSlice)
	return deletionChanged(before, after) ||
		old.Labels[discoveryv1.LabelServiceName] != now.Labels[discoveryv1.LabelServiceName] ||
		old.AddressType != now.AddressType ||
		!equality.Semantic.DeepEqual(old.Ports, now.Ports) ||
		!equality.Semantic.DeepEqual(old.Endpoints, now.Endpoints)
}

// nodeChanged ignores heartbeats, image lists, capacity and the like.
func nodeChanged(before, after client.Object) bool {
	old, now := before.(*corev1.Node), after.(*corev1.Node)
	return deletionChanged(before, after) ||
		!maps.Equal(old.Labels, now.Labels) || // a class may select by any of them
		!equality.Semantic.DeepEqual(old.Spec, now.Spec) ||
		!equality.Semantic.DeepEqual(old.Status.Addresses, now.Status.Addresses) ||
		nodeCondition(old, corev1.NodeReady) != nodeCondition(now, corev1.NodeReady) ||
		nodeCondition(old, corev1.NodeNetworkUnavailable) != nodeCondition(now, corev1.NodeNetworkUnavailable)
}

// nodeCondition is what a condition says, without the time of the last heartbeat.
func nodeCondition(node *corev1.Node, t corev1.NodeConditionType) string {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == t {
			return string(c.Status) + "/" + c.Reason
		}
	}
	return ""
}
