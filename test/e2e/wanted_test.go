//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	router "github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// clusterID is what run.sh gives the controller.
const clusterID = "e2e"

// steadyClass has no floating IP, and health monitors that a busy machine does not trip: tests that judge every single answer use it.
const steadyClass = "e2e-steady"

func (g *ground) steady() {
	g.Helper()
	g.apply(&v1alpha1.OpenStackGatewayClassConfig{
		ObjectMeta: metav1.ObjectMeta{Name: steadyClass},
		Spec: v1alpha1.OpenStackGatewayClassConfigSpec{
			VIPSubnet:     &v1alpha1.Selector{ID: g.nodeSubnet},
			HealthMonitor: v1alpha1.HealthMonitor{DelaySeconds: 5, TimeoutSeconds: 5, UnhealthyThreshold: 6},
		},
	})
	g.apply(&gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: steadyClass},
		Spec: gwv1.GatewayClassSpec{
			ControllerName: api.DefaultControllerName,
			ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: steadyClass},
		},
	})
}

// cloudClient is the controller's own client of the cloud, with the controller's credentials.
func (g *ground) cloudClient() *cloud.Client {
	g.Helper()
	c, err := cloud.New(g.Context(), cloud.Options{CloudsFile: os.Getenv("OS_CLIENT_CONFIG_FILE"), Cloud: os.Getenv("OS_CLOUD"), Parallel: 8})
	g.must(err)
	return c
}

// facts are what the controller resolves the steady class to.
func (g *ground) facts(c *cloud.Client) lb.Facts {
	g.Helper()
	facts, err := c.Facts(g.Context(), cloud.FactsRequest{VIPSubnet: lb.Selector{ID: g.nodeSubnet}})
	g.must(err)
	return facts
}

// world is what Kubernetes holds of some namespaces, apart from Gateways: what the compiler of a Gateway looks at.
type world struct {
	compile.Snapshot
	// services are the names of those with a NodePort, by that port: members tell which Service they are of.
	services map[int]string
}

// world reads the namespaces. Routes are read anew each time; nothing is shared between two worlds.
func (g *ground) world(facts lb.Facts, namespaces ...string) *world {
	g.Helper()
	w := &world{
		Snapshot: compile.Snapshot{ClusterID: clusterID, Controller: api.DefaultControllerName, Facts: facts,
			Class: &gwv1.GatewayClass{}, Config: &v1alpha1.OpenStackGatewayClassConfig{}},
		services: map[int]string{},
	}
	g.must(g.kube.Get(g.Context(), client.ObjectKey{Name: steadyClass}, w.Class))
	g.must(g.kube.Get(g.Context(), client.ObjectKey{Name: steadyClass}, w.Config))
	nodes := &corev1.NodeList{}
	g.must(g.kube.List(g.Context(), nodes))
	for i := range nodes.Items {
		w.Nodes = append(w.Nodes, &nodes.Items[i])
	}
	for _, n := range namespaces {
		namespace := &corev1.Namespace{}
		g.must(g.kube.Get(g.Context(), client.ObjectKey{Name: n}, namespace))
		w.Namespaces = append(w.Namespaces, namespace)
		services, slices := &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
		g.must(g.kube.List(g.Context(), services, client.InNamespace(n)))
		g.must(g.kube.List(g.Context(), slices, client.InNamespace(n)))
		for i := range services.Items {
			s := &services.Items[i]
			w.Services = append(w.Services, s)
			for _, p := range s.Spec.Ports {
				w.services[int(p.NodePort)] = s.Name
			}
		}
		for i := range slices.Items {
			w.EndpointSlices = append(w.EndpointSlices, &slices.Items[i])
		}
	}
	w.HTTPRoutes = g.routes(namespaces...)
	return w
}

func (g *ground) routes(namespaces ...string) []*gwv1.HTTPRoute {
	g.Helper()
	var all []*gwv1.HTTPRoute
	for _, n := range namespaces {
		routes := &gwv1.HTTPRouteList{}
		g.must(g.kube.List(g.Context(), routes, client.InNamespace(n)))
		for i := range routes.Items {
			all = append(all, &routes.Items[i])
		}
	}
	return all
}

// compile is what the controller makes of a Gateway in this world.
func (w *world) compile(gw *gwv1.Gateway, routes []*gwv1.HTTPRoute) compile.Result {
	s := w.Snapshot
	s.Gateway, s.HTTPRoutes = gw, nil
	for _, r := range routes {
		if slices.ContainsFunc(r.Spec.ParentRefs, func(p gwv1.ParentReference) bool {
			namespace := r.Namespace
			if p.Namespace != nil {
				namespace = string(*p.Namespace)
			}
			return string(p.Name) == gw.Name && namespace == gw.Namespace
		}) {
			s.HTTPRoutes = append(s.HTTPRoutes, r)
		}
	}
	return compile.Gateway(s)
}

