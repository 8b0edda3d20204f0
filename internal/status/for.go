package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Input is all that statuses follow from.
type Input struct {
	// Controller is our controllerName.
	Controller string
	Gateway    *gwv1.Gateway
	// ListenerSets are those that name the Gateway.
	ListenerSets []*gwv1.ListenerSet
	// Compiled says that Verdicts are the complete output of compile. Without it (the class has no usable parameters, the cloud
	// facts could not be looked up) listeners and routes keep the statuses that they have, and Verdicts may hold one for the
	// Gateway.
	Compiled bool
	Verdicts []Verdict
	// Want is the wanted tree.
	Want lb.Tree
	// Have is what was observed last in this pass; nil when the cloud could not be read, which is not the same as Empty.
	Have    *lb.Tree
	Outcome Outcome
	// Kept are sentences about what the load balancer keeps though something else is asked for, since Octavia cannot change it.
	Kept []string
	// Replacement is what there is to say of replacing the load balancer; "" for nothing.
	Replacement string
	// Fault says why the parameters of the class cannot be used any more, while what there is goes on; "" when they can.
	Fault string
}

// Statuses are the statuses that a Gateway, its ListenerSets and its routes shall have. The conditions have no lastTransitionTime: whoever
// writes them knows the old ones.
type Statuses struct {
	Gateway GatewayStatus
	// KeepRoutes says that nothing is known of routes and ListenerSets: no entry is written, and none removed that the route still names.
	KeepRoutes   bool
	Routes       []RouteStatus
	ListenerSets []ListenerSetStatus
	// Policies are those with the Gateway as an ancestor. Entries of ours for it in other policies are stale.
	Policies []PolicyStatus
}

// PolicyStatus is ours of a policy's status: the entry for this Gateway.
type PolicyStatus struct {
	Object     Object
	Conditions []metav1.Condition
}

// GatewayStatus is ours of a Gateway's status. Conditions and listener conditions of other types are not ours.
type GatewayStatus struct {
	Object     Object
	Conditions []metav1.Condition
	// Remove are condition types of ours that do not apply any more.
	Remove []string
	// KeepListeners says that nothing new is known of listeners.
	KeepListeners bool
	Listeners     []gwv1.ListenerStatus
	Addresses     []gwv1.GatewayStatusAddress
	// AttachedListenerSets is nil when nothing is known of ListenerSets, or nobody asks for them.
	AttachedListenerSets *int32
}

// ListenerSetStatus is ours of a ListenerSet's status.
type ListenerSetStatus struct {
	Object     Object
	Conditions []metav1.Condition
	Listeners  []gwv1.ListenerStatus
}

// RouteStatus is ours of a route's status: the entries for this Gateway. Our entries for it that are not here are stale.
type RouteStatus struct {
	Object  Object
	Parents []gwv1.RouteParentStatus
}

// For turns what is known after a pass into statuses. Equal input gives equal output, in a fixed order.
//
// It reads what the Gateway's status says already in two cases only, both when the cloud could not be read: published addresses
// stay, and what was programmed for this generation still is.
func For(in Input) Statuses {
	out := Statuses{
		Gateway: GatewayStatus{
			Object: Object{Kind: KindGateway, Namespace: in.Gateway.Namespace, Name: in.Gateway.Name, Generation: in.Gateway.Generation},
		},
		KeepRoutes: !in.Compiled,
	}
	gw := &out.Gateway
	verdicts := sortVerdicts(in.Verdicts)
	var own []Condition
	for _, v := range verdicts.gateway {
		own = append(own, v.Conditions...)
	}

	var refused []string
	if in.Compiled {
		gw.Listeners, refused = listeners(in, ofGateway(in.Gateway), verdicts.listeners[ungenerated(gw.Object)])
		if len(in.ListenerSets) > 0 || in.Gateway.Spec.AllowedListeners != nil {
			gw.AttachedListenerSets = new(int32)
			for _, v := range verdicts.gateway {
				*gw.AttachedListenerSets += v.AttachedListenerSets
			}
		}
	} else {
		gw.KeepListeners = true
	}

	accepted, known := find(own, string(gwv1.GatewayConditionAccepted))
	switch {
	case known:
	case in.Compiled && len(refused) > 0:
		accepted, known = GatewayListenersNotValid(refused, len(in.Gateway.Spec.Listeners)-len(refused)), true
	case in.Compiled:
		accepted, known = GatewayAccepted(), true
	}

	addresses := addressesOf(in)
	for _, a := range addresses {
		gw.Addresses = append(gw.Addresses, gwv1.GatewayStatusAddress{Type: new(gwv1.IPAddressType), Value: a})
	}
	var conditions []Condition
	if known {
		conditions = append(conditions, accepted)
	}
	works, decided := find(own, string(gwv1.GatewayConditionProgrammed))
	if !decided {
		works = programmed(in, accepted, addresses, gw.Listeners)
	}
	conditions = append(conditions, works)
	for _, c := range own {
		if c.Type != string(gwv1.GatewayConditionAccepted) && c.Type != string(gwv1.GatewayConditionProgrammed) {
			conditions = append(conditions, c)
		}
	}
	gw.Conditions = stamp(conditions, in.Gateway.Generation)
	if _, used := find(own, string(gwv1.GatewayConditionResolvedRefs)); in.Compiled && !used {
		gw.Remove = append(gw.Remove, string(gwv1.GatewayConditionResolvedRefs))
	}

	if in.Compiled {
		out.Routes = routes(in.Controller, verdicts.routes)
		out.ListenerSets = listenerSets(in, verdicts, works)
		for _, v := range verdicts.policies {
			out.Policies = append(out.Policies, PolicyStatus{Object: v.Object, Conditions: stamp(v.Conditions, v.Object.Generation)})
		}
	}
	return out
}

