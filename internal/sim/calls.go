package sim

import (
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"
)

// Names of the services in Call.Service and Fault.Service.
const (
	Keystone = "keystone"
	Octavia  = "octavia"
	Neutron  = "neutron"
	Barbican = "barbican"
)

// Call is one recorded request.
type Call struct {
	Service string
	Method  string
	// Path is below the service's version, for example
	// /loadbalancers/<id> for Octavia or /floatingips for Neutron.
	Path  string
	Query url.Values
	// Body is the request body; for Keystone and for Barbican, which carry
	// credentials, it is left out.
	Body   string
	Status int // 0 when the connection was cut
	Time   time.Time
	Took   time.Duration
}

// Mutating tells whether the call could have changed something. Getting a
// token does not count.
func (c Call) Mutating() bool {
	return c.Service != Keystone && c.Method != http.MethodGet && c.Method != http.MethodHead
}

func (c Call) String() string {
	q := ""
	if len(c.Query) > 0 {
		q = "?" + c.Query.Encode()
	}
	return fmt.Sprintf("%s %s %s%s %d", c.Service, c.Method, c.Path, q, c.Status)
}

// Calls returns what was recorded since the start or the last ResetCalls.
func (c *Cloud) Calls() []Call {
	c.callsMu.Lock()
	defer c.callsMu.Unlock()
	return append([]Call(nil), c.calls...)
}

// ResetCalls forgets the recorded calls.
func (c *Cloud) ResetCalls() {
	c.callsMu.Lock()
	defer c.callsMu.Unlock()
	c.calls = nil
}

// Mutations returns the recorded calls that could have changed something.
func (c *Cloud) Mutations() []Call {
	var out []Call
	for _, call := range c.Calls() {
		if call.Mutating() {
			out = append(out, call)
		}
	}
	return out
}

// CallCounts returns the number of recorded calls by "service METHOD /collection".
func (c *Cloud) CallCounts() map[string]int {
	out := map[string]int{}
	for _, call := range c.Calls() {
		out[call.Service+" "+call.Method+" "+collectionOf(call.Path)]++
	}
	return out
}

// CallSummary renders CallCounts as sorted lines.
func (c *Cloud) CallSummary() string {
	counts := c.CallCounts()
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%5d %s\n", counts[k], k)
	}
	return b.String()
}

// collectionOf replaces the ids in a path by a star.
func collectionOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if len(p) == 36 && strings.Count(p, "-") == 4 {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

func (c *Cloud) record(call Call) {
	c.callsMu.Lock()
	defer c.callsMu.Unlock()
	if c.opts.MaxCalls > 0 && len(c.calls) >= c.opts.MaxCalls {
		c.calls = append(c.calls[:0], c.calls[len(c.calls)/2:]...)
	}
	c.calls = append(c.calls, call)
}
