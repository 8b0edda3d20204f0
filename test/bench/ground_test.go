package bench

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
	"github.com/gateway-api-openstack/gateway-api-openstack/test/scenario"
)

// boot is how long an amphora takes from its create to its first configuration.
const boot = 45 * time.Second

// octavia notes how long it was busy.
type octavia struct {
	mu   sync.Mutex
	busy time.Duration
}

func (o *octavia) latency(op sim.Op) sim.Timing {
	t := sim.Measured(op)
	if op.Resource == "loadbalancer" && op.Action == "create" {
		t.Pending += boot
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy += t.Hold + t.Pending
	return t
}

func (o *octavia) reset() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	busy := o.busy
	o.busy = 0
	return busy
}

// ground is a Gateway with rules.
type ground struct {
	*testing.T
	stage   *scenario.Stage
	octavia *octavia
}

// result is what one change cost.
type result struct {
	writes, reads int
	took, busy    time.Duration
}

func (r result) ratio() float64 {
	if r.busy == 0 {
		return 1
	}
	return float64(r.took) / float64(r.busy)
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{T: t, octavia: &octavia{}}
	var err error
	if g.stage, err = scenario.NewStage(t.Context(), t.TempDir(), sim.Options{Latency: g.octavia.latency}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stage.Close)
	return g
}

func (g *ground) run(line, input string) {
	g.Helper()
	if _, err := g.stage.Run(g.Context(), line, input); err != nil {
		g.Fatal(err)
	}
}

func (g *ground) apply(manifests ...string) {
	g.Helper()
	g.run("apply", strings.Join(manifests, "\n---\n"))
}

// settle makes the controller do its work and says what that cost.
func (g *ground) settle() result {
	g.Helper()
	g.stage.Cloud().ResetCalls()
	g.octavia.reset()
	took, err := g.stage.Settle(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	if out, err := g.stage.Run(g.Context(), "status gateway/infra/edge", ""); err != nil || !strings.Contains(out, "\nProgrammed=True") {
		g.Fatalf("the Gateway is not programmed: %v\n%s", err, out)
	}
	r := result{took: took, busy: g.octavia.reset()}
	for _, c := range g.stage.Cloud().Calls() {
		switch {
		case c.Service == sim.Octavia && c.Mutating():
			r.writes++
		case c.Service == sim.Octavia:
			r.reads++
		}
	}
	return r
}

const class = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: openstack}
spec:
  controllerName: gateway-api-openstack.dev/gateway-controller
  parametersRef: {group: gateway-api-openstack.dev, kind: OpenStackGatewayClassConfig, name: cloud}
---
apiVersion: gateway-api-openstack.dev/v1alpha1
kind: OpenStackGatewayClassConfig
metadata: {name: cloud}
spec:
  vipSubnet: {name: vips-subnet}
  floatingNetwork: {name: public}
  memberMode: NodePort
  nodeAddressType: InternalIP
  healthMonitor: {type: TCP, delaySeconds: 5, timeoutSeconds: 3, healthyThreshold: 2, unhealthyThreshold: 3}
---
apiVersion: v1
kind: Namespace
metadata: {name: infra}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  addresses: [{type: InternalIP, address: 10.1.0.11}]
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
status:
  addresses: [{type: InternalIP, address: 10.1.0.12}]
  conditions: [{type: Ready, status: "True"}]`

const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: openstack
  listeners:
  - {name: web, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}`

// service is a Service of type NodePort with one endpoint.
func service(i int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: s%d}
spec: {type: NodePort, selector: {app: s%d}, ports: [{port: 80, nodePort: %d}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: s%d-1, labels: {kubernetes.io/service-name: s%d}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.11], nodeName: node-1, conditions: {ready: true}}]
ports: [{port: 8080, protocol: TCP}]`, i, i, 30000+i, i, i)
}

// rule is one of a route: a path and where it leads.
type rule struct{ path, backends string }

// forward is a rule to one Service.
func forward(i int) rule {
	return rule{fmt.Sprintf("/p%d", i), fmt.Sprintf("{name: s%d, port: 80}", i)}
}

// split is a rule that shares requests between two Services.
func split(weight int) rule {
	return rule{"/p0", fmt.Sprintf("{name: s0, port: 80, weight: %d}, {name: canary, port: 80, weight: 1}", weight)}
}

const canary = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: canary}
spec: {type: NodePort, selector: {app: canary}, ports: [{port: 80, nodePort: 32000}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: canary-1, labels: {kubernetes.io/service-name: canary}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.12], nodeName: node-1, conditions: {ready: true}}]
ports: [{port: 8080, protocol: TCP}]`

// route is one HTTPRoute of a host.
func route(name string, rules ...rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: %s}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  hostnames: [%s.example.com]
  rules:
`, name, name)
	for _, r := range rules {
		fmt.Fprintf(&b, "  - matches: [{path: {type: PathPrefix, value: %s}}]\n    backendRefs: [%s]\n", r.path, r.backends)
	}
	return b.String()
}
