package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
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

// delayed is the reason of Events about what will be done by itself, but not soon.
const delayed = "Delayed"

// tellTrouble tells in an Event what needs somebody's help. The change of a condition tells it too, in the same words and then once; but a condition that
// stays as it is, because the Gateway goes on serving or was in trouble before it was deleted, tells nobody.
func (r *GatewayReconciler) tellTrouble(p *pass, told status.GatewayStatus) {
	o, reason := p.outcome, ""
	switch {
	case o.Kind == status.OperatorFault:
		reason = cmp.Or(o.Reason, string(gwv1.GatewayReasonNoResources))
	case o.Kind == status.Conflict || o.Kind == status.Broken:
		reason = cmp.Or(o.Reason, string(gwv1.GatewayReasonInvalid))
	case o.Kind == status.Retry && (o.stuck || !p.snapshot.Gateway.DeletionTimestamp.IsZero()):
		reason = delayed
	default:
		return
	}
	note := o.Message
	if c := meta.FindStatusCondition(told.Conditions, string(gwv1.GatewayConditionProgrammed)); c != nil && c.Status == metav1.ConditionFalse {
		note = c.Message
		if reason != delayed {
			reason = c.Reason
		}
	}
	r.Writer.Events.Warning(p.snapshot.Gateway, reason, "ReportProgrammed", note)
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
