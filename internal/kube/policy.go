package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Policies are the policies for Services that concern a Gateway.
type Policies struct {
	Backend    []*v1alpha1.OpenStackBackendPolicy
	BackendTLS []*gwv1.BackendTLSPolicy
}

func (p Policies) objects() []client.Object {
	var all []client.Object
	for _, o := range p.Backend {
		all = append(all, o)
	}
	for _, o := range p.BackendTLS {
		all = append(all, o)
	}
	return all
}

// policyKinds are the lists of policies that can be read, with the name of each kind.
func (s Served) policyKinds() map[string]func() client.ObjectList {
	kinds := map[string]func() client.ObjectList{kindBackendPolicy: func() client.ObjectList { return &v1alpha1.OpenStackBackendPolicyList{} }}
	if s.BackendTLSPolicies {
		kinds[kindBackendTLSPolicy] = func() client.ObjectList { return &gwv1.BackendTLSPolicyList{} }
	}
	return kinds
}

// policyStatus and policyTargets are what all policies have.
func policyStatus(o client.Object) *gwv1.PolicyStatus {
	switch o := o.(type) {
	case *v1alpha1.OpenStackBackendPolicy:
		return &o.Status
	case *gwv1.BackendTLSPolicy:
		return &o.Status
	}
	return &gwv1.PolicyStatus{}
}

func policyTargets(o client.Object) []types.NamespacedName {
	var refs []gwv1.LocalPolicyTargetReferenceWithSectionName
	switch o := o.(type) {
	case *v1alpha1.OpenStackBackendPolicy:
		refs = o.Spec.TargetRefs
	case *gwv1.BackendTLSPolicy:
		refs = o.Spec.TargetRefs
	}
	var keys ordered[types.NamespacedName]
	for _, ref := range refs {
		if ref.Group == "" && ref.Kind == "Service" {
			keys.add(types.NamespacedName{Namespace: o.GetNamespace(), Name: string(ref.Name)})
		}
	}
	return keys.list
}

// policySecrets and policyConfigMaps are what a policy refers to, in its own namespace.
func policySecrets(o client.Object) []types.NamespacedName {
	p, ok := o.(*v1alpha1.OpenStackBackendPolicy)
	if !ok || p.Spec.TLS == nil {
		return nil
	}
	keys := caOfPolicy(p, v1alpha1.CACertificateSecret)
	if ref := p.Spec.TLS.ClientCertificateRef; ref != nil {
		keys.add(types.NamespacedName{Namespace: p.Namespace, Name: ref.Name})
	}
	return keys.list
}

func policyConfigMaps(o client.Object) []types.NamespacedName {
	switch p := o.(type) {
	case *v1alpha1.OpenStackBackendPolicy:
		if p.Spec.TLS != nil {
			keys := caOfPolicy(p, v1alpha1.CACertificateConfigMap)
			return keys.list
		}
	case *gwv1.BackendTLSPolicy:
		var keys ordered[types.NamespacedName]
		for _, ref := range p.Spec.Validation.CACertificateRefs {
			if ref.Group == "" && ref.Kind == "ConfigMap" {
				keys.add(types.NamespacedName{Namespace: p.Namespace, Name: string(ref.Name)})
			}
		}
		return keys.list
	}
	return nil
}

func caOfPolicy(p *v1alpha1.OpenStackBackendPolicy, kind v1alpha1.CACertificateKind) ordered[types.NamespacedName] {
	var keys ordered[types.NamespacedName]
	for _, ref := range p.Spec.TLS.CACertificateRefs {
		if ref.Kind == kind || ref.Kind == "" && kind == v1alpha1.CACertificateConfigMap {
			keys.add(types.NamespacedName{Namespace: p.Namespace, Name: ref.Name})
		}
	}
	return keys
}

// ancestorsOf are the Gateways for which the status of a policy has an entry of ours.
func ancestorsOf(o client.Object, controller string) []types.NamespacedName {
	var keys ordered[types.NamespacedName]
	for _, a := range policyStatus(o).Ancestors {
		if kind, key, ok := parentOf(a.AncestorRef, o.GetNamespace()); ok && kind == kindGateway && string(a.ControllerName) == controller {
			keys.add(key)
		}
	}
	return keys.list
}

