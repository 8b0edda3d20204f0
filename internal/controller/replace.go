package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// A load balancer is replaced because its Gateway asks for it (docs/adr/0005-replacing-a-load-balancer.md). How far that has come is read from the
// cloud in each pass: the new load balancer says in a tag which one it replaces, the floating IP is on the port of one of them, and the old
// one goes when the Gateway's status has what leads to the new one. Nothing else is remembered.

// pauseReplacing is between two looks at what a replacement waits for.
const pauseReplacing = 5 * time.Second

// replaceable says whether the load balancer is to be replaced, and can be. A class that became invalid gives no new load balancer.
func replaceable(p *pass, want, have *lb.Tree) bool {
	return p.status.Fault == "" && !want.Empty() && !have.Empty() && want.Replaces == have.ID && have.Old == nil && lb.SharedVIP(want, have) == ""
}

// beginReplacing makes the new load balancer, without an address of the old one.
func (r *GatewayReconciler) beginReplacing(ctx context.Context, p *pass, want, have *lb.Tree, superseded func() bool) *lb.Tree {
	successor := lb.Tree{Owner: have.Owner, ProjectID: have.ProjectID, Secrets: have.Secrets}
	made := *want
	made.FloatingIP, made.Tags = nil, append(slices.Clone(want.Tags), lb.ReplacesTag(have.ID))
	p.replacing = status.ReplacementBegins(have.ID)
	r.tellReplacing(ctx, p, "Replacing")
	progress, err := r.Cloud.Apply(ctx, &successor, building(plan.Diff(&made, &successor)), r.Slice, superseded)
	if p.outcome = pendingAfter(max(progress.RequeueAfter, time.Millisecond), atWork); err != nil {
		p.outcome = outcomeOf(err)
	}
	return have
}

// replace goes on with a replacement. have is the new load balancer, which has the old one; err says that it is broken.
func (r *GatewayReconciler) replace(ctx context.Context, p *pass, want, have *lb.Tree, err error, superseded func() bool) *lb.Tree {
	old := have.Old
	taken := !want.Empty() && r.taken(p, want, have)
	if p.status.Have = old; taken {
		p.status.Have = have
	}
	if want.Empty() || want.Replaces != old.ID && !taken {
		p.replacing = status.ReplacementGivenUp(have.ID, old.ID)
		r.deleteOne(ctx, p, have)
		return old
	}
	p.replacing = status.ReplacementBuilds(have.ID, old.ID)
	if !taken && !r.follow(ctx, p, want, have, superseded) {
		return old
	}
	if have.ProvisioningStatus.Pending() {
		p.outcome = pendingAfter(max(cloud.NextLook(*have, r.Clock.Now()), pauseWait), atWork)
		if stuck := cloud.Stuck(*have, r.Clock.Now()); stuck != nil {
			p.outcome = outcomeOf(stuck)
		}
		return old
	}
	if err = cmp.Or(err, cloud.Errored(*have)); err != nil {
		p.outcome = outcomeOf(err)
		p.outcome.Message = status.ReplacementBroken(err.Error())
		if cloud.ReasonOf(err) == cloud.ReasonStuck && !taken {
			// It never served, and the next one is made object by object.
			r.deleteOne(ctx, p, have)
		}
		return old
	}
	todo := plan.New(want, have)
	if len(todo.Conflicts) > 0 {
		p.outcome = conflict(todo.Conflicts)
		return old
	}
	if steps := building(todo.Steps); len(steps) > 0 {
		r.apply(ctx, p, have, steps, superseded)
		return old
	}
	if pool := unreached(have, old); pool != "" && !taken {
		p.replacing = status.ReplacementWaits(have.ID, old.ID, pool)
		p.outcome = pendingAfter(pauseReplacing, atWork)
		p.outcome.backoff = true
		return old
	}
	if steps := moving(todo.Steps); len(steps) > 0 && !r.apply(ctx, p, have, steps, superseded) {
		return old
	}
	p.status.Have, p.replacing = have, status.ReplacementEnds(have.ID, old.ID)
	if !published(p, have) {
		// Nobody shall look for the old one when it goes.
		p.outcome = pendingAfter(time.Second, atWork)
		return have
	}
	r.tellReplacing(ctx, p, "Replaced")
	r.deleteOne(ctx, p, old)
	return have
}

