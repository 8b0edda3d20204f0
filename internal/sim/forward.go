package sim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// forwarder is the data plane: it listens on the VIPs and floating IPs and
// serves what the load balancers say. It follows the state only when a change
// of a load balancer is over, as an amphora does.
type forwarder struct {
	c       *Cloud
	changed bool                     // something may be different
	stale   map[*loadBalancer]bool   // load balancers to compile again
	served  map[string][]*frontend   // compiled listeners by load balancer
	vips    map[string]string        // VIP of each of them
	sockets map[string]*socket       // open listeners by address
	errs    map[string]error         // addresses that could not be opened
	counts  map[string]*atomic.Int64 // requests by listener
}

func newForwarder(c *Cloud) *forwarder {
	return &forwarder{c: c, stale: map[*loadBalancer]bool{}, served: map[string][]*frontend{}, vips: map[string]string{},
		sockets: map[string]*socket{}, errs: map[string]error{}, counts: map[string]*atomic.Int64{}}
}

// dirty tells the data plane that a load balancer has a new configuration.
func (c *Cloud) dirty(lb *loadBalancer) {
	if c.forward != nil {
		c.forward.stale[lb] = true
		c.forward.changed = true
	}
}

// wakeForwarder makes the data plane agree with the state. It runs under the
// lock.
func (c *Cloud) wakeForwarder() {
	if c.forward != nil && c.forward.changed && c.ctx.Err() == nil {
		c.forward.changed = false
		c.forward.sync()
	}
}

// ForwardErrors are the addresses that could not be listened on, and why.
func (c *Cloud) ForwardErrors() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	if c.forward != nil {
		for _, err := range c.forward.errs {
			out = append(out, err.Error())
		}
	}
	sort.Strings(out)
	return out
}

// Requests is how many requests or connections a listener has taken.
func (c *Cloud) Requests(listenerID string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forward == nil || c.forward.counts[listenerID] == nil {
		return 0
	}
	return c.forward.counts[listenerID].Load()
}

func (f *forwarder) count(listener string) *atomic.Int64 {
	if f.counts[listener] == nil {
		f.counts[listener] = &atomic.Int64{}
	}
	return f.counts[listener]
}

func (f *forwarder) sync() {
	for lb := range f.stale {
		delete(f.stale, lb)
		old := f.served[lb.ID]
		delete(f.served, lb.ID)
		delete(f.vips, lb.ID)
		if f.c.lb.lbs[lb.ID] == nil || !lb.AdminStateUp || lb.ProvisioningStatus == inError {
			continue
		}
		f.vips[lb.ID] = lb.VipAddress
		for _, l := range lb.listeners {
			if !l.AdminStateUp || l.ProvisioningStatus == pendingCreate || l.ProvisioningStatus == pendingDelete {
				continue
			}
			fe, err := f.c.compileFrontend(l)
			if err != nil {
				// For example a certificate that is gone: the amphora keeps
				// its configuration.
				l.ProvisioningStatus = inError
				f.served[lb.ID] = old
				break
			}
			fe.requests = f.count(l.ID)
			f.served[lb.ID] = append(f.served[lb.ID], fe)
		}
	}
	want := map[string]*frontend{}
	for id, fronts := range f.served {
		addresses := []string{f.vips[id]}
		for _, fip := range f.c.net.objects["floatingips"] {
			if fip.str("fixed_ip_address") == f.vips[id] && fip.str("port_id") != "" {
				addresses = append(addresses, fip.str("floating_ip_address"))
			}
		}
		for _, fe := range fronts {
			for _, a := range addresses {
				want[net.JoinHostPort(a, itoa(fe.port))] = fe
			}
		}
	}
	for addr, s := range f.sockets {
		if fe := want[addr]; fe == nil || fe.id != s.front.Load().id || (fe.tls != nil) != s.encrypted {
			s.close()
			delete(f.sockets, addr)
		}
	}
	f.errs = map[string]error{}
	for addr, fe := range want {
		if s := f.sockets[addr]; s != nil {
			s.front.Store(fe)
			continue
		}
		s, err := openSocket(addr, fe)
		if err != nil {
			f.errs[addr] = fmt.Errorf("serve listener %s: %w", fe.id, err)
			if l := f.c.lb.listeners[fe.id]; l != nil {
				l.OperatingStatus = inError
			}
			continue
		}
		f.sockets[addr] = s
	}
}

