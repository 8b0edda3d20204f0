package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// GatewayReconciler brings the load balancer of one Gateway to what the Gateway and everything it depends on ask for.
type GatewayReconciler struct {
	Reader *kube.Reader
	Writer *kube.Writer
	Cloud  *cloud.Client
	Clock  clock.PassiveClock
	// Resync is how often a Gateway that is as it shall be is compared with the cloud again.
	Resync time.Duration
	// Slice is how long one pass may wait for Octavia before it makes room for other Gateways.
	Slice time.Duration
	// Handover is how long after the first pass no deleted Gateway is released: what a former leader still had on the wire may be
	// carried out until then. 0: there is none.
	Handover time.Duration

	// led is when this process began to lead.
	led       sync.Once
	ledSince  time.Time
	memory    settled
	refusals  refusals
	redirects redirects
	accounts  accounts
}

// pass is one reconcile of one Gateway.
type pass struct {
	key      types.NamespacedName
	snapshot compile.Snapshot
	status   status.Input
	outcome  outcome
	// changed says that the pass had steps to take.
	changed bool
	// read is when the whole tree was last read from the cloud.
	read time.Time
	// have is what the cloud has after a step that it refused: the pass need not look again.
	have *lb.Tree
	// held are secrets that wait for the others to be taken, so that it shows which of them the cloud refuses.
	held map[string]bool
	// refused are the secrets that the cloud has just refused; unsure says that it is not all of them.
	refused []string
	unsure  bool
	why     string
	// replacing says how far the replacement of the load balancer has come.
	replacing string
	// prohibitions counts what was learned of an administrator's prohibitions in this pass.
	prohibitions int
	// drift says that what is wanted is what the cloud had: any difference now is somebody else's work.
	drift bool
}

// Reconcile makes one pass.
func (r *GatewayReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.led.Do(func() { r.ledSince = r.Clock.Now() })
	if err := r.releaseAdrift(ctx); err != nil {
		return ctrl.Result{}, err
	}
	snapshot, err := r.Reader.Snapshot(ctx, req.NamespacedName)
	var parameters *kube.ParametersError
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.release(ctx, req.NamespacedName)
	case errors.As(err, &parameters):
	case err != nil:
		return ctrl.Result{}, err
	}
	if !r.Reader.Ours(snapshot) {
		r.memory.forget(req.NamespacedName)
		r.accounts.drop(req.NamespacedName)
		return ctrl.Result{}, errors.Join(
			r.Writer.ReleaseRoutes(ctx, req.NamespacedName, snapshot.ListenerSets, snapshot.HTTPRoutes),
			r.releasePolicies(ctx, req.NamespacedName))
	}
	p := &pass{key: req.NamespacedName, snapshot: snapshot}
	p.status = status.Input{Controller: r.Reader.Controller, Gateway: snapshot.Gateway, ListenerSets: snapshot.ListenerSets}
	switch deleted := !snapshot.Gateway.DeletionTimestamp.IsZero(); {
	case !deleted && snapshot.Class == nil:
		r.hold(p)
		return ctrl.Result{}, r.Writer.ReleaseLeft(ctx, snapshot)
	case deleted || !r.Reader.Selects(snapshot.Class):
		return r.remove(ctx, p)
	}
	if parameters != nil {
		p.status.Verdicts = []status.Verdict{{
			Object:     status.Object{Kind: status.KindGateway, Namespace: p.key.Namespace, Name: p.key.Name, Generation: snapshot.Gateway.Generation},
			Conditions: []status.Condition{status.GatewayInvalidParameters(parameters.Class, parameters.Message)},
		}}
		p.outcome = outcome{Outcome: status.Outcome{Kind: status.OperatorFault, Message: parameters.Message}, after: pauseOperator, backoff: true}
		return r.finish(ctx, p)
	}
	if err := r.program(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	return r.finish(ctx, p)
}

