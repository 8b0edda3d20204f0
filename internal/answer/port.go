package answer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

// The ports of the responder that mean one thing for ever, as target ports of its Service: 9000 and the status.
const (
	// NotFound answers 404: no rule takes the request.
	NotFound = 9404
	// InvalidBackend answers 500: the rule has no backend that may be used.
	InvalidBackend = 9500
	// NoEndpoint answers 503: the backend has no endpoint.
	NoEndpoint = 9503
)

// The ports whose meaning an annotation of the Service says.
const (
	firstRedirect = 9600
	lastRedirect  = 9631
)

// Annotation is where the Service of a responder says what its redirect ports mean.
const Annotation = api.Domain + "/redirects"

// Ports are all target ports that a responder may have to answer on.
func Ports() []int {
	ports := []int{NotFound, InvalidBackend, NoEndpoint}
	for _, code := range Codes {
		ports = append(ports, toHTTPS+code)
	}
	for p := firstRedirect; p <= lastRedirect; p++ {
		ports = append(ports, p)
	}
	return ports
}

const toHTTPS = 9000

// Fixed is the port that has the redirect for ever: those to https that change nothing else.
func Fixed(r Redirect) (port int, ok bool) {
	return toHTTPS + r.Code, r == Redirect{Code: r.Code, Scheme: "https"}
}

// Table is what redirect ports mean.
type Table map[int]Redirect

// Meaning is what a port answers: a status or, when it has one, a redirect. Ports without a meaning answer 503, so that a
// responder that has not learned of a redirect yet gives none instead of a wrong one.
func (t Table) Meaning(port int) (status int, redirect *Redirect) {
	switch port {
	case NotFound:
		return 404, nil
	case InvalidBackend:
		return 500, nil
	case NoEndpoint:
		return 503, nil
	}
	if slices.Contains(Codes, port-toHTTPS) {
		return 0, &Redirect{Code: port - toHTTPS, Scheme: "https"}
	}
	if r, ok := t[port]; ok {
		return 0, &r
	}
	return 503, nil
}

// Port is the port that has the redirect.
func (t Table) Port(r Redirect) (port int, ok bool) {
	for p, known := range t {
		if known == r && (!ok || p < port) {
			port, ok = p, true
		}
	}
	return port, ok
}

// Assign gives the redirect a port: the one that it has, or the first of the others that has no meaning yet. It returns false when
// there is none.
func (t Table) Assign(r Redirect, among []int) (port int, ok bool) {
	if p, found := t.Port(r); found && slices.Contains(among, p) {
		return p, true
	}
	for _, p := range slices.Sorted(slices.Values(among)) {
		if _, taken := t[p]; !taken && p >= firstRedirect && p <= lastRedirect {
			t[p] = r
			return p, true
		}
	}
	return 0, false
}

// document is the form of the annotation.
type document struct {
	// Controller is the controllerName of who writes it. Nobody else may.
	Controller string           `json:"controller"`
	Ports      map[int]Redirect `json:"ports"`
}

// Format is the value of the annotation. It is the same for equal tables.
func (t Table) Format(controller string) (string, error) {
	text, err := json.Marshal(document{Controller: controller, Ports: t})
	if err != nil {
		return "", fmt.Errorf("writing redirects: %w", err)
	}
	return string(text), nil
}

// ParseTable reads the annotation. What it cannot use is left out: a port has a right meaning or none.
func ParseTable(annotation string) (t Table, controller string) {
	t = Table{}
	var d document
	if annotation == "" || json.Unmarshal([]byte(annotation), &d) != nil {
		return t, ""
	}
	for port, r := range d.Ports {
		if normal, err := r.Normal(); err == nil && normal == r && port >= firstRedirect && port <= lastRedirect {
			t[port] = r
		}
	}
	return t, d.Controller
}

// Clone is a copy that can be changed.
func (t Table) Clone() Table {
	if t == nil {
		return Table{}
	}
	return maps.Clone(t)
}
