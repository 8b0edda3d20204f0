package inspect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// What a probe makes carries the mark of no cluster, so that no controller takes it for its own and the next probe knows it.
const (
	probeOwner      = "kubectl-octavia-probe"
	probeController = api.Domain + "/kubectl-octavia-probe"
	probeName       = "probe"
)

// cleanUpWithin bounds the deletion of what a probe made: longer than Octavia takes.
const cleanUpWithin = 10 * time.Minute

// create makes a load balancer as a Gateway would have it, and deletes it again whatever happens. The error is that of an interruption.
func (t *tool) create(ctx context.Context, c *cloud.Client, request cloud.FactsRequest, nodes []*corev1.Node, timeout time.Duration, add adder) error {
	facts, err := c.Facts(ctx, request)
	if err != nil {
		add(Failed, "a load balancer comes up", "%v", err)
		return nil //nolint:nilerr // it is a finding
	}
	snapshot, err := probeSnapshot(facts, nodes, t.now())
	if err != nil {
		return err
	}
	compiled := compile.Gateway(snapshot)
	if compiled.Hold || compiled.Tree.Empty() {
		return errors.New("the Gateway of the probe is refused: this is a mistake of kubectl-octavia")
	}
	owner := controller.OwnerOf(snapshot)
	t.progress("Making load balancer %s (up to %s). An interruption deletes it again.", compiled.Tree.Name, timeout)
	// Anything may exist from here on, also when a call seems to have failed.
	failed := t.bringUp(ctx, c, owner, &compiled.Tree, facts.KeyManager, timeout, add)

	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	t.progress("Deleting it again.")
	if err := t.takeDown(cleaning, c, owner); err != nil {
		add(Failed, "everything is deleted again", "%v; run \"kubectl octavia probe --clean-up\" until nothing is left", err)
	} else {
		add(Passed, "everything is deleted again", "")
	}
	return failed
}

// progress tells people who wait, beside the result.
func (t *tool) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Err, format+"\n", args...)
}

// bringUp goes towards want as the controller would. What goes wrong in the cloud is a finding; the error is that of an interruption.
func (t *tool) bringUp(ctx context.Context, c *cloud.Client, owner lb.Owner, want *lb.Tree, https bool, timeout time.Duration, add adder) error {
	const up, reads = "a load balancer comes up", "Octavia reads certificates in Barbican"
	started := t.now()
	certificates := https
	if !https {
		add(Unchecked, reads, "the cloud has no Barbican")
	}
	for {
		have, done, err := t.step(ctx, c, owner, want)
		switch {
		case ctx.Err() != nil:
			add(Unchecked, up, "interrupted")
			return fmt.Errorf("interrupted: %w", ctx.Err())
		case cloud.OfCertificates(err) && certificates:
			add(Failed, reads, "%v; see docs/runbook/octavia-may-not-read-certificates.md", err)
			// Without them the rest can still be seen.
			certificates = false
			want = plan.WithoutCertificates(want, &have)
			want.Secrets = nil
			continue
		case err != nil && cloud.ClassOf(err) != cloud.Wait && cloud.ClassOf(err) != cloud.Stale && cloud.ClassOf(err) != cloud.Retry:
			add(Failed, up, "%v", err)
			return nil
		case done:
			add(Passed, up, "ACTIVE after %s, with listeners, an L7 policy and a pool", t.now().Sub(started).Round(time.Second))
			if certificates {
				add(Passed, reads, "the HTTPS listener is ACTIVE")
			}
			if f := have.FloatingIP; f != nil {
				add(Passed, "a floating IP is attached", "%s", f.Address)
			}
			return nil
		case t.now().Sub(started) > timeout:
			why := fmt.Sprintf("it is %s", have.ProvisioningStatus)
			if err != nil {
				why = err.Error()
			}
			add(Failed, up, "not ready after %s: %s", timeout, why)
			return nil
		}
		if err := t.sleep(ctx, 2*time.Second); err != nil {
			add(Unchecked, up, "interrupted")
			return fmt.Errorf("interrupted: %w", err)
		}
	}
}