type sorted struct {
	gateway, sets, routes, policies []Verdict
	// listeners are by owner, without its generation, and name.
	listeners map[Object]map[gwv1.SectionName]Verdict
}

func sortVerdicts(all []Verdict) sorted {
	out := sorted{listeners: map[Object]map[gwv1.SectionName]Verdict{}}
	for _, v := range all {
		switch {
		case v.Listener != "":
			of := ungenerated(v.Object)
			if out.listeners[of] == nil {
				out.listeners[of] = map[gwv1.SectionName]Verdict{}
			}
			out.listeners[of][v.Listener] = v
		case v.Object.Kind == KindGateway:
			out.gateway = append(out.gateway, v)
		case v.Object.Kind == KindListenerSet:
			out.sets = append(out.sets, v)
		case v.Object.Kind == KindHTTPRoute && v.Parent != nil:
			out.routes = append(out.routes, v)
		case v.Object.Kind == KindBackendPolicy || v.Object.Kind == KindBackendTLSPolicy:
			out.policies = append(out.policies, v)
		}
	}
	return out
}

func ungenerated(o Object) Object {
	o.Generation = 0
	return o
}

// routes groups the verdicts by route, in the order of namespace and name; parents keep their order.
func routes(controller string, verdicts []Verdict) []RouteStatus {
	var out []RouteStatus
	at := map[[2]string]int{}
	for _, v := range verdicts {
		key := [2]string{v.Object.Namespace, v.Object.Name}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, RouteStatus{Object: v.Object})
		}
		out[i].Parents = append(out[i].Parents, gwv1.RouteParentStatus{
			ParentRef:      *v.Parent,
			ControllerName: gwv1.GatewayController(controller),
			Conditions:     stamp(v.Conditions, v.Object.Generation),
		})
	}
	slices.SortFunc(out, func(a, b RouteStatus) int {
		return cmp.Or(strings.Compare(a.Object.Namespace, b.Object.Namespace), strings.Compare(a.Object.Name, b.Object.Name))
	})
	return out
}

// listening is an object with listeners: its spec and what its status says already.
type listening struct {
	generation int64
	listeners  []gwv1.Listener
	have       []gwv1.ListenerStatus
}

func ofGateway(gw *gwv1.Gateway) listening {
	return listening{gw.Generation, gw.Spec.Listeners, gw.Status.Listeners}
}

// conditions are those that the status has for a listener.
func (o listening) conditions(name gwv1.SectionName) []metav1.Condition {
	for i := range o.have {
		if o.have[i].Name == name {
			return o.have[i].Conditions
		}
	}
	return nil
}

