package sim

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Options make a Cloud. The zero value is a cloud on a free loopback port, with
// real time, instant operations and no data plane.
type Options struct {
	Listen  string  // default 127.0.0.1:0
	Clock   Clock   // default real time
	Latency Latency // default instant
	Region  string  // default RegionOne

	// Forward makes the simulator listen on the VIPs and floating IPs and
	// balance. Their subnets are then blocks of 127/8 that no other simulator
	// on this machine uses.
	Forward bool

	// MaxAPIVersion is the newest Octavia API version, for example v2.26.
	// Fields that came later are unknown attributes. Default v2.30.
	MaxAPIVersion string
	// BrokenCreate reproduces Octavia 11.0.0, whose fully-populated create
	// drops the listeners and leaves the children PENDING_CREATE for ever.
	BrokenCreate bool
	// ChooseAddress lets projects choose the address of a floating IP, which Neutron's default policy leaves to administrators.
	ChooseAddress bool
	// UnreadableNames are names of certificates that Octavia's library cannot
	// parse, though everybody else can.
	UnreadableNames []string
	// ProhibitedCiphers and MinimumTLSVersion are settings of the administrator
	// for TLS, tls_cipher_prohibit_list and minimum_tls_version.
	ProhibitedCiphers []string
	MinimumTLSVersion string
	// Providers are the enabled ones. Default amphora and its alias octavia.
	Providers []string
	// PageLimit is the largest and the default page of a list. Default 1000.
	PageLimit int
	// TokenTTL is the life of a token. Default one hour.
	TokenTTL time.Duration
	// Seed makes the generated ids different. Equal seeds and equal calls give
	// equal ids.
	Seed uint64
	// MaxCalls bounds the recorded calls; older ones are dropped. 0 keeps all.
	MaxCalls int

	// Networks; the defaults depend on Forward.
	PublicCIDR, VIPCIDR, MemberCIDR string
}

// Cloud is a running simulator.
type Cloud struct {
	opts  Options
	clock Clock
	svcs  []service
	url   string
	ctx   context.Context
	stop  context.CancelFunc
	srv   *http.Server
	ln    net.Listener
	wg    sync.WaitGroup

	callsMu      sync.Mutex
	calls        []Call
	confidential []string

	faultsMu sync.Mutex
	faults   []*Injected

	mu       sync.Mutex // guards everything below
	rand     *rand.ChaCha8
	requests int
	ks       keystoneState
	lb       octaviaState
	net      neutronState
	keys     barbicanState
	forward  *forwarder // nil without Options.Forward
	// memberPool are the addresses to give out on the subnet of the nodes.
	memberPool []record
	guard      net.Listener
}

// New starts a cloud with its seeded project and networks.
func New(opts Options) (*Cloud, error) {
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	if opts.Clock == nil {
		opts.Clock = realClock{}
	}
	if opts.Region == "" {
		opts.Region = "RegionOne"
	}
	if opts.MaxAPIVersion == "" {
		opts.MaxAPIVersion = "v2.30"
	}
	if len(opts.Providers) == 0 {
		opts.Providers = []string{"amphora", "octavia"}
	}
	if opts.PageLimit <= 0 {
		opts.PageLimit = 1000
	}
	if opts.TokenTTL <= 0 {
		opts.TokenTTL = time.Hour
	}
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(opts.Seed >> (8 * i))
	}
	c := &Cloud{opts: opts, clock: opts.Clock, rand: rand.NewChaCha8(seed)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.svcs = c.services()
	var err error
	if c.lb.minor, err = minorVersion(opts.MaxAPIVersion); err != nil {
		return nil, err
	}
	if opts.Forward {
		if c.guard, err = c.claimLoopback(); err != nil {
			return nil, err
		}
		c.forward = newForwarder(c)
	}
	if err := c.seed(); err != nil {
		c.stopGuard()
		return nil, err
	}
	c.ln, err = listen(opts.Listen)
	if err != nil {
		c.stopGuard()
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	c.url = "http://" + c.ln.Addr().String()
	c.srv = &http.Server{Handler: c, ReadHeaderTimeout: 30 * time.Second}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		if err := c.srv.Serve(c.ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("sim: serve: %v", err))
		}
	}()
	return c, nil
}

// Close stops the cloud and everything that listens for it.
func (c *Cloud) Close() {
	c.stop()
	_ = c.srv.Close()
	c.wg.Wait()
	if c.forward != nil {
		c.forward.close()
	}
	c.stopGuard()
}

func (c *Cloud) stopGuard() {
	if c.guard != nil {
		_ = c.guard.Close()
	}
}

// URL is where the cloud listens; the services are below it.
func (c *Cloud) URL() string { return c.url }

// AuthURL is the Keystone endpoint.
func (c *Cloud) AuthURL() string { return c.url + "/identity/v3" }

// Region is the region of the catalog.
func (c *Cloud) Region() string { return c.opts.Region }

// CloudsYAML is a clouds.yaml with one cloud of this name, which uses the
// application credential of the seeded project.
func (c *Cloud) CloudsYAML(name string) []byte {
	return fmt.Appendf(nil, `clouds:
  %s:
    auth_type: v3applicationcredential
    auth:
      auth_url: %s
      application_credential_id: %s
      application_credential_secret: %s
    region_name: %s
    interface: public
    identity_api_version: 3
`, name, c.AuthURL(), c.ks.appCredID, c.ks.appCredSecret, c.opts.Region)
}

// PasswordCloudsYAML is a clouds.yaml that uses the user name and password of
// the seeded project, or of the administrator.
func (c *Cloud) PasswordCloudsYAML(name, user string) []byte {
	project := projectName
	if user == adminName {
		project = adminName
	}
	return fmt.Appendf(nil, `clouds:
  %s:
    auth:
      auth_url: %s
      username: %s
      password: %s
      project_name: %s
      user_domain_id: default
      project_domain_id: default
    region_name: %s
    interface: public
    identity_api_version: 3
`, name, c.AuthURL(), user, password, project, c.opts.Region)
}

// newID makes a random UUID from the seed.
func (c *Cloud) newID() string {
	var b [16]byte
	_, _ = c.rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (c *Cloud) requestID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	return fmt.Sprintf("req-%08x-0000-4000-8000-%012x", c.opts.Seed&0xffffffff, c.requests)
}

func minorVersion(v string) (int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(v, "v"), "%d.%d", &major, &minor); err != nil || major != 2 || minor < 0 {
		return 0, fmt.Errorf("bad Octavia API version %q, want one like v2.26", v)
	}
	return minor, nil
}

func mustPrefix(s string) netip.Prefix { return netip.MustParsePrefix(s).Masked() }
