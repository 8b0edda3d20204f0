//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/vishvananda/netns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// The stack's own names.
const (
	controllerNamespace = "gateway-api-openstack-system"
	echoImage           = "gateway-api-openstack/echo"
	className           = "e2e"
)

// ground is what a test stands on.
type ground struct {
	*testing.T
	kube client.Client
	// cloud has the clients of the project that the controller works in.
	cloud cloudClients
	// facts are the ids that the stack wrote down.
	publicNetwork, nodeSubnet, demoSubnet string
	// outside makes requests as somebody on the public network, inside as a machine on the node network.
	outside, inside *http.Client
}

type cloudClients struct {
	octavia, neutron, barbican, keystone *gophercloud.ServiceClient
}

func newGround(t *testing.T) *ground {
	t.Helper()
	fact := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			t.Fatalf("%s is not set: start these tests with test/e2e/run.sh", name)
		}
		return v
	}
	g := &ground{
		T:             t,
		publicNetwork: fact("GAO_PUBLIC_NETWORK_ID"),
		nodeSubnet:    fact("GAO_NODE_SUBNET_ID"),
		demoSubnet:    fact("GAO_DEMO_SUBNET_ID"),
		outside:       httpClient(fact("GAO_CLIENT_NAMESPACE")),
		inside:        httpClient(""),
	}
	rest, err := clientcmd.BuildConfigFromFlags("", fact("KUBECONFIG"))
	g.must(err)
	rest.QPS, rest.Burst = 100, 200
	scheme, err := kube.Scheme()
	g.must(err)
	g.kube, err = client.New(rest, client.Options{Scheme: scheme})
	g.must(err)
	g.cloud = openCloud(g, fact("OS_CLIENT_CONFIG_FILE"), fact("OS_CLOUD"))
	g.class()
	return g
}

func openCloud(g *ground, file, name string) cloudClients {
	g.Helper()
	c, err := clientsOf(g.Context(), file, name)
	g.must(err)
	return c
}

func (g *ground) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// class makes sure of the GatewayClass of the tests: VIPs on the node subnet, floating IPs from the public network. One that an
// earlier run has left may name the objects of another cloud.
func (g *ground) class() {
	g.Helper()
	config := &v1alpha1.OpenStackGatewayClassConfig{ObjectMeta: metav1.ObjectMeta{Name: className}}
	_, err := controllerutil.CreateOrUpdate(g.Context(), g.kube, config, func() error {
		config.Spec = v1alpha1.OpenStackGatewayClassConfigSpec{
			VIPSubnet:       &v1alpha1.Selector{ID: g.nodeSubnet},
			FloatingNetwork: &v1alpha1.Selector{ID: g.publicNetwork},
			HealthMonitor:   v1alpha1.HealthMonitor{DelaySeconds: 2, TimeoutSeconds: 1},
		}
		return nil
	})
	g.must(err)
	g.apply(&gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec: gwv1.GatewayClassSpec{
			ControllerName: api.DefaultControllerName,
			ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: className},
		},
	})
}

// apply creates an object, or leaves it when it exists.
func (g *ground) apply(o client.Object) {
	g.Helper()
	g.must(client.IgnoreAlreadyExists(g.kube.Create(g.Context(), o)))
}

// namespace makes a Kubernetes namespace that goes with the test.
func (g *ground) namespace(name string, labels map[string]string) string {
	g.Helper()
	g.apply(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	g.Cleanup(func() {
		ctx := context.WithoutCancel(g.Context())
		_ = g.kube.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	return name
}

// echo runs an echo backend behind a Service of type NodePort, and waits until its Pods are ready.
func (g *ground) echo(namespace, name string, replicas int32, change ...func(*corev1.Service)) {
	g.Helper()
	labels := map[string]string{"app": name}
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	g.apply(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "echo",
					Image: echoImage,
					Env: []corev1.EnvVar{
						{Name: "PORT", Value: "3000"}, {Name: "TEXT", Value: name}, {Name: "POD_NAME", ValueFrom: from("metadata.name")},
						{Name: "POD_NAMESPACE", ValueFrom: from("metadata.namespace")}, {Name: "NODE_NAME", ValueFrom: from("spec.nodeName")},
					},
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(3000)}}},
				}}},
			},
		},
	})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeNodePort,
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(3000)}},
		},
	}
	for _, c := range change {
		c(service)
	}
	g.apply(service)
	g.ready(namespace, name, replicas)
}

