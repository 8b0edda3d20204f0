// Command echo is the backend of the tests: a static binary that stands for an
// image and answers every request with what it saw, as JSON, so that a test
// knows which Pod answered and what reached it.
//
// PORT is where it listens (8080). /healthz answers 200 until SIGTERM, then
// 503; DRAIN (5s) is how long it goes on answering after SIGTERM. POD_NAME,
// POD_NAMESPACE, NODE_NAME and TEXT are shown as they are. A request with
// ?status=503 is answered with that status, with ?sleep=2s after that time
// (at most a minute).
//
// With TLS_CERTIFICATE and TLS_KEY, both PEM, it answers on TLS_PORT (8443)
// over TLS too, asks for a certificate of the client and shows what it got,
// whoever issued it.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// answer is what a request is answered with.
type answer struct {
	Pod       string              `json:"pod"`
	Namespace string              `json:"namespace"`
	Node      string              `json:"node"`
	Text      string              `json:"text,omitempty"`
	Method    string              `json:"method"`
	Path      string              `json:"path"`
	Query     string              `json:"query,omitempty"`
	Host      string              `json:"host"`
	Headers   map[string][]string `json:"headers"`
	Client    string              `json:"client"`
	TLS       *secured            `json:"tls,omitempty"`
	Local     string              `json:"local"`
}

// secured is what is known of a request that came over TLS.
type secured struct {
	ServerName string `json:"serverName"`
	Version    string `json:"version"`
	Protocol   string `json:"protocol"`
	// Client is the common name in the certificate of the client.
	Client string `json:"client,omitempty"`
}

// server answers as one Pod.
type server struct {
	pod, namespace, node, text string
	draining                   atomic.Bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run() error {
	drain, err := time.ParseDuration(env("DRAIN", "5s"))
	if err != nil {
		return fmt.Errorf("DRAIN: %w", err)
	}
	pod := env("POD_NAME", "")
	if pod == "" {
		if pod, err = os.Hostname(); err != nil {
			return err
		}
	}
	s := &server{pod: pod, namespace: env("POD_NAMESPACE", ""), node: env("NODE_NAME", ""), text: env("TEXT", "")}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", ":"+env("PORT", "8080"))
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(l) }()
	if text := env("TLS_CERTIFICATE", ""); text != "" {
		own, err := tls.X509KeyPair([]byte(text), []byte(env("TLS_KEY", "")))
		if err != nil {
			return fmt.Errorf("TLS_CERTIFICATE and TLS_KEY: %w", err)
		}
		secure, err := listen.Listen(ctx, "tcp", ":"+env("TLS_PORT", "8443"))
		if err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert}
		go func() { failed <- srv.ServeTLS(secure, "", "") }()
	}
	log.Printf("%s/%s on %s listens on %s", s.namespace, s.pod, s.node, l.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends it at once
	log.Printf("draining for %s", drain)
	s.draining.Store(true)
	srv.SetKeepAlivesEnabled(false)
	time.Sleep(drain)
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	log.Print("done")
	return nil
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		if s.draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	q := r.URL.Query()
	if d, err := time.ParseDuration(q.Get("sleep")); err == nil && d > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(min(d, time.Minute)):
		}
	}
	status := http.StatusOK
	if n, err := strconv.Atoi(q.Get("status")); err == nil && n >= 200 && n <= 599 {
		status = n
	}
	a := answer{Pod: s.pod, Namespace: s.namespace, Node: s.node, Text: s.text, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Client: r.RemoteAddr}
	if l, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		a.Local = l.String()
	}
	if c := r.TLS; c != nil {
		a.TLS = &secured{ServerName: c.ServerName, Version: tls.VersionName(c.Version), Protocol: c.NegotiatedProtocol}
		if len(c.PeerCertificates) > 0 {
			a.TLS.Client = c.PeerCertificates[0].Subject.CommonName
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo-Pod", s.pod)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(a); err != nil {
		log.Printf("answering %s: %v", r.RemoteAddr, err)
	}
}
