package robustness

import (
	"crypto"
	"crypto/ecdh"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// entity is an object of the cluster that comes, changes and goes. make gives one of its forms, all of which the API server takes.
type entity struct {
	object client.Object
	key    types.NamespacedName
	weight int
	make   func(r *rand.Rand) client.Object
}

func (e entity) String() string {
	return fmt.Sprintf("%T %s", e.object, e.key)[1:]
}

func named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func object(key types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}

// one is any of some values.
func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// some are those of values that a coin keeps, at least one.
func some[T any](r *rand.Rand, values ...T) []T {
	var out []T
	for _, v := range values {
		if r.IntN(2) == 0 {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		out = append(out, one(r, values...))
	}
	return out
}

// perhaps is true in one of n cases.
func perhaps(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// entities is the whole cluster. What the first forms have in common works.
var entities = sync.OnceValue(func() []entity {
	var all []entity
	add := func(weight int, o client.Object, key types.NamespacedName, form func(*rand.Rand) client.Object) {
		all = append(all, entity{o, key, weight, form})
	}
	add(1, &gwv1.GatewayClass{}, named("", "openstack"), func(r *rand.Rand) client.Object { return class(r, "openstack", "cloud") })
	add(1, &gwv1.GatewayClass{}, named("", "internal"), func(r *rand.Rand) client.Object { return class(r, "internal", "private") })
	add(3, &v1alpha1.OpenStackGatewayClassConfig{}, named("", "cloud"), func(r *rand.Rand) client.Object { return config(r, "cloud", true) })
	add(1, &v1alpha1.OpenStackGatewayClassConfig{}, named("", "private"), func(r *rand.Rand) client.Object { return config(r, "private", false) })
	for i, key := range []types.NamespacedName{named("infra", "edge"), named("infra", "second"), named("blog", "Gatewäy-of-a-very-long-name")} {
		if i == 2 {
			key.Name = longName
		}
		add(5-i, &gwv1.Gateway{}, key, func(r *rand.Rand) client.Object { return gateway(r, key) })
	}
	add(2, &gwv1.ListenerSet{}, named("shop", "more"), listenerSet)
	for _, key := range []types.NamespacedName{named("shop", "a"), named("shop", "b"), named("shop", "c"), named("blog", "d")} {
		add(4, &gwv1.HTTPRoute{}, key, func(r *rand.Rand) client.Object { return httpRoute(r, key) })
	}
	for i, key := range []types.NamespacedName{named("shop", "site"), named("shop", "cart"), named("blog", "blog")} {
		add(2, &corev1.Service{}, key, func(r *rand.Rand) client.Object { return service(r, key, int32(30081+i)) })
		add(2, &discoveryv1.EndpointSlice{}, named(key.Namespace, key.Name+"-1"), func(r *rand.Rand) client.Object { return endpoints(r, key, i) })
	}
	add(1, &corev1.Service{}, named("system", "responder"), responder)
	for i := range 3 {
		add(2, &corev1.Node{}, named("", fmt.Sprintf("node-%d", i+1)), func(r *rand.Rand) client.Object { return node(r, i) })
	}
	for i, key := range []types.NamespacedName{named("infra", "shop"), named("infra", "blog"), named("shop", "shop")} {
		add(2, &corev1.Secret{}, key, func(r *rand.Rand) client.Object { return secret(r, key, i) })
	}
	add(1, &gwv1.ReferenceGrant{}, named("blog", "grant"), grant)
	for i, key := range []types.NamespacedName{named("infra", "clients"), named("shop", "ca")} {
		add(1, &corev1.ConfigMap{}, key, func(r *rand.Rand) client.Object { return authority(r, key, i) })
	}
	for _, key := range []types.NamespacedName{named("shop", "policy"), named("blog", "policy")} {
		add(2, &v1alpha1.OpenStackBackendPolicy{}, key, func(r *rand.Rand) client.Object { return backendPolicy(r, key) })
	}
	for _, name := range []string{"shop", "blog"} {
		add(1, &corev1.Namespace{}, named("", name), func(r *rand.Rand) client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				"kubernetes.io/metadata.name": name, "exposed": one(r, "yes", "yes", "no")}}}
		})
	}
	return all
})

