package sim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"hash/fnv"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// backend is the compiled configuration of a pool. A new configuration starts
// counting anew, like a reloaded HAProxy.
type backend struct {
	id        string
	enabled   bool
	algorithm string
	stick     string // session persistence
	cookie    string
	servers   []*server
	backups   []*server
	proxy     *httputil.ReverseProxy

	mu     sync.Mutex
	sticky map[string]*server
}

type server struct {
	id, addr string
	weight   int
	current  int // of the smooth weighted round robin
	active   atomic.Int64
}

func (c *Cloud) compileBackend(p *pool, timeout time.Duration) (*backend, error) {
	be := &backend{id: p.ID, enabled: p.AdminStateUp, algorithm: p.LBAlgorithm, sticky: map[string]*server{}}
	if sp := p.SessionPersistence; sp != nil {
		be.stick = sp.Type
		if sp.CookieName != nil {
			be.cookie = *sp.CookieName
		}
	}
	for _, m := range p.members {
		if !m.AdminStateUp || m.Weight == 0 || m.health == inError || m.ProvisioningStatus == pendingDelete {
			continue
		}
		s := &server{id: m.ID, addr: net.JoinHostPort(m.Address, strconv.Itoa(m.ProtocolPort)), weight: m.Weight}
		if m.Backup {
			be.backups = append(be.backups, s)
		} else {
			be.servers = append(be.servers, s)
		}
	}
	tr := &http.Transport{DisableCompression: true, ResponseHeaderTimeout: timeout, MaxIdleConnsPerHost: 32, IdleConnTimeout: 10 * time.Second,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	if p.TLSEnabled {
		if err := c.backendTLS(p, tr); err != nil {
			return nil, err
		}
	}
	be.proxy = &httputil.ReverseProxy{
		Transport:     &balancer{be: be, tr: tr, tls: p.TLSEnabled},
		FlushInterval: -1,
		Rewrite:       func(pr *httputil.ProxyRequest) { rewrite(pr) },
		ErrorHandler:  proxyFailed,
		ModifyResponse: func(resp *http.Response) error {
			be.remember(resp)
			// Only what comes from a member gets it, not HAProxy's own answers.
			if fe, ok := resp.Request.Context().Value(frontKey{}).(*frontend); ok && fe.hsts != "" {
				resp.Header.Set("Strict-Transport-Security", fe.hsts)
			}
			return nil
		},
	}
	return be, nil
}

// backendTLS sets up encryption to the members. The name in the request is the
// client's; it is checked only where there is one. Without a CA nothing is
// verified, and a monitor of type HTTPS switches verification off as well.
func (c *Cloud) backendTLS(p *pool, tr *http.Transport) error {
	base := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	for _, v := range p.TLSVersions {
		if n := tlsVersionNumbers[v]; n != 0 {
			base.MinVersion, base.MaxVersion = min(base.MinVersion, n), max(base.MaxVersion, n)
		}
	}
	verify := p.CATLSContainerRef != nil && (p.monitor == nil || p.monitor.Type != "HTTPS" || !p.monitor.AdminStateUp)
	if verify {
		s := c.secretByRef(*p.CATLSContainerRef)
		if s == nil {
			return errors.New("the CA of the pool is gone")
		}
		ca, err := parseCerts(s.payload)
		if err != nil {
			return err
		}
		base.RootCAs = x509.NewCertPool()
		for _, x := range ca {
			base.RootCAs.AddCert(x)
		}
	}
	if p.TLSContainerRef != nil {
		cert, err := c.loadCertificate(*p.TLSContainerRef)
		if err != nil {
			return err
		}
		tc := tls.Certificate{PrivateKey: cert.key}
		for _, x := range cert.chain {
			tc.Certificate = append(tc.Certificate, x.Raw)
		}
		base.Certificates = []tls.Certificate{tc}
	}
	tr.DisableKeepAlives = true // the SNI differs from request to request
	tr.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := tr.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		cfg := base.Clone()
		cfg.ServerName, _ = ctx.Value(sniKey{}).(string)
		if verify {
			cfg.VerifyConnection = func(cs tls.ConnectionState) error {
				opts := x509.VerifyOptions{Roots: base.RootCAs, DNSName: cfg.ServerName, Intermediates: x509.NewCertPool()}
				for _, x := range cs.PeerCertificates[1:] {
					opts.Intermediates.AddCert(x)
				}
				_, err := cs.PeerCertificates[0].Verify(opts)
				return err
			}
		}
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return conn, nil
	}
	return nil
}

type (
	sniKey   struct{}
	frontKey struct{}
	stuckKey struct{}
)

func (be *backend) serve(w http.ResponseWriter, r *http.Request, fe *frontend) {
	ctx := context.WithValue(r.Context(), frontKey{}, fe)
	if r.TLS != nil {
		ctx = context.WithValue(ctx, sniKey{}, r.TLS.ServerName)
	}
	be.proxy.ServeHTTP(w, r.WithContext(ctx))
}

func rewrite(pr *httputil.ProxyRequest) {
	cleanTarget(pr.Out.URL, pr.In)
	// What clients send passes through unchanged.
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := pr.In.Header.Values(h); len(v) > 0 {
			pr.Out.Header[h] = append([]string(nil), v...)
		}
	}
	pr.Out.Host = pr.In.Host
	if _, ok := pr.In.Header["User-Agent"]; !ok {
		pr.Out.Header.Set("User-Agent", "")
	}
	fe, _ := pr.In.Context().Value(frontKey{}).(*frontend)
	fe.addHeaders(pr.Out, pr.In)
}

