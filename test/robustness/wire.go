package robustness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// fault is what happens to some of the next calls. The zero service is all of the cloud; kube is the Kubernetes API.
type fault struct {
	service string
	// writes says that only calls are meant that change something.
	writes bool
	skip   int
	times  int

	status int
	body   string
	after  time.Duration // Retry-After
	lost   bool          // the call is done, but not answered
	cut    bool          // the call is not done
	delay  time.Duration
}

func (f fault) String() string {
	text := fmt.Sprintf("%d calls", f.times)
	if f.writes {
		text = fmt.Sprintf("%d writes", f.times)
	}
	if f.skip > 0 {
		text += fmt.Sprintf(" after %d", f.skip)
	}
	text += " of " + map[bool]string{true: "the cloud", false: f.service}[f.service == ""]
	switch {
	case f.lost:
		text += " are done without an answer"
	case f.cut:
		text += " do not arrive"
	case f.status != 0:
		text += " get " + strconv.Itoa(f.status)
		if f.after > 0 {
			text += fmt.Sprintf(" with Retry-After %s", f.after)
		}
	}
	if f.delay > 0 {
		text += fmt.Sprintf(" after %s", f.delay)
	}
	return text
}

// fault returns what befalls the next call, nil for nothing.
func (w *world) fault(service string, writes bool) *fault {
	for i, f := range w.faults {
		if f.service != service && (f.service != "" || service == "kube") || f.writes && !writes {
			continue
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		if f.times--; f.times <= 0 {
			w.faults = slices.Delete(w.faults, i, i+1)
		}
		return f
	}
	return nil
}

func (f *fault) kubeError() (after bool, err error) {
	resource := schema.GroupResource{Resource: "objects"}
	switch {
	case f.lost:
		return true, errors.New("http2: client connection lost")
	case f.cut:
		return false, errors.New("connection refused")
	case f.status == http.StatusConflict:
		return false, apierrors.NewConflict(resource, "object", errors.New("the object has been modified"))
	case f.status == http.StatusTooManyRequests:
		return false, apierrors.NewTooManyRequests("too many requests", 1)
	case f.status != 0:
		return false, apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	}
	return false, nil
}

// wire carries the calls of one process to the cloud.
type wire struct{ p *process }

func (t *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	p, w := t.p, t.p.w
	service, path := serviceOf(req.URL.Path)
	writes := req.Method != http.MethodGet && service != sim.Keystone
	if p.dead {
		return nil, errDead
	}
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	w.step(p, service == sim.Keystone)
	if p.dead {
		return nil, errDead
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	f := w.fault(service, writes)
	if f == nil {
		f = &fault{}
	}
	w.cloudCalls++
	if writes {
		w.writes++
	}
	switch {
	case f.delay > 0 && service == sim.Keystone:
		// All wait for the one that renews the token.
		w.clock.Advance(f.delay)
	case f.delay > 0:
		w.advance(w.clock.Now().Add(f.delay))
		if p.dead {
			return nil, errDead
		}
	}
	if writes && service == sim.Octavia && len(p.began) > 0 && (req.Method == http.MethodDelete || strings.HasSuffix(path, "/members")) {
		w.foreign.excuse(p.began[len(p.began)-1])
	}
	var resp *http.Response
	switch {
	case f.cut:
		err = io.EOF
	case f.status != 0:
		resp = answer(f, req)
	default:
		resp = w.serve(req, body)
		if f.lost {
			resp, err = nil, io.EOF
		}
	}
	if w.tracing {
		outcome := fmt.Sprint(err)
		if resp != nil {
			outcome = strconv.Itoa(resp.StatusCode)
		}
		w.trace("      %s %s %s %s?%s %s: %s", p.name, service, req.Method, path, req.URL.RawQuery, shortened(service, body), outcome)
	}
	if p.dying {
		p.kill()
		return nil, errDead
	}
	return resp, err
}

func shortened(service string, body []byte) string {
	if service != sim.Octavia && service != sim.Neutron {
		return ""
	}
	return string(body[:min(len(body), 300)])
}

func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close() //nolint:errcheck // a buffer
	return io.ReadAll(req.Body)
}

// serve lets the simulator answer.
func (w *world) serve(req *http.Request, body []byte) *http.Response {
	inner := req.Clone(context.Background())
	inner.Host = req.URL.Host
	inner.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	w.cloud.ServeHTTP(rec, inner)
	resp := rec.Result()
	resp.Request = req
	return resp
}

func answer(f *fault, req *http.Request) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	if f.after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(f.after.Seconds())))
	}
	return &http.Response{StatusCode: f.status, Header: header, Body: io.NopCloser(strings.NewReader(f.body)), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

func serviceOf(path string) (service, rest string) {
	for prefix, service := range map[string]string{"/identity/": sim.Keystone, "/load-balancer/": sim.Octavia, "/network/": sim.Neutron, "/key-manager/": sim.Barbican} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return service, "/" + rest
		}
	}
	return "", path
}