// program compiles the Gateway and brings its load balancer there. What goes wrong in the cloud is an outcome; the error is
// Kubernetes'.
func (r *GatewayReconciler) program(ctx context.Context, p *pass) error {
	for {
		again, err := r.attempt(ctx, p)
		if err != nil || !again {
			return err
		}
	}
}

// attempt is program once. Again says that the cloud refused something, that all of the rest is to be done now, or that what was held back
// has its turn.
func (r *GatewayReconciler) attempt(ctx context.Context, p *pass) (again bool, err error) {
	facts, known := r.facts(ctx, p)
	if !known {
		return false, nil
	}
	p.snapshot.Facts, p.snapshot.Now = facts, r.Clock.Now()
	p.snapshot.Refusals = r.refusals.inForce(p.key, p.snapshot.Gateway.UID, p.held, p.snapshot.Now)
	compiled := compile.Gateway(p.snapshot)
	p.status.Compiled, p.status.Verdicts, p.status.Want = true, compiled.Verdicts, compiled.Tree
	if compiled.Hold {
		r.usesNothing(p)
		// A change of the Gateway or of what it refers to is an event; the resync is for what is not watched.
		p.outcome = outcome{Outcome: status.Outcome{Kind: status.UserFault}, after: r.Resync}
		return false, nil
	}
	want := &compiled.Tree
	id, err := digestOf(want)
	if err != nil {
		return false, err
	}
	if known, ok := r.memory.get(p.key, p.snapshot.Gateway.UID, id, r.Clock.Now()); ok && reserved(p.snapshot, compiled) {
		p.status.Have, p.outcome = &known.have, programmedUntil(known.until.Sub(r.Clock.Now()))
		return false, nil
	}
	switch err := r.reserve(ctx, p, compiled); {
	case apierrors.IsForbidden(err):
		// Only the redirects that need a port of their own are refused then.
		ctrl.LoggerFrom(ctx).Info("the ports of the responder are what they are", "cause", err.Error())
		p.snapshot.RedirectsFixed = true
		return true, nil
	case err != nil:
		return false, err
	}
	if err := r.Writer.AddFinalizer(ctx, p.snapshot.Gateway, r.finalizer()); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	p.drift = r.memory.wished(p.key, p.snapshot.Gateway.UID, id)
	have, done := r.converge(ctx, p, want, func() bool { return r.superseded(ctx, p, id) })
	if !done {
		r.memory.doubt(p.key)
		return r.refuse(p), nil
	}
	if len(p.held) > 0 {
		p.held, p.have = nil, nil
		return true, nil
	}
	resync := jitter(r.Resync, p.snapshot.Gateway.UID)
	r.refusals.settle(p.key, p.snapshot.Gateway.UID, want, r.Clock.Now())
	if wait, ok := r.refusals.next(p.key, r.Clock.Now()); ok {
		resync = min(resync, wait)
	}
	r.memory.put(p.key, settledGateway{uid: p.snapshot.Gateway.UID, want: id, until: r.Clock.Now().Add(resync), have: *have, read: p.read})
	p.outcome = programmedUntil(resync)
	r.uses(ctx, p, compiled)
	return false, nil
}

