package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Clock is the time that polling, pacing and caches go by.
type Clock interface {
	Now() time.Time
	// Sleep returns when d has passed, or with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// service is an OpenStack service type.
type service string

const (
	keystone service = "identity"
	octavia  service = "load-balancer"
	neutron  service = "network"
	barbican service = "key-manager"
)

func (s service) title() string {
	switch s {
	case keystone:
		return "Keystone"
	case octavia:
		return "Octavia"
	case neutron:
		return "Neutron"
	case barbican:
		return "Barbican"
	}
	return string(s)
}

// roles are what the default policies of a service ask for.
func (s service) roles() string {
	switch s {
	case octavia:
		return "the roles load-balancer_member and member"
	case barbican:
		return "the role creator"
	}
	return "the role member"
}

// callInfo travels in the request's context for the transport.
type callInfo struct {
	service   service
	operation string
}

type callInfoKey struct{}

func withCallInfo(ctx context.Context, svc service, operation string) context.Context {
	return context.WithValue(ctx, callInfoKey{}, callInfo{svc, operation})
}

// budget is the process-wide allowance for requests. It is shared by all sessions, so that a reload of the credentials
// does not reset it.
type budget struct {
	clock   Clock
	timeout time.Duration
	limiter *rate.Limiter // nil is unlimited
	slots   chan struct{} // nil is unlimited
	metrics *metrics

	mu sync.Mutex
	// paused is what 429 and 503 with Retry-After asked for.
	paused map[service]pause
}

type pause struct {
	until  time.Time
	status int
}

func newBudget(o Options) *budget {
	b := &budget{clock: o.Clock, timeout: o.HTTPTimeout, metrics: newMetrics(o.Metrics), paused: map[service]pause{}}
	if o.QPS > 0 {
		b.limiter = rate.NewLimiter(rate.Limit(o.QPS), max(o.Burst, 1))
	}
	if o.InFlight > 0 {
		b.slots = make(chan struct{}, o.InFlight)
	}
	return b
}

// transport sends requests within the budget and measures them. It is below gophercloud, so token requests pass it too.
type transport struct {
	base http.RoundTripper
	*budget
}

// CloseIdleConnections is what http.Client looks for below itself.
func (t *transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	info, ok := req.Context().Value(callInfoKey{}).(callInfo)
	if !ok {
		info = callInfo{keystone, "other"}
	}
	asked := t.clock.Now()
	release, err := t.acquire(req.Context(), info.service)
	t.metrics.waited.WithLabelValues(string(info.service)).Observe(t.clock.Now().Sub(asked).Seconds())
	if err != nil {
		return nil, err
	}
	// The timeout starts here and not in http.Client, where the wait for the budget would count.
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	started := t.clock.Now()
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	t.metrics.observe(info, outcomeOf(resp, err), t.clock.Now().Sub(started))
	if err != nil {
		cancel()
		release()
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		t.pause(info.service, resp.StatusCode, retryAfter(resp.Header, t.clock.Now()))
	}
	resp.Body = &body{ReadCloser: resp.Body, done: sync.OnceFunc(func() { cancel(); release() })}
	return resp, nil
}

// body gives the slot back when the answer has been read.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

func (b *budget) acquire(ctx context.Context, svc service) (release func(), err error) {
	if wait, status := b.pauseLeft(svc); wait > 0 {
		// No worker is held for a pause: the caller requeues.
		return nil, &pausedError{wait, status}
	}
	if b.limiter != nil {
		now := b.clock.Now()
		r := b.limiter.ReserveN(now, 1)
		if err := b.clock.Sleep(ctx, r.DelayFrom(now)); err != nil {
			r.CancelAt(b.clock.Now())
			return nil, err
		}
	}
	if b.slots == nil {
		return func() {}, nil
	}
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *budget) pause(svc service, status int, d time.Duration) {
	if d <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.clock.Now().Add(d); until.After(b.paused[svc].until) {
		b.paused[svc] = pause{until, status}
	}
}

func (b *budget) pauseLeft(svc service) (left time.Duration, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.paused[svc]
	return p.until.Sub(b.clock.Now()), p.status
}

// metrics has label values from closed sets only.
type metrics struct {
	requests, waited, locks *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		requests: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gateway_api_openstack_cloud_request_seconds",
			Help:    "Requests to OpenStack by service, operation and outcome, without the wait for our own budget.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}, []string{"service", "operation", "outcome"})),
		waited: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gateway_api_openstack_cloud_request_wait_seconds",
			Help:    "How long requests waited for our own budget (--openstack-qps, --openstack-in-flight) before they were sent.",
			Buckets: []float64{.001, .01, .1, .5, 1, 5, 30, 120},
		}, []string{"service"})),
		locks: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gateway_api_openstack_loadbalancer_locked_seconds",
			Help:    "How long Octavia kept a load balancer locked for one of our writes, by what was written.",
			Buckets: []float64{.5, 1, 2, 4, 8, 15, 30, 60, 120, 300},
		}, []string{"verb", "kind"})),
	}
}

// register makes a histogram known, or takes the one that an earlier client of the process has made known.
func register(reg prometheus.Registerer, h *prometheus.HistogramVec) *prometheus.HistogramVec {
	var already prometheus.AlreadyRegisteredError
	if reg != nil && errors.As(reg.Register(h), &already) {
		return already.ExistingCollector.(*prometheus.HistogramVec)
	}
	return h
}

func (m *metrics) observe(info callInfo, outcome string, took time.Duration) {
	m.requests.WithLabelValues(string(info.service), info.operation, outcome).Observe(took.Seconds())
}

func outcomeOf(resp *http.Response, err error) string {
	switch {
	case err != nil:
		return "no_answer"
	case resp.StatusCode < 400:
		return "ok"
	case resp.StatusCode >= 500:
		return "5xx"
	}
	switch resp.StatusCode {
	case 400, 401, 403, 404, 409, 429:
		return http.StatusText(resp.StatusCode)
	}
	return "other_4xx"
}

// collections are the path elements that an operation's label may have; all others are ids.
var collections = map[string]bool{
	"loadbalancers": true, "listeners": true, "pools": true, "members": true, "healthmonitors": true,
	"l7policies": true, "rules": true, "providers": true,
	"floatingips": true, "ports": true, "networks": true, "subnets": true,
	"quotas": true, "secrets": true, "containers": true, "acl": true, "payload": true,
}

// operation is the metric label of a call: the method and the collections of the path.
func operation(method, path string) string {
	var words []string
	for word := range strings.SplitSeq(path, "/") {
		if collections[word] {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return method + " versions"
	}
	return method + " " + strings.Join(words, "/")
}
