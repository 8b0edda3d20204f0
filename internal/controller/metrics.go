package controller

import (
	"crypto/x509"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// All label values are from closed sets: no series grows with the number of Gateways.
var (
	driftTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_api_openstack_drift_total",
		Help: "Changes that others made to our objects in the cloud and that were undone, by kind of object.",
	}, []string{"kind"})

	passesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_api_openstack_passes_total",
		Help: "Passes over a Gateway, by how they ended.",
	}, []string{"outcome"})

	timeToProgrammed = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "gateway_api_openstack_time_to_programmed_seconds",
		Help:    "From the first pass that found a Gateway not as it shall be to the pass that found it so.",
		Buckets: []float64{1, 2, 5, 10, 20, 40, 60, 90, 120, 180, 300, 600, 1800, 3600},
	})

	gatewaysDesc = prometheus.NewDesc("gateway_api_openstack_gateways",
		"Gateways of this controller, by how their last pass ended.", []string{"outcome"}, nil)
	unprogrammedDesc = prometheus.NewDesc("gateway_api_openstack_unprogrammed_seconds",
		"How long the Gateway that waits longest has not been as it shall be; 0 when all are.", nil, nil)
	resourcesDesc = prometheus.NewDesc("gateway_api_openstack_resources",
		"Objects that the Gateways want in the cloud, by kind: what they take of the project's quota.", []string{"kind"}, nil)
	certificatesDesc = prometheus.NewDesc("gateway_api_openstack_certificates",
		"Certificates that Gateways serve, by the time that is left until they expire.", []string{"expires"}, nil)
)

func init() { metrics.Registry.MustRegister(driftTotal, passesTotal, timeToProgrammed) }

// accounts holds how each Gateway is, for the gauges. Its zero value is usable.
type accounts struct {
	mu sync.Mutex
	of map[types.NamespacedName]account
}

type account struct {
	outcome status.OutcomeKind
	// since is when the Gateway was first found not to be as it shall be; zero when it is.
	since     time.Time
	resources map[lb.Kind]int
	expiries  []time.Time
}

// enter writes down how a pass over a Gateway has ended. want is nil when nothing was compiled.
func (a *accounts) enter(key types.NamespacedName, outcome status.OutcomeKind, want *lb.Tree, now time.Time) {
	passesTotal.WithLabelValues(string(outcome)).Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of[key]
	entry.outcome = outcome
	if want != nil {
		entry.resources, entry.expiries = sizeOf(want), expiriesOf(want)
	}
	switch {
	case outcome != status.Programmed && entry.since.IsZero():
		entry.since = now
	case outcome == status.Programmed && !entry.since.IsZero():
		timeToProgrammed.Observe(now.Sub(entry.since).Seconds())
		entry.since = time.Time{}
	}
	if a.of == nil {
		a.of = map[types.NamespacedName]account{}
	}
	a.of[key] = entry
}

// drop forgets a Gateway that is gone.
func (a *accounts) drop(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, key)
}

// gauges tells the accounts when somebody asks, so that a pass costs nothing for it.
type gauges struct {
	accounts *accounts
	clock    clock.PassiveClock
}

// registerGauges makes the accounts known. A second controller in one process, as tests have it, goes without.
func registerGauges(a *accounts, c clock.PassiveClock) error {
	err := metrics.Registry.Register(gauges{a, c})
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		return nil
	}
	return err
}

// Describe is of prometheus.Collector.
func (gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{gatewaysDesc, unprogrammedDesc, resourcesDesc, certificatesDesc} {
		to <- d
	}
}

// Collect is of prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	byOutcome, byKind, byExpiry := map[status.OutcomeKind]int{}, map[lb.Kind]int{}, map[string]int{}
	now := g.clock.Now()
	longest := time.Duration(0)
	g.accounts.mu.Lock()
	for _, entry := range g.accounts.of {
		byOutcome[entry.outcome]++
		if !entry.since.IsZero() {
			longest = max(longest, now.Sub(entry.since))
		}
		for kind, n := range entry.resources {
			byKind[kind] += n
		}
		for _, at := range entry.expiries {
			byExpiry[remaining(at.Sub(now))]++
		}
	}
	g.accounts.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, kind := range []status.OutcomeKind{
		status.Programmed, status.Pending, status.Retry, status.UserFault, status.OperatorFault, status.Conflict, status.Broken,
	} {
		gauge(gatewaysDesc, float64(byOutcome[kind]), string(kind))
	}
	gauge(unprogrammedDesc, longest.Seconds())
	for _, kind := range []lb.Kind{
		lb.KindLoadBalancer, lb.KindListener, lb.KindPolicy, lb.KindRule, lb.KindPool, lb.KindMember, lb.KindMonitor, lb.KindFloatingIP, lb.KindSecret,
	} {
		gauge(resourcesDesc, float64(byKind[kind]), string(kind))
	}
	for _, label := range []string{"expired", "7d", "30d", "later"} {
		gauge(certificatesDesc, float64(byExpiry[label]), label)
	}
}

// sizeOf counts the objects of a tree as quotas do.
func sizeOf(want *lb.Tree) map[lb.Kind]int {
	if want.Empty() {
		return nil
	}
	n := map[lb.Kind]int{
		lb.KindLoadBalancer: 1, lb.KindListener: len(want.Listeners), lb.KindPool: len(want.Pools), lb.KindSecret: len(want.Secrets),
	}
	if want.FloatingIP != nil {
		n[lb.KindFloatingIP] = 1
	}
	for _, l := range want.Listeners {
		n[lb.KindPolicy] += len(l.Policies)
		for _, p := range l.Policies {
			n[lb.KindRule] += len(p.Rules)
		}
	}
	for _, p := range want.Pools {
		n[lb.KindMember] += len(p.Members)
		if p.Monitor != nil {
			n[lb.KindMonitor]++
		}
	}
	return n
}

func expiriesOf(want *lb.Tree) []time.Time {
	var all []time.Time
	for _, s := range want.Secrets {
		if s.Certificate == nil {
			continue
		}
		if leaf, err := x509.ParseCertificate(s.Certificate.Leaf); err == nil {
			all = append(all, leaf.NotAfter)
		}
	}
	return all
}

// remaining is the label for the time that a certificate has left.
func remaining(left time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case left <= 0:
		return "expired"
	case left <= 7*day:
		return "7d"
	case left <= 30*day:
		return "30d"
	}
	return "later"
}
