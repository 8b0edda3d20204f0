package robustness

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// auditor looks at the world as it is: with caches that are current and calls that do not fail. It changes nothing.
type auditor struct {
	*process
	cloud *cloud.Client
}

func (w *world) audit() (*auditor, error) {
	p := &process{w: w, name: "audit"}
	p.ctx, p.cancel = w.quiet()
	defer p.cancel()
	v, err := newView(w.kube, controllerName)
	if err != nil {
		return nil, err
	}
	v.list()
	a := &access{view: v, step: func(string, client.Object) (bool, error) { return false, nil }}
	p.view, p.reader = v, &kube.Reader{Client: a, Live: live{a}, Controller: controllerName, ClusterID: clusterID, Served: served}
	p.ctx, p.cancel = w.quiet()
	c, err := cloud.New(p.ctx, cloud.Options{CloudsFile: w.credentialsFile(), Cloud: "story", Clock: passing{w}, Transport: direct{w}, Parallel: 1})
	if err != nil {
		return nil, fmt.Errorf("the audit cannot ask the cloud: %w", err)
	}
	return &auditor{p, c}, nil
}

// verdict is what the audit finds about one Gateway.
type verdict struct {
	snapshot compile.Snapshot
	// usable says that it has a class of ours with parameters, and is not being deleted.
	usable     bool
	parameters *kube.ParametersError
	facts      error
	compiled   compile.Result
	have       lb.Tree
	observed   error
	todo       plan.Plan
}

// asWanted says whether the cloud has what the Gateway asks for.
func (v *verdict) asWanted() bool {
	return v.usable && v.facts == nil && !v.compiled.Hold && v.observed == nil && v.todo.Empty() && cloud.Errored(v.have) == nil &&
		v.have.ProvisioningStatus == lb.Active
}

func (a *auditor) verdict(key types.NamespacedName) (*verdict, error) {
	v := &verdict{}
	var err error
	v.snapshot, err = a.reader.Snapshot(a.ctx, key)
	if err != nil && !errors.As(err, &v.parameters) {
		return nil, err
	}
	s := &v.snapshot
	owner := lb.Owner{ClusterID: s.ClusterID, Controller: s.Controller, Namespace: key.Namespace, Name: key.Name, UID: string(s.Gateway.UID)}
	if !a.reader.Selects(s.Class) || !s.Gateway.DeletionTimestamp.IsZero() || v.parameters != nil {
		return v, nil //nolint:nilerr // that is part of the verdict
	}
	v.usable = true
	if s.Facts, v.facts = a.cloud.Facts(a.ctx, controller.FactsRequest(s.Config)); v.facts != nil {
		return v, nil //nolint:nilerr // that is part of the verdict
	}
	s.Now = a.w.clock.Now()
	v.compiled = compile.Gateway(*s)
	v.have, v.observed = a.cloud.ObserveFor(a.ctx, owner, &v.compiled.Tree, nil)
	if v.observed == nil && !v.compiled.Hold {
		v.todo = plan.New(&v.compiled.Tree, &v.have)
	}
	return v, nil
}

// check says what is not as it must be, now that all is calm. clean says that nothing of others is in our way and nothing is in ERROR.
func (w *world) check(clean bool) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	w.foreign.intact("in the end")
	if w.problem != nil {
		bad("%v", w.problem)
	}
	for _, p := range w.processes {
		if err := p.view.tampered(); err != nil {
			bad("%v", err)
		}
	}
	a, err := w.audit()
	if err != nil {
		return append(out, err.Error())
	}
	defer a.cancel()
	verdicts := map[string]*verdict{}
	for _, key := range w.kube.kind(&gwv1.Gateway{}).keys() {
		v, err := a.verdict(key)
		if err != nil {
			bad("Gateway %s: %v", key, err)
			continue
		}
		verdicts[string(v.snapshot.Gateway.UID)] = v
		for _, problem := range v.problems(clean) {
			bad("Gateway %s (%s): %s", key, v.snapshot.Gateway.UID, problem)
		}
	}
	w.well = true
	for _, v := range verdicts {
		w.well = w.well && (v.asWanted() || v.compiled.Hold)
	}
	out = append(out, w.orphans(verdicts)...)
	out = append(out, w.strayStatuses()...)
	out = append(out, w.strayPolicies()...)
	out = append(out, w.classes(a)...)
	return out
}

