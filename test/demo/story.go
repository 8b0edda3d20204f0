package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

const (
	shopHost = "shop.example.com"
	blogHost = "blog.example.com"
)

var edge = types.NamespacedName{Namespace: "infra", Name: "edge"}

// story is the demo from beginning to end. It stops at the first expectation that does not hold.
func (d *demo) story(ctx context.Context) error {
	d.line(d.paint(bold, "gateway-api-openstack: Kubernetes Gateways as OpenStack load balancers"))
	d.line("A real Kubernetes API, an embedded OpenStack that really balances, and the controller. No root, only loopback.")
	parts := []func(context.Context) error{
		d.start, d.class, d.create, d.requests, d.weights, d.drawing, d.nothing, d.change,
	}
	if d.keep {
		parts = append(parts, d.lookAround)
	} else {
		parts = append(parts, d.deleteRoute, d.deleteGateway)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) start(ctx context.Context) error {
	d.title("Start")
	began := time.Now()
	var err error
	d.kube, err = startKubernetes(ctx, d.assets, d.dir)
	if err != nil {
		return err
	}
	d.guard(d.kube.api)
	d.guard(d.kube.etcd)
	d.good("Kubernetes   kube-apiserver %s and etcd on %s, %.1f s", d.kube.version, d.kube.url, time.Since(began).Seconds())
	// The cloud has a life of its own: it ends with Close.
	if err = d.startCloud(); err != nil { //nolint:contextcheck
		return err
	}
	d.good("OpenStack    Keystone, Octavia, Neutron and Barbican on %s (simulated, with a data plane)", d.cloud.URL())
	d.say("             a load balancer of another team is in the same project: it must not be touched")

	if err = d.install(ctx); err != nil {
		return err
	}
	d.good("Installed    the Gateway API CRDs (standard channel), the controller's CRD, ServiceAccount and RBAC")
	apps, err := manifest("2-apps.yaml")
	if err != nil {
		return err
	}
	if _, err := d.kube.kubectl(ctx, apps, "apply", "-f", "-"); err != nil {
		return err
	}
	d.nodes.addresses = []string{"127.0.2.1", "127.0.2.2"}
	if err := d.nodes.start(ctx, d.kube.client); err != nil {
		return err
	}
	d.good("Backends     Services site, site-next, cart and blog, each on node-1 (127.0.2.1) and node-2 (127.0.2.2)")

	began = time.Now()
	if err := d.startController(ctx); err != nil {
		return fmt.Errorf("the controller does not become ready: %w", err)
	}
	d.good("Controller   its own binary, as its own ServiceAccount, ready after %.1f s:", time.Since(began).Seconds())
	d.say("             %s --kubeconfig=... --clouds-file=clouds.yaml --cloud=demo --cluster-id=demo", filepath.Base(d.binary))
	return nil
}

func (d *demo) class(ctx context.Context) error {
	d.title("A GatewayClass: which part of the cloud to use")
	if err := d.apply(ctx, "1-class.yaml"); err != nil {
		return err
	}
	class := &gwv1.GatewayClass{}
	err := eventually(ctx, 20*time.Second, func() error {
		if err := d.kube.client.Get(ctx, client.ObjectKey{Name: "openstack"}, class); err != nil {
			return fmt.Errorf("reading the GatewayClass: %w", err)
		}
		c := meta.FindStatusCondition(class.Status.Conditions, string(gwv1.GatewayClassConditionStatusAccepted))
		return isTrue(c, "the GatewayClass", class.Generation)
	})
	if err != nil {
		return err
	}
	for _, c := range class.Status.Conditions {
		d.good("%s=%s: %s", c.Type, c.Status, c.Message)
	}
	return nil
}

func (d *demo) create(ctx context.Context) error {
	d.title("A Gateway and its routes become one load balancer")
	d.cloud.ResetCalls()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events, err := d.follow(watching)
	if err != nil {
		return err
	}
	if err = d.apply(ctx, "3-routes.yaml", "4-gateway.yaml"); err != nil {
		return err
	}
	applied := time.Now()
	gateway, err := d.untilProgrammed(ctx, events, applied)
	if err != nil {
		return err
	}
	took := time.Since(applied)

	if problems := d.cloud.ForwardErrors(); len(problems) > 0 {
		return fmt.Errorf("the embedded cloud cannot listen: %s", strings.Join(problems, "; "))
	}
	if len(gateway.Status.Addresses) == 0 {
		return errors.New("the Gateway is programmed but has no address")
	}
	for _, l := range gateway.Status.Listeners {
		d.good("listener %s has %d routes", l.Name, l.AttachedRoutes)
		if l.AttachedRoutes != 2 {
			return fmt.Errorf("listener %s should have 2 routes", l.Name)
		}
	}
	lb := d.ours()
	d.vip = net.JoinHostPort(fmt.Sprint(lb["vip_address"]), "8080")
	d.floating = net.JoinHostPort(gateway.Status.Addresses[0].Value, "8080")
	if d.vip == d.floating {
		return errors.New("the address of the Gateway should be the floating IP, not the VIP")
	}
	d.good("programmed after %.1f s; the address is the floating IP %s, the VIP behind it is %s", took.Seconds(),
		gateway.Status.Addresses[0].Value, lb["vip_address"])
	return d.calls(map[string]int{"octavia POST /loadbalancers": 1, "neutron POST /floatingips": 1})
}

// follow watches the Gateway; each version that differs from the one before is sent once.
func (d *demo) follow(ctx context.Context) (<-chan *gwv1.Gateway, error) {
	w, err := d.kube.client.Watch(ctx, &gwv1.GatewayList{}, client.InNamespace(edge.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watching the Gateway: %w", err)
	}
	out := make(chan *gwv1.Gateway, 100)
	go func() {
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-w.ResultChan():
				if !ok {
					return
				}
				if gateway, ok := e.Object.(*gwv1.Gateway); ok {
					out <- gateway
				}
			}
		}
	}()
	return out, nil
}

