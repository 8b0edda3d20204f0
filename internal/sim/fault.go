package sim

import (
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// Cut tells when a connection is closed without an answer.
type Cut int

// The moments at which a connection can be cut.
const (
	NoCut     Cut = iota
	CutBefore     // the request is not acted on
	CutAfter      // the request is done, only its answer is lost
)

// Fault is a scripted misbehaviour. The zero matchers match everything; the
// effects can be combined, a Delay for example with any other.
type Fault struct {
	Service string // Octavia, Neutron, ...
	Method  string
	Path    string // regular expression on Call.Path
	Body    string // regular expression on the request body

	Skip  int // so many matching calls pass first
	Times int // so many calls are hit; 0 means once, a negative number always

	Delay   time.Duration // on the clock of the cloud, before the request is acted on
	Hold    time.Duration // the same, after it is done and before it is answered
	Status  int           // answer this and do nothing
	Message string        // the fault string of that answer
	Echo    bool          // it goes on with the request's token and body
	Header  http.Header   // headers of that answer, such as Retry-After
	Cut     Cut
	Revoke  bool // the caller's token stops being valid, so the answer is 401

	// Stuck leaves the load balancer that the call locks PENDING_* for ever.
	Stuck bool
	// Error names the kinds of objects that end in provisioning status ERROR
	// instead of ACTIVE when the operation that the call starts is over:
	// loadbalancer, listener, pool, member, healthmonitor, l7policy, rule.
	Error []string

	// Before runs just before the request is acted on, and may use the methods
	// of Cloud, to change something at the worst possible moment.
	Before func()
}

// Injected is a Fault at work.
type Injected struct {
	Fault
	path, body *regexp.Regexp

	mu   sync.Mutex
	seen int
	hits int
	off  bool
}

// Hits returns how many calls the fault has hit.
func (i *Injected) Hits() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hits
}

// Remove ends the fault.
func (i *Injected) Remove() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.off = true
}

func (i *Injected) hit(service, method, path string, body []byte) bool {
	if i.Service != "" && i.Service != service || i.Method != "" && i.Method != method ||
		i.path != nil && !i.path.MatchString(path) || i.body != nil && !i.body.Match(body) {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	times := i.Times
	if times == 0 {
		times = 1
	}
	if i.off || times > 0 && i.hits >= times {
		return false
	}
	i.seen++
	if i.seen <= i.Skip {
		return false
	}
	i.hits++
	return true
}

// Inject puts a fault to work. It panics when an expression does not compile.
func (c *Cloud) Inject(f Fault) *Injected {
	i := &Injected{Fault: f}
	if f.Path != "" {
		i.path = regexp.MustCompile(f.Path)
	}
	if f.Body != "" {
		i.body = regexp.MustCompile(f.Body)
	}
	c.faultsMu.Lock()
	defer c.faultsMu.Unlock()
	c.faults = append(c.faults, i)
	return i
}

// ClearFaults ends all faults.
func (c *Cloud) ClearFaults() {
	c.faultsMu.Lock()
	defer c.faultsMu.Unlock()
	c.faults = nil
}

// faultFor returns the effects of every fault that hits the call, merged, or
// nil. The first one that sets an effect wins.
func (c *Cloud) faultFor(service, method, path string, body []byte) *Fault {
	c.faultsMu.Lock()
	defer c.faultsMu.Unlock()
	var out *Fault
	for _, i := range c.faults {
		if !i.hit(service, method, path, body) {
			continue
		}
		if out == nil {
			f := i.Fault
			out = &f
			continue
		}
		out.Delay += i.Delay
		out.Hold += i.Hold
		if out.Status == 0 {
			out.Status, out.Message, out.Header = i.Status, i.Message, i.Header
		}
		if out.Cut == NoCut {
			out.Cut = i.Cut
		}
		out.Echo = out.Echo || i.Echo
		out.Revoke = out.Revoke || i.Revoke
		out.Stuck = out.Stuck || i.Stuck
		out.Error = append(append([]string(nil), out.Error...), i.Error...)
		if out.Before == nil {
			out.Before = i.Before
		}
	}
	return out
}

// scriptedMessage is the fault string of a scripted status that has none.
func scriptedMessage(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "This request was rate-limited."
	case http.StatusForbidden:
		return "Policy does not allow this request to be performed."
	case http.StatusServiceUnavailable:
		return "Project busy.  Unable to lock the project.  Please try again."
	case http.StatusInternalServerError:
		// What a MariaDB with snapshot isolation makes real clouds say.
		return `(pymysql.err.OperationalError) (1020, "Record has changed since last read in table 'load_balancer'")`
	default:
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
}
