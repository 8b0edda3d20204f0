package responder

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

var table = answer.Table{
	9600: {Code: 302, Prefix: "/old", Replacement: "/new"},
	9601: {Code: 308, Scheme: "https", Host: "other.test", Port: 8443, FullPath: "/there"},
	9602: {Code: 307, Scheme: "http", Prefix: "/old"},
	9603: {Code: 301, Port: 8080},
	9604: {Code: 301, Replacement: "/below"},
}

func ask(port int, method, target, host string, header ...string) *http.Response {
	q := httptest.NewRequest(method, "/", nil)
	q.RequestURI, q.Host = target, host
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(port, func() answer.Table { return table }).ServeHTTP(w, q)
	return w.Result()
}

var overHTTP = []string{"X-Forwarded-Proto", "http", "X-Forwarded-Port", "80"}

func TestHandler_answersByItsPort(t *testing.T) {
	t.Parallel()
	for port, want := range map[int]int{9404: 404, 9500: 500, 9503: 503, 9301: 301, 9308: 308, 9600: 302, 9631: 503, 80: 503} {
		if got := ask(port, "GET", "/old", "a.test", overHTTP...); got.StatusCode != want {
			t.Errorf("port %d answers %d, want %d", port, got.StatusCode, want)
		} else if (got.Header.Get("Location") != "") != (want < 400) {
			t.Errorf("port %d: Location %q", port, got.Header.Get("Location"))
		}
	}
}

func TestHandler_letsHealthChecksPass(t *testing.T) {
	t.Parallel()
	for _, port := range answer.Ports() {
		if got := ask(port, "GET", "/healthz", ""); got.StatusCode != 200 {
			t.Errorf("port %d answers %d to a check", port, got.StatusCode)
		}
	}
}

func TestHandler_redirectsExactly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port         int
		proto, via   string
		host, target string
		want         string
	}{
		{9301, "http", "80", "a.test", "/x?y=1", "https://a.test/x?y=1"},
		{9301, "http", "8080", "A.test:8080", "/", "https://a.test/"},
		{9301, "http", "80", "10.0.0.1", "/", "https://10.0.0.1/"},
		{9301, "http", "80", "[2001:db8::1]:80", "/", "https://[2001:db8::1]/"},
		{9301, "http", "80", "a.test", "//evil.test/x", "https://a.test//evil.test/x"},
		{9301, "http", "80", "a.test", "/a%0d%0ab%2e?%zz", "https://a.test/a%0d%0ab%2e?%zz"},
		{9301, "http", "80", "a.test", "/\xc3\xa9#\\<", "https://a.test/%C3%A9%23%5C%3C"},
		{9600, "http", "80", "a.test", "/old", "http://a.test/new"},
		{9600, "https", "443", "a.test", "/old/", "https://a.test/new/"},
		{9600, "http", "8080", "a.test", "/old/b?c", "http://a.test:8080/new/b?c"},
		{9601, "http", "80", "a.test", "/x?y", "https://other.test:8443/there?y"},
		{9602, "https", "443", "a.test", "/old", "http://a.test/"},
		{9602, "https", "443", "a.test", "/old/x", "http://a.test/x"},
		{9603, "http", "80", "a.test", "/x", "http://a.test:8080/x"},
		{9603, "https", "443", "a.test", "/x?", "https://a.test:8080/x?"},
		{9604, "http", "80", "a.test", "/", "http://a.test/below/"},
	} {
		got := ask(c.port, "GET", c.target, c.host, "X-Forwarded-Proto", c.proto, "X-Forwarded-Port", c.via).Header.Get("Location")
		if got != c.want {
			t.Errorf("port %d, %s://%s%s: got %q, want %q", c.port, c.proto, c.host, c.target, got, c.want)
		}
	}
}