// oracle says what a tree answers, in terms of what a client can see.
type oracle struct {
	*router.Evaluator
	tree *lb.Tree
	// id is that of the load balancer.
	id string
	// backends are the Services that a pool's members are of, by the pool's key.
	backends map[string]map[string]bool
}

func (w *world) oracle(tree *lb.Tree) (*oracle, error) {
	e, err := router.New(tree)
	if err != nil {
		return nil, err
	}
	o := &oracle{Evaluator: e, tree: tree, backends: map[string]map[string]bool{}}
	for i := range tree.Pools {
		p := &tree.Pools[i]
		o.backends[p.Key] = map[string]bool{}
		for _, m := range p.Members {
			name, found := w.services[m.Port]
			if !found {
				return nil, fmt.Errorf("no Service has the port of member %s:%d of pool %s", m.Address, m.Port, p.Key)
			}
			if m.Weight > 0 {
				o.backends[p.Key][name] = true
			}
		}
	}
	return o, nil
}

// wanted is what a client may see: one of several backends, or one status with a Location.
type wanted struct {
	backends map[string]bool
	status   int
	location string
}

func (o *oracle) wants(r router.Request) wanted {
	switch a := o.Route(r); {
	case a.Kind == router.Pool && len(o.backends[a.Pool]) > 0:
		return wanted{backends: o.backends[a.Pool]}
	case a.Kind == router.Pool:
		return wanted{status: 503}
	default:
		return wanted{status: a.Code, location: a.Location}
	}
}

// admits says whether a request that was answered with a is as it should be.
func (w wanted) admits(a reply) bool {
	if len(w.backends) == 0 {
		return a.Text == "" && !a.byBackend && a.Status == w.status && a.Location == w.location
	}
	return a.byBackend && (a.Text == "" || w.backends[a.Text])
}

func (w wanted) String() string {
	if len(w.backends) > 0 {
		return strings.Join(slices.Sorted(maps.Keys(w.backends)), " or ")
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", w.status, w.location))
}

// why is the part of an explanation that matters: what decided, and what matched.
func (o *oracle) why(r router.Request) string {
	x := o.Explain(r)
	var b strings.Builder
	fmt.Fprintln(&b, x.Answer)
	for _, p := range x.Policies {
		if p.NotRendered != "" || !p.Matched && !almost(p) {
			continue
		}
		fmt.Fprintf(&b, "    %s %s %s%s matched %t decided %t\n", p.Policy.Key, p.Policy.Action, p.Policy.Pool, p.Policy.URL, p.Matched, p.Decided)
		for _, rule := range p.Rules {
			fmt.Fprintf(&b, "      %t: %s %s %s %q invert %t\n", rule.Holds, rule.Rule.Type, rule.Rule.Key, rule.Rule.Compare, rule.Rule.Value, rule.Rule.Invert)
		}
	}
	return b.String()
}

// almost says that one rule alone keeps a policy from matching.
func almost(p router.PolicyExplanation) bool {
	failed := 0
	for _, r := range p.Rules {
		if !r.Holds {
			failed++
		}
	}
	return failed == 1
}

// healthy waits until the load balancer and all its listeners are ACTIVE and every member answers its health checks.
func (g *ground) healthy(gw *gwv1.Gateway) {
	g.Helper()
	g.eventually(10*time.Minute, fmt.Sprintf("the load balancer of %s/%s is healthy", gw.Namespace, gw.Name), func() error {
		l, err := g.loadBalancer(gw)
		if err != nil {
			return err
		}
		if l.ProvisioningStatus != "ACTIVE" {
			return fmt.Errorf("the load balancer is %s", l.ProvisioningStatus)
		}
		pages, err := listeners.List(g.cloud.octavia, listeners.ListOpts{LoadbalancerID: l.ID}).AllPages(g.Context())
		if err != nil {
			return err
		}
		all, err := listeners.ExtractListeners(pages)
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.ProvisioningStatus != "ACTIVE" || one.OperatingStatus == "ERROR" {
				return fmt.Errorf("listener %s is %s, %s", one.Name, one.ProvisioningStatus, one.OperatingStatus)
			}
		}
		pages, err = pools.List(g.cloud.octavia, pools.ListOpts{LoadbalancerID: l.ID}).AllPages(g.Context())
		if err != nil {
			return err
		}
		found, err := pools.ExtractPools(pages)
		if err != nil {
			return err
		}
		for _, p := range found {
			if p.ProvisioningStatus != "ACTIVE" || len(p.Members) > 0 && p.OperatingStatus != "ONLINE" {
				return fmt.Errorf("pool %s is %s, %s", p.Name, p.ProvisioningStatus, p.OperatingStatus)
			}
		}
		return nil
	})
}