// policyIndexes find the policies of a kind.
func policyIndexes(o client.Object, controller string) []index {
	return []index{
		{o, byService, func(o client.Object) []string { return names(policyTargets(o)) }},
		{o, byGateway, func(o client.Object) []string { return names(ancestorsOf(o, controller)) }},
		{o, bySecret, func(o client.Object) []string { return names(policySecrets(o)) }},
		{o, byConfigMap, func(o client.Object) []string { return names(policyConfigMaps(o)) }},
	}
}

// Policies are those of services, and those whose status has an entry of ours for the Gateway key.
func (r *Reader) Policies(ctx context.Context, key types.NamespacedName, services []types.NamespacedName) (Policies, error) {
	var out Policies
	known := map[types.NamespacedName]bool{}
	matches := []client.MatchingFields{{byGateway: key.String()}}
	for _, service := range services {
		matches = append(matches, client.MatchingFields{byService: service.String()})
	}
	for _, match := range matches {
		var list v1alpha1.OpenStackBackendPolicyList
		if err := r.Client.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
			return Policies{}, fmt.Errorf("listing OpenStackBackendPolicies by %v: %w", match, err)
		}
		for _, o := range pointers(list.Items) {
			if k := client.ObjectKeyFromObject(o); !known[k] {
				known[k] = true
				out.Backend = append(out.Backend, o)
			}
		}
	}
	if !r.Served.BackendTLSPolicies {
		return out, nil
	}
	clear(known)
	for _, match := range matches {
		var list gwv1.BackendTLSPolicyList
		if err := r.Client.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
			return Policies{}, fmt.Errorf("listing BackendTLSPolicies by %v: %w", match, err)
		}
		for _, o := range pointers(list.Items) {
			if k := client.ObjectKeyFromObject(o); !known[k] {
				known[k] = true
				out.BackendTLS = append(out.BackendTLS, o)
			}
		}
	}
	return out, nil
}

// policies adds the policies of the Services that routes name, whether these exist or not.
func (r *Reader) policies(ctx context.Context, s *compile.Snapshot) error {
	var services ordered[types.NamespacedName]
	for _, route := range s.HTTPRoutes {
		services.add(servicesOf(route)...)
	}
	found, err := r.Policies(ctx, client.ObjectKeyFromObject(s.Gateway), services.list)
	s.BackendPolicies, s.BackendTLSPolicies = found.Backend, found.BackendTLS
	return err
}

// policiesOf are the policies of a snapshot.
func policiesOf(s compile.Snapshot) Policies {
	return Policies{Backend: s.BackendPolicies, BackendTLS: s.BackendTLSPolicies}
}

// ofPolicy maps a policy to the Gateways whose routes use its targets, and to those that its status has an entry of ours for.
func (r *Reader) ofPolicy(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	var keys ordered[types.NamespacedName]
	keys.add(ancestorsOf(o, r.Controller)...)
	for _, service := range policyTargets(o) {
		routes, err := r.routes(ctx, byService, service)
		if err != nil {
			return keys.list, err
		}
		found, err := r.ofRoutes(ctx, routes)
		keys.add(found...)
		if err != nil {
			return keys.list, err
		}
	}
	return keys.list, nil
}

// ofPolicies are the Gateways of the policies that match in an index.
func (r *Reader) ofPolicies(ctx context.Context, match client.MatchingFields) ([]types.NamespacedName, error) {
	var keys ordered[types.NamespacedName]
	for kind, list := range r.Served.policyKinds() {
		into := list()
		if err := r.Client.List(ctx, into, match, client.UnsafeDisableDeepCopy); err != nil {
			return keys.list, fmt.Errorf("listing %s by %v: %w", kind, match, err)
		}
		var objects Policies
		switch l := into.(type) {
		case *v1alpha1.OpenStackBackendPolicyList:
			objects.Backend = pointers(l.Items)
		case *gwv1.BackendTLSPolicyList:
			objects.BackendTLS = pointers(l.Items)
		}
		for _, o := range objects.objects() {
			found, err := r.ofPolicy(ctx, o)
			keys.add(found...)
			if err != nil {
				return keys.list, err
			}
		}
	}
	return keys.list, nil
}

// policyChanged ignores status writes, but sees when entries of ours are lost, and when a full status gets room.
func policyChanged(controller string) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		old, now := policyStatus(before), policyStatus(after)
		if generationChanged(before, after) || len(old.Ancestors) >= maxAncestors && len(now.Ancestors) < maxAncestors {
			return true
		}
		conditions := func(s *gwv1.PolicyStatus) int {
			n := 0
			for _, a := range s.Ancestors {
				if string(a.ControllerName) == controller {
					n += len(a.Conditions)
				}
			}
			return n
		}
		return conditions(now) < conditions(old)
	}
}

