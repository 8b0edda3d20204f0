package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const maxBody = 16 << 20

// request is what the handlers of the services see.
type request struct {
	service string
	method  string
	path    []string // below the version
	query   url.Values
	body    []byte
	header  http.Header
	token   *token
	fault   *Fault // effects on the operation that the call starts
	base    string // scheme and host as the client sees them
}

// is matches method and path; "*" matches any segment.
func (r *request) is(method string, path ...string) bool {
	if r.method != method || len(r.path) != len(path) {
		return false
	}
	for i, p := range path {
		if p != "*" && p != r.path[i] {
			return false
		}
	}
	return true
}

// response is the answer of a handler. Its body is marshalled under the lock.
type response struct {
	status      int
	body        any
	raw         []byte
	contentType string
	header      http.Header
	hold        time.Duration
}

// apiError is a refusal. Each service renders it in its own format.
type apiError struct {
	status  int
	kind    string // Neutron: the exception type
	message string
}

func (e *apiError) Error() string { return e.message }

func refuse(status int, format string, args ...any) error {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

type service struct {
	name   string
	prefix string
	handle func(*Cloud, *request) (response, error)
	fail   func(*apiError) any
	// open tells whether the request needs no token.
	open func(*request) bool
	// strip splits off the version and returns the path for handlers.
	strip func([]string) []string
}

func (c *Cloud) services() []service {
	return []service{
		{Keystone, "/identity", (*Cloud).keystone, keystoneError, func(r *request) bool { return true }, stripFirst("v3")},
		{Octavia, "/load-balancer", (*Cloud).octavia, octaviaError, func(r *request) bool { return len(r.path) == 0 }, stripOctavia},
		{Neutron, "/network", (*Cloud).neutron, neutronError, func(r *request) bool { return len(r.path) == 0 }, stripFirst("v2.0")},
		{Barbican, "/key-manager", (*Cloud).barbican, barbicanError, func(r *request) bool { return len(r.path) == 0 }, stripFirst("v1")},
	}
}

func stripFirst(version string) func([]string) []string {
	return func(p []string) []string {
		if len(p) > 0 && p[0] == version {
			return p[1:]
		}
		return p
	}
}

func stripOctavia(p []string) []string {
	if len(p) > 0 && (p[0] == "v2" || p[0] == "v2.0") {
		p = p[1:]
		if len(p) > 0 && p[0] == "lbaas" {
			p = p[1:]
		}
		if len(p) == 0 {
			return []string{"v2"}
		}
	}
	return p
}

// ServeHTTP answers one call to any of the services.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	started := c.clock.Now()
	var svc *service
	for i := range c.svcs {
		if hr.URL.Path == c.svcs[i].prefix || strings.HasPrefix(hr.URL.Path, c.svcs[i].prefix+"/") {
			svc = &c.svcs[i]
		}
	}
	if svc == nil {
		http.NotFound(w, hr)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	path := svc.strip(segments(strings.TrimPrefix(hr.URL.Path, svc.prefix)))
	r := &request{service: svc.name, method: hr.Method, path: path, query: hr.URL.Query(),
		body: body, header: hr.Header, base: "http://" + hr.Host}
	if svc.name == Keystone || svc.name == Barbican {
		c.confide(body)
	}
	call := Call{Service: svc.name, Method: hr.Method, Path: "/" + strings.Join(path, "/"), Query: r.query, Time: started}
	if svc.name == Octavia || svc.name == Neutron {
		call.Body = string(body)
	}
	fault := c.faultFor(svc.name, call.Method, call.Path, body)
	if fault == nil {
		fault = &Fault{}
	}
	r.fault = fault
	done := func(status int) {
		call.Status, call.Took = status, c.clock.Now().Sub(started)
		c.record(call)
	}

	c.pause(fault.Delay)
	if fault.Cut == CutBefore {
		done(0)
		cut(w)
		return
	}
	if fault.Before != nil {
		fault.Before()
	}
	resp, payload := c.answer(svc, r) //nolint:contextcheck // what a call opens outlives the call
	c.pause(fault.Hold + resp.hold)
	if fault.Cut == CutAfter {
		done(0)
		cut(w)
		return
	}
	done(resp.status)
	for k, v := range resp.header {
		w.Header()[k] = v
	}
	w.Header().Set("X-Openstack-Request-Id", c.requestID())
	if payload != nil {
		ct := resp.contentType
		if ct == "" {
			ct = "application/json"
		}
		w.Header().Set("Content-Type", ct)
	}
	w.WriteHeader(resp.status)
	_, _ = w.Write(payload)
}

// pause waits on the clock of the cloud. A client that gives up does not stop
// a real service either.
func (c *Cloud) pause(d time.Duration) {
	if d > 0 {
		_ = c.clock.Sleep(c.ctx, d) // ends early only when the cloud does
	}
}

// answer runs the handler under the lock and marshals what it returns.
func (c *Cloud) answer(svc *service, r *request) (response, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeForwarder()
	c.settle()
	if c.forward != nil && svc.name == Neutron && r.method != http.MethodGet {
		c.forward.changed = true // floating IPs come and go at once
	}

	resp, err := response{}, error(nil)
	switch {
	case r.fault.Status != 0:
		msg := r.fault.Message
		if msg == "" {
			msg = scriptedMessage(r.fault.Status)
		}
		if r.fault.Echo {
			msg += ": X-Auth-Token: " + r.header.Get("X-Auth-Token") + " " + string(r.body)
		}
		resp.header = r.fault.Header
		err = refuse(r.fault.Status, "%s", msg)
	case !svc.open(r):
		if r.fault.Revoke {
			c.revoke(r.header.Get("X-Auth-Token"))
		}
		r.token = c.validToken(r.header.Get("X-Auth-Token"))
		if r.token == nil {
			return unauthorized(r)
		}
		resp, err = svc.handle(c, r)
	default:
		resp, err = svc.handle(c, r)
	}
	if err != nil {
		var ae *apiError
		if !errors.As(err, &ae) {
			ae = &apiError{status: http.StatusInternalServerError, message: err.Error()}
		}
		resp.status, resp.body = ae.status, svc.fail(ae)
	}
	if resp.raw != nil {
		return resp, resp.raw
	}
	if resp.body == nil {
		return resp, nil
	}
	payload, err := marshal(resp.body)
	if err != nil {
		panic(fmt.Sprintf("sim: %s %v: %v", r.method, r.path, err))
	}
	return resp, payload
}

func unauthorized(r *request) (response, []byte) {
	body, _ := marshal(keystoneError(&apiError{status: http.StatusUnauthorized, message: notAuthenticated}))
	h := http.Header{}
	h.Set("Www-Authenticate", "Keystone uri=\""+r.base+"/identity\"")
	return response{status: http.StatusUnauthorized, header: h}, body
}

func cut(w http.ResponseWriter) {
	hj, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hj.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}

func segments(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// marshal is json.Marshal without HTML escaping.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// object is a JSON object under construction.
type object map[string]any

func parseQuery(q string) url.Values {
	v, err := url.ParseQuery(q)
	if err != nil {
		panic(fmt.Sprintf("sim: query %q: %v", q, err))
	}
	return v
}
