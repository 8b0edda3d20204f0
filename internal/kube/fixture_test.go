package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

const (
	ourController   = "gateway-api-openstack.dev/gateway-controller"
	otherController = "example.test/other"
)

var allServed = Served{ListenerSets: true, BackendTLSPolicies: true, ReferenceGrants: "v1"}

// newFake returns a client with our indexes and objects.
func newFake(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&gwv1.Gateway{}, &gwv1.GatewayClass{}, &gwv1.HTTPRoute{}, &gwv1.ListenerSet{},
			&v1alpha1.OpenStackBackendPolicy{}, &gwv1.BackendTLSPolicy{})
	for _, ix := range indexes(ourController, allServed) {
		b = b.WithIndex(ix.object, ix.field, ix.extract)
	}
	return b.Build()
}

func newReader(t *testing.T, objects ...client.Object) *Reader {
	t.Helper()
	c := newFake(t, objects...)
	return &Reader{Client: c, Live: c, Controller: ourController, ClusterID: "blue", Served: allServed}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func class(name, controller string) *gwv1.GatewayClass {
	return &gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: gwv1.GatewayClassSpec{
			ControllerName: gwv1.GatewayController(controller),
			ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: kindClassConfig, Name: "cloud"},
		},
	}
}

func config(name string) *v1alpha1.OpenStackGatewayClassConfig {
	return &v1alpha1.OpenStackGatewayClassConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.OpenStackGatewayClassConfigSpec{VIPSubnet: &v1alpha1.Selector{Name: "vips"}},
	}
}

func gateway(namespace, name, class string) *gwv1.Gateway {
	return &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, UID: types.UID("uid-" + name)},
		Spec: gwv1.GatewaySpec{
			GatewayClassName: gwv1.ObjectName(class),
			Listeners:        []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
		},
	}
}

// route makes a route to a Gateway with one backend; both are "namespace/name" pairs.
func route(namespace, name string, gateway, service types.NamespacedName) *gwv1.HTTPRoute {
	return &gwv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, UID: types.UID("uid-" + name)},
		Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{parentRef(gateway)}},
			Rules: []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
				BackendObjectReference: gwv1.BackendObjectReference{
					Name: gwv1.ObjectName(service.Name), Namespace: new(gwv1.Namespace(service.Namespace)), Port: new(gwv1.PortNumber(80)),
				},
			}}}}},
		},
	}
}

func parentRef(gateway types.NamespacedName) gwv1.ParentReference {
	return gwv1.ParentReference{Name: gwv1.ObjectName(gateway.Name), Namespace: new(gwv1.Namespace(gateway.Namespace))}
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
	}
}

func endpoints(namespace, service, name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func grant(namespace, name string) *gwv1.ReferenceGrant {
	return &gwv1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gwv1.ReferenceGrantSpec{
			From: []gwv1.ReferenceGrantFrom{{Group: gwv1.GroupName, Kind: "HTTPRoute", Namespace: "web"}},
			To:   []gwv1.ReferenceGrantTo{{Kind: "Service"}},
		},
	}
}

func tlsGateway(namespace, name, class string, secret types.NamespacedName) *gwv1.Gateway {
	gw := gateway(namespace, name, class)
	gw.Spec.Listeners = append(gw.Spec.Listeners, gwv1.Listener{
		Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType,
		TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{
			Name: gwv1.ObjectName(secret.Name), Namespace: new(gwv1.Namespace(secret.Namespace)),
		}}},
	})
	return gw
}

func listenerSet(namespace, name string, gateway types.NamespacedName) *gwv1.ListenerSet {
	return &gwv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gwv1.ListenerSetSpec{
			ParentRef: gwv1.ParentGatewayReference{Name: gwv1.ObjectName(gateway.Name), Namespace: new(gwv1.Namespace(gateway.Namespace))},
			Listeners: []gwv1.ListenerEntry{{Name: "extra", Port: 8080, Protocol: gwv1.HTTPProtocolType}},
		},
	}
}