func proxyFailed(w http.ResponseWriter, r *http.Request, err error) {
	var ne net.Error
	switch {
	case errors.Is(err, errNoServer):
		errorPage(w, http.StatusServiceUnavailable, unavailablePage)
	case errors.As(err, &ne) && ne.Timeout():
		errorPage(w, http.StatusGatewayTimeout, timeoutPage)
	case errors.Is(err, context.Canceled):
		// The client has gone.
	default:
		errorPage(w, http.StatusBadGateway, badGatewayPage)
	}
}

var errNoServer = errors.New("no server is available")

// balancer sends a request to a member, and to another one while members
// refuse connections.
type balancer struct {
	be  *backend
	tr  *http.Transport
	tls bool
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	tried := map[*server]bool{}
	for range 4 { // one attempt and three retries
		s := b.be.pick(r, tried)
		if s == nil {
			break
		}
		tried[s] = true
		r.URL.Scheme, r.URL.Host = "http", s.addr
		if b.tls {
			r.URL.Scheme = "https"
		}
		s.active.Add(1)
		resp, err := b.tr.RoundTrip(r.WithContext(context.WithValue(r.Context(), stuckKey{}, s)))
		s.active.Add(-1)
		var op *net.OpError
		if err != nil && errors.As(err, &op) && op.Op == "dial" {
			continue
		}
		return resp, err
	}
	return nil, errNoServer
}

// pick chooses a member that was not tried yet.
func (be *backend) pick(r *http.Request, tried map[*server]bool) *server {
	be.mu.Lock()
	defer be.mu.Unlock()
	if len(tried) == 0 {
		if s := be.stuck(r); s != nil {
			return s
		}
	}
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	s := be.choose(be.servers, client, tried)
	if s == nil {
		s = be.choose(be.backups, client, tried)
	}
	if s != nil && be.stick == "SOURCE_IP" {
		be.sticky[client] = s
	}
	return s
}

func (be *backend) stuck(r *http.Request) *server {
	name, key := "", ""
	switch be.stick {
	case "SOURCE_IP":
		key, _, _ = net.SplitHostPort(r.RemoteAddr)
		return be.sticky[key]
	case "HTTP_COOKIE":
		name = "SRV"
	case "APP_COOKIE":
		name = be.cookie
	default:
		return nil
	}
	cookie, err := r.Cookie(name)
	if err != nil {
		return nil
	}
	if be.stick == "APP_COOKIE" {
		return be.sticky[cookie.Value]
	}
	for _, s := range be.servers {
		if s.id == cookie.Value {
			// The cookie is ours and is not passed on.
			dropCookie(r, name)
			return s
		}
	}
	return nil
}

func dropCookie(r *http.Request, name string) {
	var keep []string
	for _, c := range r.Cookies() {
		if c.Name != name {
			keep = append(keep, c.Name+"="+c.Value)
		}
	}
	r.Header.Del("Cookie")
	if len(keep) > 0 {
		r.Header.Set("Cookie", strings.Join(keep, "; "))
	}
}

// remember notes which member a session belongs to.
func (be *backend) remember(resp *http.Response) {
	s, _ := resp.Request.Context().Value(stuckKey{}).(*server)
	if s == nil {
		return
	}
	switch be.stick {
	case "HTTP_COOKIE":
		if c, err := resp.Request.Cookie("SRV"); err == nil && c.Value == s.id {
			return
		}
		resp.Header.Add("Set-Cookie", "SRV="+s.id+"; path=/")
		resp.Header.Add("Cache-Control", "private")
	case "APP_COOKIE":
		for _, c := range resp.Cookies() {
			if c.Name == be.cookie {
				be.mu.Lock()
				be.sticky[c.Value] = s
				be.mu.Unlock()
			}
		}
	}
}

func (be *backend) choose(list []*server, client string, tried map[*server]bool) *server {
	var free []*server
	for _, s := range list {
		if !tried[s] {
			free = append(free, s)
		}
	}
	if len(free) == 0 {
		return nil
	}
	switch be.algorithm {
	case "SOURCE_IP", "SOURCE_IP_PORT":
		h := fnv.New32a()
		_, _ = h.Write([]byte(client))
		return free[int(h.Sum32()%uint32(len(free)))]
	case "LEAST_CONNECTIONS":
		best := free[0]
		for _, s := range free[1:] {
			if s.active.Load()*int64(best.weight) < best.active.Load()*int64(s.weight) {
				best = s
			}
		}
		return best
	}
	// Smooth weighted round robin.
	total := 0
	var best *server
	for _, s := range free {
		s.current += s.weight
		total += s.weight
		if best == nil || s.current > best.current {
			best = s
		}
	}
	best.current -= total
	return best
}

// dial connects to a member, for listeners that see no HTTP.
func (be *backend) dial(ctx context.Context, client string) net.Conn {
	tried := map[*server]bool{}
	d := net.Dialer{Timeout: 5 * time.Second}
	for range 4 {
		s := be.pick(&http.Request{RemoteAddr: client, Header: http.Header{}}, tried)
		if s == nil {
			return nil
		}
		tried[s] = true
		if conn, err := d.DialContext(ctx, "tcp", s.addr); err == nil {
			return conn
		}
	}
	return nil
}