// longName makes names in the cloud that are longer than it allows.
var longName = func() string {
	name := "gateway"
	for len(name) < 240 {
		name += ".of-a-very-long-name"
	}
	return name[:240]
}()

func class(r *rand.Rand, name, parameters string) client.Object {
	c := &gwv1.GatewayClass{ObjectMeta: object(named("", name)), Spec: gwv1.GatewayClassSpec{
		ControllerName: controllerName,
		ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: parameters},
	}}
	switch r.IntN(12) {
	case 0:
		// The API server takes no other controller for a class that exists; a class that is made anew may have one.
		c.Spec.ControllerName = "example.com/another"
	case 1:
		c.Spec.ParametersRef.Name = "missing"
	}
	return c
}

func config(r *rand.Rand, name string, public bool) client.Object {
	c := &v1alpha1.OpenStackGatewayClassConfig{ObjectMeta: object(named("", name)), Spec: v1alpha1.OpenStackGatewayClassConfigSpec{
		VIPSubnet: &v1alpha1.Selector{Name: "vips-subnet"}, MemberMode: v1alpha1.MemberModeNodePort, NodeAddressType: v1alpha1.NodeInternalIP,
		HealthMonitor: v1alpha1.HealthMonitor{Type: v1alpha1.HealthMonitorTCP, DelaySeconds: one(r, int32(5), 5, 7), TimeoutSeconds: 3, HealthyThreshold: 2, UnhealthyThreshold: 3},
	}}
	if public && !perhaps(r, 6) {
		c.Spec.FloatingNetwork = &v1alpha1.Selector{Name: "public"}
	}
	if perhaps(r, 3) {
		c.Spec.MemberSubnet = &v1alpha1.Selector{Name: "nodes-subnet"}
	}
	if perhaps(r, 4) {
		c.Spec.HealthMonitor.Type, c.Spec.HealthMonitor.Path, c.Spec.HealthMonitor.ExpectedCodes = v1alpha1.HealthMonitorHTTP, "/healthz", "200-204"
	}
	if perhaps(r, 3) {
		c.Spec.Responder = &v1alpha1.Responder{Service: v1alpha1.ServiceName{Namespace: "system", Name: "responder"}}
	}
	if perhaps(r, 6) {
		c.Spec.MemberMode = v1alpha1.MemberModePodIP
	}
	if perhaps(r, 12) {
		c.Spec.VIPSubnet.Name = "nowhere"
	}
	return c
}

func fromAll(r *rand.Rand) *gwv1.AllowedRoutes {
	from := one(r, gwv1.NamespacesFromAll, gwv1.NamespacesFromAll, gwv1.NamespacesFromAll, gwv1.NamespacesFromSame, gwv1.NamespacesFromSelector)
	allowed := &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: &from}}
	if from == gwv1.NamespacesFromSelector {
		allowed.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"exposed": "yes"}}
	}
	return allowed
}