// step observes, plans and does what fits into a while. Done says that the cloud has what is wanted.
func (t *tool) step(ctx context.Context, c *cloud.Client, owner lb.Owner, want *lb.Tree) (have lb.Tree, done bool, err error) {
	have, err = c.ObserveFor(ctx, owner, want, nil)
	broken := cloud.ClassOf(err) == cloud.Broken
	if err != nil && (!broken || !want.Empty()) {
		return have, false, err
	}
	if have.ProvisioningStatus.Pending() {
		return have, false, nil
	}
	if err := cloud.Errored(have); err != nil && !want.Empty() {
		return have, false, err
	}
	todo := plan.New(want, &have)
	if len(todo.Steps) == 0 {
		if len(todo.Conflicts) > 0 {
			return have, false, errors.New(todo.Conflicts[0].Reason)
		}
		return have, true, nil
	}
	_, err = c.Apply(ctx, &have, todo.Steps, 20*time.Second, nil)
	return have, false, err
}

// takeDown deletes everything with the owner's mark, and returns when nothing of it is seen any more.
func (t *tool) takeDown(ctx context.Context, c *cloud.Client, owner lb.Owner) error {
	var last error
	for {
		have, done, err := t.step(ctx, c, owner, &lb.Tree{})
		if done && !cloud.Left(&have) {
			return nil
		}
		if err != nil {
			last = err
		}
		if err := t.sleep(ctx, 2*time.Second); err != nil {
			return errors.Join(fmt.Errorf("deleting %s did not end in time", owner.LoadBalancerName()), last)
		}
	}
}

func (t *tool) sleep(ctx context.Context, d time.Duration) error {
	if t.Clock != nil {
		return t.Clock.Sleep(ctx, d)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// cleanUp deletes what probes left behind.
func (t *tool) cleanUp(ctx context.Context, c *cloud.Client) error {
	survey := c.Survey(ctx)
	var uids []string
	for _, o := range survey.Objects {
		if o.Mark.Of(probeOwner, probeController) && o.Mark.Current() && !slices.Contains(uids, o.Mark.UID) {
			uids = append(uids, o.Mark.UID)
		}
	}
	for _, uid := range uids {
		owner := lb.Owner{ClusterID: probeOwner, Controller: probeController, Namespace: probeName, Name: probeName, UID: uid}
		within, cancel := context.WithTimeout(ctx, cleanUpWithin)
		err := t.takeDown(within, c, owner)
		cancel()
		if err != nil {
			return err
		}
	}
	for _, u := range survey.Unseen {
		return fmt.Errorf("deleted what was found of %s, but not everything could be seen: %w", plural(len(uids), "probe"), u.Err)
	}
	return t.print(map[string]any{"deleted": len(uids)}, func(p *printer) {
		p.words(words{{"✓", green}}.and(plain, " Deleted what was left of %s.", plural(len(uids), "probe")))
	})
}

// probeSnapshot is a Gateway with everything that is to be tried: both kinds of listeners, a host, a path, a backend on the Nodes.
func probeSnapshot(facts lb.Facts, nodes []*corev1.Node, now time.Time) (compile.Snapshot, error) {
	certificate, key, err := selfSigned(now)
	if err != nil {
		return compile.Snapshot{}, err
	}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: probeName, Name: probeName, UID: uuid.NewUUID(), Generation: 1, CreationTimestamp: metav1.NewTime(now)}
	}
	if len(nodes) == 0 {
		// No member answers there, which nobody asks for.
		nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}
	}
	gateway := &gwv1.Gateway{ObjectMeta: meta(), Spec: gwv1.GatewaySpec{GatewayClassName: probeName, Listeners: []gwv1.Listener{
		{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType},
	}}}
	if facts.KeyManager {
		gateway.Spec.Listeners = append(gateway.Spec.Listeners, gwv1.Listener{Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType,
			TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: probeName}}}})
	}
	return compile.Snapshot{
		ClusterID: probeOwner, Controller: probeController, Facts: facts, Now: now, Gateway: gateway, Nodes: nodes,
		Config: &v1alpha1.OpenStackGatewayClassConfig{},
		Secrets: []*corev1.Secret{{ObjectMeta: meta(), Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}}},
		Services: []*corev1.Service{{ObjectMeta: meta(), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30000}}}}},
		HTTPRoutes: []*gwv1.HTTPRoute{{ObjectMeta: meta(), Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: probeName}}},
			Hostnames:       []gwv1.Hostname{probeHost},
			Rules: []gwv1.HTTPRouteRule{{
				Matches:     []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchPathPrefix), Value: new("/probe")}}},
				BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{Name: probeName, Port: new(gwv1.PortNumber(80))}}}},
			}},
		}}},
	}, nil
}

const probeHost = "probe.invalid"

// selfSigned makes a certificate that nobody trusts, for a day.
func selfSigned(now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(now.Unix()), Subject: pkix.Name{CommonName: probeHost}, DNSNames: []string{probeHost},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