func (f *forwarder) close() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for addr, s := range f.sockets {
		s.close()
		delete(f.sockets, addr)
	}
}

// frontend is the compiled configuration of a listener.
type frontend struct {
	id       string
	port     int
	protocol string
	allowed  []netip.Prefix // empty: everybody
	tls      *tls.Config    // nil: plain
	hsts     string
	headers  map[string]bool
	timeout  time.Duration // of a member to answer

	rejects, redirects, forwards []*compiledPolicy
	defaultPool                  *backend
	requests                     *atomic.Int64
}

func (fe *frontend) http() bool { return fe.protocol == "HTTP" || fe.protocol == "TERMINATED_HTTPS" }

// socket is one open address. Its configuration can be exchanged.
type socket struct {
	ln    net.Listener
	srv   *http.Server
	front atomic.Pointer[frontend]
	wg    sync.WaitGroup
	stop  context.CancelFunc
	// encrypted sockets speak TLS for as long as they are open.
	encrypted bool
}

// listen opens an address until somebody closes it.
func listen(addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
}

func openSocket(addr string, fe *frontend) (*socket, error) {
	ln, err := listen(addr)
	if err != nil {
		return nil, err
	}
	s := &socket{ln: ln, encrypted: fe.tls != nil}
	s.front.Store(fe)
	filtered := &filteredListener{Listener: ln, s: s}
	if !fe.http() {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serveTCP(ctx, filtered)
		}()
		return s, nil
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.srv = &http.Server{Handler: s, ReadHeaderTimeout: 50 * time.Second, Protocols: protocols,
		ErrorLog: log.New(io.Discard, "", 0), // the mistakes of clients
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		}}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		var err error
		if fe.tls != nil {
			s.srv.TLSConfig = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS10,
				GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.front.Load().tls, nil },
				GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					return nil, errors.New("no certificate")
				}}
			err = s.srv.ServeTLS(filtered, "", "")
		} else {
			err = s.srv.Serve(filtered)
		}
		if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			panic(fmt.Sprintf("sim: serve %s: %v", addr, err))
		}
	}()
	return s, nil
}

type connKey struct{}

func (s *socket) close() {
	if s.srv != nil {
		_ = s.srv.Close()
	} else {
		s.stop()
		_ = s.ln.Close()
	}
	s.wg.Wait()
}

// filteredListener drops connections that allowed_cidrs does not allow. A real
// security group lets them time out instead.
type filteredListener struct {
	net.Listener
	s *socket
}

func (l *filteredListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.s.front.Load().allows(netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr()) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

func (fe *frontend) allows(from netip.Addr) bool {
	if len(fe.allowed) == 0 {
		return true
	}
	for _, p := range fe.allowed {
		if p.Contains(from.Unmap()) {
			return true
		}
	}
	return false
}

// serveTCP passes connections through, for listeners that see no HTTP.
func (s *socket) serveTCP(ctx context.Context, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		fe := s.front.Load()
		fe.requests.Add(1)
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			defer func() { _ = conn.Close() }()
			if fe.defaultPool == nil {
				return
			}
			member := fe.defaultPool.dial(ctx, conn.RemoteAddr().String())
			if member == nil {
				return
			}
			defer func() { _ = member.Close() }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close(); _ = member.Close() })
			defer stop()
			splice(conn, member)
		}()
	}
}

// splice copies both ways until both are done.
func splice(a, b net.Conn) {
	var wg sync.WaitGroup
	oneWay := func(dst, src net.Conn) {
		defer wg.Done()
		_, _ = io.Copy(dst, src)
		if t, ok := dst.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
	}
	wg.Add(2)
	go oneWay(a, b)
	go oneWay(b, a)
	wg.Wait()
}
