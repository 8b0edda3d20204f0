package cloud

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	tokens "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are the deployment's settings. Zero values mean the defaults that are named here.
type Options struct {
	// CloudsFile is the path of clouds.yaml; "" looks where the OpenStack clients look. A secure.yaml beside it is read too.
	CloudsFile string
	// Cloud is the entry in that file; "" takes $OS_CLOUD.
	Cloud string
	// Region overrides the region of the entry.
	Region string

	// QPS and Burst limit the requests of this process, token requests included; QPS 0 is unlimited.
	QPS   float64
	Burst int
	// InFlight limits how many requests are under way; 0 is unlimited.
	InFlight int
	// HTTPTimeout bounds one request (120s). A fully-populated create alone may take half a minute to answer.
	HTTPTimeout time.Duration
	// ReloadEvery is how often the credentials are compared with their file, on use (10s).
	ReloadEvery time.Duration
	// RenewalPause is how long nothing is sent to Keystone after it failed to give a token (10s).
	RenewalPause time.Duration
	// FactsFor is how long resolved selectors are believed (15m).
	FactsFor time.Duration
	// Parallel bounds the concurrent reads of one Observe (4).
	Parallel int

	// Metrics is where to register; nil registers nowhere.
	Metrics prometheus.Registerer
	// Clock is nil for the real one.
	Clock Clock
	// UserAgent comes first in the User-Agent header.
	UserAgent string
	// Transport carries the requests, instead of connections of our own: for a cloud in the same process. nil dials.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.HTTPTimeout, 120*time.Second)
	set(&o.ReloadEvery, 10*time.Second)
	set(&o.RenewalPause, 10*time.Second)
	set(&o.FactsFor, 15*time.Minute)
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.UserAgent == "" {
		o.UserAgent = "gateway-api-openstack"
	}
	return o
}

// Client talks to one project in one region of one cloud. It is safe for concurrent use.
type Client struct {
	opts   Options
	budget *budget

	current atomic.Pointer[session]
	// loading is held by whoever compares the credentials with their file.
	loading sync.Mutex

	facts factsCache
	pace  pace
	// singly is set when the cloud was seen to break fully-populated creates.
	singly atomic.Bool
}

// session is one set of credentials at work.
type session struct {
	config    config
	provider  *gophercloud.ProviderClient
	base      map[service]string
	projectID string

	checked atomic.Pointer[time.Time]
	// outdated says that the catalog of a newer token has other endpoints than base.
	outdated atomic.Bool

	mu sync.Mutex
	// refused is when Keystone last failed to renew the token, and why.
	refusedAt time.Time
	refused   error
	// reload is why the changed file could not be used.
	reload error
}

// Format hides the token and the credentials from every verb.
func (s *session) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{session of project %s}", s.projectID)
}

// config is what clouds.yaml says.
type config struct {
	auth     gophercloud.AuthOptions
	endpoint gophercloud.EndpointOpts
	tls      *tls.Config
}

// Format hides the credentials from every verb.
func (c config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "{%s}", c.auth.IdentityEndpoint) }

func (c config) equal(o config) bool {
	return reflect.DeepEqual(c.auth, o.auth) && reflect.DeepEqual(c.endpoint, o.endpoint) &&
		c.tls.InsecureSkipVerify == o.tls.InsecureSkipVerify &&
		(c.tls.RootCAs == nil) == (o.tls.RootCAs == nil) && (c.tls.RootCAs == nil || c.tls.RootCAs.Equal(o.tls.RootCAs)) &&
		reflect.DeepEqual(c.tls.Certificates, o.tls.Certificates)
}

// New reads the credentials and gets a token.
func New(ctx context.Context, o Options) (*Client, error) {
	o = o.withDefaults()
	c := &Client{opts: o, budget: newBudget(o)}
	cfg, err := c.parse()
	if err != nil {
		return nil, err
	}
	s, err := c.open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c.current.Store(s)
	return c, nil
}

// ProjectID is the project that the credentials are scoped to.
func (c *Client) ProjectID() string { return c.current.Load().projectID }

