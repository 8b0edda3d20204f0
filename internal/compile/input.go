package compile

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// name is a namespaced name.
type name struct{ namespace, name string }

func (n name) String() string { return n.namespace + "/" + n.name }

// input is the snapshot, findable.
type input struct {
	Snapshot
	services   map[name]*corev1.Service
	slices     map[name][]*discoveryv1.EndpointSlice
	namespaces map[string]*corev1.Namespace
	grants     map[string][]*gwv1beta1.ReferenceGrant
}

func newInput(s Snapshot) *input {
	in := &input{
		Snapshot:   s,
		services:   make(map[name]*corev1.Service, len(s.Services)),
		slices:     make(map[name][]*discoveryv1.EndpointSlice, len(s.EndpointSlices)),
		namespaces: make(map[string]*corev1.Namespace, len(s.Namespaces)),
		grants:     make(map[string][]*gwv1beta1.ReferenceGrant, len(s.ReferenceGrants)),
	}
	for _, o := range s.Services {
		if o != nil {
			in.services[name{o.Namespace, o.Name}] = o
		}
	}
	for _, o := range s.EndpointSlices {
		if o != nil {
			service := name{o.Namespace, o.Labels[discoveryv1.LabelServiceName]}
			in.slices[service] = append(in.slices[service], o)
		}
	}
	for _, o := range s.Namespaces {
		if o != nil {
			in.namespaces[o.Name] = o
		}
	}
	for _, o := range s.ReferenceGrants {
		if o != nil && o.DeletionTimestamp == nil {
			in.grants[o.Namespace] = append(in.grants[o.Namespace], o)
		}
	}
	return in
}