// untilProgrammed tells the conditions of the Gateway as they change.
func (d *demo) untilProgrammed(ctx context.Context, events <-chan *gwv1.Gateway, since time.Time) (*gwv1.Gateway, error) {
	d.command("kubectl get gateway -n infra edge --watch")
	told := map[string]string{}
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-patience.C:
			return nil, errors.New("the Gateway did not become Programmed within 30 s")
		case gateway := <-events:
			for _, c := range gateway.Status.Conditions {
				text := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
				if c.ObservedGeneration != 0 && told[c.Type] != text {
					told[c.Type] = text
					d.say("%5.1f s  %s: %s", time.Since(since).Seconds(), text, c.Message)
				}
			}
			c := meta.FindStatusCondition(gateway.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
			if isTrue(c, "", gateway.Generation) == nil {
				return gateway, nil
			}
		}
	}
}

func isTrue(c *metav1.Condition, what string, generation int64) error {
	switch {
	case c == nil:
		return fmt.Errorf("%s has no such condition yet", what)
	case c.Status != metav1.ConditionTrue:
		return fmt.Errorf("%s has %s=%s: %s: %s", what, c.Type, c.Status, c.Reason, c.Message)
	case c.ObservedGeneration != generation:
		return fmt.Errorf("the condition %s of %s is about generation %d, not %d", c.Type, what, c.ObservedGeneration, generation)
	}
	return nil
}

// question is a request and the backend that must answer it; "" is the load balancer itself, with a 503.
type question struct {
	address, host, path string
	backend             []string
}