// listeners makes one entry per listener of the spec, in its order, and names those that compile refused.
func listeners(in Input, of listening, verdicts map[gwv1.SectionName]Verdict) (out []gwv1.ListenerStatus, refused []string) {
	for i := range of.listeners {
		l := &of.listeners[i]
		v := verdicts[l.Name]
		var conditions []Condition
		take := func(t gwv1.ListenerConditionType, otherwise Condition) Condition {
			c, ok := find(v.Conditions, string(t))
			if !ok {
				c = otherwise
			}
			conditions = append(conditions, c)
			return c
		}
		accepted := take(gwv1.ListenerConditionAccepted, condition(gwv1.ListenerConditionAccepted,
			metav1.ConditionUnknown, gwv1.ListenerReasonPending, "The listener was not looked at yet."))
		if accepted.Status == metav1.ConditionFalse {
			refused = append(refused, string(l.Name))
		}
		take(gwv1.ListenerConditionProgrammed, listenerProgram(in, of, l, v))
		take(gwv1.ListenerConditionResolvedRefs, condition(gwv1.ListenerConditionResolvedRefs,
			metav1.ConditionTrue, gwv1.ListenerReasonResolvedRefs, "All references are resolved."))
		take(gwv1.ListenerConditionConflicted, condition(gwv1.ListenerConditionConflicted,
			metav1.ConditionFalse, gwv1.ListenerReasonNoConflicts, "No other listener stands in the way."))
		for _, c := range v.Conditions {
			if _, ok := find(conditions, c.Type); !ok {
				conditions = append(conditions, c)
			}
		}
		kinds := v.SupportedKinds
		if kinds == nil {
			// The CRD wants the list to be there, though it may be empty.
			kinds = []gwv1.RouteGroupKind{}
		}
		out = append(out, gwv1.ListenerStatus{
			Name:           l.Name,
			SupportedKinds: kinds,
			AttachedRoutes: v.AttachedRoutes,
			Conditions:     stamp(conditions, of.generation),
		})
	}
	return out, refused
}

// listenerProgram is a listener's Programmed condition.
func listenerProgram(in Input, of listening, l *gwv1.Listener, v Verdict) Condition {
	if why := unprogrammable(v); why != "" {
		return listenerNotProgrammed(gwv1.ListenerReasonInvalid, why)
	}
	if in.Outcome.Kind == Programmed {
		return listenerProgrammed()
	}
	if in.Have == nil && !in.Outcome.unknown() {
		return listenerNotProgrammed(gwv1.ListenerReasonPending, "What the load balancer listens on is in doubt: "+in.Outcome.sentence())
	}
	if unread(in) {
		if wasProgrammed(of.conditions(l.Name), string(gwv1.ListenerConditionProgrammed), of.generation) {
			return listenerProgrammed()
		}
		if in.Compiled && in.Want.Empty() {
			return listenerNotProgrammed(gwv1.ListenerReasonPending, "Nothing is changed while the Gateway as a whole cannot be had: see its conditions.")
		}
		return listenerNotProgrammed(gwv1.ListenerReasonPending, "The cloud could not be read: "+in.Outcome.sentence())
	}
	for i := range in.Have.Listeners {
		have := &in.Have.Listeners[i]
		if have.Port != int(l.Port) {
			continue
		}
		switch {
		case serves(in.Have.Meta) && serves(have.Meta):
			return listenerProgrammed()
		case have.ProvisioningStatus == lb.Errored:
			return listenerNotProgrammed(gwv1.ListenerReasonInvalid,
				fmt.Sprintf("Octavia listener %s is in ERROR: %s", have.ID, in.Outcome.sentence()))
		}
	}
	return listenerNotProgrammed(gwv1.ListenerReasonPending, "The load balancer does not listen on this port yet: "+in.Outcome.sentence())
}

// unprogrammable says why compile put nothing of a listener into the tree, "" when it did.
func unprogrammable(v Verdict) string {
	if c, ok := find(v.Conditions, string(gwv1.ListenerConditionAccepted)); ok && c.Status == metav1.ConditionFalse {
		return "The listener is not accepted: " + c.Message
	}
	if c, ok := find(v.Conditions, string(gwv1.ListenerConditionConflicted)); ok && c.Status == metav1.ConditionTrue {
		return "The listener conflicts with another one: " + c.Message
	}
	// Unknown route kinds leave a listener that works for the others; what TLS needs does not.
	if c, ok := find(v.Conditions, string(gwv1.ListenerConditionResolvedRefs)); ok && c.Status == metav1.ConditionFalse &&
		(c.Reason != string(gwv1.ListenerReasonInvalidRouteKinds) || len(v.SupportedKinds) == 0) {
		return "A reference of the listener cannot be used: " + c.Message
	}
	return ""
}

