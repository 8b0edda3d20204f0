package compile

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// listenerSet is a ListenerSet that names the Gateway.
type listenerSet struct {
	object    *gwv1.ListenerSet
	allowed   bool
	listeners []*listener
}

func (s *listenerSet) id() name { return name{s.object.Namespace, s.object.Name} }

// listenerSets reads the sets of the Gateway, in the order in which they win conflicts. Those that the Gateway does not allow have no
// listeners.
func (in *input) listenerSets() []*listenerSet {
	var all []*listenerSet
	for _, object := range in.ListenerSets {
		if object == nil || object.DeletionTimestamp != nil || !setRefersTo(object, in.Gateway) {
			continue
		}
		s := &listenerSet{object: object, allowed: in.allowsSets(object.Namespace)}
		if s.allowed {
			owner := s.owner()
			for _, entry := range object.Spec.Listeners {
				s.listeners = append(s.listeners, newListener(owner, gwv1.Listener(entry)))
			}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *listenerSet) int {
		if c := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.id().String(), b.id().String())
	})
	return all
}

func setRefersTo(object *gwv1.ListenerSet, gateway *gwv1.Gateway) bool {
	ref := object.Spec.ParentRef
	namespace := object.Namespace
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	return (ref.Group == nil || *ref.Group == gwv1.GroupName) && (ref.Kind == nil || *ref.Kind == "Gateway") &&
		namespace == gateway.Namespace && string(ref.Name) == gateway.Name
}

// allowsSets says whether the Gateway takes ListenerSets of a namespace. By default it takes none.
func (in *input) allowsSets(namespace string) bool {
	from := gwv1.NamespacesFromNone
	var selector *metav1.LabelSelector
	if a := in.Gateway.Spec.AllowedListeners; a != nil && a.Namespaces != nil {
		if a.Namespaces.From != nil {
			from = *a.Namespaces.From
		}
		selector = a.Namespaces.Selector
	}
	return in.takes(from, selector, in.Gateway.Namespace, namespace)
}

func (s *listenerSet) owner() status.Object {
	return status.Object{Kind: status.KindListenerSet, Namespace: s.object.Namespace, Name: s.object.Name, Generation: s.object.Generation}
}

// attached says whether the set counts as attached to the Gateway: it is allowed and has a listener that is served.
func (s *listenerSet) attached() bool {
	return s.allowed && slices.ContainsFunc(s.listeners, (*listener).valid)
}

// verdicts are those of the set and of its listeners.
func (s *listenerSet) verdicts(parent parentState) []status.Verdict {
	own := status.Verdict{Object: s.owner()}
	list := make([]status.Verdict, 0, 1+len(s.listeners))
	switch refused := refusedListeners(s.listeners); {
	case !s.allowed:
		own.Conditions = status.ListenerSetNotAllowed()
	case parent == parentRefused:
		own.Conditions = status.ListenerSetParentNotAccepted()
	case !s.attached():
		own.Conditions = status.ListenerSetListenersNotValid(refused)
	case len(refused) > 0:
		own.Conditions = status.ListenerSetPartlyValid(refused)
	default:
		own.Conditions = status.ListenerSetAccepted()
	}
	list = append(list, own)
	for _, l := range s.listeners {
		list = append(list, l.verdict())
	}
	return list
}

// parentState says what became of a Gateway as a whole.
type parentState int

const (
	parentAccepted parentState = iota
	parentRefused
)

func refusedListeners(all []*listener) []string {
	var names []string
	for _, l := range all {
		if !l.valid() {
			names = append(names, string(l.name))
		}
	}
	slices.Sort(names)
	return names
}