// problems are what is wrong with one Gateway.
func (v *verdict) problems(clean bool) (out []string) {
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	gw := v.snapshot.Gateway
	finalizer := slices.Contains(gw.Finalizers, api.FinalizerFor(controllerName))
	ours := v.snapshot.Class != nil && string(v.snapshot.Class.Spec.ControllerName) == controllerName
	programmed := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
	switch {
	case !gw.DeletionTimestamp.IsZero():
		if clean {
			bad("it is still being deleted: %s", sentence(programmed))
		}
		return out
	case v.snapshot.Class == nil && finalizer:
		// Somebody deleted the class: the load balancer serves on until a class says otherwise.
		return out
	case !ours:
		// One that never had our finalizer may keep what we said of it: nobody knows who did.
		if clean && (finalizer || len(gw.Status.Addresses) > 0 || programmed != nil && programmed.Status == metav1.ConditionTrue) {
			bad("it is not ours any more and still has our marks: finalizers %v, status %+v", gw.Finalizers, gw.Status)
		}
		return out
	}
	if programmed == nil {
		bad("it has no Programmed condition")
		return out
	}
	for _, c := range gw.Status.Conditions {
		if c.ObservedGeneration != gw.Generation && (v.parameters == nil && v.facts == nil || c.Type == string(gwv1.GatewayConditionProgrammed)) {
			bad("%s is about generation %d of %d: %s", c.Type, c.ObservedGeneration, gw.Generation, c.Message)
		}
	}
	switch {
	case v.parameters != nil:
		if programmed.Status == metav1.ConditionTrue && clean {
			bad("its class has no parameters, and it is Programmed: %s", programmed.Message)
		}
		return out
	case v.facts != nil, v.compiled.Hold:
		if v.compiled.Hold && programmed.Status == metav1.ConditionTrue {
			bad("it is refused, and Programmed: %s", programmed.Message)
		}
		return out
	}
	if !v.asWanted() {
		if clean {
			bad("the cloud is not as wanted (%s): %v, errored %v\n%s\nits status says %s", v.have.ProvisioningStatus, v.observed, cloud.Errored(v.have), planText(v.todo), sentence(programmed))
		}
		if programmed.Status == metav1.ConditionTrue && accepted(v) {
			bad("it is Programmed (%s) and the cloud is not as wanted: %v, errored %v\n%s", programmed.Message, v.observed, cloud.Errored(v.have), planText(v.todo))
		}
		return out
	}
	if !finalizer {
		bad("it has something in the cloud and no finalizer")
	}
	out = append(out, v.content()...)
	want := status.For(status.Input{Controller: controllerName, Gateway: gw, ListenerSets: v.snapshot.ListenerSets, Compiled: true,
		Verdicts: v.compiled.Verdicts, Want: v.compiled.Tree, Have: &v.have, Outcome: status.Outcome{Kind: status.Programmed}})
	out = append(out, differences("Gateway", want.Gateway.Conditions, gw.Status.Conditions)...)
	if !sameAddresses(want.Gateway.Addresses, gw.Status.Addresses) {
		bad("its addresses are %v and should be %v", show(gw.Status.Addresses), show(want.Gateway.Addresses))
	}
	out = append(out, listenerDifferences(want.Gateway.Listeners, gw.Status.Listeners)...)
	for _, set := range want.ListenerSets {
		for _, have := range v.snapshot.ListenerSets {
			if have.Namespace == set.Object.Namespace && have.Name == set.Object.Name {
				out = append(out, differences("ListenerSet "+have.Name, set.Conditions, have.Status.Conditions)...)
				listeners := make([]gwv1.ListenerStatus, len(have.Status.Listeners))
				for i, l := range have.Status.Listeners {
					listeners[i] = gwv1.ListenerStatus(l)
				}
				out = append(out, listenerDifferences(set.Listeners, listeners)...)
			}
		}
	}
	out = append(out, v.policyDifferences(want.Policies)...)
	return append(out, v.routeDifferences(want.Routes)...)
}

func (v *verdict) policyDifferences(want []status.PolicyStatus) (out []string) {
	gw := v.snapshot.Gateway
	for _, w := range want {
		for _, policy := range v.snapshot.BackendPolicies {
			if w.Object.Kind != status.KindBackendPolicy || policy.Namespace != w.Object.Namespace || policy.Name != w.Object.Name {
				continue
			}
			what := fmt.Sprintf("OpenStackBackendPolicy %s/%s", policy.Namespace, policy.Name)
			i := slices.IndexFunc(policy.Status.Ancestors, func(a gwv1.PolicyAncestorStatus) bool {
				return string(a.ControllerName) == controllerName && string(a.AncestorRef.Name) == gw.Name && a.AncestorRef.Namespace != nil && string(*a.AncestorRef.Namespace) == gw.Namespace
			})
			if i < 0 {
				out = append(out, what+" has no status for the Gateway")
				continue
			}
			out = append(out, differences(what, w.Conditions, policy.Status.Ancestors[i].Conditions)...)
		}
	}
	return out
}

