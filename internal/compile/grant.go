package compile

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// reference is a use of an object of another namespace.
type reference struct {
	fromGroup, fromKind, fromNamespace string
	toGroup, toKind, toNamespace       string
	toName                             string
}

// granted says whether the reference stays in its namespace or a ReferenceGrant there allows it.
func (in *input) granted(r reference) bool {
	if r.fromNamespace == r.toNamespace {
		return true
	}
	for _, grant := range in.grants[r.toNamespace] {
		if grantsFrom(grant, r) && grantsTo(grant, r) {
			return true
		}
	}
	return false
}

func grantsFrom(grant *gwv1beta1.ReferenceGrant, r reference) bool {
	for _, from := range grant.Spec.From {
		if string(from.Group) == r.fromGroup && string(from.Kind) == r.fromKind && string(from.Namespace) == r.fromNamespace {
			return true
		}
	}
	return false
}

func grantsTo(grant *gwv1beta1.ReferenceGrant, r reference) bool {
	for _, to := range grant.Spec.To {
		if string(to.Group) == r.toGroup && string(to.Kind) == r.toKind && (to.Name == nil || *to.Name == "" || string(*to.Name) == r.toName) {
			return true
		}
	}
	return false
}

// routeToService is a backendRef of an HTTPRoute.
func routeToService(routeNamespace, namespace, name string) reference {
	return reference{
		fromGroup: gwv1.GroupName, fromKind: "HTTPRoute", fromNamespace: routeNamespace,
		toKind: "Service", toNamespace: namespace, toName: name,
	}
}