// programmed is the Gateway's Programmed condition.
func programmed(in Input, accepted Condition, addresses []string, listeners []gwv1.ListenerStatus) Condition {
	o := in.Outcome
	reason := func(otherwise gwv1.GatewayConditionReason) gwv1.GatewayConditionReason {
		return gwv1.GatewayConditionReason(cmp.Or(o.Reason, string(otherwise)))
	}
	ready := strings.Join(append([]string{"The load balancer serves on " + strings.Join(addresses, ", ") + "."}, in.notes()...), " ")

	if !in.Gateway.DeletionTimestamp.IsZero() {
		return gatewayNotProgrammed(reason(unreadReason(o.Kind)), "The Gateway is being deleted: "+o.sentence())
	}
	if accepted.Status == metav1.ConditionFalse {
		return gatewayNotProgrammed(reason(gwv1.GatewayReasonInvalid), "The Gateway is not accepted: "+accepted.Message)
	}
	if o.Kind == UserFault {
		return gatewayNotProgrammed(reason(gwv1.GatewayReasonInvalid), o.sentence())
	}
	if unread(in) && (in.Have != nil && o.Kind != Programmed || o.unknown()) {
		// Nobody knows. What was true for this generation is kept, so that an outage of the cloud API does not look
		// like an outage of the Gateway.
		if wasProgrammed(in.Gateway.Status.Conditions, string(gwv1.GatewayConditionProgrammed), in.Gateway.Generation) {
			if in.Have != nil && o.Kind == Pending {
				return gatewayProgrammed(ready)
			}
			return gatewayProgrammed(ready + " The last check failed: " + o.sentence())
		}
		return gatewayNotProgrammed(reason(unreadReason(o.Kind)), o.sentence())
	}
	switch o.Kind {
	case Programmed, Pending, Retry:
		switch {
		case o.Kind == Programmed && noneProgrammed(in, listeners):
			return gatewayNotProgrammed(reason(gwv1.GatewayReasonInvalid), "No listener is served: see their Programmed conditions.")
		case o.Kind != Programmed && !serving(in, listeners):
			return gatewayNotProgrammed(reason(gwv1.GatewayReasonPending), o.sentence())
		case len(addresses) == 0:
			return gatewayNotProgrammed(reason(gwv1.GatewayReasonAddressNotAssigned), "The load balancer has no address yet: "+o.sentence())
		case o.Kind == Retry:
			return gatewayProgrammed(ready + " The last change could not be made yet: " + o.sentence())
		}
		// Pending says the same as Programmed: a Gateway that serves does not flap because its members change.
		return gatewayProgrammed(ready)
	case OperatorFault:
		return gatewayNotProgrammed(reason(gwv1.GatewayReasonNoResources), o.sentence())
	default:
		return gatewayNotProgrammed(reason(gwv1.GatewayReasonInvalid), o.sentence())
	}
}

// unread says that the cloud could not be read, or only that somebody changes the load balancer: what is below it is not read then.
func unread(in Input) bool {
	return in.Have == nil || in.Have.ProvisioningStatus == lb.PendingUpdate && len(in.Have.Listeners) == 0 && len(in.Have.Pools) == 0
}

// notes are what there is to say about a Gateway that works.
func (in Input) notes() []string {
	notes := slices.Clone(in.Kept)
	if in.Replacement != "" {
		notes = append(notes, in.Replacement)
	}
	if in.Fault != "" {
		notes = append(notes, "It is kept as it was made, and its routes are followed, though the parameters of its class cannot be used any more: "+in.Fault)
	}
	return notes
}

// Keeps says what a load balancer keeps: what, the one that it has, and the one that is asked for; "" is none.
func Keeps(what, have, want string) string {
	or := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	return fmt.Sprintf("It keeps its %s (%s) though the class asks for another (%s): Octavia cannot change that.", what, or(have), or(want))
}

// noneProgrammed says that the Gateway has listeners, and all of them say why they are not served.
func noneProgrammed(in Input, listeners []gwv1.ListenerStatus) bool {
	for _, l := range listeners {
		for _, c := range l.Conditions {
			if c.Type == string(gwv1.ListenerConditionProgrammed) && c.Status == metav1.ConditionTrue {
				return false
			}
		}
	}
	return len(listeners) > 0 && len(in.ListenerSets) == 0 && len(in.Want.Listeners) == 0
}

func unreadReason(kind OutcomeKind) gwv1.GatewayConditionReason {
	switch kind {
	case OperatorFault:
		return gwv1.GatewayReasonNoResources
	case Conflict, Broken:
		return gwv1.GatewayReasonInvalid
	default:
		return gwv1.GatewayReasonPending
	}
}

