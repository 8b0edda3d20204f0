package responder

import (
	"io"
	"net/http"
	"strconv"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

// Handler answers what arrives at one port. table is asked for each request.
func Handler(port int, table func() answer.Table) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		// The load balancer sets these on every request that it forwards, whatever the client sent. Its health checks have none.
		proto, portHeader := q.Header.Get("X-Forwarded-Proto"), q.Header.Get("X-Forwarded-Port")
		if proto == "" && portHeader == "" {
			reply(w, http.StatusOK, "The responder works.")
			return
		}
		status, redirect := table().Meaning(port)
		if redirect == nil {
			reply(w, status, sentence(status))
			return
		}
		listener, err := strconv.Atoi(portHeader)
		if err != nil || listener < 1 || listener > 65535 {
			reply(w, http.StatusBadRequest, "The load balancer does not say how the request came.")
			return
		}
		location, err := redirect.Location(answer.Request{Scheme: proto, Port: listener, Host: q.Host, Target: target(q)})
		if err != nil {
			reply(w, http.StatusBadRequest, "This request cannot be redirected.")
			return
		}
		// Caching a redirect is up to its status.
		h.Del("Cache-Control")
		h.Set("Location", location)
		reply(w, redirect.Code, "See "+location)
	})
}

// target is the request target as it was sent, but for the form that also has scheme and host.
func target(q *http.Request) string {
	if q.URL.IsAbs() {
		return q.URL.RequestURI()
	}
	return q.RequestURI
}

func sentence(status int) string {
	switch status {
	case http.StatusNotFound:
		return "No route takes this request."
	case http.StatusInternalServerError:
		return "The route of this request has no usable backend."
	}
	return "The backend of this request is not available."
}

// reply sends a short text. What a client that went away missed is nobody's loss.
func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