func gateway(r *rand.Rand, key types.NamespacedName) client.Object {
	g := &gwv1.Gateway{ObjectMeta: object(key)}
	g.Spec.GatewayClassName = one[gwv1.ObjectName](r, "openstack", "openstack", "openstack", "openstack", "openstack", "openstack", "internal", "internal", "absent")
	hostname := func(name gwv1.Hostname) *gwv1.Hostname { return &name }
	https := func(name, host, secret string) gwv1.Listener {
		return gwv1.Listener{Name: gwv1.SectionName(name), Protocol: gwv1.HTTPSProtocolType, Port: 443, Hostname: hostname(gwv1.Hostname(host)), AllowedRoutes: fromAll(r),
			TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(secret)}}}}
	}
	all := []gwv1.Listener{{Name: "web", Protocol: gwv1.HTTPProtocolType, Port: 80, AllowedRoutes: fromAll(r)}}
	if perhaps(r, 3) {
		all = append(all, gwv1.Listener{Name: "shop", Protocol: gwv1.HTTPProtocolType, Port: one[gwv1.PortNumber](r, 80, 8080), Hostname: hostname("shop.example.com"), AllowedRoutes: fromAll(r)})
	}
	if perhaps(r, 3) {
		all = append(all, https("tls-shop", "shop.example.com", "shop"))
	}
	if perhaps(r, 4) {
		all = append(all, https("tls-blog", "*.example.org", "blog"))
	}
	if perhaps(r, 8) && len(all) > 1 {
		all = all[1:]
	}
	g.Spec.Listeners = all
	if perhaps(r, 4) {
		g.Spec.Infrastructure = &gwv1.GatewayInfrastructure{Labels: map[gwv1.LabelKey]gwv1.LabelValue{"team": one[gwv1.LabelValue](r, "red", "green")}}
	}
	if perhaps(r, 3) {
		from := gwv1.NamespacesFromAll
		g.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: &from}}
	}
	if perhaps(r, 5) {
		ref := []gwv1.ObjectReference{{Kind: "ConfigMap", Name: one[gwv1.ObjectName](r, "clients", "clients", "absent")}}
		g.Spec.TLS = &gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{Default: gwv1.TLSConfig{Validation: &gwv1.FrontendTLSValidation{CACertificateRefs: ref}}}}
	}
	if perhaps(r, 20) {
		g.Spec.Addresses = []gwv1.GatewaySpecAddress{{Type: new(gwv1.HostnameAddressType), Value: "gateway.example.com"}}
	}
	return g
}

func listenerSet(r *rand.Rand) client.Object {
	s := &gwv1.ListenerSet{ObjectMeta: object(named("shop", "more"))}
	namespace := gwv1.Namespace("infra")
	s.Spec.ParentRef = gwv1.ParentGatewayReference{Namespace: &namespace, Name: one[gwv1.ObjectName](r, "edge", "edge", "second")}
	s.Spec.Listeners = []gwv1.ListenerEntry{{Name: "more", Protocol: gwv1.HTTPProtocolType, Port: one[gwv1.PortNumber](r, 8081, 80), AllowedRoutes: fromAll(r)}}
	if perhaps(r, 3) {
		s.Spec.Listeners = append(s.Spec.Listeners, gwv1.ListenerEntry{Name: "tls", Protocol: gwv1.HTTPSProtocolType, Port: 8443, AllowedRoutes: fromAll(r),
			TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: "shop"}}}})
	}
	return s
}

func httpRoute(r *rand.Rand, key types.NamespacedName) client.Object {
	o := &gwv1.HTTPRoute{ObjectMeta: object(key)}
	namespace := gwv1.Namespace("infra")
	parents := some(r, "edge", "second")
	if perhaps(r, 3) {
		parents = []string{"edge"}
	}
	for _, name := range parents {
		ref := gwv1.ParentReference{Namespace: &namespace, Name: gwv1.ObjectName(name)}
		if perhaps(r, 5) {
			ref.SectionName = new(one[gwv1.SectionName](r, "web", "shop", "tls-shop"))
		}
		o.Spec.ParentRefs = append(o.Spec.ParentRefs, ref)
	}
	if perhaps(r, 4) {
		other := gwv1.Namespace("blog")
		o.Spec.ParentRefs = append(o.Spec.ParentRefs, gwv1.ParentReference{Namespace: &other, Name: gwv1.ObjectName(longName)})
	}
	if perhaps(r, 4) {
		kind, set := gwv1.Kind("ListenerSet"), gwv1.Namespace("shop")
		o.Spec.ParentRefs = append(o.Spec.ParentRefs, gwv1.ParentReference{Kind: &kind, Namespace: &set, Name: "more"})
	}
	if !perhaps(r, 3) {
		o.Spec.Hostnames = some[gwv1.Hostname](r, "shop.example.com", "www.example.org", "blog.example.org")
	}
	for range 1 + r.IntN(3) {
		var rule gwv1.HTTPRouteRule
		for range r.IntN(3) {
			match := gwv1.HTTPRouteMatch{Path: &gwv1.HTTPPathMatch{Type: new(one(r, gwv1.PathMatchPathPrefix, gwv1.PathMatchPathPrefix, gwv1.PathMatchExact)),
				Value: new(one(r, "/", "/cart", "/cart/items", "/blog", "/ü"))}}
			if perhaps(r, 5) {
				match.Headers = []gwv1.HTTPHeaderMatch{{Name: "X-Version", Value: one(r, "1", "2")}}
			}
			rule.Matches = append(rule.Matches, match)
		}
		switch {
		case perhaps(r, 8):
			code := 301
			rule.Filters = []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{
				Scheme: new("https"), StatusCode: &code}}}
		default:
			for _, name := range some(r, "site", "cart", "absent", "blog") {
				port, weight := gwv1.PortNumber(80), one[int32](r, 1, 1, 2, 0)
				ref := gwv1.HTTPBackendRef{BackendRef: gwv1.BackendRef{Weight: &weight, BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(name), Port: &port}}}
				if name == "blog" && key.Namespace != "blog" {
					other := gwv1.Namespace("blog")
					ref.Namespace = &other
				}
				rule.BackendRefs = append(rule.BackendRefs, ref)
			}
		}
		o.Spec.Rules = append(o.Spec.Rules, rule)
	}
	return o
}

