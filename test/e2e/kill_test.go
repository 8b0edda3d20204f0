//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// While Gateways and routes change, processes die at random moments: the controller, the Octavia worker, the API server, the message bus, the
// Octavia API. Each time the same is true in the end: the cloud is as wanted, nothing is there twice or without an owner, statuses say so, and requests are
// answered. GATEWAY_API_OPENSTACK_E2E_KILLS is the number of rounds (2, in which each of them dies once), _SEED what they draw.
func TestKill_convergesWhateverDies(t *testing.T) {
	g := newGround(t)
	g.steady()
	rounds, start := number(t, "KILLS", 2), seed(t)
	const namespace = "e2e-kill"
	g.site(namespace)
	c := g.cloudClient()
	facts := g.facts(c)
	d := newDice(start, 11)
	k := &killer{ground: g, dice: d}
	k.operator = openCloud(g, os.Getenv("OS_CLIENT_CONFIG_FILE"), "stack-admin")

	kept := gateway(namespace, "kept", listener("http", 80, ""))
	kept.Spec.GatewayClassName = steadyClass
	r := route(namespace, "kept", kept, nil, rule(nil, backend("a0", 1)))
	g.apply(r)
	g.apply(kept)
	g.programmed(kept)

	var short *gwv1.Gateway
	for i := range rounds {
		began := time.Now()
		victims := [][]string{{"controller", "octavia-worker"}, {"kube-apiserver", "rabbitmq", "octavia-api"}}[i%2]
		if i >= 2 {
			victims = []string{pick(d, allVictims), pick(d, allVictims)}
		}
		died := make(chan string, 1)
		go func() { died <- k.kill(victims) }()

		// Meanwhile: a route changes twice, and a Gateway comes or goes.
		gone := short
		if gone != nil {
			k.insist("deleting a Gateway", func() error { return client.IgnoreNotFound(g.kube.Delete(t.Context(), gone)) })
			short = nil
		} else {
			short = gateway(namespace, fmt.Sprintf("short-%d", i), listener("http", 80, ""))
			made := short
			k.insist("creating a route", func() error {
				return client.IgnoreAlreadyExists(g.kube.Create(t.Context(), route(namespace, made.Name, made, nil, rule(nil, backend("a1", 1)))))
			})
			k.insist("creating a Gateway", func() error { return client.IgnoreAlreadyExists(g.kube.Create(t.Context(), made)) })
		}
		var path, to string
		for range 2 {
			path, to = fmt.Sprintf("/p%d", d.IntN(1000)), pick(d, []string{"a1", "a2"})
			k.insist("changing a route", func() error {
				if err := g.kube.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
					return err
				}
				r.Spec.Rules = []gwv1.HTTPRouteRule{rule([]gwv1.HTTPRouteMatch{pathMatch(path)}, backend(to, 1)), rule(nil, backend("a0", 1))}
				return g.kube.Update(t.Context(), r)
			})
			time.Sleep(time.Duration(d.IntN(4000)) * time.Millisecond)
		}
		t.Logf("round %d: %s", i+1, <-died)

		k.untilAsWanted(c, func() *world { return g.world(facts, namespace) }, kept)
		g.expect(g.inside, "http://"+g.vip(kept)+path, "any.test", to)
		g.expect(g.inside, "http://"+g.vip(kept)+"/other", "any.test", "a0")
		living := []*gwv1.Gateway{kept}
		if short != nil {
			k.untilProgrammed(short)
			g.expect(g.outside, "http://"+g.programmed(short)+"/", "any.test", "a1")
			living = append(living, short)
		}
		if gone != nil {
			k.untilGone(gone)
		}
		k.oneOfEach(living)
		t.Logf("round %d: all is as wanted %v after it began", i+1, time.Since(began).Round(time.Second))
	}
	if short != nil {
		g.must(client.IgnoreNotFound(g.kube.Delete(t.Context(), short)))
	}
	g.delete(kept)
	if short != nil {
		k.untilGone(short)
	}
	g.nothingLeft()
}

func pathMatch(value string) gwv1.HTTPRouteMatch { return path(gwv1.PathMatchPathPrefix, value) }

var allVictims = []string{"controller", "octavia-worker", "octavia-api", "rabbitmq", "kube-apiserver"}

// killer ends processes, and does what the operator of a cloud does afterwards.
type killer struct {
	*ground
	dice
	operator cloudClients
	// looked is the state of each load balancer of ours that is PENDING, and since when nothing has changed below it.
	looked map[string]pending
}