func (g *ground) ready(namespace, name string, replicas int32) {
	g.Helper()
	g.eventually(90*time.Second, fmt.Sprintf("Deployment %s/%s is ready", namespace, name), func() error {
		d := &appsv1.Deployment{}
		if err := g.kube.Get(g.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != replicas || d.Status.Replicas != replicas {
			return fmt.Errorf("%d of %d replicas are ready, %d wanted", d.Status.ReadyReplicas, d.Status.Replicas, replicas)
		}
		return nil
	})
}

// listener is an HTTP listener that admits routes of all namespaces with a label.
func listener(name string, port gwv1.PortNumber, hostname string) gwv1.Listener {
	l := gwv1.Listener{
		Name: gwv1.SectionName(name), Port: port, Protocol: gwv1.HTTPProtocolType,
		AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{
			From:     new(gwv1.NamespacesFromSelector),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": "yes"}},
		}},
	}
	if hostname != "" {
		l.Hostname = new(gwv1.Hostname(hostname))
	}
	return l
}

func gateway(namespace, name string, listeners ...gwv1.Listener) *gwv1.Gateway {
	return &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       gwv1.GatewaySpec{GatewayClassName: className, Listeners: listeners},
	}
}

// route attaches rules to a Gateway of any namespace.
func route(namespace, name string, gw *gwv1.Gateway, hostnames []gwv1.Hostname, rules ...gwv1.HTTPRouteRule) *gwv1.HTTPRoute {
	return &gwv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{
				Namespace: new(gwv1.Namespace(gw.Namespace)), Name: gwv1.ObjectName(gw.Name),
			}}},
			Hostnames: hostnames,
			Rules:     rules,
		},
	}
}

// rule sends what matches to backends, given as name or name and weight.
func rule(matches []gwv1.HTTPRouteMatch, backends ...gwv1.HTTPBackendRef) gwv1.HTTPRouteRule {
	return gwv1.HTTPRouteRule{Matches: matches, BackendRefs: backends}
}

func backend(name string, weight int32) gwv1.HTTPBackendRef {
	return gwv1.HTTPBackendRef{BackendRef: gwv1.BackendRef{
		BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(name), Port: new(gwv1.PortNumber(80))},
		Weight:                 &weight,
	}}
}

func path(kind gwv1.PathMatchType, value string, headers ...string) gwv1.HTTPRouteMatch {
	m := gwv1.HTTPRouteMatch{Path: &gwv1.HTTPPathMatch{Type: &kind, Value: &value}}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Headers = append(m.Headers, gwv1.HTTPHeaderMatch{Name: gwv1.HTTPHeaderName(headers[i]), Value: headers[i+1]})
	}
	return m
}

// programmed waits until the Gateway says that it is programmed for its generation, and returns its address.
func (g *ground) programmed(gw *gwv1.Gateway) string {
	g.Helper()
	g.eventually(4*time.Minute, fmt.Sprintf("Gateway %s/%s is programmed", gw.Namespace, gw.Name), func() error {
		if err := g.kube.Get(g.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err
		}
		c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
		switch {
		case c == nil || c.ObservedGeneration != gw.Generation:
			return fmt.Errorf("no Programmed condition for generation %d", gw.Generation)
		case c.Status != metav1.ConditionTrue:
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		case len(gw.Status.Addresses) != 1:
			return fmt.Errorf("%d addresses", len(gw.Status.Addresses))
		}
		return nil
	})
	return gw.Status.Addresses[0].Value
}

