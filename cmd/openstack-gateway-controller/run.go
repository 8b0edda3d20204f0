package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

func run(ctx context.Context, s *settings) error {
	log, err := logger(s)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	log.Info("starting", "version", version(), "controllerName", s.controllerName, "clusterID", s.clusterID)

	config, err := restConfig(s.kubeconfig)
	if err != nil {
		return err
	}
	if s.responder == "" {
		return control(ctx, log, config, s)
	}
	return withResponder(ctx, log, config, s.responder, func(ctx context.Context) error { return control(ctx, log, config, s) })
}

// control runs the loops.
func control(ctx context.Context, log logr.Logger, config *rest.Config, s *settings) error {
	served, err := waitForKinds(ctx, log, config)
	if err != nil {
		return err
	}
	log.Info("the API server is ready", "optionalKinds", served.String())
	c, err := waitForCloud(ctx, log, s)
	if err != nil {
		return err
	}
	log.Info("the cloud is ready", "project", c.ProjectID())

	scheme, err := kube.Scheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   kube.CacheOptions(),
		Client:                  kube.ClientOptions(),
		Metrics:                 server.Options{BindAddress: s.metricsAddress},
		HealthProbeBindAddress:  s.probeAddress,
		LeaderElection:          s.leaderElect,
		LeaderElectionID:        "openstack-gateway-controller." + api.Domain,
		LeaderElectionNamespace: s.leaderElectionNS,
		// The process ends with the manager, so the lease can be given back at once.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &s.gracefulShutdownIn,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	handover := time.Duration(0)
	if s.leaderElect {
		handover = leaderHandover
	}
	err = controller.Setup(ctx, mgr, served, c, controller.Options{
		ClusterID:      s.clusterID,
		ControllerName: s.controllerName,
		Resync:         s.resync,
		Slice:          s.slice,
		Debounce:       s.debounce,
		Handover:       handover,
		Workers:        s.workers,
	})
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding a probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced")
		}
		return nil
	}); err != nil {
		return fmt.Errorf("adding a probe: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// leaderHandover is twice the duration of the lease: what the former leader sent by then has been carried out.
const leaderHandover = 30 * time.Second

func logger(s *settings) (logr.Logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level must be debug, info or error")
	}
	encoder := zap.JSONEncoder()
	if s.logFormat == "console" {
		encoder = zap.ConsoleEncoder()
	}
	return zap.New(encoder, zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel)), nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	// Statuses come in bursts: a hundred routes on one Gateway. The API server's own fairness is the limit.
	config.QPS, config.Burst = 100, 200
	return config, nil
}

// waitForKinds waits until the CRDs are there: an installation in any order works, and a missing one is said, not a crash loop.
func waitForKinds(ctx context.Context, log logr.Logger, config *rest.Config) (kube.Served, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return kube.Served{}, fmt.Errorf("asking for the served kinds: %w", err)
	}
	for {
		served, err := kube.ServedKinds(client)
		if err == nil {
			return served, nil
		}
		log.Info("waiting for the API server", "cause", err.Error())
		if err := sleep(ctx, 5*time.Second); err != nil {
			return kube.Served{}, err
		}
	}
}

// waitForCloud gets a first token. Wrong credentials may be put right while we wait: the file is read anew each time.
func waitForCloud(ctx context.Context, log logr.Logger, s *settings) (*cloud.Client, error) {
	options := cloud.Options{
		CloudsFile:  s.cloudsFile,
		Cloud:       s.cloud,
		Region:      s.region,
		QPS:         s.qps,
		Burst:       s.burst,
		InFlight:    s.inFlight,
		HTTPTimeout: s.httpTimeout,
		Metrics:     metrics.Registry,
	}
	for {
		c, err := cloud.New(ctx, options)
		if err == nil {
			return c, nil
		}
		log.Info("waiting for the cloud", "cause", err.Error())
		if err := sleep(ctx, 10*time.Second); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("stopped while waiting: %w", ctx.Err())
	case <-time.After(d):
		return nil
	}
}
