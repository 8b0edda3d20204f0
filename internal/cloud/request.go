package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// call is one request. Op and what name it in errors.
type call struct {
	service service
	method  string
	// path is below the service's base URL; ids in it come from element.
	path  string
	query url.Values
	// body is marshalled; nil sends none. out is filled from the answer; nil ignores it.
	body, out any
	op, what  string
}

// do sends a request. A read that met a sporadic failure is tried again, which real clouds make necessary: an observation
// is a hundred reads. A write never is.
func (c *Client) do(ctx context.Context, r call) error {
	err := c.once(ctx, r)
	for pause := firstRetry; r.method == http.MethodGet && ReasonOf(err) == ReasonUnavailable && pause <= lastRetry; pause *= 2 {
		if RetryAfterOf(err) > 0 || c.opts.Clock.Sleep(ctx, pause) != nil {
			return err
		}
		err = c.once(ctx, r)
	}
	return err
}

// The pauses before a read is tried again.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

func (c *Client) once(ctx context.Context, r call) error {
	s := c.session(ctx)
	err := c.sendTo(ctx, s, r)
	if ReasonOf(err) != ReasonAuth {
		return err
	}
	// Nothing was done. When the credentials have just been replaced, the new ones may do it.
	if fresh := c.session(ctx); fresh != s {
		return c.sendTo(ctx, fresh, r)
	}
	return err
}

func (c *Client) sendTo(ctx context.Context, s *session, r call) error {
	base, ok := s.base[r.service]
	if !ok {
		return &Error{Class: OperatorFault, Reason: ReasonUnsupported, Op: r.op, Resource: r.what,
			Message: fmt.Sprintf("the service catalog has no %s endpoint", r.service)}
	}
	return c.send(ctx, s, base+r.path, r)
}

func (c *Client) send(ctx context.Context, s *session, target string, r call) error {
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	opts := &gophercloud.RequestOpts{JSONBody: r.body, JSONResponse: r.out, OkCodes: []int{200, 201, 202, 204}}
	ctx = withCallInfo(ctx, r.service, operation(r.method, r.path))
	_, err := s.provider.Request(ctx, r.method, target, opts) //nolint:bodyclose // gophercloud has read and closed it
	err = classify(r.service, r.op, r.what, err)
	var refused *Error
	if errors.As(err, &refused) && refused.Reason == ReasonProhibited {
		c.facts.prohibit(refused.ciphers, refused.version, c.opts.Clock.Now())
	}
	return err
}

// element is an id as a path element. What is not one cannot be sent: it would name another resource.
func element(id string) string {
	if id == "" || strings.Trim(id, ".") == "" {
		return "-"
	}
	return url.PathEscape(id)
}

// list reads every page of a collection, or fails. Octavia and Neutron link to the next page; behind a proxy the link's
// scheme and host are often wrong, and must never be given our token: only its marker and limit are used.
func list[T any](ctx context.Context, c *Client, svc service, path, key, what string, query url.Values) ([]T, error) {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	var all []T
	seen := map[string]bool{}
	for {
		var page map[string]json.RawMessage
		err := c.do(ctx, call{service: svc, method: http.MethodGet, path: path, query: query, out: &page, op: "list", what: what})
		if err != nil {
			return nil, err
		}
		malformed := func() error {
			return &Error{Class: Retry, Reason: ReasonMalformed, Op: "list", Resource: what,
				Message: svc.title() + " gave an answer that is not the expected JSON"}
		}
		var items []T
		raw, ok := page[key]
		if !ok || json.Unmarshal(raw, &items) != nil {
			return nil, malformed()
		}
		all = append(all, items...)

		var links []struct{ Rel, Href string }
		if raw, ok := page[key+"_links"]; ok && json.Unmarshal(raw, &links) != nil {
			return nil, malformed()
		}
		next := ""
		for _, l := range links {
			if l.Rel == "next" {
				next = l.Href
			}
		}
		if next == "" {
			return all, nil
		}
		u, err := url.Parse(next)
		if err != nil {
			return nil, malformed()
		}
		marker := u.Query().Get("marker")
		if marker == "" || seen[marker] {
			return nil, malformed()
		}
		seen[marker] = true
		query.Set("marker", marker)
		if limit := u.Query().Get("limit"); limit != "" {
			query.Set("limit", limit)
		}
	}
}