// eventually tries until check is content.
func (g *ground) eventually(most time.Duration, what string, check func() error) {
	g.Helper()
	deadline := time.Now().Add(most)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			g.Fatalf("not within %v: %s: %v", most, what, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// delete deletes objects and waits until they are gone.
func (g *ground) delete(objects ...client.Object) {
	g.Helper()
	for _, o := range objects {
		g.must(client.IgnoreNotFound(g.kube.Delete(g.Context(), o)))
	}
	for _, o := range objects {
		g.eventually(3*time.Minute, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
			err := g.kube.Get(g.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				return fmt.Errorf("it is still there")
			}
			return nil
		})
	}
}

// update changes an object, again when somebody else was faster.
func update[T client.Object](g *ground, o T, change func(T)) {
	g.Helper()
	g.eventually(10*time.Second, fmt.Sprintf("%T %s is changed", o, o.GetName()), func() error {
		if err := g.kube.Get(g.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return g.kube.Update(g.Context(), o)
	})
}

// answer is what an echo backend says, or the status of another answer.
type answer struct {
	Status   int
	Location string
	Pod      string              `json:"pod"`
	Text     string              `json:"text"`
	Node     string              `json:"node"`
	Path     string              `json:"path"`
	Headers  map[string][]string `json:"headers"`
	TLS      struct {
		ServerName string `json:"serverName"`
		Protocol   string `json:"protocol"`
		Client     string `json:"client"`
	} `json:"tls"`
}

func (a answer) String() string {
	if a.Status == http.StatusOK {
		return a.Text
	}
	return fmt.Sprint(a.Status)
}

// get asks url with a Host header and further header names and values.
func get(ctx context.Context, c *http.Client, url, host string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	req.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &a); err != nil {
			return answer{}, fmt.Errorf("%w in %q", err, body)
		}
	}
	a.Status, a.Location = res.StatusCode, res.Header.Get("Location")
	return a, nil
}

// expect waits until a request is answered with the text of a backend, or a status.
func (g *ground) expect(c *http.Client, url, host, want string, headers ...string) {
	g.Helper()
	g.eventually(2*time.Minute, fmt.Sprintf("%s with Host %s %v is answered by %s", url, host, headers, want), func() error {
		a, err := get(g.Context(), c, url, host, headers...)
		if err != nil {
			return err
		}
		if a.String() != want {
			return fmt.Errorf("answered by %s", a)
		}
		return nil
	})
}

// httpClient dials from a network namespace of the stack, "" for that of this process. No connection is used twice, so that
// each request is balanced anew.
func httpClient(namespace string) *http.Client {
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	dial := dialer.DialContext
	if namespace != "" {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialIn(ctx, namespace, dialer, network, address)
		}
	}
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// dialIn dials an IP address from inside another network namespace. Only the socket's creation has to happen there, on a thread
// that does nothing else meanwhile.
func dialIn(ctx context.Context, namespace string, dialer *net.Dialer, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		// Not unlocked: the thread ends with the goroutine, and with it its namespace.
		ns, err := netns.GetFromName(namespace)
		if err != nil {
			done <- result{err: err}
			return
		}
		defer func() { _ = ns.Close() }()
		if err := netns.Set(ns); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := dialer.DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// raw reads a document of the cloud.
func (g *ground) raw(c *gophercloud.ServiceClient, elements ...string) map[string]any {
	g.Helper()
	var out map[string]any
	_, err := c.Get(g.Context(), c.ServiceURL(elements...), &out, nil)
	g.must(err)
	return out
}

// ours are the cloud objects that carry our mark: load balancers by tag, floating IPs by description, secrets by name.
func (g *ground) ours() []string {
	g.Helper()
	var found []string
	mark := api.Domain + "/"
	add := func(c *gophercloud.ServiceClient, kind string, elements ...string) {
		list, _ := g.raw(c, elements...)[kind].([]any)
		for _, o := range list {
			text, err := json.Marshal(o)
			g.must(err)
			if strings.Contains(string(text), mark) {
				id, _ := o.(map[string]any)["id"].(string)
				found = append(found, kind+" "+id)
			}
		}
	}
	for _, kind := range []string{"loadbalancers", "listeners", "pools", "l7policies", "healthmonitors"} {
		add(g.cloud.octavia, kind, "lbaas", kind)
	}
	add(g.cloud.neutron, "floatingips", "floatingips")
	add(g.cloud.neutron, "security_groups", "security-groups")
	add(g.cloud.neutron, "ports", "ports")
	add(g.cloud.barbican, "secrets", "secrets?limit=100")
	slices.Sort(found)
	return found
}

// nothingLeft is the leak check.
func (g *ground) nothingLeft() {
	g.Helper()
	g.eventually(30*time.Second, "nothing of ours is left in the cloud", func() error {
		if left := g.ours(); len(left) > 0 {
			return fmt.Errorf("left: %s", strings.Join(left, ", "))
		}
		return nil
	})
}