func (c *Client) parse() (config, error) {
	var opts []clouds.ParseOption
	if c.opts.Cloud != "" {
		opts = append(opts, clouds.WithCloudName(c.opts.Cloud))
	}
	if c.opts.CloudsFile != "" {
		opts = append(opts, clouds.WithLocations(c.opts.CloudsFile))
	}
	if c.opts.Region != "" {
		opts = append(opts, clouds.WithRegion(c.opts.Region))
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(opts...)
	if err != nil {
		// Not the parser's own error: that of a YAML mistake quotes what it fails at.
		return config{}, &Error{Class: OperatorFault, Reason: ReasonAuth, Op: "read", Resource: "clouds.yaml",
			Message: parseMessage(err, c.opts)}
	}
	tlsConfig.MinVersion = tls.VersionTLS12
	auth.AllowReauth = false // Renewal is ours: see renew.
	return config{auth, endpoint, tlsConfig}, nil
}

func parseMessage(err error, o Options) string {
	var missing clouds.ErrFileNotFound
	switch {
	case errors.As(err, &missing):
		return fmt.Sprintf("no such file: %q", o.CloudsFile)
	case strings.Contains(err.Error(), "not found in clouds.yaml"), strings.Contains(err.Error(), "not a valid cloud name"):
		return fmt.Sprintf("it has no cloud %q", o.Cloud)
	case strings.Contains(err.Error(), "TLS configuration"):
		return "the CA or client certificate that it names cannot be read"
	}
	return "it is not valid"
}

// open authenticates and finds the endpoints.
func (c *Client) open(ctx context.Context, cfg config) (*session, error) {
	provider, err := c.authenticate(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &session{config: cfg, provider: provider}
	now := c.opts.Clock.Now()
	s.checked.Store(&now)
	project, err := projectOf(provider)
	if err != nil {
		return nil, err
	}
	s.projectID = project
	if s.base, err = endpointsOf(provider, cfg); err != nil {
		return nil, err
	}
	provider.ReauthFunc = func(ctx context.Context) error { return c.renew(ctx, s) }
	return s, nil
}

// endpointsOf are where the catalog of a token says that the services are.
func endpointsOf(provider *gophercloud.ProviderClient, cfg config) (map[service]string, error) {
	base := map[service]string{}
	for _, svc := range []service{octavia, neutron, barbican} {
		eo := cfg.endpoint
		eo.ApplyDefaults(string(svc))
		endpoint, err := provider.EndpointLocator(eo)
		if err != nil {
			if svc == barbican {
				continue // Only HTTPS listeners need it.
			}
			return nil, classify(svc, "find", svc.title(), err)
		}
		base[svc] = baseURL(svc, endpoint)
	}
	return base, nil
}

// moved says whether services are elsewhere, or are new. One that is missing all at once may be a mistake: it is used where it was.
func moved(was, is map[service]string) bool {
	for svc := range was {
		if is[svc] == "" {
			return false
		}
	}
	return !maps.Equal(was, is)
}

// baseURL adds the version that the catalog's endpoint may or may not have.
func baseURL(svc service, endpoint string) string {
	endpoint = strings.TrimRight(endpoint, "/")
	switch svc {
	case octavia:
		return rootURL(endpoint) + "/v2/lbaas"
	case neutron:
		return strings.TrimSuffix(endpoint, "/v2.0") + "/v2.0"
	case barbican:
		return strings.TrimSuffix(endpoint, "/v1") + "/v1"
	}
	return endpoint
}

func rootURL(endpoint string) string {
	for _, suffix := range []string{"/lbaas", "/v2.0", "/v2"} {
		endpoint = strings.TrimSuffix(endpoint, suffix)
	}
	return endpoint
}

func projectOf(p *gophercloud.ProviderClient) (string, error) {
	if r, ok := p.GetAuthResult().(tokens.CreateResult); ok {
		if project, err := r.ExtractProject(); err == nil && project != nil && project.ID != "" {
			return project.ID, nil
		}
	}
	return "", &Error{Class: OperatorFault, Reason: ReasonAuth, Op: "use", Resource: "clouds.yaml",
		Message: "the credentials are not scoped to a project"}
}

// authenticate gets one token for a fresh provider client, with one POST.
func (c *Client) authenticate(ctx context.Context, cfg config) (*gophercloud.ProviderClient, error) {
	provider, err := openstack.NewClient(cfg.auth.IdentityEndpoint)
	if err != nil || cfg.auth.IdentityEndpoint == "" {
		return nil, &Error{Class: OperatorFault, Reason: ReasonAuth, Op: "read", Resource: "clouds.yaml",
			Message: "auth_url is missing or not a URL"}
	}
	base := c.opts.Transport
	if base == nil {
		dialing := http.DefaultTransport.(*http.Transport).Clone()
		dialing.TLSClientConfig = cfg.tls.Clone()
		dialing.MaxIdleConnsPerHost = max(c.opts.InFlight, 16)
		base = dialing
	}
	provider.HTTPClient = http.Client{
		Transport: &transport{base: base, budget: c.budget},
		// A service that redirects us elsewhere is misconfigured; the token stays at home.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	provider.UserAgent.Prepend(c.opts.UserAgent)
	auth := cfg.auth
	err = openstack.AuthenticateV3(withCallInfo(ctx, keystone, "POST tokens"), provider, &auth, gophercloud.EndpointOpts{})
	if err != nil {
		provider.HTTPClient.CloseIdleConnections()
		return nil, classify(keystone, "get", "a token", err)
	}
	return provider, nil
}

// renew gets a new token for a session. gophercloud makes the workers whose tokens expired wait for one renewal; after a
// failure we do not ask Keystone again for a while, whoever wants to.
func (c *Client) renew(ctx context.Context, s *session) error {
	now := c.opts.Clock.Now()
	s.mu.Lock()
	refused := s.refused
	if refused != nil && now.Sub(s.refusedAt) >= c.opts.RenewalPause {
		refused = nil
	}
	s.mu.Unlock()
	if refused != nil {
		return refused
	}
	// One worker that is canceled must not fail the renewal for all.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.HTTPTimeout)
	defer cancel()
	fresh, err := c.authenticate(ctx, s.config)
	if err == nil {
		s.provider.CopyTokenFrom(fresh)
		fresh.HTTPClient.CloseIdleConnections()
		if base, err := endpointsOf(fresh, s.config); err == nil && moved(s.base, base) {
			s.outdated.Store(true)
			s.checked.Store(&time.Time{})
		}
	}
	s.mu.Lock()
	s.refused, s.refusedAt = err, c.opts.Clock.Now()
	s.mu.Unlock()
	if err != nil {
		s.checked.Store(&time.Time{}) // The credentials may have been replaced: look at their file now.
	}
	return err
}

// session returns the credentials at work, after a look at their file when that is due. A changed file that cannot be
// used leaves the old credentials at work: they may well still be good.
func (c *Client) session(ctx context.Context) *session {
	s := c.current.Load()
	now := c.opts.Clock.Now()
	if now.Sub(*s.checked.Load()) < c.opts.ReloadEvery || !c.loading.TryLock() {
		return s
	}
	defer c.loading.Unlock()
	s.checked.Store(&now)
	cfg, err := c.parse()
	if err == nil && cfg.equal(s.config) && !s.outdated.Load() {
		s.setReload(nil)
		return s
	}
	if err == nil {
		var fresh *session
		if fresh, err = c.open(ctx, cfg); err == nil {
			c.facts.clear()
			c.current.Store(fresh)
			s.provider.HTTPClient.CloseIdleConnections()
			return fresh
		}
	}
	s.setReload(err)
	return s
}

func (s *session) setReload(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reload = err
}

// CredentialError says why Keystone does not accept the credentials at work; nil when it does, as far as was tried.
func (c *Client) CredentialError() error {
	s := c.current.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ClassOf(s.refused) != OperatorFault {
		return nil
	}
	return s.refused
}

// ReloadError says why the credentials file as it is now is not in use; nil when it is.
func (c *Client) ReloadError() error {
	s := c.current.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reload
}
