package main

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/responder"
)

// farewell is how long the responder answers on after everything else has ended: Nodes learn with a delay that a Pod goes.
const farewell = 5 * time.Second

// withResponder serves the fallback responder while do runs, whoever holds the lease. Neither waits for the other: requests are answered
// also while the cloud cannot be asked.
func withResponder(ctx context.Context, log logr.Logger, config *rest.Config, service string, do func(context.Context) error) error {
	namespace, name, _ := strings.Cut(service, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	// The signal ends do; the responder ends after it.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	server := &responder.Server{}
	served := make(chan error, 1)
	go func() {
		err := server.Run(serving)
		if err != nil {
			fail(err)
		}
		served <- err
	}()
	go func() {
		for serving.Err() == nil {
			if err := kube.WatchRedirects(serving, config, key, server.Learn); err != nil {
				log.Info("waiting for the redirects of the responder", "service", service, "cause", err.Error())
			}
			_ = sleep(serving, 5*time.Second)
		}
	}()
	log.Info("serving the responder", "service", service)
	err := do(ctx)
	if ctx.Err() != nil && err == nil {
		_ = sleep(serving, farewell)
	}
	stop()
	if broken := <-served; broken != nil {
		return broken
	}
	return err
}
