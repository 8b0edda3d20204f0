package controller

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// refersToSecrets says whether Octavia needs Barbican for changes of a load balancer. Without it such a change leaves the load balancer
// PENDING_UPDATE for good (seen with Octavia 16.0.0 and members), or takes the HTTPS listener out of HAProxy's configuration.
func refersToSecrets(have *lb.Tree) bool {
	for i := range have.Listeners {
		if len(have.Listeners[i].TLS.Secrets()) > 0 {
			return true
		}
	}
	for i := range have.Pools {
		if len(have.Pools[i].TLS.Secrets()) > 0 {
			return true
		}
	}
	return false
}

// errKeyManagerGone is for a load balancer whose certificates are in a key manager that the catalog does not have any more, which may be a
// mistake: what serves is left alone.
var errKeyManagerGone = &cloud.Error{Class: cloud.OperatorFault, Reason: cloud.ReasonUnsupported, Op: "use", Resource: "Barbican",
	Message: "the service catalog has no key manager any more, and the load balancer has certificates from it. Nothing is changed until it is listed again"}

// goOnWithoutCertificates does all of a plan that needs no new certificate when the cloud refuses one, such as when Octavia may not read
// Barbican, and when Barbican does not answer: HTTP listeners go on, HTTPS listeners keep what they have. A load balancer that has certificates is left
// alone while Barbican does not answer. The pass ends with the cause; the next one tries again, with the secrets that are stored already.
func (r *GatewayReconciler) goOnWithoutCertificates(ctx context.Context, p *pass, want, have *lb.Tree, cause error) *lb.Tree {
	p.outcome = outcomeOf(cause)
	if cloud.ClassOf(cause) == cloud.Retry && refersToSecrets(have) {
		p.outcome.Message += " Nothing is changed until then: Octavia reads the certificates of a load balancer again with each of its changes."
		return have
	}
	rest := plan.New(plan.WithoutCertificates(want, have), have)
	if len(rest.Steps) == 0 {
		return have
	}
	ctrl.LoggerFrom(ctx).Info("going on without certificates", "cause", cause.Error(), "steps", len(rest.Steps))
	progress, err := r.Cloud.Apply(ctx, have, rest.Steps, r.Slice, nil)
	switch {
	case err != nil:
		p.outcome = outcomeOf(err)
		if cloud.ClassOf(err) == cloud.Retry {
			p.status.Have = nil
		}
	case progress.Remaining > 0 || progress.Pending || progress.RequeueAfter > 0:
		p.outcome = pendingAfter(max(progress.RequeueAfter, time.Millisecond), atWork)
	}
	return have
}