type pending struct {
	text  string
	since time.Time
}

// kill ends processes with SIGKILL, each at a random moment, and starts those again that nobody else starts. It says what it did.
func (k *killer) kill(victims []string) string {
	var said []string
	for _, v := range victims {
		wait, down := time.Duration(500+k.IntN(6000))*time.Millisecond, time.Duration(k.IntN(3000))*time.Millisecond
		time.Sleep(wait)
		var err error
		switch v {
		case "controller":
			err = k.killController()
		case "kube-apiserver":
			err = run("bash", "-c", `. ../stack/kubernetes/env.sh; kill -KILL "$(pid_of kube-apiserver)"`)
			time.Sleep(down)
			if err == nil {
				err = run("../stack/kubernetes/up.sh")
			}
		default:
			err = run("../stack/openstack/enter.sh", "service", "kill", v)
			time.Sleep(down)
			if err == nil {
				err = run("../stack/openstack/enter.sh", "service", "start", v)
			}
		}
		if err != nil {
			k.Errorf("killing %s: %v", v, err)
		}
		said = append(said, fmt.Sprintf("%s died after %v", v, wait))
	}
	return strings.Join(said, ", then ")
}

func run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if !strings.HasPrefix(name, "bash") {
		full, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		name = full
	}
	command := exec.CommandContext(ctx, name, args...)
	// Not a pipe: what is started goes on, and would hold it.
	log, err := os.CreateTemp("", "kill")
	if err != nil {
		return err
	}
	defer func() { _, _ = log.Close(), os.Remove(log.Name()) }()
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		out.Write(text)
		return fmt.Errorf("%s %v: %w: %s", name, args, err, strings.TrimSpace(out.String()))
	}
	return nil
}

func (k *killer) killController() error {
	pods := &corev1.PodList{}
	if err := k.kube.List(k.Context(), pods, client.InNamespace(controllerNamespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := client.IgnoreNotFound(k.kube.Delete(k.Context(), &pods.Items[i], client.GracePeriodSeconds(0))); err != nil {
			return err
		}
	}
	return nil
}

// insist does something in Kubernetes though its API server may be down.
func (k *killer) insist(what string, do func() error) {
	k.Helper()
	k.eventually(2*time.Minute, what, do)
}

// untilAsWanted waits until the load balancer of a Gateway is what its routes ask for and the status says so. What a dead worker has left behind is
// repaired meanwhile.
func (k *killer) untilAsWanted(c *cloud.Client, now func() *world, gw *gwv1.Gateway) {
	k.Helper()
	k.eventually(6*time.Minute, "the cloud is as wanted", func() error {
		k.repair()
		if err := k.kube.Get(k.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != gw.Generation {
			return fmt.Errorf("its status: %+v", condition)
		}
		w := now()
		want := w.compile(gw, w.HTTPRoutes).Tree
		have, err := c.Observe(k.Context(), want.Owner)
		if err != nil {
			return err
		}
		if left := plan.New(&want, &have); !left.Empty() || have.ProvisioningStatus != "ACTIVE" {
			return fmt.Errorf("the load balancer is %s, %d steps are left, the first: %+v", have.ProvisioningStatus, len(left.Steps), left.Steps[:min(1, len(left.Steps))])
		}
		return nil
	})
}

// untilProgrammed waits for a Gateway of another class than the one that world knows.
func (k *killer) untilProgrammed(gw *gwv1.Gateway) {
	k.Helper()
	k.eventually(6*time.Minute, fmt.Sprintf("Gateway %s is programmed", gw.Name), func() error {
		k.repair()
		if err := k.kube.Get(k.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed)); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("its status: %+v", c)
		}
		return nil
	})
}

func (k *killer) untilGone(gw *gwv1.Gateway) {
	k.Helper()
	k.eventually(5*time.Minute, fmt.Sprintf("Gateway %s is gone", gw.Name), func() error {
		k.repair()
		err := k.kube.Get(k.Context(), client.ObjectKeyFromObject(gw), gw)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			condition := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
			return fmt.Errorf("it is there: %+v", condition)
		}
		return nil
	})
}

// idle is how long nothing changes below a load balancer that is PENDING, and the worker says nothing, until the operator takes it as abandoned.
const idle = 40 * time.Second

