package cloud

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// pages answers a list of pools in pages of two, with links to a host that is not ours.
func pages(t *testing.T, total int, fail string) (stubTransport, *atomic.Int32) {
	var calls atomic.Int32
	return func(r *http.Request) (*http.Response, error) {
		calls.Add(1)
		if r.URL.Host != "octavia.test" || r.URL.Scheme != "http" || r.URL.Path != "/load-balancer/v2/lbaas/pools" {
			t.Errorf("a request went to %s", r.URL)
		}
		if r.URL.Query().Get("loadbalancer_id") != "L" {
			t.Errorf("the filter is lost: %s", r.URL.RawQuery)
		}
		marker := r.URL.Query().Get("marker")
		if marker == fail {
			return answer(500, "{}")
		}
		first := 0
		if marker != "" {
			if _, err := fmt.Sscan(marker, &first); err != nil {
				t.Error(err)
			}
		}
		var items []string
		for i := first + 1; i <= min(first+2, total); i++ {
			items = append(items, fmt.Sprintf(`{"id": "%d"}`, i))
		}
		links := ""
		if first+2 < total {
			links = fmt.Sprintf(`, "pools_links": [{"rel": "previous", "href": "x"}, {"rel": "next", "href": "https://internal:9876/v2/lbaas/pools?limit=2&marker=%d"}]`, first+2)
		}
		return answer(200, `{"pools": [`+strings.Join(items, ",")+`]`+links+`}`)
	}, &calls
}

func TestList_readsEveryPageFromOurEndpoint(t *testing.T) {
	t.Parallel()
	send, calls := pages(t, 7, "never")
	c := stubClient(t, Options{}, send)
	got, err := list[wireRef](context.Background(), c, octavia, "/pools", "pools", "pools", url.Values{"loadbalancer_id": {"L"}})
	if err != nil || len(got) != 7 || calls.Load() != 4 {
		t.Errorf("%d objects in %d calls, %v", len(got), calls.Load(), err)
	}
	for i, w := range got {
		if w.ID != fmt.Sprint(i+1) {
			t.Errorf("object %d is %s", i, w.ID)
		}
	}
}

func TestList_failsWhenOnePageDoes(t *testing.T) {
	t.Parallel()
	send, _ := pages(t, 7, "4")
	c := stubClient(t, Options{}, send)
	got, err := list[wireRef](context.Background(), c, octavia, "/pools", "pools", "pools", url.Values{"loadbalancer_id": {"L"}})
	if ClassOf(err) != Retry || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestList_refusesWhatIsNoList(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no key":          `{"listeners": []}`,
		"wrong type":      `{"pools": {}}`,
		"repeated marker": `{"pools": [{"id": "1"}], "pools_links": [{"rel": "next", "href": "http://x/?marker=1"}]}`,
		"no marker":       `{"pools": [{"id": "1"}], "pools_links": [{"rel": "next", "href": "http://x/?page=2"}]}`,
		"not JSON":        `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := stubClient(t, Options{}, func(*http.Request) (*http.Response, error) { return answer(200, body) })
			if _, err := list[wireRef](context.Background(), c, octavia, "/pools", "pools", "pools", nil); ReasonOf(err) != ReasonMalformed {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTransport_sendsNothingDuringAPause(t *testing.T) {
	t.Parallel()
	clock := newStepClock()
	var calls atomic.Int32
	c := stubClient(t, Options{Clock: clock}, func(*http.Request) (*http.Response, error) {
		if calls.Add(1) == 1 {
			return answer(429, "{}", "Retry-After", "3")
		}
		return answer(200, `{"loadbalancers": []}`)
	})
	ctx := context.Background()
	for range 3 {
		if _, _, err := c.Status(ctx, "L"); ReasonOf(err) != ReasonThrottled || RetryAfterOf(err) != 3*time.Second {
			t.Fatalf("got %v after %s", err, RetryAfterOf(err))
		}
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	_ = clock.Sleep(ctx, 3*time.Second)
	if _, _, err := c.Status(ctx, "L"); err != nil || calls.Load() != 2 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestTransport_keepsTheRate(t *testing.T) {
	t.Parallel()
	clock := newStepClock()
	c := stubClient(t, Options{Clock: clock, QPS: 2, Burst: 1, InFlight: 1}, func(*http.Request) (*http.Response, error) {
		return answer(200, `{"loadbalancers": []}`)
	})
	started := clock.Now()
	for range 5 {
		if _, _, err := c.Status(context.Background(), "L"); err != nil {
			t.Fatal(err)
		}
	}
	if took := clock.Now().Sub(started); took != 2*time.Second {
		t.Errorf("5 calls at 2/s with a burst of 1 took %s", took)
	}
}

func TestTransport_limitsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	c := stubClient(t, Options{InFlight: 2}, func(*http.Request) (*http.Response, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return answer(200, `{"loadbalancers": []}`)
	})
	done := make(chan error)
	for range 10 {
		go func() {
			_, _, err := c.Status(context.Background(), "L")
			done <- err
		}()
	}
	for range 10 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestTransport_measuresWithBoundedLabels(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := stubClient(t, Options{Metrics: reg}, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/rules") {
			return answer(409, "{}")
		}
		return answer(200, `{"loadbalancers": []}`)
	})
	for _, id := range []string{"a", "b", "c"} {
		_, _ = list[wireRule](context.Background(), c, octavia, "/l7policies/"+id+"/rules", "rules", "rules", nil)
		_, _, _ = c.Status(context.Background(), id)
	}
	for name, want := range map[string]int{"gateway_api_openstack_cloud_request_seconds": 2, "gateway_api_openstack_cloud_request_wait_seconds": 1} {
		if n, err := testutil.GatherAndCount(reg, name); n != want || err != nil {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
}

func TestOperation_leavesOutIDs(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/loadbalancers":            "GET loadbalancers",
		"/l7policies/0b1c/rules/22": "GET l7policies/rules",
		"":                          "GET versions",
	} {
		if got := operation("GET", path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}

func TestElement_keepsAnIDInItsPlace(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"": "-", "..": "-", "a/../b": "a%2F..%2Fb", "x?y": "x%3Fy", "0b1c-2d": "0b1c-2d"} {
		if got := element(id); got != want {
			t.Errorf("%q: %q", id, got)
		}
	}
}

func TestBaseURL_addsTheVersionOnce(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"http://h/load-balancer", "http://h/load-balancer/", "http://h/load-balancer/v2", "http://h/load-balancer/v2.0/"} {
		if got := baseURL(octavia, endpoint); got != "http://h/load-balancer/v2/lbaas" || rootURL(got) != "http://h/load-balancer" {
			t.Errorf("%s: %s, root %s", endpoint, got, rootURL(got))
		}
	}
	for _, endpoint := range []string{"http://h:9696", "http://h:9696/v2.0/"} {
		if got := baseURL(neutron, endpoint); got != "http://h:9696/v2.0" {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}