func service(r *rand.Rand, key types.NamespacedName, nodePort int32) client.Object {
	s := &corev1.Service{ObjectMeta: object(key), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": key.Name},
		Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080), NodePort: nodePort}}}}
	switch r.IntN(8) {
	case 0:
		s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeClusterIP, 0
	case 1:
		s.Spec.Ports[0].NodePort += 100
	}
	return s
}

func responder(r *rand.Rand) client.Object {
	s := &corev1.Service{ObjectMeta: object(named("system", "responder")), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	ports := []corev1.ServicePort{{Name: "not-found", Port: 9404}, {Name: "invalid-backend", Port: 9500}, {Name: "https-301", Port: 9301}, {Name: "redirect-0", Port: 9600}}
	if perhaps(r, 2) {
		ports = append(ports, corev1.ServicePort{Name: "redirect-1", Port: 9601})
	}
	for i := range ports {
		ports[i].Protocol, ports[i].TargetPort, ports[i].NodePort = corev1.ProtocolTCP, intstr.FromInt32(ports[i].Port), ports[i].Port+22000
	}
	s.Spec.Ports = ports
	return s
}

func endpoints(r *rand.Rand, service types.NamespacedName, index int) client.Object {
	s := &discoveryv1.EndpointSlice{ObjectMeta: object(named(service.Namespace, service.Name+"-1")), AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name}
	for i := range r.IntN(4) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", i+1, 11+index)},
			NodeName: new(fmt.Sprintf("node-%d", i+1)), Conditions: discoveryv1.EndpointConditions{Ready: new(!perhaps(r, 4))}})
	}
	return s
}

func node(r *rand.Rand, i int) client.Object {
	n := &corev1.Node{ObjectMeta: object(named("", fmt.Sprintf("node-%d", i+1)))}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.1.0.%d", 11+i)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: one(r, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse)}}
	if perhaps(r, 8) {
		n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""}
	}
	return n
}

// backendPolicy is what a Service's people say of its pools.
func backendPolicy(r *rand.Rand, key types.NamespacedName) client.Object {
	p := &v1alpha1.OpenStackBackendPolicy{ObjectMeta: object(key)}
	for _, name := range some(r, "site", "cart", "blog") {
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, gwv1.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Kind: "Service", Name: gwv1.ObjectName(name)}})
	}
	if perhaps(r, 2) {
		p.Spec.Algorithm = one(r, v1alpha1.AlgorithmRoundRobin, v1alpha1.AlgorithmLeastConnections, v1alpha1.AlgorithmSourceIP)
	}
	if perhaps(r, 4) {
		p.Spec.SessionPersistence = &v1alpha1.SessionPersistence{Type: one(r, v1alpha1.SessionPersistenceCookie, v1alpha1.SessionPersistenceSourceIP)}
	}
	if perhaps(r, 3) {
		p.Spec.HealthMonitor = &v1alpha1.HealthMonitor{Type: one(r, v1alpha1.HealthMonitorTCP, v1alpha1.HealthMonitorHTTP), DelaySeconds: 9, TimeoutSeconds: 3, HealthyThreshold: 2, UnhealthyThreshold: 3,
			Path: "/ready", ExpectedCodes: "200"}
		if p.Spec.HealthMonitor.Type == v1alpha1.HealthMonitorTCP {
			p.Spec.HealthMonitor.Path, p.Spec.HealthMonitor.ExpectedCodes = "", ""
		}
	}
	if perhaps(r, 2) {
		p.Spec.TLS = &v1alpha1.BackendTLS{Verification: v1alpha1.BackendVerificationChain, CACertificateRefs: []v1alpha1.CACertificateRef{{Kind: "ConfigMap", Name: one(r, "ca", "ca", "absent"), Key: "ca.crt"}}}
	}
	return p
}