// repair is what the operator of a cloud does about load balancers that a dead worker left PENDING for ever: Octavia has no call for it. What was being
// deleted or created is set to ERROR, what was being changed to ACTIVE, and a failover then brings the amphora in line.
func (k *killer) repair() {
	pages, err := loadbalancers.List(k.cloud.octavia, loadbalancers.ListOpts{}).AllPages(k.Context())
	if err != nil {
		return
	}
	all, err := loadbalancers.ExtractLoadBalancers(pages)
	if err != nil {
		return
	}
	seen := map[string]pending{}
	for _, l := range all {
		if !strings.HasPrefix(l.ProvisioningStatus, "PENDING_") || !slices.Contains(l.Tags, "role=loadbalancer") {
			continue
		}
		text, err := everythingOf(k.Context(), k.cloud.octavia, l.ID)
		if err != nil {
			return
		}
		if worker, err := os.Stat(filepath.Join(filepath.Dir(os.Getenv("OS_CLIENT_CONFIG_FILE")), "log", "octavia-worker.log")); err == nil {
			text += fmt.Sprint(worker.Size())
		}
		p := k.looked[l.ID]
		if p.text != text {
			p = pending{text, time.Now()}
		}
		seen[l.ID] = p
		if time.Since(p.since) < idle {
			continue
		}
		k.Logf("the operator repairs load balancer %s, which nobody works on: it is %s", l.Name, l.ProvisioningStatus)
		status := map[string]string{"PENDING_UPDATE": "ACTIVE"}[l.ProvisioningStatus]
		if status == "" {
			status = "ERROR"
		}
		sql := fmt.Sprintf("UPDATE load_balancer SET provisioning_status='%s' WHERE id='%s';", status, l.ID)
		if status == "ACTIVE" {
			for _, child := range []string{
				"listener WHERE load_balancer_id='%s'", "pool WHERE load_balancer_id='%s'",
				"health_monitor WHERE pool_id IN (SELECT id FROM pool WHERE load_balancer_id='%s')", "member WHERE pool_id IN (SELECT id FROM pool WHERE load_balancer_id='%s')",
				"l7policy WHERE listener_id IN (SELECT id FROM listener WHERE load_balancer_id='%s')",
				"l7rule WHERE l7policy_id IN (SELECT p.id FROM l7policy p JOIN listener l ON p.listener_id=l.id WHERE l.load_balancer_id='%s')",
			} {
				table, where, _ := strings.Cut(fmt.Sprintf(child, l.ID), " ")
				sql += fmt.Sprintf(" UPDATE %s SET provisioning_status='ACTIVE' %s AND provisioning_status LIKE 'PENDING%%';", table, where)
			}
		}
		if err := run("../stack/openstack/enter.sh", "mariadb", "octavia", "-e", sql); err != nil {
			k.Error(err)
			return
		}
		delete(seen, l.ID)
		if status == "ACTIVE" {
			if err := loadbalancers.Failover(k.Context(), k.operator.octavia, l.ID).ExtractErr(); err != nil {
				k.Logf("failing over: %v", err)
			}
		}
	}
	k.looked = seen
}

// oneOfEach says that each living Gateway has one load balancer, that no other carries our mark, and that there is one floating IP for each that
// wants one.
func (k *killer) oneOfEach(living []*gwv1.Gateway) {
	k.Helper()
	k.eventually(time.Minute, "there is one load balancer for each Gateway", func() error {
		owners := map[string]int{}
		floating := 0
		for _, gw := range living {
			owners[string(gw.UID)] = 0
			if gw.Spec.GatewayClassName == className {
				floating++
			}
		}
		pages, err := loadbalancers.List(k.cloud.octavia, loadbalancers.ListOpts{}).AllPages(k.Context())
		if err != nil {
			return err
		}
		all, err := loadbalancers.ExtractLoadBalancers(pages)
		if err != nil {
			return err
		}
		for _, l := range all {
			for _, tag := range l.Tags {
				if uid, ok := strings.CutPrefix(tag, "gateway-api-openstack.dev/1="+clusterID+"/"); ok {
					owners[uid]++
				}
			}
		}
		for uid, n := range owners {
			if n != 1 {
				return fmt.Errorf("Gateway %s has %d load balancers", uid, n)
			}
		}
		if len(owners) != len(living) {
			return fmt.Errorf("%d load balancers for %d Gateways", len(owners), len(living))
		}
		for _, o := range k.ours() {
			if strings.HasPrefix(o, "floatingips ") {
				floating--
			}
		}
		if floating != 0 {
			return fmt.Errorf("floating IPs: %d too few", floating)
		}
		return nil
	})
}