func TestHandler_refusesWhatItCannotRedirect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ port, proto, via, host, target string }{
		{"9301", "http", "80", "", "/"},
		{"9301", "http", "80", "a.test@evil.test", "/"},
		{"9301", "http", "80", "a.test/evil", "/"},
		{"9301", "http", "80", "a.test\\evil", "/"},
		{"9301", "http", "80", "a.test:80:90", "/"},
		{"9301", "http", "80", "a.test:x", "/"},
		{"9301", "http", "80", "a.test\r\nSet-Cookie: x", "/"},
		{"9301", "http", "80", "a b", "/"},
		{"9301", "http", "80", "..", "/"},
		{"9301", "http", "80", "a.test,b.test", "/"},
		{"9301", "http", "80", "[::1", "/"},
		{"9301", "http", "80", "[::1%25eth0]", "/"},
		{"9301", "http", "80", "[evil.test]", "/"},
		{"9301", "http", "80", strings.Repeat("a", 254), "/"},
		{"9301", "http", "80", "a.test", "*"},
		{"9301", "http", "80", "a.test", "evil.test:443"},
		{"9301", "http", "x", "a.test", "/"},
		{"9301", "http", "70000", "a.test", "/"},
		{"9301", "http", "", "a.test", "/"},
		{"9600", "javascript", "80", "a.test", "/old"},
		{"9600", "", "80", "a.test", "/old"},
		{"9600", "http", "80", "a.test", "/older"},
	} {
		var port int
		if _, err := fmt.Sscan(c.port, &port); err != nil {
			t.Fatal(err)
		}
		got := ask(port, "GET", c.target, c.host, "X-Forwarded-Proto", c.proto, "X-Forwarded-Port", c.via)
		if got.StatusCode != 400 || got.Header.Get("Location") != "" {
			t.Errorf("%+v: got %d %q", c, got.StatusCode, got.Header.Get("Location"))
		}
	}
}

// FuzzHandler_neverLeavesTheHost holds for redirects that keep the host: whatever a client sends, the Location is an absolute URL on the
// very host that it named, in plain ASCII.
func FuzzHandler_neverLeavesTheHost(f *testing.F) {
	f.Add("a.test", "/x?y")
	f.Add("[::1]:80", "//evil.test/\r\nX: y")
	f.Add("a.test@evil", "/\\evil.test")
	f.Fuzz(func(t *testing.T, host, target string) {
		got := ask(9301, "GET", target, host, overHTTP...)
		location := got.Header.Get("Location")
		if got.StatusCode == 400 && location == "" {
			return
		}
		name := strings.ToLower(host)
		if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") {
			name = name[:i]
		}
		if got.StatusCode != 301 || !strings.HasPrefix(location, "https://"+name+"/") {
			t.Fatalf("Host %q, target %q: %d %q", host, target, got.StatusCode, location)
		}
		for _, c := range []byte(location) {
			if c <= ' ' || c >= 0x7f {
				t.Fatalf("Location %q has the byte %#x", location, c)
			}
		}
	})
}

// TestServer_answersOnAllPorts talks to real sockets.
func TestServer_answersOnAllPorts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	at := map[int]string{}
	s := &Server{Listen: func(ctx context.Context, port int) (net.Listener, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err == nil {
			mu.Lock()
			at[port] = l.Addr().String()
			mu.Unlock()
		}
		return l, err
	}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	raw := func(port int, request string) string {
		var address string
		for i := 0; i < 500 && address == ""; i++ {
			mu.Lock()
			if len(at) == len(answer.Ports()) {
				address = at[port]
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err = c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		return fmt.Sprint(response.StatusCode, " ", response.Header.Get("Location"))
	}
	const forwarded = "X-Forwarded-Proto: http\r\nX-Forwarded-Port: 80\r\n\r\n"
	get := func(target, host string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + forwarded
	}
	for _, c := range []struct {
		port    int
		request string
		want    string
	}{
		{9404, get("/", "a.test"), "404 "},
		{9404, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n" + strings.Replace(forwarded, "\r\n\r\n", "\r\n\r\nabcd", 1), "404 "},
		{9500, get("/", "a.test"), "500 "},
		{9302, get("/a?b", "a.test:80"), "302 https://a.test/a?b"},
		{9302, get("http://b.test/abs?q", "a.test"), "302 https://b.test/abs?q"},
		{9600, get("/old/x", "a.test"), "503 "},
	} {
		if got := raw(c.port, c.request); got != c.want {
			t.Errorf("port %d, %q: got %q, want %q", c.port, c.request, got, c.want)
		}
	}
	s.Learn(table)
	if got := raw(9600, get("/old/x", "a.test")); got != "302 http://a.test/new/x" {
		t.Errorf("after learning: %q", got)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("does not stop")
	}
}

func TestServer_failsWithoutItsPorts(t *testing.T) {
	t.Parallel()
	s := &Server{Listen: func(context.Context, int) (net.Listener, error) { return nil, fmt.Errorf("taken") }}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "9404") {
		t.Errorf("got %v", err)
	}
}