// authority is a ConfigMap with CA certificates.
func authority(r *rand.Rand, key types.NamespacedName, i int) client.Object {
	c := &corev1.ConfigMap{ObjectMeta: object(key), Data: map[string]string{"ca.crt": one(r, authorities()[i]...)}}
	if perhaps(r, 8) {
		c.Data["ca.crt"] = "no certificate"
	}
	return c
}

// authorities are two for each ConfigMap, the same in each run.
var authorities = sync.OnceValue(func() [][]string {
	var all [][]string
	for i := range 2 {
		var forms []string
		for n := range 2 {
			seed := sha256.Sum256([]byte(fmt.Sprintf("authority %d %d", i, n)))
			der, _, err := signed(seed[:], x509.Certificate{Subject: pkix.Name{CommonName: fmt.Sprintf("CA %d", i)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
			if err != nil {
				panic(err)
			}
			forms = append(forms, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		}
		all = append(all, forms)
	}
	return all
})

func grant(*rand.Rand) client.Object {
	return &gwv1.ReferenceGrant{ObjectMeta: object(named("blog", "grant")), Spec: gwv1.ReferenceGrantSpec{
		From: []gwv1.ReferenceGrantFrom{{Group: gwv1.GroupName, Kind: "HTTPRoute", Namespace: "shop"}},
		To:   []gwv1.ReferenceGrantTo{{Kind: "Service"}},
	}}
}

func secret(r *rand.Rand, key types.NamespacedName, i int) client.Object {
	s := &corev1.Secret{ObjectMeta: object(key), Type: corev1.SecretTypeTLS}
	pair := certificates()[i][r.IntN(len(certificates()[i]))]
	s.Data = map[string][]byte{corev1.TLSCertKey: pair[0], corev1.TLSPrivateKeyKey: pair[1]}
	if perhaps(r, 8) {
		s.Data[corev1.TLSPrivateKeyKey] = certificates()[(i+1)%len(certificates())][0][1]
	}
	return s
}

// certificates are three for each Secret, the same in each run.
var certificates = sync.OnceValue(func() [][][2][]byte {
	var all [][][2][]byte
	for i, host := range []string{"shop.example.com", "*.example.org", "shop.example.com"} {
		var forms [][2][]byte
		for n := range 3 {
			seed := sha256.Sum256([]byte(fmt.Sprintf("certificate %d %d", i, n)))
			der, key, err := signed(seed[:], x509.Certificate{DNSNames: []string{host}})
			if err != nil {
				panic(err)
			}
			forms = append(forms, [2][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})})
		}
		all = append(all, forms)
	}
	return all
})

// signed signs a certificate with its own key. It is always the same for one seed.
func signed(seed []byte, template x509.Certificate) (der, key []byte, err error) {
	private, err := ecdh.P256().NewPrivateKey(seed)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	if key, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a key: %w", err)
	}
	template.SerialNumber = big.NewInt(int64(seed[0]) + 1)
	template.NotBefore, template.NotAfter = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	signer := parsed.(crypto.Signer)
	der, err = x509.CreateCertificate(nil, &template, &template, signer.Public(), signer)
	return der, key, err
}

// total is the sum of the weights.
var total = sync.OnceValue(func() int {
	n := 0
	for _, e := range entities() {
		n += e.weight
	}
	return n
})

// pick is any entity, those of more weight more often.
func pick(r *rand.Rand) entity {
	n := r.IntN(total())
	i := slices.IndexFunc(entities(), func(e entity) bool { n -= e.weight; return n < 0 })
	return entities()[i]
}