// maxAncestors is the limit of the list in the status of a policy.
const maxAncestors = 16

var policyConditions = []string{string(gwv1.PolicyConditionAccepted), string(gwv1.BackendTLSPolicyConditionResolvedRefs)}

// writePolicies brings our entries for the Gateway key in policies to want. Those without a status in want lose theirs.
func (w *Writer) writePolicies(ctx context.Context, key types.NamespacedName, have Policies, want []status.PolicyStatus) error {
	var errs []error
	for _, o := range have.objects() {
		kind := status.KindBackendPolicy
		if _, ok := o.(*gwv1.BackendTLSPolicy); ok {
			kind = status.KindBackendTLSPolicy
		}
		i := slices.IndexFunc(want, func(p status.PolicyStatus) bool {
			return p.Object.Kind == kind && p.Object.Namespace == o.GetNamespace() && p.Object.Name == o.GetName()
		})
		var one *status.PolicyStatus
		if i >= 0 {
			one = &want[i]
		}
		errs = append(errs, w.writePolicy(ctx, key, o, one))
	}
	return errors.Join(errs...)
}

// ReleasePolicies removes our entries for the Gateway key: when it is gone, or is not ours any more.
func (w *Writer) ReleasePolicies(ctx context.Context, key types.NamespacedName, policies Policies) error {
	return w.writePolicies(ctx, key, policies, nil)
}

func (w *Writer) writePolicy(ctx context.Context, key types.NamespacedName, o client.Object, want *status.PolicyStatus) error {
	var fresh client.Object = &v1alpha1.OpenStackBackendPolicy{}
	if _, ok := o.(*gwv1.BackendTLSPolicy); ok {
		fresh = &gwv1.BackendTLSPolicy{}
	}
	return patchStatus(ctx, w, o, fresh, func(o client.Object) ([]operation, []transition) {
		return w.policyPatch(ctx, key, o, want)
	})
}

func (w *Writer) policyPatch(ctx context.Context, key types.NamespacedName, o client.Object, want *status.PolicyStatus) (ops []operation, changed []transition) {
	have := policyStatus(o).Ancestors
	matched := false
	var stale []int
	for i := range have {
		kind, of, ok := parentOf(have[i].AncestorRef, o.GetNamespace())
		if string(have[i].ControllerName) != w.Controller || !ok || kind != kindGateway || of != key {
			continue
		}
		if want == nil || matched {
			stale = append(stale, i)
			continue
		}
		matched = true
		if newer(have[i].Conditions, policyConditions, want.Object.Generation) {
			continue
		}
		entry := w.ancestor(key)
		var more []transition
		entry.Conditions, more = mergeConditions(have[i].Conditions, fits(have[i].Conditions, want.Conditions), policyConditions, w.now())
		if !equality.Semantic.DeepEqual(entry, have[i]) {
			ops = append(ops, operation{"replace", fmt.Sprintf("/status/ancestors/%d", i), entry})
			changed = append(changed, more...)
		}
	}
	for _, i := range slices.Backward(stale) {
		ops = append(ops, operation{Op: "remove", Path: fmt.Sprintf("/status/ancestors/%d", i)})
	}
	if want == nil || matched {
		return ops, changed
	}
	if len(have) >= maxAncestors {
		// Another Gateway was faster. The next pass sees that this policy cannot be used.
		ctrl.LoggerFrom(ctx).Info("status.ancestors is full", "policy", client.ObjectKeyFromObject(o))
		return ops, changed
	}
	entry := w.ancestor(key)
	entry.Conditions, changed = mergeConditions(nil, want.Conditions, nil, w.now())
	if len(have) == 0 {
		return append(ops, operation{"add", "/status", gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{entry}}}), changed
	}
	return append(ops, operation{"add", "/status/ancestors/-", entry}), changed
}

// ancestor is the entry for a Gateway, without conditions.
func (w *Writer) ancestor(key types.NamespacedName) gwv1.PolicyAncestorStatus {
	return gwv1.PolicyAncestorStatus{
		AncestorRef: gwv1.ParentReference{
			Group: new(gwv1.Group(gwv1.GroupName)), Kind: new(gwv1.Kind(kindGateway)),
			Namespace: new(gwv1.Namespace(key.Namespace)), Name: gwv1.ObjectName(key.Name),
		},
		ControllerName: gwv1.GatewayController(w.Controller),
		Conditions:     []metav1.Condition{},
	}
}
