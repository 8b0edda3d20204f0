package scale

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// What each Gateway has. Of its Services the first takes requests on all Nodes, the others where their endpoints are.
const (
	routesEach    = 10
	servicesEach  = 5
	endpointsEach = 10 // of a Service
	// tenants share a namespace.
	perNamespace = 20
)

// size is how much there is.
type size struct{ gateways, nodes int }

func (s size) routes() int    { return s.gateways * routesEach }
func (s size) services() int  { return s.gateways * servicesEach }
func (s size) endpoints() int { return s.services() * endpointsEach }

func namespaceOf(gateway int) string { return fmt.Sprintf("team-%d", gateway/perNamespace) }
func gatewayName(i int) string       { return fmt.Sprintf("edge-%d", i) }
func serviceName(gateway, i int) string {
	return fmt.Sprintf("app-%d-%d", gateway, i)
}
func routeName(gateway, i int) string { return fmt.Sprintf("route-%d-%d", gateway, i) }
func nodeName(i int) string           { return fmt.Sprintf("node-%d", i) }

// load makes everything of a size. The controller may run meanwhile.
func (w *world) load(s size) {
	w.Helper()
	w.create(classConfig(), class())
	var objects []client.Object
	for i := range s.nodes {
		objects = append(objects, node(i))
	}
	for i := range (s.gateways + perNamespace - 1) / perNamespace {
		objects = append(objects, namespace(fmt.Sprintf("team-%d", i)))
	}
	w.create(objects...)
	objects = nil
	for g := range s.gateways {
		ns := namespaceOf(g)
		objects = append(objects, secret(w, ns, gatewayName(g)))
		for i := range servicesEach {
			objects = append(objects, service(ns, serviceName(g, i), i == 0), slice(ns, serviceName(g, i), g*7+i*11, s.nodes))
		}
		for i := range routesEach {
			objects = append(objects, route(ns, routeName(g, i), gatewayName(g), fmt.Sprintf("app-%d.example.test", g), i, serviceName(g, i%servicesEach)))
		}
	}
	w.create(objects...)
	objects = nil
	for g := range s.gateways {
		objects = append(objects, gateway(namespaceOf(g), gatewayName(g)))
	}
	w.create(objects...)
}

// create makes objects, several at a time.
func (w *world) create(objects ...client.Object) {
	w.Helper()
	w.each(len(objects), func(i int) error {
		o := objects[i]
		if n, ok := o.(*corev1.Node); ok {
			status := n.Status
			if err := w.client.Create(w.Context(), n); err != nil {
				return fmt.Errorf("creating Node %s: %w", n.Name, err)
			}
			n.Status = status
			return w.client.Status().Update(w.Context(), n)
		}
		if err := w.client.Create(w.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
		return nil
	})
}

// each calls do for 0 to n-1, several at a time.
func (w *world) each(n int, do func(int) error) {
	w.Helper()
	var wg sync.WaitGroup
	work, failed := make(chan int), make(chan error, n)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				if err := do(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	close(failed)
	for err := range failed {
		w.Fatal(err)
	}
}

func class() *gwv1.GatewayClass {
	return &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "openstack"}, Spec: gwv1.GatewayClassSpec{
		ControllerName: api.DefaultControllerName,
		ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: "cloud"},
	}}
}

func classConfig() *v1alpha1.OpenStackGatewayClassConfig {
	return &v1alpha1.OpenStackGatewayClassConfig{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: v1alpha1.OpenStackGatewayClassConfigSpec{
		VIPSubnet:       &v1alpha1.Selector{Name: "vips-subnet"},
		FloatingNetwork: &v1alpha1.Selector{Name: "public"},
	}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.1.%d.%d", 1+i/200, 10+i%200)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	// A kubelet reports its images: they are most of a Node.
	for j := range 30 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.test/team/image-%d:1.%d", j, i)}, SizeBytes: 1 << 26})
	}
	return n
}

func service(ns, name string, everywhere bool) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{
		Type:                  corev1.ServiceTypeNodePort,
		Ports:                 []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
	}}
	if everywhere {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	return s
}

// slice has a Service's endpoints, on Nodes from first on.
func slice(ns, service string, first, nodes int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i := range min(endpointsEach, max(1, nodes-1)) {
		s.Endpoints = append(s.Endpoints, endpoint((first+i)%nodes, i))
	}
	return s
}

func endpoint(node, i int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{fmt.Sprintf("10.244.%d.%d", node%250, 10+i)},
		NodeName:   new(nodeName(node)),
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("pod-%d-%d", node, i), Namespace: "default"},
	}
}

func route(ns, name, gateway, host string, i int, service string) *gwv1.HTTPRoute {
	return &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: gwv1.HTTPRouteSpec{
		CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}},
		Hostnames:       []gwv1.Hostname{gwv1.Hostname(host)},
		Rules: []gwv1.HTTPRouteRule{{
			Matches:     []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchPathPrefix), Value: new(fmt.Sprintf("/part-%d", i))}}},
			BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(service), Port: new(gwv1.PortNumber(80))}}}},
		}},
	}}
}

// gateway terminates TLS with a certificate of its own name.
func gateway(ns, name string) *gwv1.Gateway {
	return &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: gwv1.GatewaySpec{
		GatewayClassName: "openstack",
		Listeners: []gwv1.Listener{{
			Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType,
			TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(name)}}},
		}},
	}}
}

var issuing struct {
	sync.Mutex
	serial int64
}

// secret has a new certificate.
func secret(w *world, ns, name string) *corev1.Secret {
	w.Helper()
	issuing.Lock()
	issuing.serial++
	serial := issuing.serial
	issuing.Unlock()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"*.example.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.Fatal(err)
	}
	var crt, pk bytes.Buffer
	_ = pem.Encode(&crt, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&pk, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: crt.Bytes(), corev1.TLSPrivateKeyKey: pk.Bytes()}}
}
