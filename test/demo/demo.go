package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
	"github.com/gateway-api-openstack/gateway-api-openstack/test/draw"
)

// demo is everything that runs.
type demo struct {
	*show
	// From the command line.
	assets, binary, crds, state string
	keep                        bool

	dir    string
	cancel context.CancelCauseFunc
	limit  *time.Timer

	kube       *kubernetes
	cloud      *sim.Cloud
	nodes      nodes
	controller *process
	stopping   chan struct{}

	// bystander is a load balancer of somebody else in the same project, as it was at the beginning.
	bystander string
	// before is the cloud without anything of ours.
	before sim.Snapshot
	// vip and floating are addresses with the port of the listener.
	vip, floating string
}

// cloudTimes are how long the embedded Octavia is at work: less than a real one, and enough to be seen.
func cloudTimes(op sim.Op) sim.Timing {
	switch op.Resource + " " + op.Action {
	case "loadbalancer create":
		return sim.Timing{Hold: 200 * time.Millisecond, Pending: 2 * time.Second}
	case "loadbalancer delete":
		return sim.Timing{Hold: 100 * time.Millisecond, Pending: time.Second}
	}
	return sim.Timing{Hold: 50 * time.Millisecond, Pending: 400 * time.Millisecond}
}

func (d *demo) startCloud() error {
	var err error
	d.cloud, err = sim.New(sim.Options{Forward: true, Latency: cloudTimes})
	if err != nil {
		return fmt.Errorf("starting the embedded cloud: %w", err)
	}
	if err = os.WriteFile(d.file("clouds.yaml"), d.cloud.CloudsYAML("demo"), 0o600); err != nil {
		return fmt.Errorf("writing clouds.yaml: %w", err)
	}
	made, err := d.cloud.Do(sim.Octavia, "POST", "/loadbalancers", map[string]any{"loadbalancer": map[string]any{
		"name": "billing", "vip_subnet_id": d.cloud.VIPSubnetID(), "description": "made by hand by another team",
	}})
	if err != nil {
		return fmt.Errorf("making a load balancer by hand: %w", err)
	}
	lb, ok := made["loadbalancer"].(map[string]any)
	if !ok {
		return errors.New("making a load balancer by hand: no load balancer in the answer")
	}
	d.bystander, _ = lb["id"].(string)
	d.before = d.cloud.Snapshot()
	d.cloud.ResetCalls()
	return nil
}

// install gives the API server what an administrator installs before the controller, but for its Deployment.
func (d *demo) install(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", d.crds},
		{"apply", "--server-side", "-k", "config/crd"},
		{"apply", "--server-side", "-f", "config/deployment/namespace.yaml"},
		{"apply", "--server-side", "-k", "config/rbac"},
		{"wait", "--for=condition=Established", "--timeout=20s", "crd", "--all"},
	} {
		if _, err := d.kube.kubectl(ctx, nil, args...); err != nil {
			return err
		}
	}
	token, err := d.kube.kubectl(ctx, nil, "create", "token", "openstack-gateway-controller", "-n", "gateway-api-openstack-system", "--duration=24h")
	if err != nil {
		return err
	}
	return d.kube.writeConfig(d.file("controller.kubeconfig"), token)
}

// startController runs the controller's own binary as users run it.
func (d *demo) startController(ctx context.Context) error {
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + d.file("controller.kubeconfig"), "--clouds-file=" + d.file("clouds.yaml"), "--cloud=demo", "--cluster-id=demo",
		"--health-probe-bind-address=127.0.0.1:" + ports[0], "--metrics-bind-address=127.0.0.1:" + ports[1], "--log-format=console",
	}
	d.controller, err = spawn(d.dir, "controller", d.binary, nil, args...)
	if err != nil {
		return err
	}
	d.guard(d.controller)
	return eventually(ctx, 30*time.Second, func() error { return get(ctx, "http://127.0.0.1:"+ports[0]+"/readyz") })
}

// guard ends the demo when a child ends before it is stopped.
func (d *demo) guard(p *process) {
	go func() {
		select {
		case <-p.done:
			select {
			case <-d.stopping:
			default:
				d.cancel(p.failed())
			}
		case <-d.stopping:
		}
	}()
}

func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }

// stop ends everything, in the order in which nothing complains. The controller must end by itself.
func (d *demo) stop() error {
	close(d.stopping)
	err := d.controller.stop(syscall.SIGTERM, 10*time.Second)
	d.nodes.stop()
	if d.cloud != nil {
		d.cloud.Close()
	}
	d.kube.stop()
	return err
}

// tree draws our load balancer, and returns its id; "" when there is none.
func (d *demo) tree() (*draw.Node, string) {
	state := draw.State(d.cloud.Snapshot())
	for _, id := range state.LoadBalancers() {
		if id != d.bystander {
			return state.LoadBalancer(id), id
		}
	}
	return &draw.Node{Text: "no load balancer"}, ""
}
