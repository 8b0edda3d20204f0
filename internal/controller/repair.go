package controller

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// startsAnew says whether a load balancer that is broken is deleted and made again: only when it never served. One that served may still do
// so, and its address is known to the world: that is an operator's to mend.
func (r *GatewayReconciler) startsAnew(p *pass, want, have *lb.Tree, err error) bool {
	return cloud.ClassOf(err) == cloud.Broken && have != nil && !have.Empty() && !want.Empty() && len(have.Foreign) == 0 &&
		len(p.snapshot.Gateway.Status.Addresses) == 0 && !served(have)
}

// served says whether a load balancer was ever whole. A status without addresses proves nothing: it can be lost, or was never written
// because the process died. Octavia leaves the children of a create that failed in PENDING_CREATE and ERROR, none of them ACTIVE; and our floating IP is
// put on the port of an ACTIVE load balancer only.
func served(have *lb.Tree) bool {
	if f := have.FloatingIP; f != nil && f.PortID != "" && f.PortID == have.VIP.PortID {
		return true
	}
	was := func(s lb.ProvisioningStatus) bool { return s != lb.PendingCreate && s != lb.Errored }
	for i := range have.Listeners {
		l := &have.Listeners[i]
		if was(l.ProvisioningStatus) || slices.ContainsFunc(l.Policies, func(p lb.Policy) bool { return was(p.ProvisioningStatus) }) {
			return true
		}
	}
	return slices.ContainsFunc(have.Pools, func(p lb.Pool) bool { return was(p.ProvisioningStatus) })
}

// startAnew deletes the load balancer; the floating IP and the secrets stay for the next one, which comes after a pause that grows.
func (r *GatewayReconciler) startAnew(ctx context.Context, p *pass, have *lb.Tree, cause error) *lb.Tree {
	p.outcome = outcomeOf(cause)
	ctrl.LoggerFrom(ctx).Info("deleting a load balancer that never served", "loadBalancer", have.ID, "cause", cause.Error())
	floatingIP, secrets := have.FloatingIP, have.Secrets
	have.FloatingIP, have.Secrets = nil, nil
	_, err := r.Cloud.Apply(ctx, have, plan.Diff(&lb.Tree{}, have), r.Slice, nil)
	if err != nil {
		p.outcome = outcomeOf(err)
	}
	have.FloatingIP, have.Secrets = floatingIP, secrets
	return have
}

// tellDrift reports what somebody else changed in the cloud: in a metric by kind of object and in an Event with the first reason.
func (r *GatewayReconciler) tellDrift(p *pass, todo plan.Plan) {
	if !p.drift || len(todo.Steps) == 0 {
		return
	}
	for _, s := range todo.Steps {
		driftTotal.WithLabelValues(string(s.Kind)).Inc()
	}
	first := todo.Steps[0]
	r.Writer.Events.Warning(p.snapshot.Gateway, "Drift", "Restore", fmt.Sprintf(
		"Somebody changed the load balancer in the cloud; steps to restore it: %d, the first: %s %s %s (%s).",
		len(todo.Steps), first.Verb, first.Kind, first.Ref.Key, first.Reason))
}
