package cloud

import (
	"errors"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// Refused names the secrets by key that an error of Apply is about: the cloud has answered, and does not take them. There are none when nothing was
// refused, such as when Barbican did not answer. When sure is false it is one of them or more, and the answer does not say which.
func Refused(err error) (keys []string, sure bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.refused, e.sure
	}
	return nil, false
}

// blame finds out what a refused step is about. What a listener uses already is above suspicion: Octavia has taken it.
func blame(err error, have *lb.Tree, steps []plan.Step) error {
	var e *Error
	if !errors.As(err, &e) || !OfCertificates(err) || e.Class != UserFault && e.Class != OperatorFault {
		return err
	}
	named := *e
	s := steps[0]
	switch {
	case s.Kind == lb.KindSecret && e.Class == UserFault:
		named.refused, named.sure = []string{s.Ref.Key}, true
	case s.Kind == lb.KindSecret:
		// A role or a quota: the others would fare alike.
		for _, other := range steps {
			if other.Kind == lb.KindSecret && other.Verb == plan.Create {
				named.refused = append(named.refused, other.Ref.Key)
			}
		}
		named.sure = true
	default:
		for i := range have.Secrets {
			if slices.Contains(e.secrets, have.Secrets[i].ID) {
				named.refused = append(named.refused, have.Secrets[i].Key)
			}
		}
		if named.sure = len(named.refused) > 0; !named.sure {
			named.refused = suspects(have, s)
			// What an operator has to mend is the same for all.
			named.sure = e.Class == OperatorFault || len(named.refused) == 1
		}
	}
	return &named
}

// suspects are the secrets that a step would bring into use.
func suspects(have *lb.Tree, s plan.Step) []string {
	used := map[string]bool{}
	for i := range have.Listeners {
		for _, key := range have.Listeners[i].TLS.Secrets() {
			used[key] = true
		}
	}
	for i := range have.Pools {
		for _, key := range have.Pools[i].TLS.Secrets() {
			used[key] = true
		}
	}
	var keys []string
	if s.Tree != nil {
		for i := range s.Tree.Listeners {
			keys = append(keys, s.Tree.Listeners[i].TLS.Secrets()...)
		}
		for i := range s.Tree.Pools {
			keys = append(keys, s.Tree.Pools[i].TLS.Secrets()...)
		}
	}
	if s.ListenerTo != nil {
		keys = append(keys, s.ListenerTo.TLS.Secrets()...)
	}
	if s.Pool != nil {
		keys = append(keys, s.Pool.TLS.Secrets()...)
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return used[key] })
}
