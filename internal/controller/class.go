package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// ClassReconciler says whether a GatewayClass can be served, and keeps it while Gateways use it.
type ClassReconciler struct {
	Reader *kube.Reader
	Writer *kube.Writer
	Cloud  *cloud.Client
	// Client reads GatewayClasses from the cache.
	Client client.Reader

	memory settled
}

const (
	// recheck is how often a class is compared with its cloud.
	recheck = 5 * time.Minute
	// recheckMost is how long the pauses get while that fails: a repair in the cloud sends no event.
	recheckMost = time.Minute
)

// Reconcile makes one pass over a GatewayClass.
func (r *ClassReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := &gwv1.GatewayClass{}
	if err := r.Client.Get(ctx, req.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Reader.Selects(class) {
		return ctrl.Result{}, nil
	}
	gateways, err := r.Reader.GatewaysOfClass(ctx, class.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case len(gateways) == 0:
		if err := r.Writer.RemoveFinalizer(ctx, class, gwv1.GatewayClassFinalizerGatewaysExist); err != nil {
			return ctrl.Result{}, err
		}
	case class.DeletionTimestamp.IsZero():
		if err := r.Writer.AddFinalizer(ctx, class, gwv1.GatewayClassFinalizerGatewaysExist); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !class.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	responder, err := r.responder(ctx, class)
	if err != nil {
		return ctrl.Result{}, err
	}
	accepted, after, err := r.accepted(ctx, class, responder)
	if err != nil {
		return ctrl.Result{}, err
	}
	bundle, err := r.Reader.Bundle(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	conditions := []status.Condition{accepted, status.ClassSupportedVersion(bundle...)}
	features := status.SupportedFeatures(responder)
	if !r.Reader.Served.ListenerSets {
		features = slices.DeleteFunc(features, func(f gwv1.SupportedFeature) bool { return f.Name == "ListenerSet" })
	}
	if err := r.Writer.WriteClass(ctx, class, conditions, features); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// responder is what the class has for the answers that Octavia cannot give.
func (r *ClassReconciler) responder(ctx context.Context, class *gwv1.GatewayClass) (*status.Responder, error) {
	config, err := r.Reader.Parameters(ctx, class)
	var parameters *kube.ParametersError
	if err != nil && !errors.As(err, &parameters) {
		return nil, err
	}
	return r.Reader.Responder(ctx, config)
}

// accepted checks the parameters of a class and what they name in the cloud. The error is Kubernetes'.
func (r *ClassReconciler) accepted(ctx context.Context, class *gwv1.GatewayClass, responder *status.Responder) (status.Condition, time.Duration, error) {
	config, err := r.Reader.Parameters(ctx, class)
	var parameters *kube.ParametersError
	switch {
	case errors.As(err, &parameters):
		// The configuration is watched.
		return status.ClassInvalidParameters(parameters.Message + "."), recheck, nil
	case err != nil:
		return status.Condition{}, 0, err
	}
	if err = r.Cloud.Check(ctx); err == nil {
		_, err = r.Cloud.Facts(ctx, FactsRequest(config))
	}
	if err == nil {
		accepted := status.ClassAccepted(responder)
		if reload := r.Cloud.ReloadError(); reload != nil {
			unused := status.CredentialsNotReloaded(upperFirst(reload.Error()))
			r.Writer.Events.Warning(class, "CredentialsNotReloaded", "Reload", unused)
			accepted.Message += " " + unused
		}
		r.memory.forget(client.ObjectKeyFromObject(class))
		return accepted, recheck, nil
	}
	o := outcomeOf(err)
	after := max(min(o.delay(r.memory.failed(client.ObjectKeyFromObject(class), o)), recheckMost), o.least)
	switch {
	case cloud.ReasonOf(err) == cloud.ReasonSelector:
		return status.ClassInvalidParameters(o.Message), after, nil
	case o.Kind == status.OperatorFault || o.Kind == status.UserFault:
		return status.ClassUnsupported(o.Message), after, nil
	}
	// The cloud does not answer: what was found out about this generation still holds.
	old := meta.FindStatusCondition(class.Status.Conditions, string(gwv1.GatewayClassConditionStatusAccepted))
	if old != nil && old.Status != metav1.ConditionUnknown && old.ObservedGeneration == class.Generation {
		return status.Condition{Type: old.Type, Status: old.Status, Reason: old.Reason, Message: old.Message}, after, nil
	}
	return status.ClassPending(o.Message), after, nil
}