// converge takes as many steps from what the cloud has towards want as fit into the slice. Done says that nothing is left;
// otherwise the outcome of the pass says why.
func (r *GatewayReconciler) converge(ctx context.Context, p *pass, want *lb.Tree, superseded func() bool) (have *lb.Tree, done bool) {
	have, wait, err := r.observe(ctx, p, want)
	certificates := cloud.OfCertificates(err) && !want.Empty()
	if have != nil && have.Old != nil && (err == nil || cloud.ClassOf(err) == cloud.Broken) {
		return r.replace(ctx, p, want, have, err, superseded), false
	}
	if err != nil && !certificates && !r.startsAnew(p, want, have, err) {
		p.outcome = outcomeOf(err)
		return nil, false
	}
	p.status.Have = have
	if certificates {
		return r.goOnWithoutCertificates(ctx, p, want, have, err), false
	}
	if !p.snapshot.Facts.KeyManager && !want.Empty() && refersToSecrets(have) {
		p.outcome = outcomeOf(errKeyManagerGone)
		return have, false
	}
	if have.ProvisioningStatus.Pending() {
		if wait > 0 {
			p.outcome = pendingAfter(wait, atWork) // our own step
			return have, false
		}
		p.outcome = pendingAfter(max(cloud.NextLook(*have, r.Clock.Now()), pauseWait), atWork)
		if stuck := cloud.Stuck(*have, r.Clock.Now()); stuck != nil {
			p.outcome = outcomeOf(stuck)
		}
		return have, false
	}
	if err := cmp.Or(err, cloud.Errored(*have)); r.startsAnew(p, want, have, err) {
		return r.startAnew(ctx, p, have, err), false
	} else if err != nil && replaceable(p, want, have) {
		return r.beginReplacing(ctx, p, want, have, superseded), false
	}
	todo := plan.New(want, have)
	r.tellDrift(p, todo)
	p.changed = len(todo.Steps) > 0
	log := ctrl.LoggerFrom(ctx)
	for _, s := range todo.Steps {
		log.Info("planning", "step", fmt.Sprintf("%s %s %s", s.Verb, s.Kind, s.Ref.Key), "reason", s.Reason)
	}
	progress, err := r.Cloud.Apply(ctx, have, todo.Steps, r.Slice, superseded)
	refused, sure := cloud.Refused(err)
	switch {
	case len(refused) > 0 && !want.Empty() && r.newlyRefused(p, refused):
		p.have, p.refused, p.unsure, p.why, p.outcome = have, refused, !sure, cloud.MessageOf(err), outcomeOf(err)
		return have, false
	case cloud.ReasonOf(err) == cloud.ReasonProhibited && p.prohibitions < maxProhibitions:
		// The facts know it now, and compile heeds it.
		p.prohibitions++
		p.have, p.outcome = have, outcomeOf(err)
		return have, false
	case cloud.OfCertificates(err) && !want.Empty():
		return r.goOnWithoutCertificates(ctx, p, want, have, err), false
	case err != nil:
		p.outcome = outcomeOf(err)
		if cloud.ClassOf(err) == cloud.Retry {
			// Whether the last write happened is not known: what we hold may not be the truth any more.
			p.status.Have = nil
		}
		return have, false
	case progress.Remaining > 0 || progress.Pending || progress.RequeueAfter > 0:
		p.outcome = pendingAfter(max(progress.RequeueAfter, time.Millisecond), atWork)
		if !want.Empty() {
			r.memory.keep(p.key, underway{uid: p.snapshot.Gateway.UID, have: have, since: progress.Since, read: p.read})
		}
		return have, false
	case replaceable(p, want, have):
		return r.beginReplacing(ctx, p, want, have, superseded), false
	case len(todo.Conflicts) > 0:
		p.outcome = conflict(todo.Conflicts)
		return have, false
	}
	if err := cloud.Errored(*have); err != nil {
		p.outcome = outcomeOf(err)
		return have, false
	}
	return have, true
}

