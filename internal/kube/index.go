package kube

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// Names of the field indexes. The values are "namespace/name" of what is referred to, unless said otherwise.
const (
	// byGateway and byListenerSet hold the parents of routes: those of the spec, and those for which the status has an entry of
	// ours, so that an entry of a former parent is found and removed.
	byGateway     = "byGateway"
	byListenerSet = "byListenerSet"
	byService     = "byService"
	// byGrantNamespace holds the other namespaces that an object refers into, by name.
	byGrantNamespace = "byGrantNamespace"
	byClass          = "byClass"
	byConfig         = "byConfig"
	byGatewayConfig  = "byGatewayConfig"
	bySecret         = "bySecret"
	byConfigMap      = "byConfigMap"
	// bySetReported holds reported for the routes that have an entry of ours for a ListenerSet.
	bySetReported = "bySetReported"
	reported      = "yes"
)

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

// indexes are all field indexes for a controller name.
func indexes(controller string, served Served) []index {
	all := []index{
		{&gwv1.HTTPRoute{}, byGateway, func(o client.Object) []string {
			return parentKeys(o.(*gwv1.HTTPRoute), kindGateway, controller)
		}},
		{&gwv1.HTTPRoute{}, byService, func(o client.Object) []string {
			return names(servicesOf(o.(*gwv1.HTTPRoute)))
		}},
		{&gwv1.HTTPRoute{}, byGrantNamespace, func(o client.Object) []string {
			return foreignNamespaces(o.GetNamespace(), servicesOf(o.(*gwv1.HTTPRoute))...)
		}},
		{&gwv1.Gateway{}, byClass, func(o client.Object) []string {
			return []string{string(o.(*gwv1.Gateway).Spec.GatewayClassName)}
		}},
		{&gwv1.Gateway{}, byGatewayConfig, func(o client.Object) []string {
			if key, ok := gatewayConfigOf(o.(*gwv1.Gateway)); ok {
				return []string{key.String()}
			}
			return nil
		}},
		{&gwv1.Gateway{}, bySecret, func(o client.Object) []string {
			return names(secretsOfGateway(o.(*gwv1.Gateway)))
		}},
		{&gwv1.Gateway{}, byConfigMap, func(o client.Object) []string {
			return names(configMapsOfGateway(o.(*gwv1.Gateway)))
		}},
		{&gwv1.Gateway{}, byGrantNamespace, func(o client.Object) []string {
			gw := o.(*gwv1.Gateway)
			return foreignNamespaces(gw.Namespace, append(secretsOfGateway(gw), configMapsOfGateway(gw)...)...)
		}},
		{&gwv1.GatewayClass{}, byConfig, func(o client.Object) []string {
			if name, ok := configOf(o.(*gwv1.GatewayClass)); ok {
				return []string{name}
			}
			return nil
		}},
		{&discoveryv1.EndpointSlice{}, byService, func(o client.Object) []string {
			if key, ok := serviceOfSlice(o); ok {
				return []string{key.String()}
			}
			return nil
		}},
	}
	all = append(all, policyIndexes(&v1alpha1.OpenStackBackendPolicy{}, controller)...)
	if served.BackendTLSPolicies {
		all = append(all, policyIndexes(&gwv1.BackendTLSPolicy{}, controller)...)
	}
	if !served.ListenerSets {
		return all
	}
	return append(all,
		index{&gwv1.HTTPRoute{}, byListenerSet, func(o client.Object) []string {
			return parentKeys(o.(*gwv1.HTTPRoute), kindListenerSet, controller)
		}},
		index{&gwv1.HTTPRoute{}, bySetReported, func(o client.Object) []string {
			for _, p := range parentsOf(o.(*gwv1.HTTPRoute), controller) {
				if p.kind == kindListenerSet && p.reported {
					return []string{reported}
				}
			}
			return nil
		}},
		index{&gwv1.ListenerSet{}, byGateway, func(o client.Object) []string {
			if key, ok := gatewayOf(o.(*gwv1.ListenerSet)); ok {
				return []string{key.String()}
			}
			return nil
		}},
		index{&gwv1.ListenerSet{}, bySecret, func(o client.Object) []string {
			return names(secretsOfSet(o.(*gwv1.ListenerSet)))
		}},
		index{&gwv1.ListenerSet{}, byGrantNamespace, func(o client.Object) []string {
			return foreignNamespaces(o.GetNamespace(), secretsOfSet(o.(*gwv1.ListenerSet))...)
		}},
	)
}

// SetupIndexes registers the field indexes that Reader and Watches need. Call it before the cache starts.
func SetupIndexes(ctx context.Context, indexer client.FieldIndexer, controller string, served Served) error {
	for _, ix := range indexes(controller, served) {
		if err := indexer.IndexField(ctx, ix.object, ix.field, ix.extract); err != nil {
			return fmt.Errorf("adding index %s of %T: %w", ix.field, ix.object, err)
		}
	}
	return nil
}

func parentKeys(route *gwv1.HTTPRoute, kind, controller string) []string {
	var keys ordered[string]
	for _, p := range parentsOf(route, controller) {
		if p.kind == kind {
			keys.add(p.key.String())
		}
	}
	return keys.list
}

type parent struct {
	kind string
	key  types.NamespacedName
	// reported says that the status has an entry of ours for it.
	reported bool
}

// parentsOf are the parents of a route that its spec names or that it has a status entry of ours for.
func parentsOf(route *gwv1.HTTPRoute, controller string) []parent {
	var out []parent
	add := func(ref gwv1.ParentReference, reported bool) {
		kind, key, ok := parentOf(ref, route.Namespace)
		if !ok {
			return
		}
		for i := range out {
			if out[i].kind == kind && out[i].key == key {
				out[i].reported = out[i].reported || reported
				return
			}
		}
		out = append(out, parent{kind, key, reported})
	}
	for _, ref := range route.Spec.ParentRefs {
		add(ref, false)
	}
	for i := range route.Status.Parents {
		if string(route.Status.Parents[i].ControllerName) == controller {
			add(route.Status.Parents[i].ParentRef, true)
		}
	}
	return out
}

// reportedOf are the Gateways for which the status of a route has an entry of ours.
func reportedOf(route *gwv1.HTTPRoute, controller string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, p := range parentsOf(route, controller) {
		if p.reported && p.kind == kindGateway {
			keys = append(keys, p.key)
		}
	}
	return keys
}

func serviceOfSlice(o client.Object) (types.NamespacedName, bool) {
	name := o.GetLabels()[discoveryv1.LabelServiceName]
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, name != ""
}

func names(keys []types.NamespacedName) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}
