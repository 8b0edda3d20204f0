package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTally_changesAtTheThresholds(t *testing.T) {
	t.Parallel()
	ty := newTally(&corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}, false)
	var got strings.Builder
	for _, answer := range "+-++--+---+--+++" {
		if ty.observe(answer == '+') {
			got.WriteByte('!')
		} else {
			got.WriteByte('.')
		}
	}
	if want := "...!.....!....!."; got.String() != want {
		t.Errorf("changes %s, want %s", got.String(), want)
	}
}

func TestTally_unsetThresholdsAreOne(t *testing.T) {
	t.Parallel()
	ty := newTally(&corev1.Probe{}, true)
	if !ty.observe(false) || !ty.observe(true) {
		t.Error("one answer did not change the result")
	}
}

var loopback = netip.MustParseAddr("127.0.0.1")

func TestAsk_httpByNamedPortAndHeaders(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		case r.Host != "probe.test" || r.Header.Get("X-Probe") != "1":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not yet"))
		}
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	c := &corev1.Container{Name: "web", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(n)}}}
	get := func(path string, port intstr.IntOrString) error {
		h := &corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port, HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "probe.test"}, {Name: "X-Probe", Value: "1"}}}}
		return ask(context.Background(), h, c, loopback, time.Second)
	}
	if err := get("/ok", intstr.FromString("http")); err != nil {
		t.Error(err)
	}
	if err := get("/moved", intstr.FromInt32(int32(n))); err != nil {
		t.Errorf("a redirect is a good answer: %v", err)
	}
	if err := get("/bad", intstr.FromString("http")); err == nil || !strings.Contains(err.Error(), "503: not yet") {
		t.Errorf("got %v", err)
	}
	if err := get("/ok", intstr.FromString("other")); err == nil || !strings.Contains(err.Error(), `container "web" has no port "other"`) {
		t.Errorf("got %v", err)
	}
	tcp := &corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}
	if err := ask(context.Background(), tcp, c, loopback, time.Second); err != nil {
		t.Error(err)
	}
	srv.Close()
	if err := ask(context.Background(), tcp, c, loopback, time.Second); err == nil {
		t.Error("a closed port was good")
	}
	if err := ask(context.Background(), &corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, c, loopback, time.Second); err == nil {
		t.Error("exec was taken")
	}
}

func TestWatch_reportsChangesUntilTheEnd(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(int32(n))}}}
	ctx, cancel := context.WithCancel(context.Background())
	reports := 0
	watch(ctx, p, &corev1.Container{}, loopback, false, func(good bool, answer error) {
		reports++
		if !good || answer != nil {
			t.Errorf("good %v, answer %v", good, answer)
		}
		cancel()
	})
	if reports != 1 {
		t.Errorf("%d reports", reports)
	}
}
