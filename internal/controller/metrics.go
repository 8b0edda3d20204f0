package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// driftTotal has label values from the closed set of lb.Kind only.
var driftTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "gateway_api_openstack_drift_total",
	Help: "Changes that others made to our objects in the cloud and that were undone, by kind of object.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(driftTotal) }
