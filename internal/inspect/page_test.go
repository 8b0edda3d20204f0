package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func samplePicture(t *testing.T) *Picture {
	t.Helper()
	text, err := os.ReadFile("testdata/picture.json")
	if err != nil {
		t.Fatal(err)
	}
	p := &Picture{}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(p *page, method, path string, headers map[string]string) *http.Response {
	r := httptest.NewRequest(method, "http://127.0.0.1:8765"+path, nil)
	for name, value := range headers {
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func TestPage_answersOnlyToThisMachineAndToItsSecret(t *testing.T) {
	t.Parallel()
	p := newPage(time.Minute, func(context.Context) (*Picture, error) { return samplePicture(t), nil }, time.Now)
	for name, c := range map[string]struct {
		method, path string
		headers      map[string]string
		want         int
	}{
		"the page":                      {"GET", p.prefix, nil, 200},
		"its data":                      {"GET", p.prefix + "picture.json", nil, 200},
		"by name":                       {"GET", p.prefix, map[string]string{"Host": "LOCALHOST:8765"}, 200},
		"by IPv6":                       {"GET", p.prefix, map[string]string{"Host": "[::1]:8765"}, 200},
		"through an SSH tunnel":         {"GET", p.prefix, map[string]string{"Host": "localhost:9000"}, 200},
		"from a link":                   {"GET", p.prefix, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		"a rebound name":                {"GET", p.prefix + "picture.json", map[string]string{"Host": "evil.example.com:8765"}, 421},
		"a name that begins like ours":  {"GET", p.prefix + "picture.json", map[string]string{"Host": "localhost.evil.example.com"}, 421},
		"an address that is not ours":   {"GET", p.prefix + "picture.json", map[string]string{"Host": "192.0.2.1:8765"}, 421},
		"no host":                       {"GET", p.prefix + "picture.json", map[string]string{"Host": ""}, 421},
		"a script of another page":      {"GET", p.prefix + "picture.json", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"another port of this machine":  {"GET", p.prefix + "picture.json", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403},
		"without the secret":            {"GET", "/", nil, 404},
		"with another secret":           {"GET", "/ABCDEFGHIJKLMNOPQRSTUVWXYZ/picture.json", nil, 404},
		"something that is not there":   {"GET", p.prefix + "other.js", nil, 404},
		"something above the page":      {"GET", p.prefix + "%2e%2e/ui.go", nil, 404},
		"a wish to change something":    {"POST", p.prefix + "picture.json", nil, 405},
		"a wish to delete the page":     {"DELETE", p.prefix, nil, 405},
		"a question about what it does": {"OPTIONS", p.prefix, nil, 405},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(p, c.method, c.path, c.headers)
			if got.StatusCode != c.want {
				t.Errorf("got %d, want %d", got.StatusCode, c.want)
			}
			if csp := got.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("Content-Security-Policy: %q", csp)
			}
			if got.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("other pages may read it")
			}
		})
	}
}

// The page works on a machine without a network, and its policy holds: nothing is inline and nothing is elsewhere.
func TestPage_needsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+\.[a-z]|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|<style| style=| on[a-z]+=`)
	for _, name := range []string{"index.html", "page.css", "page.js", "icon.svg"} {
		text, err := assets.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range elsewhere.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1) {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestPage_readsNoMoreOftenThanTheIntervalAndKeepsTheLastPicture(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	reads, broken := 0, errors.New("the API server is away")
	var fails error
	p := newPage(10*time.Second, func(context.Context) (*Picture, error) {
		reads++
		if fails != nil {
			return nil, fails
		}
		s := samplePicture(t)
		s.Taken = c.at
		return s, nil
	}, c.now)
	show := func() (int, Picture, string) {
		t.Helper()
		r := ask(p, "GET", p.prefix+"picture.json", nil)
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		var shown Picture
		_ = json.Unmarshal(text, &shown)
		return r.StatusCode, shown, string(text)
	}
	fails = broken
	if code, _, text := show(); code != 502 || !strings.Contains(text, "API server is away") {
		t.Fatalf("without a picture: %d %s", code, text)
	}
	fails = nil
	first := c.at
	for range 5 {
		if code, shown, _ := show(); code != 200 || len(shown.Gateways) != 2 || shown.Failed != "" {
			t.Fatalf("got %d with %d Gateways, failed %q", code, len(shown.Gateways), shown.Failed)
		}
	}
	if reads != 2 {
		t.Fatalf("%d reads within an interval, want 1 after the one that failed", reads-1)
	}
	c.at, fails = c.at.Add(10*time.Second), broken
	if _, shown, _ := show(); shown.Failed != "the API server is away" || !shown.Taken.Equal(first) || len(shown.Gateways) != 2 {
		t.Fatalf("after a failure: taken %s, failed %q", shown.Taken, shown.Failed)
	}
	show()
	if reads != 3 {
		t.Fatalf("a failure is tried again before the interval is over: %d reads", reads)
	}
	c.at, fails = c.at.Add(10*time.Second), nil
	if _, shown, _ := show(); shown.Failed != "" || !shown.Taken.Equal(c.at) {
		t.Fatalf("after it works again: taken %s, failed %q", shown.Taken, shown.Failed)
	}
}

func TestHistory_keepsThePlansThatWereSeen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var h history
	see := func(unseen string, gateway string, calls ...string) []SeenPlan {
		at = at.Add(time.Minute)
		p := &Picture{Taken: at}
		if gateway != "" {
			g := GatewayPicture{GatewayTree: GatewayTree{Gateway: gateway, Unseen: unseen}}
			for _, c := range calls {
				g.Pending = append(g.Pending, PendingCall{plan.Create, c, true})
			}
			p.Gateways = append(p.Gateways, g)
		}
		h.see(p)
		return p.Plans
	}
	if got := see("", "a/a"); len(got) != 0 {
		t.Fatalf("no plan: %v", got)
	}
	see("", "a/a", "one", "two")
	if got := see("", "a/a", "one", "two"); len(got) != 1 || got[0].Over != nil || len(got[0].Calls) != 2 {
		t.Fatalf("the same plan again: %v", got)
	}
	if got := see("Octavia is at work", "a/a"); len(got) != 1 || got[0].Over != nil {
		t.Fatalf("nobody knows: %v", got)
	}
	got := see("", "a/a", "two")
	if len(got) != 2 || got[0].Over != nil || got[1].Over == nil || got[0].Calls[0].Text != "two" {
		t.Fatalf("a part is done: %v", got)
	}
	if got := see("", "a/a"); len(got) != 2 || got[0].Over == nil || !got[0].Over.Equal(at) {
		t.Fatalf("all is done: %v", got)
	}
	see("", "a/a", "three")
	if got := see("", ""); len(got) != 3 || got[0].Over == nil {
		t.Fatalf("the Gateway is gone: %v", got)
	}
	for range historyLength {
		see("", "a/a", "four")
		got = see("", "a/a")
	}
	if len(got) != historyLength {
		t.Fatalf("%d plans are kept, want %d", len(got), historyLength)
	}
}

func TestServe_onLoopbackUntilInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	out, write := io.Pipe()
	tool := &tool{Options: Options{Out: write}}
	ended := make(chan error, 1)
	go func() {
		ended <- tool.serve(ctx, 0, newPage(time.Minute, func(context.Context) (*Picture, error) { return samplePicture(t), nil }, time.Now))
		_ = write.Close()
	}()
	said := make([]byte, 200)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	url, hint, _ := strings.Cut(string(said[:n]), "\n")
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.Contains(hint, "Ctrl-C") {
		t.Fatalf("it says %q", said[:n])
	}
	for path, want := range map[string]string{"": "text/html; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml", "picture.json": "application/json"} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != want {
			t.Errorf("%q: %s, %s, want %s", path, res.Status, res.Header.Get("Content-Type"), want)
		}
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("an interruption is an error: %v", err)
	}
	if res, err := http.Get(url); err == nil {
		_ = res.Body.Close()
		t.Error("it still answers")
	}
}