// observe reads what the cloud has. After a pass that ended while Octavia was at work on our own last step, it waits for that step
// within the slice instead: what the cloud has then is known. wait is the time to the next look at a PENDING load balancer.
func (r *GatewayReconciler) observe(ctx context.Context, p *pass, want *lb.Tree) (have *lb.Tree, wait time.Duration, err error) {
	if have = p.have; have != nil {
		p.have = nil
		return have, 0, nil
	}
	if known, ok := r.memory.take(p.key, p.snapshot.Gateway.UID, r.Clock.Now()); ok {
		p.read = known.read
		progress, err := r.Cloud.Resume(ctx, known.have, known.since, r.Slice)
		switch {
		case err == nil && progress.Pending:
			r.memory.keep(p.key, known)
			return known.have, progress.RequeueAfter, nil
		case err == nil:
			return known.have, 0, nil
		case cloud.ClassOf(err) != cloud.Stale && cloud.ClassOf(err) != cloud.Broken:
			return nil, 0, err
		}
		// What is not as expected, or broken, is looked at as a whole: what to do, and what people are told, depends on that.
	}
	last, read := r.memory.last(p.key, p.snapshot.Gateway.UID, r.Clock.Now())
	if last == nil {
		read = r.Clock.Now()
	}
	observed, err := r.Cloud.ObserveFor(ctx, OwnerOf(p.snapshot), want, last)
	p.read = read
	return &observed, 0, err
}

// superseded says whether the Gateway asks for something else by now than this pass works on.
func (r *GatewayReconciler) superseded(ctx context.Context, p *pass, working digest) bool {
	s, err := r.Reader.Snapshot(ctx, p.key)
	if err != nil || !r.Reader.Selects(s.Class) || !s.Gateway.DeletionTimestamp.IsZero() {
		return true
	}
	s.Facts, s.Now, s.RedirectsFixed, s.Refusals = p.snapshot.Facts, p.snapshot.Now, p.snapshot.RedirectsFixed, p.snapshot.Refusals
	latest := compile.Gateway(s)
	id, err := digestOf(&latest.Tree)
	return err != nil || id != working
}

// remove takes everything of a Gateway out of the cloud, and then releases the Gateway. The finalizer goes only after an
// observation that found nothing.
func (r *GatewayReconciler) remove(ctx context.Context, p *pass) (ctrl.Result, error) {
	// A cascade takes everything: it looks at all that there is, also what the witness of ObserveSince could miss.
	r.memory.doubt(p.key)
	// Deletion looks at what there is: it works from ERROR too.
	r.memory.take(p.key, p.snapshot.Gateway.UID, r.Clock.Now())
	if !controllerutil.ContainsFinalizer(p.snapshot.Gateway, r.finalizer()) {
		return ctrl.Result{}, r.release(ctx, p.key)
	}
	have, done := r.converge(ctx, p, &lb.Tree{}, nil)
	if !done {
		p.status.Compiled = false
		return r.finish(ctx, p)
	}
	if p.changed || !have.Empty() || have.FloatingIP != nil || len(have.Secrets) > 0 {
		// The deletion was accepted; the next look says whether all is gone.
		p.outcome = pendingAfter(pauseWait, "The load balancer is being deleted.")
		return r.finish(ctx, p)
	}
	if wait := r.Handover - r.Clock.Now().Sub(r.ledSince); wait > 0 {
		// An object that appears when its Gateway is gone would never be found again.
		p.outcome = pendingAfter(wait, "Nothing is left of the load balancer. A former leader may still have made a call, so there is another look.")
		return r.finish(ctx, p)
	}
	return ctrl.Result{}, r.release(ctx, p.key)
}

// releaseAdrift takes what we said of ListenerSets that are not ours any more off their routes.
func (r *GatewayReconciler) releaseAdrift(ctx context.Context) error {
	sets, routes, err := r.Reader.Adrift(ctx)
	if err != nil || len(sets) == 0 {
		return err
	}
	return r.Writer.ReleaseAdrift(ctx, sets, routes)
}

// release takes our marks off a Gateway that has nothing in the cloud, and off its ListenerSets, routes and policies.
func (r *GatewayReconciler) release(ctx context.Context, key types.NamespacedName) error {
	sets, routes, err := r.Reader.Attached(ctx, key)
	if err != nil {
		return err
	}
	if err := errors.Join(r.Writer.ReleaseRoutes(ctx, key, sets, routes), r.Writer.ReleaseListenerSets(ctx, sets), r.releasePolicies(ctx, key)); err != nil {
		return err
	}
	r.memory.forget(key)
	r.refusals.forget(key)
	r.accounts.drop(key)
	r.disuse(key)
	snapshot, err := r.Reader.Snapshot(ctx, key)
	var parameters *kube.ParametersError
	if err != nil && !errors.As(err, &parameters) {
		return client.IgnoreNotFound(err)
	}
	if snapshot.Gateway.DeletionTimestamp.IsZero() {
		if err := r.Writer.ReleaseGateway(ctx, snapshot.Gateway); err != nil {
			return err
		}
	}
	return r.Writer.RemoveFinalizer(ctx, snapshot.Gateway, r.finalizer())
}