// taken says whether clients are led to the new load balancer: then there is no way back.
func (r *GatewayReconciler) taken(p *pass, want, have *lb.Tree) bool {
	if want.FloatingIP != nil {
		return have.FloatingIP != nil && have.FloatingIP.PortID == have.VIP.PortID
	}
	return published(p, have)
}

// published says whether the Gateway's status has all addresses of a load balancer.
func published(p *pass, have *lb.Tree) bool {
	in := p.status
	in.Have, in.Outcome = have, status.Outcome{}
	addresses := status.Addresses(in)
	return len(addresses) > 0 && !have.ProvisioningStatus.Pending() && !slices.ContainsFunc(addresses, func(address string) bool {
		for _, a := range p.snapshot.Gateway.Status.Addresses {
			if a.Value == address {
				return false
			}
		}
		return true
	})
}

// follow keeps the old load balancer as it shall be while it serves. Done says that nothing is left to do.
func (r *GatewayReconciler) follow(ctx context.Context, p *pass, want, have *lb.Tree, superseded func() bool) (done bool) {
	old := have.Old
	if old.ProvisioningStatus.Pending() || cloud.Errored(*old) != nil {
		return true
	}
	steps := building(plan.Diff(want, old))
	if len(steps) == 0 {
		return true
	}
	done = r.apply(ctx, p, old, steps, superseded)
	have.Secrets = old.Secrets
	return done
}

// apply takes steps; done says that all are taken.
func (r *GatewayReconciler) apply(ctx context.Context, p *pass, have *lb.Tree, steps []plan.Step, superseded func() bool) (done bool) {
	p.changed = true
	progress, err := r.Cloud.Apply(ctx, have, steps, r.Slice, superseded)
	if err != nil {
		p.outcome = outcomeOf(err)
		return false
	}
	p.outcome = pendingAfter(max(progress.RequeueAfter, time.Millisecond), atWork)
	return progress.Remaining == 0 && !progress.Pending
}

// deleteOne deletes one of the two load balancers. Floating IP and secrets are the other one's too.
func (r *GatewayReconciler) deleteOne(ctx context.Context, p *pass, which *lb.Tree) {
	p.changed = true
	alone := *which
	alone.FloatingIP, alone.Asked, alone.Spare, alone.Secrets, alone.Old = nil, nil, nil, nil, nil
	p.outcome = pendingAfter(pauseWait, atWork)
	if alone.ProvisioningStatus.Pending() {
		if stuck := cloud.Stuck(alone, r.Clock.Now()); stuck != nil {
			p.outcome = outcomeOf(stuck)
		}
		return
	}
	todo := plan.New(&lb.Tree{}, &alone)
	if _, err := r.Cloud.Apply(ctx, &alone, todo.Steps, r.Slice, nil); err != nil {
		p.outcome = outcomeOf(err)
	} else if len(todo.Conflicts) > 0 {
		p.outcome = conflict(todo.Conflicts)
	}
}

// unreached is a pool that has a member that answers behind the old load balancer and none behind the new one; "" when there is none. Octavia
// takes some seconds to tell.
func unreached(have, old *lb.Tree) string {
	answers := func(p *lb.Pool) bool { return p.OperatingStatus == "ONLINE" || p.OperatingStatus == "DEGRADED" }
	for i := range have.Pools {
		pool := &have.Pools[i]
		if before := old.PoolByKey(pool.Key); before != nil && answers(before) && !answers(pool) {
			return pool.Key
		}
	}
	return ""
}

// building are the steps that concern one load balancer alone. The two share the secrets, so what one does not need any more stays until the old one
// is gone; and they share the address.
func building(steps []plan.Step) []plan.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s plan.Step) bool {
		return s.Kind == lb.KindFloatingIP || s.Kind == lb.KindSecret && s.Verb == plan.Delete
	})
}

// moving are the steps that lead clients to the new load balancer.
func moving(steps []plan.Step) []plan.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s plan.Step) bool { return s.Kind != lb.KindFloatingIP })
}

func (r *GatewayReconciler) tellReplacing(ctx context.Context, p *pass, reason string) {
	ctrl.LoggerFrom(ctx).Info("replacing the load balancer", "stage", reason, "now", p.replacing)
	r.Writer.Events.Normal(p.snapshot.Gateway, reason, "ReplaceLoadBalancer", p.replacing)
}
