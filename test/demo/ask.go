package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// answer is what a client saw.
type answer struct {
	status  int
	backend string
	node    string
	body    string
}

func (a answer) String() string {
	if a.backend == "" {
		return fmt.Sprintf("%d from the load balancer", a.status)
	}
	return fmt.Sprintf("%d %s", a.status, a.body)
}

// ask sends one request over a connection of its own, as a new client would.
func ask(ctx context.Context, address, host, path string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return answer{}, fmt.Errorf("asking %s: %w", address, err)
	}
	req.Host = host
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return answer{}, fmt.Errorf("asking %s for %s%s: %w", address, host, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	return answer{
		status: resp.StatusCode, backend: resp.Header.Get("X-Backend"), node: resp.Header.Get("X-Node"),
		body: strings.TrimSpace(string(body)),
	}, nil
}

// watchful is a client that asks all the time for what must not change, and counts.
type watchful struct {
	cancel context.CancelFunc
	done   chan struct{}
	asked  int
	wrong  []string
}

// watch begins to ask; the backend must always be the same.
func watch(ctx context.Context, address, host, path, backend string) *watchful {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchful{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for pause(ctx, 20*time.Millisecond) == nil {
			a, err := ask(ctx, address, host, path)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				w.wrong = append(w.wrong, err.Error())
			case a.backend != backend:
				w.wrong = append(w.wrong, a.String())
			}
			w.asked++
		}
	}()
	return w
}

// end stops asking and returns how often was asked, or what was wrong.
func (w *watchful) end() (int, error) {
	w.cancel()
	<-w.done
	if len(w.wrong) > 0 {
		return w.asked, fmt.Errorf("%d of %d requests that had nothing to do with the change went wrong; the first: %s", len(w.wrong), w.asked, w.wrong[0])
	}
	return w.asked, nil
}

// get asks for a URL and wants a 200.
func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s", url, resp.Status)
	}
	return nil
}
