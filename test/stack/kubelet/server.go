package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// serve answers the API server on the node's address until ctx ends.
func serve(ctx context.Context, k *kubelet) error {
	cert, err := selfSigned(k.cfg.nodeName, k.cfg.nodeIP)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(k.cfg.clientCA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return fmt.Errorf("no certificate in %s", k.cfg.clientCA)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", net.JoinHostPort(k.cfg.nodeIP.String(), strconv.Itoa(kubeletPort)))
	if err != nil {
		return fmt.Errorf("%w (is another kubelet running in this namespace?)", err)
	}
	srv := &http.Server{
		Handler:           routes(k.container),
		ReadHeaderTimeout: 10 * time.Second,
		// Logs are only for who has a certificate of the cluster's CA, which is
		// the API server: it asks users for permission first.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
	}
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	go func() {
		if err := srv.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("serving logs: %v", err)
		}
	}()
	return nil
}

// routes are the paths of the kubelet API that are supported.
func routes(find func(namespace, pod, container string) *container) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		c := find(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
		if c == nil {
			http.Error(w, "no such container on this node", http.StatusNotFound)
			return
		}
		serveLog(w, r, c)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the process kubelet has no exec, attach and port-forward: it knows logs only; enter the Pod's namespace with nsenter instead", http.StatusNotImplemented)
	})
	return mux
}

func serveLog(w http.ResponseWriter, r *http.Request, c *container) {
	q, err := parseLogQuery(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	book := c.log(q.previous)
	if book == nil {
		if q.previous {
			http.Error(w, "the container has no previous run", http.StatusNotFound)
		}
		return
	}
	out := &limitedWriter{w: w, left: q.limit}
	lines, next, ended, change := book.from(0)
	lines = q.keep(lines)
	for {
		for _, l := range lines {
			if !out.write(q.format(l)) {
				return
			}
		}
		if !q.follow || ended {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-change:
		}
		lines, next, ended, change = book.from(next)
	}
}

// limitedWriter stops after a number of bytes; a negative number is no limit.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) write(s string) (more bool) {
	if l.left >= 0 {
		s = s[:min(int64(len(s)), l.left)]
		l.left -= int64(len(s))
	}
	if _, err := io.WriteString(l.w, s); err != nil {
		return false
	}
	return l.left != 0
}

// selfSigned makes the server's certificate. The API server is not told a CA
// for kubelets and takes any.
func selfSigned(name string, ip netip.Addr) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(10, 0, 0), IPAddresses: []net.IP{ip.AsSlice()}, DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
