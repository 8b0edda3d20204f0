package inspect

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

func (t *tool) uiCommand() *cobra.Command {
	var port int
	var interval time.Duration
	c := &cobra.Command{
		Use:   "ui [[NAMESPACE/]GATEWAY...]",
		Short: "Serve a local page with the picture of Gateways, their health and their plans",
		Long: "Serve a page on the loopback interface that shows Gateways with their listeners, L7 policies in the order of evaluation, pools and members with live status, " +
			"what the controller is about to do, and the plans that were seen before. It only reads, loads nothing from elsewhere, and refreshes itself while somebody looks.\n\n" +
			"The address holds a secret, so that other users and pages of this machine's browser cannot look. With -o json or yaml the picture is printed once instead.",
		Example:           "  kubectl octavia ui\n  kubectl octavia ui infra/edge --port 0\n  kubectl octavia ui -o json",
		ValidArgsFunction: t.completeGateways,
		RunE: func(c *cobra.Command, args []string) error {
			// What cannot work at all is said before a page is offered.
			first, err := t.picture(c.Context(), args)
			if err != nil {
				return err
			}
			if t.output != "" {
				return t.print(first, nil)
			}
			return t.serve(c.Context(), port, newPage(interval, func(ctx context.Context) (*Picture, error) { return t.picture(ctx, args) }, t.now))
		},
	}
	c.Flags().IntVar(&port, "port", 8765, "port on the loopback interface; 0 takes a free one")
	c.Flags().DurationVar(&interval, "interval", 10*time.Second, "how old what the page shows may become while somebody looks")
	return c
}

// serve serves the page until the command is interrupted.
func (t *tool) serve(ctx context.Context, port int, p *page) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w; --port 0 takes a free port", err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	if _, err := fmt.Fprintf(t.Out, "http://%s%s\nCtrl-C ends it.\n", listener.Addr(), p.prefix); err != nil {
		_ = listener.Close()
		return fmt.Errorf("writing: %w", err)
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

//go:embed page
var assets embed.FS

// page is the HTTP server behind the command.
type page struct {
	// prefix is the path below which everything is: "/SECRET/".
	prefix   string
	interval time.Duration
	take     func(context.Context) (*Picture, error)
	now      func() time.Time
	mux      *http.ServeMux

	mu      sync.Mutex
	history history
	last    *Picture
	// tried is when the last attempt ended.
	tried time.Time
}

func newPage(interval time.Duration, take func(context.Context) (*Picture, error), now func() time.Time) *page {
	p := &page{prefix: "/" + rand.Text() + "/", interval: interval, take: take, now: now, mux: http.NewServeMux()}
	files, err := fs.Sub(assets, "page")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	p.mux.Handle("GET "+p.prefix, http.StripPrefix(p.prefix, http.FileServerFS(files)))
	p.mux.HandleFunc("GET "+p.prefix+"picture.json", p.picture)
	return p
}

// policy lets the page load what is compiled in and nothing else, and lets no script make markup of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP refuses whoever came here by another name: a page of somebody else whose name was made to resolve to this machine.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !loopback(r.Host) {
		http.Error(w, "This page answers only to localhost and 127.0.0.1.", http.StatusMisdirectedRequest)
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		http.Error(w, "This page answers to no other pages.", http.StatusForbidden)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// loopback says whether a Host header names this machine. The port may be another one: that of an SSH tunnel.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (p *page) picture(w http.ResponseWriter, r *http.Request) {
	shown, err := p.current(r.Context())
	if err != nil {
		http.Error(w, printable(explained(err)), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(shown); err != nil {
		return //nolint:nilerr // the browser went away
	}
}

// current is the picture, taken anew when it is older than the interval. After a failure it is the last one that could be taken.
func (p *page) current(ctx context.Context) (*Picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && p.now().Sub(p.tried) < p.interval {
		return p.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fresh, err := p.take(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, err // nobody looks any more
	}
	p.tried = p.now()
	if err == nil {
		p.history.see(fresh)
		p.last = fresh
		return fresh, nil
	}
	if p.last == nil {
		return nil, err
	}
	old := *p.last
	old.Failed = printable(explained(err))
	p.last = &old
	return p.last, nil
}
