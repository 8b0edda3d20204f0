package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// route is one HTTPRoute.
type route struct {
	object   *gwv1.HTTPRoute
	id       string
	created  time.Time
	hosts    hosts
	rules    []*rule
	problems []status.RouteBackendProblem
	// services are those that the route may use, whether they exist or not.
	services map[name]bool
	parents  []*parent
	// instead is the status with which requests of rules that cannot be served are answered.
	instead int
}

// parent is one parentRef of a route.
type parent struct {
	ref *gwv1.ParentReference
	// attached are the listeners that take the route. When there are none, refused says why.
	attached []*attachment
	refused  status.Condition
}

// attachment is a route on a listener. A route has at most one for each listener, however many parentRefs lead there.
type attachment struct {
	route    *route
	listener *listener
	claims   []claim
	// faults are the rules that cannot be served on this listener.
	faults map[*rule]*fault
	// detached says that no rule can be served here.
	detached bool
}

// owners are what a parentRef can name, each with its listeners: the Gateway and its ListenerSets.
type owners map[status.Object][]*listener

// ownerOf is what a parentRef means, without generation; false when it is neither the Gateway nor one of its ListenerSets.
func (in *input) ownerOf(ref gwv1.ParentReference, routeNamespace string, known owners) (status.Object, bool) {
	if ref.Group != nil && *ref.Group != gwv1.GroupName {
		return status.Object{}, false
	}
	o := status.Object{Kind: status.KindGateway, Namespace: routeNamespace, Name: string(ref.Name)}
	if ref.Kind != nil {
		o.Kind = status.Kind(*ref.Kind)
	}
	if ref.Namespace != nil {
		o.Namespace = string(*ref.Namespace)
	}
	_, ok := known[o]
	return o, ok
}

// attach finds the listeners for each parentRef of the route that means the Gateway or one of its ListenerSets.
func (in *input) attach(r *route, known owners) {
	attached := map[*listener]*attachment{}
	for i := range r.object.Spec.ParentRefs {
		ref := &r.object.Spec.ParentRefs[i]
		owner, ok := in.ownerOf(*ref, r.object.Namespace, known)
		if !ok {
			continue
		}
		p := &parent{ref: ref}
		p.refused = in.attachParent(p, r, known[owner], attached)
		r.parents = append(r.parents, p)
	}
}

// attachParent fills p.attached; the condition says why it stayed empty.
func (in *input) attachParent(p *parent, r *route, all []*listener, known map[*listener]*attachment) status.Condition {
	named := slices.DeleteFunc(slices.Clone(all), func(l *listener) bool {
		return p.ref.SectionName != nil && *p.ref.SectionName != "" && *p.ref.SectionName != l.name ||
			p.ref.Port != nil && *p.ref.Port != l.port
	})
	if len(named) == 0 {
		if len(all) == 0 {
			return status.RouteParentWithoutListeners()
		}
		return status.RouteNoMatchingParent(wantedListener(p.ref))
	}
	allowing := slices.DeleteFunc(slices.Clone(named), func(l *listener) bool { return !in.allows(l, r.object.Namespace) })
	if len(allowing) == 0 {
		return status.RouteNotAllowedByListeners(labelsOf(named), r.object.Namespace)
	}
	for _, l := range allowing {
		a := known[l]
		if a == nil {
			claimed := claims(l.hostname, r.hosts)
			if len(claimed) == 0 || len(r.hosts) == 0 && len(r.object.Spec.Hostnames) > 0 {
				continue
			}
			a = &attachment{route: r, listener: l, claims: claimed, faults: map[*rule]*fault{}}
			known[l] = a
		}
		p.attached = append(p.attached, a)
	}
	return status.RouteNoMatchingListenerHostname(labelsOf(allowing))
}

func wantedListener(ref *gwv1.ParentReference) string {
	var wanted []string
	if ref.SectionName != nil && *ref.SectionName != "" {
		wanted = append(wanted, "name "+string(*ref.SectionName))
	}
	if ref.Port != nil {
		wanted = append(wanted, fmt.Sprintf("port %d", *ref.Port))
	}
	return strings.Join(wanted, " and ")
}

func labelsOf(list []*listener) []string {
	names := make([]string, len(list))
	for i, l := range list {
		names[i] = l.label()
	}
	return names
}

// allows says whether the listener takes HTTPRoutes of a namespace.
func (in *input) allows(l *listener, namespace string) bool {
	if len(l.kinds) == 0 {
		return false
	}
	from := gwv1.NamespacesFromSame
	var selector *metav1.LabelSelector
	if l.allowed != nil && l.allowed.Namespaces != nil {
		if l.allowed.Namespaces.From != nil {
			from = *l.allowed.Namespaces.From
		}
		selector = l.allowed.Namespaces.Selector
	}
	return in.takes(from, selector, l.owner.Namespace, namespace)
}

// takes says whether an object in namespace own takes objects of another namespace.
func (in *input) takes(from gwv1.FromNamespaces, selector *metav1.LabelSelector, own, other string) bool {
	switch from {
	case gwv1.NamespacesFromAll:
		return true
	case gwv1.NamespacesFromSame:
		return own == other
	case gwv1.NamespacesFromSelector:
		return in.selects(selector, other)
	}
	return false
}

// selects says whether the labels of a namespace match. No selector selects nothing.
func (in *input) selects(selector *metav1.LabelSelector, namespace string) bool {
	object := in.namespaces[namespace]
	if selector == nil || object == nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(object.Labels))
}
