package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// tally turns single answers of a probe into its result.
type tally struct {
	good             bool
	run              int // answers in a row that contradict good
	success, failure int
}

func newTally(p *corev1.Probe, good bool) *tally {
	return &tally{good: good, success: max(int(p.SuccessThreshold), 1), failure: max(int(p.FailureThreshold), 1)}
}

// observe takes one answer and says whether the result changed. A repeated
// failure at the threshold reports a change again only after success.
func (t *tally) observe(ok bool) (changed bool) {
	if ok == t.good {
		t.run = 0
		return false
	}
	t.run++
	limit := t.failure
	if ok {
		limit = t.success
	}
	if t.run < limit {
		return false
	}
	t.good, t.run = ok, 0
	return true
}

// watch asks a probe until ctx ends and reports each change of its result,
// with what the last answer was.
func watch(ctx context.Context, p *corev1.Probe, c *corev1.Container, ip netip.Addr, good bool, report func(good bool, answer error)) {
	t := newTally(p, good)
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		answer := ask(ctx, &p.ProbeHandler, c, ip, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
		if ctx.Err() != nil {
			return
		}
		if t.observe(answer == nil) {
			report(t.good, answer)
		}
		wait = time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	}
}

// awaitStart asks a startup probe until it is good once, and returns the last
// answer when it failed too often.
func awaitStart(ctx context.Context, p *corev1.Probe, c *corev1.Container, ip netip.Addr) (answer error) {
	t := newTally(&corev1.Probe{FailureThreshold: p.FailureThreshold}, true)
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		answer = ask(ctx, &p.ProbeHandler, c, ip, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
		if answer == nil || t.observe(false) {
			return answer
		}
		wait = time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	}
}

// ask runs a probe once. It is asked from the node's namespace, as users'
// network policies and servers expect.
func ask(ctx context.Context, h *corev1.ProbeHandler, c *corev1.Container, ip netip.Addr, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case h.HTTPGet != nil:
		return askHTTP(ctx, h.HTTPGet, c, ip)
	case h.TCPSocket != nil:
		addr, err := probeAddress(h.TCPSocket.Host, h.TCPSocket.Port, c, ip)
		if err != nil {
			return err
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return errors.New("this kind of probe is not supported by the process kubelet (it knows httpGet and tcpSocket)")
}

// probeClient accepts every certificate and follows no redirect to elsewhere,
// as Kubernetes documents for probes.
var probeClient = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: nil, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func askHTTP(ctx context.Context, g *corev1.HTTPGetAction, c *corev1.Container, ip netip.Addr) error {
	addr, err := probeAddress(g.Host, g.Port, c, ip)
	if err != nil {
		return err
	}
	scheme := "http"
	if g.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+g.Path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/process")
	for _, h := range g.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	res, err := probeClient.Do(req)
	if err != nil {
		return err
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 200))
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode >= 400 {
		return fmt.Errorf("HTTP status %d: %s", res.StatusCode, body)
	}
	return nil
}

// probeAddress resolves a port by number or by the container's name for it.
func probeAddress(host string, port intstr.IntOrString, c *corev1.Container, ip netip.Addr) (string, error) {
	if host == "" {
		host = ip.String()
	}
	number := port.IntValue()
	for _, p := range c.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			number = int(p.ContainerPort)
		}
	}
	if number < 1 || number > 65535 {
		return "", fmt.Errorf("container %q has no port %q", c.Name, port.String())
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}
