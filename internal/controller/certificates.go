package controller

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// goOnWithoutCertificates does all of a plan that needs no new certificate when the cloud refuses one, such as when Octavia may not read
// Barbican, and when Barbican does not answer: HTTP listeners go on, HTTPS listeners keep what they have. The pass ends with the cause; the next one tries again, with the secrets
// that are stored already.
func (r *GatewayReconciler) goOnWithoutCertificates(ctx context.Context, p *pass, want, have *lb.Tree, cause error) *lb.Tree {
	p.outcome = outcomeOf(cause)
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