// hold leaves a Gateway whose class does not exist as it is, status included. The finalizer of the class keeps it while Gateways use it, so somebody
// has forced it away, is about to replace it, or has misspelt it: none of that says that the traffic shall end.
func (r *GatewayReconciler) hold(p *pass) {
	r.Writer.Events.Warning(p.snapshot.Gateway, "ClassNotFound", "Hold", fmt.Sprintf("GatewayClass %s does not exist, so the load balancer stays as it is: "+
		"create the class again, name another one, or delete the Gateway.", p.snapshot.Gateway.Spec.GatewayClassName))
}

// releasePolicies takes the entries for a Gateway off all policies.
func (r *GatewayReconciler) releasePolicies(ctx context.Context, key types.NamespacedName) error {
	policies, err := r.Reader.Policies(ctx, key, nil)
	if err != nil {
		return err
	}
	return r.Writer.ReleasePolicies(ctx, key, policies)
}

// finish writes the statuses of a pass and sets the time of the next.
func (r *GatewayReconciler) finish(ctx context.Context, p *pass) (ctrl.Result, error) {
	p.status.Outcome = p.outcome.Outcome
	if p.status.Have != nil {
		for _, k := range plan.KeptBy(&p.status.Want, p.status.Have) {
			p.status.Kept = append(p.status.Kept, status.Keeps(k.What, k.Have, k.Want))
		}
		p.status.Replacement = cmp.Or(p.replacing, status.Replacement(&p.status.Want, p.status.Have, len(p.status.Kept)))
	}
	statuses := status.For(p.status)
	if err := r.Writer.Write(ctx, p.snapshot, statuses); err != nil {
		return ctrl.Result{}, err
	}
	r.accounts.enter(p.key, p.outcome.Kind, p.compiled(), r.Clock.Now())
	r.tellTrouble(p, statuses.Gateway)
	after := p.outcome.delay(r.memory.failed(p.key, p.outcome))
	switch p.outcome.Kind {
	case status.Programmed, status.Pending:
	default:
		ctrl.LoggerFrom(ctx).Info("pass ended early", "outcome", p.outcome.Kind, "reason", p.outcome.Message, "next", after.String())
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// compiled is the tree that the pass wanted; nil when it came to none.
func (p *pass) compiled() *lb.Tree {
	if !p.status.Compiled {
		return nil
	}
	return &p.status.Want
}

// finalizer is ours: installations with other controller names have another.
func (r *GatewayReconciler) finalizer() string { return api.FinalizerFor(r.Reader.Controller) }

// atWork is what people read while nothing is wrong.
const atWork = "Octavia is at work on the load balancer."

func programmedUntil(after time.Duration) outcome {
	return outcome{Outcome: status.Outcome{Kind: status.Programmed}, after: max(after, time.Second)}
}

func pendingAfter(after time.Duration, message string) outcome {
	return outcome{Outcome: status.Outcome{Kind: status.Pending, Message: message}, after: after}
}

// OwnerOf is whose what is made for a Gateway is.
func OwnerOf(s compile.Snapshot) lb.Owner {
	return lb.Owner{
		ClusterID:  s.ClusterID,
		Controller: s.Controller,
		Namespace:  s.Gateway.Namespace,
		Name:       s.Gateway.Name,
		UID:        string(s.Gateway.UID),
	}
}
