package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// Options are the settings of the loops. Zero values mean the defaults that are named here.
type Options struct {
	// ClusterID tells clusters that share a project apart. Required.
	ClusterID string
	// ControllerName is the spec.controllerName of the GatewayClasses to serve. Required.
	ControllerName string
	// Resync is how often a Gateway is compared with the cloud without a cause (10m).
	Resync time.Duration
	// Slice is how long one pass may wait for Octavia (20s).
	Slice time.Duration
	// Debounce is how long events of Nodes and EndpointSlices are gathered into one pass (0: not at all).
	Debounce time.Duration
	// Handover is how long a new leader takes calls of its predecessor for possible (0: there is none).
	Handover time.Duration
	// Workers is how many Gateways are worked on at once (8).
	Workers int
	// Clock is nil for the real one.
	Clock clock.PassiveClock
}

// Setup adds both loops to a manager that was made with kube.CacheOptions and kube.ClientOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, served kube.Served, c *cloud.Client, o Options) error {
	if err := kube.SetupIndexes(ctx, mgr.GetFieldIndexer(), o.ControllerName, served); err != nil {
		return err
	}
	if o.Resync <= 0 {
		o.Resync = 10 * time.Minute
	}
	if o.Slice <= 0 {
		o.Slice = 20 * time.Second
	}
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	reader := &kube.Reader{
		Client:     mgr.GetClient(),
		Live:       mgr.GetAPIReader(),
		Controller: o.ControllerName,
		ClusterID:  o.ClusterID,
		Served:     served,
		Debounce:   o.Debounce,
	}
	writer := &kube.Writer{
		Client:     mgr.GetClient(),
		Live:       mgr.GetAPIReader(),
		Controller: o.ControllerName,
		Events:     kube.NewEvents(mgr.GetEventRecorder("gateway-api-openstack")),
		Now:        o.Clock.Now,
	}
	gateways := &GatewayReconciler{Reader: reader, Writer: writer, Cloud: c, Clock: o.Clock, Resync: o.Resync, Slice: o.Slice, Handover: o.Handover}
	if err := registerGauges(&gateways.accounts, o.Clock); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	err := reader.Watches(ctrl.NewControllerManagedBy(mgr).Named("gateway")).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
		Complete(gateways)
	if err != nil {
		return fmt.Errorf("setting up the Gateway loop: %w", err)
	}
	classes := &ClassReconciler{Reader: reader, Writer: writer, Cloud: c, Client: mgr.GetClient()}
	if err := reader.ClassWatches(ctrl.NewControllerManagedBy(mgr).Named("gatewayclass")).Complete(classes); err != nil {
		return fmt.Errorf("setting up the GatewayClass loop: %w", err)
	}
	return nil
}