// serving says whether the load balancer works with all listeners that it shall have, though it may be changing.
func serving(in Input, listeners []gwv1.ListenerStatus) bool {
	if in.Have.Empty() || !serves(in.Have.Meta) {
		return false
	}
	for _, l := range listeners {
		for _, c := range l.Conditions {
			if c.Type == string(gwv1.ListenerConditionProgrammed) && c.Status != metav1.ConditionTrue && c.Reason == string(gwv1.ListenerReasonPending) {
				return false
			}
		}
	}
	return true
}

func serves(m lb.Meta) bool {
	return m.ProvisioningStatus == lb.Active || m.ProvisioningStatus == lb.PendingUpdate
}

// addressesOf are the addresses to publish: the floating IP when one is wanted, else the VIP. A published address goes only when
// it is known to be gone.
func addressesOf(in Input) []string { return Addresses(in) }

// Addresses are those that a Gateway publishes.
func Addresses(in Input) []string {
	if len(in.Outcome.Addresses) > 0 {
		return in.Outcome.Addresses
	}
	var published []string
	for _, a := range in.Gateway.Status.Addresses {
		published = append(published, a.Value)
	}
	have := in.Have
	switch {
	case have == nil:
		return published
	case have.FloatingIP != nil && have.FloatingIP.Address != "" && (have.Empty() || in.Want.FloatingIP != nil && have.FloatingIP.PortID == have.VIP.PortID):
		// Also while the load balancer is made anew: it will get the same floating IP.
		out := []string{have.FloatingIP.Address}
		if asked := in.Want.VIP.Address; asked != "" && asked == have.VIP.Address {
			out = append(out, asked)
		}
		return append(out, moreAddresses(in)...)
	case have.Empty():
		return nil
	case in.Want.FloatingIP == nil && !in.Want.Empty() && have.VIP.Address != "" && have.ProvisioningStatus != lb.PendingCreate:
		if in.Want.VIP.Unlisted {
			return moreAddresses(in)
		}
		return append([]string{have.VIP.Address}, moreAddresses(in)...)
	default:
		// Not attached yet, or on its way out.
		return published
	}
}

// unknown says that a pass without an observation learned nothing of the load balancer. A conflict and an ERROR are something learned.
func (o Outcome) unknown() bool {
	return o.Kind != Programmed && o.Kind != Conflict && o.Kind != Broken
}

// moreAddresses are those of the additional VIPs that the Gateway lists.
func moreAddresses(in Input) (out []string) {
	for _, want := range in.Want.AdditionalVIPs {
		for _, have := range in.Have.AdditionalVIPs {
			if want.SubnetID == have.SubnetID && !want.Unlisted && have.Address != "" {
				out = append(out, have.Address)
			}
		}
	}
	return out
}

// sentence is what an outcome says, never empty.
func (o Outcome) sentence() string {
	if o.Message != "" {
		return o.Message
	}
	switch o.Kind {
	case Programmed:
		return "Octavia has the whole configuration."
	case Pending:
		return "Octavia is at work."
	case Retry:
		return "The cloud did not answer as expected; this is tried again."
	case UserFault:
		return "The Gateway asks for something that cannot be had."
	case OperatorFault:
		return "The cloud refuses what is needed; its operator must act."
	case Conflict:
		return "Something that this Gateway does not own stands in the way."
	case Broken:
		return "The load balancer is in ERROR."
	}
	return "The state is not known yet."
}

func wasProgrammed(conditions []metav1.Condition, conditionType string, generation int64) bool {
	for _, c := range conditions {
		if c.Type == conditionType {
			return c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
		}
	}
	return false
}

func find(conditions []Condition, conditionType string) (Condition, bool) {
	for _, c := range conditions {
		if c.Type == conditionType {
			return c, true
		}
	}
	return Condition{}, false
}

// Stamp gives conditions the generation that they were found for, and keeps messages within the limit of the API.
func Stamp(conditions []Condition, generation int64) []metav1.Condition {
	return stamp(conditions, generation)
}

func stamp(conditions []Condition, generation int64) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: limit(c.Message), ObservedGeneration: generation,
		})
	}
	return out
}

// MaxMessage is the limit of the API for the message of a condition, in characters.
const MaxMessage = 32768

// limit cuts a message to MaxMessage characters. It is valid UTF-8 afterwards: what the API server would replace on the way would look
// changed in every pass.
func limit(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxMessage {
		return message
	}
	runes := []rune(message)
	if len(runes) <= MaxMessage {
		return message
	}
	const end = " [...]"
	return string(runes[:MaxMessage-len(end)]) + end
}