// accepted says whether something is to be programmed at all.
func accepted(v *verdict) bool { return !v.compiled.Hold }

func (v *verdict) routeDifferences(want []status.RouteStatus) (out []string) {
	wanted := map[types.NamespacedName][]gwv1.RouteParentStatus{}
	for _, r := range want {
		wanted[named(r.Object.Namespace, r.Object.Name)] = r.Parents
	}
	for _, route := range v.snapshot.HTTPRoutes {
		key := client.ObjectKeyFromObject(route)
		for _, p := range wanted[key] {
			i := slices.IndexFunc(route.Status.Parents, func(h gwv1.RouteParentStatus) bool {
				return string(h.ControllerName) == controllerName && reflect.DeepEqual(h.ParentRef, p.ParentRef)
			})
			if i < 0 {
				out = append(out, fmt.Sprintf("HTTPRoute %s has no status for %s", key, p.ParentRef.Name))
				continue
			}
			out = append(out, differences(fmt.Sprintf("HTTPRoute %s for %s", key, p.ParentRef.Name), p.Conditions, route.Status.Parents[i].Conditions)...)
		}
	}
	return out
}

func sentence(c *metav1.Condition) string {
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

func planText(p plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  step %s %s %s %s: %s\n", s.Verb, s.Kind, s.Ref.Key, s.Ref.ID, s.Reason)
	}
	for _, c := range p.Conflicts {
		fmt.Fprintf(&b, "  conflict %s %s: %s\n", c.Kind, c.Key, c.Reason)
	}
	return b.String()
}

func differences(what string, want, have []metav1.Condition) (out []string) {
	for _, w := range want {
		h := meta.FindStatusCondition(have, w.Type)
		if h == nil {
			out = append(out, fmt.Sprintf("%s has no %s, which should be %s", what, w.Type, w.Status))
			continue
		}
		if h.Status != w.Status || h.Reason != w.Reason || h.Message != w.Message || h.ObservedGeneration != w.ObservedGeneration {
			out = append(out, fmt.Sprintf("%s: generation %d %s\n    should be generation %d %s", what, h.ObservedGeneration, sentence(h), w.ObservedGeneration, sentence(&w)))
		}
	}
	return out
}

func listenerDifferences(want, have []gwv1.ListenerStatus) (out []string) {
	if len(want) != len(have) {
		return []string{fmt.Sprintf("there are %d listener statuses, not %d", len(have), len(want))}
	}
	for i, w := range want {
		if have[i].Name != w.Name || have[i].AttachedRoutes != w.AttachedRoutes {
			out = append(out, fmt.Sprintf("listener %s has %d routes, listener %s should have %d", have[i].Name, have[i].AttachedRoutes, w.Name, w.AttachedRoutes))
		}
		out = append(out, differences("listener "+string(w.Name), w.Conditions, have[i].Conditions)...)
	}
	return out
}

func show(addresses []gwv1.GatewayStatusAddress) string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.Value)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func sameAddresses(a, b []gwv1.GatewayStatusAddress) bool { return show(a) == show(b) }

// orphans are what is ours in the cloud without a Gateway that it is for, or twice.
func (w *world) orphans(verdicts map[string]*verdict) (out []string) {
	now := w.cloud.Snapshot()
	count := map[string]int{}
	for _, collection := range collections {
		for _, id := range slices.Sorted(maps.Keys(now[collection])) {
			o := now[collection][id]
			uid := ownerIn(collection, o)
			if uid == "" || w.foreign.have[id] != nil {
				continue
			}
			v := verdicts[uid]
			switch {
			case v == nil:
				out = append(out, fmt.Sprintf("%s %s (%v) belongs to Gateway %s, which does not exist", collection, id, o["name"], uid))
				continue
			case !slices.Contains(v.snapshot.Gateway.Finalizers, api.FinalizerFor(controllerName)):
				out = append(out, fmt.Sprintf("%s %s belongs to Gateway %s, which has no finalizer of ours", collection, id, uid))
			}
			if v.asWanted() && (collection == "loadbalancers" || collection == "floatingips") {
				if count[collection+uid]++; count[collection+uid] > 1 {
					out = append(out, fmt.Sprintf("there is more than one of the %s of Gateway %s", collection, uid))
				}
			}
			// Without HTTPS nobody asks Barbican: what a crash left there goes with the Gateway.
			if v.asWanted() && collection == "secrets" && len(v.compiled.Tree.Secrets) > 0 && !slices.ContainsFunc(v.have.Secrets, func(s lb.Secret) bool { return s.ID == id }) {
				out = append(out, fmt.Sprintf("secret %v of Gateway %s is used by nothing", o["name"], uid))
			}
			if v.asWanted() && collection == "floatingips" && v.compiled.Tree.FloatingIP == nil {
				out = append(out, fmt.Sprintf("Gateway %s has a floating IP that it does not want", uid))
			}
		}
	}
	return out
}

