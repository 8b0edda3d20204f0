package kube

import (
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

const (
	kindGateway       = "Gateway"
	kindListenerSet   = "ListenerSet"
	kindClassConfig   = "OpenStackGatewayClassConfig"
	kindGatewayConfig = "OpenStackGatewayConfig"

	kindBackendPolicy    = "OpenStackBackendPolicy"
	kindBackendTLSPolicy = "BackendTLSPolicy"
)

// parentOf resolves a parentRef of a route in namespace. ok is false for parents of kinds that we never serve.
func parentOf(ref gwv1.ParentReference, namespace string) (kind string, key types.NamespacedName, ok bool) {
	if valueOr(ref.Group, gwv1.Group(gwv1.GroupName)) != gwv1.Group(gwv1.GroupName) {
		return "", types.NamespacedName{}, false
	}
	kind = string(valueOr(ref.Kind, gwv1.Kind(kindGateway)))
	if kind != kindGateway && kind != kindListenerSet {
		return "", types.NamespacedName{}, false
	}
	return kind, types.NamespacedName{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(namespace))), Name: string(ref.Name)}, true
}

// gatewayOf is the Gateway that a ListenerSet attaches to.
func gatewayOf(set *gwv1.ListenerSet) (types.NamespacedName, bool) {
	ref := set.Spec.ParentRef
	if valueOr(ref.Group, gwv1.Group(gwv1.GroupName)) != gwv1.Group(gwv1.GroupName) || valueOr(ref.Kind, gwv1.Kind(kindGateway)) != kindGateway {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(set.Namespace))), Name: string(ref.Name)}, true
}

// servicesOf are the Services that the backendRefs of a route name, without duplicates, in order of appearance.
func servicesOf(route *gwv1.HTTPRoute) []types.NamespacedName {
	var keys ordered[types.NamespacedName]
	for i := range route.Spec.Rules {
		for j := range route.Spec.Rules[i].BackendRefs {
			ref := route.Spec.Rules[i].BackendRefs[j].BackendObjectReference
			if valueOr(ref.Group, "") == "" && valueOr(ref.Kind, "Service") == "Service" {
				keys.add(types.NamespacedName{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(route.Namespace))), Name: string(ref.Name)})
			}
		}
	}
	return keys.list
}

// certificatesOf are the Secrets that TLS settings of listeners in namespace name.
func certificatesOf(tls *gwv1.ListenerTLSConfig, namespace string) []types.NamespacedName {
	if tls == nil {
		return nil
	}
	var keys ordered[types.NamespacedName]
	for _, ref := range tls.CertificateRefs {
		if key, ok := secretOf(ref, namespace); ok {
			keys.add(key)
		}
	}
	return keys.list
}

func secretOf(ref gwv1.SecretObjectReference, namespace string) (types.NamespacedName, bool) {
	if valueOr(ref.Group, "") != "" || valueOr(ref.Kind, "Secret") != "Secret" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(namespace))), Name: string(ref.Name)}, true
}

// secretsOfGateway and secretsOfSet are all Secrets that an object names itself.
func secretsOfGateway(gw *gwv1.Gateway) []types.NamespacedName {
	var keys ordered[types.NamespacedName]
	for i := range gw.Spec.Listeners {
		keys.add(certificatesOf(gw.Spec.Listeners[i].TLS, gw.Namespace)...)
	}
	if gw.Spec.TLS != nil && gw.Spec.TLS.Backend != nil && gw.Spec.TLS.Backend.ClientCertificateRef != nil {
		if key, ok := secretOf(*gw.Spec.TLS.Backend.ClientCertificateRef, gw.Namespace); ok {
			keys.add(key)
		}
	}
	keys.add(caCertificatesOf(gw, "Secret")...)
	return keys.list
}

func secretsOfSet(set *gwv1.ListenerSet) []types.NamespacedName {
	var keys ordered[types.NamespacedName]
	for i := range set.Spec.Listeners {
		keys.add(certificatesOf(set.Spec.Listeners[i].TLS, set.Namespace)...)
	}
	return keys.list
}

// configMapsOfGateway are the ConfigMaps with CA certificates for client authentication.
func configMapsOfGateway(gw *gwv1.Gateway) []types.NamespacedName {
	return caCertificatesOf(gw, "ConfigMap")
}

// caCertificatesOf are the objects of a kind with CA certificates for client authentication.
func caCertificatesOf(gw *gwv1.Gateway, kind gwv1.Kind) []types.NamespacedName {
	if gw.Spec.TLS == nil || gw.Spec.TLS.Frontend == nil {
		return nil
	}
	var keys ordered[types.NamespacedName]
	add := func(v *gwv1.FrontendTLSValidation) {
		if v == nil {
			return
		}
		for _, ref := range v.CACertificateRefs {
			if ref.Group == "" && ref.Kind == kind {
				keys.add(types.NamespacedName{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(gw.Namespace))), Name: string(ref.Name)})
			}
		}
	}
	add(gw.Spec.TLS.Frontend.Default.Validation)
	for i := range gw.Spec.TLS.Frontend.PerPort {
		add(gw.Spec.TLS.Frontend.PerPort[i].TLS.Validation)
	}
	return keys.list
}

// configOf is the name of the OpenStackGatewayClassConfig that a class names; ok is false when it names none or
// something else.
func configOf(class *gwv1.GatewayClass) (name string, ok bool) {
	ref := class.Spec.ParametersRef
	if ref == nil || ref.Group != gwv1.Group(api.Domain) || ref.Kind != kindClassConfig || ref.Namespace != nil {
		return "", false
	}
	return ref.Name, true
}

// gatewayConfigOf is the OpenStackGatewayConfig that a Gateway names; ok is false when it names none or something else.
func gatewayConfigOf(gw *gwv1.Gateway) (key types.NamespacedName, ok bool) {
	if gw.Spec.Infrastructure == nil || gw.Spec.Infrastructure.ParametersRef == nil {
		return key, false
	}
	ref := gw.Spec.Infrastructure.ParametersRef
	return types.NamespacedName{Namespace: gw.Namespace, Name: ref.Name}, ref.Group == gwv1.Group(api.Domain) && ref.Kind == kindGatewayConfig
}

// foreignNamespaces are the namespaces of keys other than own.
func foreignNamespaces(own string, keys ...types.NamespacedName) []string {
	var out ordered[string]
	for _, k := range keys {
		if k.Namespace != own {
			out.add(k.Namespace)
		}
	}
	return out.list
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// ordered is a set that keeps the order of insertion.
type ordered[T comparable] struct {
	list []T
	seen map[T]bool
}

func (o *ordered[T]) add(values ...T) {
	if o.seen == nil {
		o.seen = map[T]bool{}
	}
	for _, v := range values {
		if !o.seen[v] {
			o.seen[v] = true
			o.list = append(o.list, v)
		}
	}
}
