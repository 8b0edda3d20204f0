package cloud

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

const (
	testProject = "5b0d5d9b1c7e4b6c9f0a1d2e3f405162"
	octaviaBase = "http://octavia.test/load-balancer/v2/lbaas"
)

var testOwner = lb.Owner{ClusterID: "blue", Controller: "gateway-api-openstack.dev/gateway-controller",
	Namespace: "infra", Name: "edge", UID: "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"}

// stubTransport answers without a network.
type stubTransport func(*http.Request) (*http.Response, error)

func (s stubTransport) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answer(status int, body string, header ...string) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// stubClient is a client with a token and endpoints whose requests all go to one function.
func stubClient(t *testing.T, o Options, send stubTransport) *Client {
	t.Helper()
	o = o.withDefaults()
	o.ReloadEvery = 1000 * time.Hour
	c := &Client{opts: o, budget: newBudget(o)}
	provider := &gophercloud.ProviderClient{TokenID: "token"}
	provider.UseTokenLock()
	provider.HTTPClient.Transport = &transport{base: send, budget: c.budget}
	s := &session{provider: provider, projectID: testProject, base: map[service]string{
		octavia: octaviaBase, neutron: "http://neutron.test/network/v2.0"}}
	now := o.Clock.Now()
	s.checked.Store(&now)
	c.current.Store(s)
	return c
}

// stepClock moves only when somebody sleeps on it, and then at once.
type stepClock struct {
	mu  sync.Mutex
	now time.Time
}

func newStepClock() *stepClock { return &stepClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d > 0 {
		c.now = c.now.Add(d)
	}
	return ctx.Err()
}
