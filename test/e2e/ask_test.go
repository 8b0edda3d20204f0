//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	router "github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// question is a request as it goes over the wire: nothing is normalised.
type question struct {
	Port   int
	Method string
	Target string
	Host   string
	// NoHost makes it a request of HTTP/1.0 without a Host header.
	NoHost bool
	// Headers are lines in order: name and value.
	Headers [][2]string
	// Odd marks what HAProxy may refuse by itself, with 400.
	Odd bool
}

func (q question) String() string {
	return strings.ReplaceAll(strings.TrimSpace(q.wire()), "\r\n", " | ")
}

func (q question) wire() string {
	var b strings.Builder
	version := "1.1"
	if q.NoHost {
		version = "1.0"
	}
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\n", q.Method, q.Target, version)
	if !q.NoHost {
		fmt.Fprintf(&b, "Host: %s\r\n", q.Host)
	}
	for _, h := range q.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	return b.String()
}

// request is the question as package route takes it.
func (q question) request() router.Request {
	r := router.Request{Port: q.Port, Path: q.Target, Header: map[string][]string{}}
	if r.Host = strings.Trim(q.Host, " \t"); q.NoHost {
		r.Host = ""
	} else if r.Host == "" {
		// An empty Host header is not the same as none.
		r.Header["host"] = []string{""}
	}
	for _, h := range q.Headers {
		name := strings.ToLower(h[0])
		r.Header[name] = append(r.Header[name], strings.Trim(h[1], " \t"))
	}
	return r
}

// reply is what a client sees.
type reply struct {
	Status   int
	Location string
	// Text names the backend that answered; it may be "" when the backend refused the request.
	Text string
	// byBackend says that a backend answered, not HAProxy.
	byBackend bool
}

func (r reply) String() string {
	switch {
	case r.Text != "":
		return r.Text
	case r.byBackend:
		return fmt.Sprintf("%d from a backend", r.Status)
	default:
		return strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, r.Location))
	}
}

// asker asks one address, over one connection for each port as long as it holds.
type asker struct {
	address string
	open    map[int]*connection
}

type connection struct {
	net.Conn
	*bufio.Reader
}

const answerWithin = 15 * time.Second

func newAsker(address string) *asker { return &asker{address: address, open: map[int]*connection{}} }

func (a *asker) close() {
	for port := range a.open {
		a.drop(port)
	}
}

func (a *asker) drop(port int) {
	if c := a.open[port]; c != nil {
		_ = c.Conn.Close()
		delete(a.open, port)
	}
}

// ask asks once more, over a new connection, when an old one was closed meanwhile.
func (a *asker) ask(ctx context.Context, q question) (reply, error) {
	fresh := a.open[q.Port] == nil
	r, err := a.once(ctx, q)
	if err == nil || fresh {
		return r, err
	}
	return a.once(ctx, q)
}

func (a *asker) once(ctx context.Context, q question) (reply, error) {
	c := a.open[q.Port]
	if c == nil {
		dialer := net.Dialer{Timeout: answerWithin}
		dialed, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.address, fmt.Sprint(q.Port)))
		if err != nil {
			return reply{}, err
		}
		c = &connection{dialed, bufio.NewReader(dialed)}
		a.open[q.Port] = c
	}
	r, again, err := c.exchange(q)
	if err != nil || !again {
		a.drop(q.Port)
	}
	return r, err
}

func (c *connection) exchange(q question) (r reply, again bool, err error) {
	if err := c.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return reply{}, false, err
	}
	if _, err := io.WriteString(c.Conn, q.wire()); err != nil && !errors.Is(err, syscall.EPIPE) {
		return reply{}, false, err
	}
	res, err := http.ReadResponse(c.Reader, &http.Request{Method: q.Method})
	if err != nil {
		return reply{}, false, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, false, err
	}
	if err := res.Body.Close(); err != nil {
		return reply{}, false, err
	}
	r = reply{Status: res.StatusCode, Location: res.Header.Get("Location")}
	switch {
	case strings.HasPrefix(res.Header.Get("Content-Type"), "application/json"):
		seen := answer{}
		if err := json.Unmarshal(body, &seen); err != nil {
			return reply{}, false, fmt.Errorf("%w in %q", err, body)
		}
		if seen.Text == "" {
			return reply{}, false, fmt.Errorf("the backend has no name: %s", body)
		}
		r.byBackend, r.Text = true, seen.Text
	case res.StatusCode == http.StatusOK, strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain"):
		// Go's server answered by itself: "OPTIONS *", or what it does not like.
		r.byBackend = true
	}
	return r, !res.Close && !q.NoHost, nil
}