func (d *demo) requests(ctx context.Context) error {
	d.title("Requests reach the right backend, by host and by path")
	for _, q := range []question{
		{d.floating, blogHost, "/", []string{"blog"}},
		{d.floating, shopHost, "/cart", []string{"cart"}},
		{d.floating, shopHost, "/cart/items/7", []string{"cart"}},
		{d.floating, shopHost, "/cartoon", []string{"site", "site-next"}},
		{d.vip, shopHost, "/cart", []string{"cart"}},
		{d.vip, blogHost, "/cart", []string{"blog"}},
		{d.floating, "other.example.com", "/", nil},
	} {
		if err := d.question(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) question(ctx context.Context, q question) error {
	d.command(fmt.Sprintf("curl -H 'Host: %s' http://%s%s", q.host, q.address, q.path))
	a, err := ask(ctx, q.address, q.host, q.path)
	if err != nil {
		return err
	}
	if err := q.check(a); err != nil {
		return err
	}
	d.good("%s", a)
	return nil
}

func (q question) check(a answer) error {
	if len(q.backend) == 0 && a.status == 503 && a.backend == "" || slices.Contains(q.backend, a.backend) && a.status == 200 {
		return nil
	}
	want := strings.Join(q.backend, " or ")
	if want == "" {
		want = "503 from the load balancer"
	}
	return fmt.Errorf("%s%s was answered by %q with %d, it should have been %s", q.host, q.path, a.backend, a.status, want)
}

func (d *demo) weights(ctx context.Context) error {
	d.title("Weights are shares: site 80, site-next 20")
	return d.share(ctx, map[string]float64{"site": 0.8, "site-next": 0.2})
}

// share asks often and compares who answered with who should have.
func (d *demo) share(ctx context.Context, want map[string]float64) error {
	const requests = 400
	got, byNode := map[string]int{}, map[string]int{}
	for range requests {
		a, err := ask(ctx, d.floating, shopHost, "/")
		if err != nil {
			return err
		}
		got[a.backend]++
		byNode[a.node]++
	}
	rows := [][]string{}
	for _, backend := range slices.Sorted(maps.Keys(got)) {
		share := float64(got[backend]) / requests
		rows = append(rows, []string{backend, fmt.Sprint(got[backend]), bar(share, 40), fmt.Sprintf("%.1f %%, wanted %.0f %%", share*100, want[backend]*100)})
	}
	d.table(rows)
	for backend := range got {
		if _, ok := want[backend]; !ok {
			return fmt.Errorf("%q answered, which is not a backend of that rule", backend)
		}
	}
	for backend, share := range want {
		// Four standard deviations of independent choices; round robin is much closer.
		tolerance := 4 * math.Sqrt(share*(1-share)/requests)
		if math.Abs(float64(got[backend])/requests-share) > tolerance {
			return fmt.Errorf("%s answered %d of %d requests, too far from %.0f %%", backend, got[backend], requests, share*100)
		}
	}
	d.good("%d requests, shares as asked for, over %d Nodes", requests, len(byNode))
	if len(byNode) != len(d.nodes.addresses) {
		return fmt.Errorf("only %d Nodes answered", len(byNode))
	}
	return nil
}

func (d *demo) drawing(context.Context) error {
	d.title("What was built")
	tree, id := d.tree()
	if id == "" {
		return errors.New("there is no load balancer")
	}
	d.text(tree.String())
	return nil
}

func (d *demo) nothing(ctx context.Context) error {
	d.title("An event that changes nothing costs nothing")
	d.cloud.ResetCalls()
	d.command("kubectl label gateway -n infra edge team=platform")
	if _, err := d.kube.kubectl(ctx, nil, "label", "gateway", "-n", "infra", "edge", "team=platform"); err != nil {
		return err
	}
	if err := pause(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	if calls := d.cloud.Calls(); len(calls) > 0 {
		return fmt.Errorf("the label caused calls to OpenStack: %v", calls)
	}
	d.good("no call to OpenStack")
	return nil
}

func (d *demo) change(ctx context.Context) error {
	d.title("A route changes: /cart becomes /basket, the weights 50 and 50")
	d.cloud.ResetCalls()
	bystander := watch(ctx, d.floating, blogHost, "/", "blog")
	defer bystander.cancel()
	if err := d.apply(ctx, "5-shop-changed.yaml"); err != nil {
		return err
	}
	applied := time.Now()
	err := eventually(ctx, 20*time.Second, func() error {
		a, err := ask(ctx, d.floating, shopHost, "/basket")
		if err != nil {
			return err
		}
		return question{host: shopHost, path: "/basket", backend: []string{"cart"}}.check(a)
	})
	if err != nil {
		return err
	}
	took := time.Since(applied)
	if err = d.settled(ctx); err != nil {
		return err
	}
	d.good("the new path is in effect after %.1f s", took.Seconds())
	asked, err := bystander.end()
	if err != nil {
		return err
	}
	d.good("meanwhile %s answered all %d requests", blogHost, asked)
	if err := d.calls(nil); err != nil {
		return err
	}
	for _, q := range []question{
		{d.floating, shopHost, "/basket/items/7", []string{"cart"}},
		{d.floating, shopHost, "/cart", []string{"site", "site-next"}},
	} {
		if err := d.question(ctx, q); err != nil {
			return err
		}
	}
	return d.share(ctx, map[string]float64{"site": 0.5, "site-next": 0.5})
}

// settled waits until nothing was called for a moment.
func (d *demo) settled(ctx context.Context) error {
	last, since := -1, time.Now()
	return eventually(ctx, 20*time.Second, func() error {
		if n := len(d.cloud.Calls()); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < time.Second {
			return errors.New("the controller is still at work")
		}
		return nil
	})
}

func (d *demo) deleteRoute(ctx context.Context) error {
	d.title("A route is deleted")
	d.cloud.ResetCalls()
	if err := d.delete(ctx, "httproute", "-n", "blog", "blog"); err != nil {
		return err
	}
	err := eventually(ctx, 20*time.Second, func() error {
		a, err := ask(ctx, d.floating, blogHost, "/")
		if err != nil {
			return err
		}
		return question{host: blogHost, path: "/"}.check(a)
	})
	if err != nil {
		return err
	}
	if err := d.settled(ctx); err != nil {
		return err
	}
	if err := d.question(ctx, question{d.floating, blogHost, "/", nil}); err != nil {
		return err
	}
	if err := d.question(ctx, question{d.floating, shopHost, "/basket", []string{"cart"}}); err != nil {
		return err
	}
	if err := d.calls(nil); err != nil {
		return err
	}
	tree, _ := d.tree()
	d.text(tree.String())
	if strings.Contains(tree.String(), "blog") {
		return errors.New("something of the blog is left in the load balancer")
	}
	return nil
}

// delete takes an object away, as kubectl does: until its finalizers are gone.
func (d *demo) delete(ctx context.Context, args ...string) error {
	d.command("kubectl delete " + strings.Join(args, " "))
	out, err := d.kube.kubectl(ctx, nil, append([]string{"delete", "--timeout=25s"}, args...)...)
	if err != nil {
		return err
	}
	d.say("%s", out)
	return nil
}

func (d *demo) deleteGateway(ctx context.Context) error {
	d.title("The Gateway is deleted: nothing is left")
	d.cloud.ResetCalls()
	began := time.Now()
	if err := d.delete(ctx, "gateway", "-n", edge.Namespace, edge.Name); err != nil {
		return err
	}
	if err := d.kube.client.Get(ctx, edge, &gwv1.Gateway{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Gateway should be gone: %w", cause(err))
	}
	d.good("the Gateway is gone after %.1f s", time.Since(began).Seconds())
	if err := d.calls(map[string]int{"octavia DELETE /loadbalancers/*": 1, "neutron DELETE /floatingips/*": 1}); err != nil {
		return err
	}
	after := d.cloud.Snapshot()
	if left := after.Leaks(d.before); len(left) > 0 {
		return fmt.Errorf("left in the cloud: %s", strings.Join(left, "; "))
	}
	d.good("no load balancer, port, floating IP or security group is left in the cloud")
	if !reflect.DeepEqual(after["loadbalancers"][d.bystander], d.before["loadbalancers"][d.bystander]) {
		return errors.New("the load balancer of the other team has changed")
	}
	d.good("the other team's load balancer is as it was")
	if _, err := ask(ctx, d.floating, shopHost, "/"); err == nil {
		return fmt.Errorf("%s still answers", d.floating)
	}
	return d.delete(ctx, "gatewayclass", "openstack")
}

// ours is our load balancer as Octavia has it.
func (d *demo) ours() map[string]any {
	_, id := d.tree()
	return d.cloud.Snapshot()["loadbalancers"][id]
}

// calls tells which calls changed something in OpenStack since the last reset. Want is what they must have been; nil takes any.
func (d *demo) calls(want map[string]int) error {
	changing, reading := map[string]int{}, 0
	for call, n := range d.cloud.CallCounts() {
		switch {
		case strings.HasPrefix(call, sim.Keystone+" "):
		case strings.Contains(call, " GET "):
			reading += n
		default:
			changing[call] = n
		}
	}
	rows := [][]string{}
	for _, call := range slices.Sorted(maps.Keys(changing)) {
		rows = append(rows, []string{fmt.Sprintf("%3d x", changing[call]), call})
	}
	d.say("calls that changed something, besides %d that read:", reading)
	d.table(rows)
	if want != nil && !maps.Equal(want, changing) {
		return fmt.Errorf("the calls should have been %v", want)
	}
	return nil
}

// lookAround leaves everything running until a signal comes.
func (d *demo) lookAround(ctx context.Context) error {
	d.title("Everything is left running: look around")
	d.limit.Stop()
	kubectl := filepath.Join(d.assets, "kubectl")
	d.command("export KUBECONFIG=" + d.kube.kubeconfig)
	d.command("alias kubectl=" + kubectl)
	d.command("kubectl get gatewayclass,gateway,httproute -A")
	d.command("kubectl describe gateway -n infra edge")
	d.command("kubectl edit httproute -n shop shop")
	d.command("kubectl delete gateway -n infra edge")
	d.say("")
	d.command(fmt.Sprintf("curl -H 'Host: %s' http://%s/", shopHost, d.floating))
	d.command(fmt.Sprintf("curl -H 'Host: %s' http://%s/basket", shopHost, d.floating))
	d.say("")
	d.command("export OS_CLIENT_CONFIG_FILE=" + d.file("clouds.yaml") + " OS_CLOUD=demo")
	d.command("openstack loadbalancer status show gw_demo_infra_edge   (if you have the client)")
	d.command("tail -f " + d.controller.log)
	d.say("")
	d.say("Ctrl-C ends it.")
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, errInterrupted) {
		return err
	}
	return nil
}

func lines(text string) []string {
	return slices.Collect(strings.SplitSeq(strings.TrimSpace(text), "\n"))
}