// strayStatuses are entries of ours in routes for parents that they do not have any more, or that are not ours.
func (w *world) strayStatuses() (out []string) {
	routes := w.kube.kind(&gwv1.HTTPRoute{})
	for _, key := range routes.keys() {
		route := routes.objects[key].(*gwv1.HTTPRoute)
		for _, p := range route.Status.Parents {
			if string(p.ControllerName) != controllerName {
				continue
			}
			if !slices.ContainsFunc(route.Spec.ParentRefs, func(ref gwv1.ParentReference) bool { return reflect.DeepEqual(ref, p.ParentRef) }) {
				out = append(out, fmt.Sprintf("HTTPRoute %s has a status for the parent %s, which it does not name any more", key, p.ParentRef.Name))
				continue
			}
			for _, c := range p.Conditions {
				if c.ObservedGeneration > route.Generation {
					out = append(out, fmt.Sprintf("HTTPRoute %s: %s is from the future", key, sentence(&c)))
				}
			}
			if p.ParentRef.Kind != nil && *p.ParentRef.Kind != "Gateway" {
				continue
			}
			namespace := key.Namespace
			if p.ParentRef.Namespace != nil {
				namespace = string(*p.ParentRef.Namespace)
			}
			gw, _ := w.kube.kind(&gwv1.Gateway{}).objects[named(namespace, string(p.ParentRef.Name))].(*gwv1.Gateway)
			if gw == nil {
				out = append(out, fmt.Sprintf("HTTPRoute %s has a status for the Gateway %s, which does not exist", key, p.ParentRef.Name))
				continue
			}
			class, _ := w.kube.kind(&gwv1.GatewayClass{}).objects[named("", string(gw.Spec.GatewayClassName))].(*gwv1.GatewayClass)
			if !slices.Contains(gw.Finalizers, api.FinalizerFor(controllerName)) && (class == nil || string(class.Spec.ControllerName) != controllerName) {
				out = append(out, fmt.Sprintf("HTTPRoute %s has a status of ours for the Gateway %s, which is not ours", key, p.ParentRef.Name))
			}
		}
	}
	return out
}

// strayPolicies are entries of ours in policies for Gateways that do not exist.
func (w *world) strayPolicies() (out []string) {
	policies := w.kube.kind(&v1alpha1.OpenStackBackendPolicy{})
	for _, key := range policies.keys() {
		for _, a := range policies.objects[key].(*v1alpha1.OpenStackBackendPolicy).Status.Ancestors {
			namespace := key.Namespace
			if a.AncestorRef.Namespace != nil {
				namespace = string(*a.AncestorRef.Namespace)
			}
			if string(a.ControllerName) == controllerName && w.kube.kind(&gwv1.Gateway{}).objects[named(namespace, string(a.AncestorRef.Name))] == nil {
				out = append(out, fmt.Sprintf("OpenStackBackendPolicy %s has a status for the Gateway %s, which does not exist", key, a.AncestorRef.Name))
			}
		}
	}
	return out
}

// classes says what is wrong with GatewayClasses.
func (w *world) classes(a *auditor) (out []string) {
	k := w.kube.kind(&gwv1.GatewayClass{})
	for _, key := range k.keys() {
		class := k.objects[key].(*gwv1.GatewayClass)
		if string(class.Spec.ControllerName) != controllerName {
			continue
		}
		used, err := a.reader.GatewaysOfClass(a.ctx, class.Name)
		if err != nil {
			return append(out, err.Error())
		}
		held := slices.Contains(class.Finalizers, gwv1.GatewayClassFinalizerGatewaysExist)
		if held && len(used) == 0 {
			out = append(out, fmt.Sprintf("GatewayClass %s has no Gateway and still the finalizer", key))
		}
		if !held && len(used) > 0 && class.DeletionTimestamp.IsZero() {
			out = append(out, fmt.Sprintf("GatewayClass %s has %d Gateways and no finalizer", key, len(used)))
		}
		c := meta.FindStatusCondition(class.Status.Conditions, string(gwv1.GatewayClassConditionStatusAccepted))
		if class.DeletionTimestamp.IsZero() && (c == nil || c.Status == metav1.ConditionUnknown || c.ObservedGeneration != class.Generation) {
			out = append(out, fmt.Sprintf("GatewayClass %s is not decided about: %s", key, sentence(c)))
		}
	}
	return out
}
