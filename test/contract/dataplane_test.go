package contract

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// here is the address of this process as members of the cloud reach it.
func (c *cloud) here() string {
	c.t.Helper()
	if !c.real {
		return "127.0.0.1"
	}
	doc := c.must(200, "GET", "/network/subnets/"+c.subnet, nil)
	conn, err := net.Dial("udp", net.JoinHostPort(str(doc, "subnet", "gateway_ip"), "9"))
	if err != nil {
		c.t.Skipf("this process does not reach the VIP subnet: %v", err)
	}
	defer func() { _ = conn.Close() }()
	return netip.MustParseAddrPort(conn.LocalAddr().String()).Addr().String()
}

// backend serves in this process and says who it is and what it got. It returns
// the member for create bodies.
func (c *cloud) backend(name string) o {
	c.t.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort(c.here(), "0"))
	if err != nil {
		c.t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", name)
		fmt.Fprintf(w, "%s %s host=%s xff=%v port=%s proto=%s", name, r.RequestURI, r.Host, r.Header.Values("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Port"), r.Header.Get("X-Forwarded-Proto"))
	})}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	c.t.Cleanup(func() { _ = srv.Close() })
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	n, _ := strconv.Atoi(port)
	return o{"address": c.here(), "protocol_port": n}
}

func pool(name string, members ...o) o {
	ms := l{}
	for _, m := range members {
		ms = append(ms, m)
	}
	return o{"name": name, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "members": ms}
}

func policy(action string, more o, rules ...any) o {
	p := o{"action": action, "rules": append(l{}, rules...)}
	for k, v := range more {
		p[k] = v
	}
	return p
}

var noRedirects = &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

type answer struct {
	status int
	body   string
	header http.Header
}

// ask makes a request. headers are names and values; Host is the host.
func ask(ctx context.Context, client *http.Client, url string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(b), resp.Header}, err
}

// reach waits until an address takes connections.
func (c *cloud) reach(addr string) {
	c.t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", addr, 2*time.Second); err == nil {
			_ = conn.Close()
			return
		}
	}
	c.t.Fatalf("%s: %v", addr, err)
}

func beginForwarding(t *testing.T) *cloud {
	t.Helper()
	return beginWith(t, sim.Options{Forward: true})
}

func TestDataPlane_decidesByClassThenPosition(t *testing.T) {
	c := beginForwarding(t)
	a, b := c.backend("a"), c.backend("b")
	off := pool("off", a)
	off["admin_state_up"] = false
	lb := c.create(o{"name": "contract-data", "pools": l{off, pool("a", a), pool("b", b), pool("none")},
		"listeners": l{
			o{"name": "web", "protocol": "HTTP", "protocol_port": 8080, "default_pool": o{"name": "b"},
				"insert_headers": o{"X-Forwarded-For": "true", "X-Forwarded-Port": "true", "X-Forwarded-Proto": "true"},
				"l7policies": l{
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "off"}}, rule("PATH", "STARTS_WITH", "/app")),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("HOST_NAME", "REGEX", `^a\.example(:[0-9]*)?$`), rule("PATH", "REGEX", "^/app(/|$)")),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("HOST_NAME", "EQUAL_TO", "exact.example")),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("HOST_NAME", "REGEX", `^[^:]+\.wild\.example(:[0-9]*)?$`)),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}},
						o{"type": "HEADER", "compare_type": "REGEX", "key": "X-V", "value": "^v1$"},
						o{"type": "HEADER", "compare_type": "REGEX", "key": "x-v", "value": "^(?!v1$)", "invert": true}),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, o{"type": "HEADER", "compare_type": "EQUAL_TO", "key": "X-W", "value": "w1"}),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("PATH", "STARTS_WITH", "/absent"),
						o{"type": "HEADER", "compare_type": "EQUAL_TO", "key": "X-Absent", "value": "x", "invert": true}),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("PATH", "EQUAL_TO", "/shadowed")),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "none"}}, rule("PATH", "EQUAL_TO", "/empty")),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("PATH", "STARTS_WITH", "/always"), o{"type": "PATH", "compare_type": "REGEX", "value": "(?!)", "invert": true}),
					policy("REDIRECT_TO_POOL", o{"redirect_pool": o{"name": "a"}}, rule("PATH", "REGEX", `^\/quoted\x26\x27\x20?$`)),
					policy("REDIRECT_PREFIX", o{"redirect_prefix": "https://x.example", "redirect_http_code": 308}, rule("PATH", "STARTS_WITH", "/shadow")),
					policy("REDIRECT_PREFIX", o{"redirect_prefix": "https://y.example/p"}, rule("PATH", "STARTS_WITH", "/pre")),
					policy("REDIRECT_TO_URL", o{"redirect_url": "https://x.example/y", "redirect_http_code": 307}, rule("PATH", "STARTS_WITH", "/url")),
					policy("REJECT", nil, rule("PATH", "ENDS_WITH", "/no")),
					policy("REJECT", nil, rule("PATH", "CONTAINS", "forbid")),
					policy("REJECT", nil),
					policy("REJECT", o{"admin_state_up": false}, rule("PATH", "STARTS_WITH", "/")),
					policy("REJECT", nil, o{"type": "COOKIE", "compare_type": "EQUAL_TO", "key": "s", "value": "bad"}),
				}},
			o{"name": "bare", "protocol": "HTTP", "protocol_port": 8081},
			o{"name": "share", "protocol": "HTTP", "protocol_port": 8082, "default_pool": pool("share",
				o{"address": a["address"], "protocol_port": a["protocol_port"], "weight": 9}, o{"address": b["address"], "protocol_port": b["protocol_port"], "weight": 1},
				o{"address": a["address"], "protocol_port": 1, "weight": 0})},
		}})
	vip := str(lb, "vip_address")
	web := net.JoinHostPort(vip, "8080")
	c.reach(web)
	here := c.here()
	for _, tc := range []struct {
		quirk, path string
		headers     []string
		status      int
		want        string
	}{
		{"the default pool", "/", nil, 200, "b /"},
		{"a host with a port, and a prefix", "/app/x?q=1", []string{"Host", "A.example:8080"}, 200, "a /app/x?q=1 host=A.example:8080"},
		{"a policy to a disabled pool is not there", "/app", []string{"Host", "a.example"}, 200, "a /app"},
		{"rules are all needed", "/other", []string{"Host", "a.example"}, 200, "b /other"},
		{"a prefix ends at an element", "/apple", []string{"Host", "a.example"}, 200, "b /apple"},
		{"paths are case-sensitive", "/APP", []string{"Host", "a.example"}, 200, "b /APP"},
		{"nothing is decoded", "/%61pp", []string{"Host", "a.example"}, 200, "b /%61pp"},
		{"dot segments stay", "/x/../app", []string{"Host", "a.example"}, 200, "b /x/../app"},
		{"an equal host", "/", []string{"Host", "exact.EXAMPLE"}, 200, "a /"},
		{"an equal host with a port is another", "/", []string{"Host", "exact.example:8080"}, 200, "b /"},
		{"a wildcard of two labels", "/", []string{"Host", "x.y.wild.example"}, 200, "a /"},
		{"a wildcard is not its parent", "/", []string{"Host", "wild.example"}, 200, "b /"},
		{"an exact header", "/", []string{"X-V", "v1"}, 200, "a /"},
		{"an exact header, upper case", "/", []string{"X-V", "V1"}, 200, "b /"},
		{"an exact header among others", "/", []string{"X-V", "v1, v2"}, 200, "b /"},
		{"an exact header on two lines", "/", []string{"X-V", "v1", "X-V", "v2"}, 200, "b /"},
		{"an equal header matches one of several", "/", []string{"X-W", "w0, w1"}, 200, "a /"},
		{"a missing header satisfies an inverted rule", "/absent", nil, 200, "a /absent"},
		{"a header that is there does not", "/absent", []string{"X-Absent", "x"}, 200, "b /absent"},
		{"a later redirect beats an earlier pool", "/shadowed?k=v", nil, 308, "https://x.example/shadowed?k=v"},
		{"a prefix redirect keeps path and query", "/pre/f?k=v", nil, 302, "https://y.example/p/pre/f?k=v"},
		{"a URL redirect drops the query", "/url?k=v", nil, 307, "https://x.example/y"},
		{"rejection beats redirects", "/shadow/no", nil, 403, "403 Forbidden"},
		{"contains", "/x-forbidden", nil, 403, "403 Forbidden"},
		{"the query is no path", "/x?forbid", nil, 200, "b /x?forbid"},
		{"a cookie", "/", []string{"Cookie", "x=1; s=bad"}, 403, "403 Forbidden"},
		{"a pool without members", "/empty", nil, 503, "503 Service Unavailable"},
		{"the rule that is always true", "/always", nil, 200, "a /always"},
		{"hexadecimal escapes", "/quoted&'", nil, 200, "a /quoted&'"},
		{"a header of the client stays, ours is added", "/", []string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "ftp"}, 200, "xff=[1.2.3.4 " + here + "] port=8080 proto=http"},
	} {
		got, err := ask(t.Context(), noRedirects, "http://"+web+tc.path, tc.headers...)
		if err != nil {
			t.Errorf("%s: %v", tc.quirk, err)
			continue
		}
		if got.status != tc.status || !strings.Contains(got.body+got.header.Get("Location"), tc.want) {
			t.Errorf("%s:\n got %d %q %q\nwant %d %q", tc.quirk, got.status, got.body, got.header.Get("Location"), tc.status, tc.want)
		}
	}
	got, err := ask(t.Context(), noRedirects, "http://"+vip+":8081/")
	if err != nil || got.status != 503 {
		t.Errorf("no pool at all: %d %v", got.status, err)
	}
	counts := map[string]int{}
	for range 100 {
		got, err := ask(t.Context(), noRedirects, "http://"+vip+":8082/")
		if err != nil {
			t.Fatal(err)
		}
		counts[got.header.Get("X-Backend")]++
	}
	equal(t, "100 requests at 9 to 1", counts, map[string]int{"a": 90, "b": 10})

	t.Run("through a floating IP", func(t *testing.T) {
		c := c.within(t)
		f := c.floating(o{"port_id": lb["vip_port_id"]})
		addr := net.JoinHostPort(str(f, "floating_ip_address"), "8080")
		c.reach(addr)
		got, err := ask(t.Context(), noRedirects, "http://"+addr+"/f")
		if err != nil || !strings.HasPrefix(got.body, "b /f") {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("changes take effect", func(t *testing.T) {
		c := c.within(t)
		i := idsOf(lb)
		c.must(202, "PUT", "/lb/pools/"+i["b"]+"/members", o{"members": l{a}})
		c.active(i["lb"])
		got, err := ask(t.Context(), noRedirects, "http://"+web+"/")
		if err != nil || !strings.HasPrefix(got.body, "a /") {
			t.Errorf("after the members changed: %v %v", got, err)
		}
		c.write(i["lb"], 200, "PUT", "/lb/listeners/"+i["bare"], o{"listener": o{"allowed_cidrs": l{"192.0.2.0/24"}}})
		time.Sleep(time.Second) // a security group is not part of the lock
		if c.real {
			time.Sleep(4 * time.Second)
		}
		if got, err := ask(t.Context(), &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+vip+":8081/"); err == nil {
			t.Errorf("allowed_cidrs let us in: %d", got.status)
		}
	})
}

func TestDataPlane_terminatesTLS(t *testing.T) {
	c := beginForwarding(t)
	a := c.backend("a")
	var refs []string
	for _, n := range []string{"default.example", "*.wild.example", "exact.wild.example"} {
		refs = append(refs, c.secret(binary("contract-"+n, newPair(t, n).pkcs12)))
	}
	client := newPair(t, "client.example")
	ca := c.secret(o{"name": "contract-ca", "payload": string(client.certPEM), "payload_content_type": "text/plain"})
	lb := c.create(o{"name": "contract-tls-data", "pools": l{pool("a", a)}, "listeners": l{
		o{"name": "tls", "protocol": "TERMINATED_HTTPS", "protocol_port": 8443, "hsts_max_age": 60, "default_tls_container_ref": refs[0], "sni_container_refs": l{refs[1], refs[2]},
			"insert_headers": o{"X-Forwarded-Proto": "true"}, "default_pool": o{"name": "a"}},
		o{"name": "mutual", "protocol": "TERMINATED_HTTPS", "protocol_port": 8444, "default_tls_container_ref": refs[0], "client_authentication": "MANDATORY",
			"client_ca_tls_container_ref": ca, "alpn_protocols": l{"http/1.1"}, "default_pool": o{"name": "a"}},
	}})
	vip := str(lb, "vip_address")
	c.reach(vip + ":8443")
	c.reach(vip + ":8444")
	try := func(port string, cfg *tls.Config) (string, string, answer, error) {
		cfg.InsecureSkipVerify = true
		var seen *x509.Certificate
		cfg.VerifyConnection = func(cs tls.ConnectionState) error {
			seen = cs.PeerCertificates[0]
			return nil
		}
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: cfg, DisableKeepAlives: true}
		var proto string
		got, err := ask(t.Context(), &http.Client{Timeout: 10 * time.Second, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := tr.RoundTrip(r)
			if err == nil {
				proto = resp.Proto
			}
			return resp, err
		})}, "https://"+net.JoinHostPort(vip, port)+"/t")
		name := ""
		if seen != nil {
			name = seen.Subject.CommonName
		}
		return name, proto, got, err
	}
	for sni, want := range map[string]string{"exact.wild.example": "exact.wild.example", "other.wild.example": "*.wild.example", "a.b.wild.example": "default.example",
		"default.example": "default.example", "unknown.example": "default.example", "": "default.example"} {
		name, proto, got, err := try("8443", &tls.Config{ServerName: sni})
		if err != nil {
			t.Errorf("SNI %q: %v", sni, err)
			continue
		}
		if name != want || proto != "HTTP/2.0" || !strings.HasPrefix(got.body, "a /t") || !strings.HasSuffix(got.body, "proto=https") {
			t.Errorf("SNI %q: certificate %q, want %q; %s %q", sni, name, want, proto, got.body)
		}
		if h := got.header.Get("Strict-Transport-Security"); h != "max-age=60;" {
			t.Errorf("HSTS %q", h)
		}
	}
	if _, _, got, err := try("8444", &tls.Config{}); err == nil {
		t.Errorf("no client certificate: %d", got.status)
	}
	stranger := newPair(t, "stranger.example")
	pair := func(p keyPair) tls.Certificate {
		cert, err := tls.X509KeyPair(p.certPEM, p.key)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	if _, _, got, err := try("8444", &tls.Config{Certificates: []tls.Certificate{pair(stranger)}}); err == nil {
		t.Errorf("a stranger's certificate: %d", got.status)
	}
	_, proto, got, err := try("8444", &tls.Config{Certificates: []tls.Certificate{pair(client)}})
	if err != nil || got.status != 200 || proto != "HTTP/1.1" {
		t.Errorf("with a certificate: %d %s %v", got.status, proto, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDataPlane_trapsOfTheTemplate shows what the API accepts and the data
// plane does not mean. Nothing in the project may ever send such values.
func TestDataPlane_trapsOfTheTemplate(t *testing.T) {
	c := beginForwarding(t)
	lb := c.create(o{"name": "contract-traps", "listeners": l{
		o{"name": "fragment", "protocol": "HTTP", "protocol_port": 8080, "l7policies": l{policy("REDIRECT_TO_URL", o{"redirect_url": "https://h.example/a#frag"}, rule("PATH", "EQUAL_TO", "/only"))}},
		o{"name": "quote", "protocol": "HTTP", "protocol_port": 8081, "l7policies": l{policy("REJECT", nil, rule("PATH", "EQUAL_TO", "/it's"))}},
		o{"name": "ampersand", "protocol": "HTTP", "protocol_port": 8082, "l7policies": l{policy("REJECT", nil, rule("PATH", "EQUAL_TO", "/a&b"))}},
	}})
	vip := str(lb, "vip_address")
	c.reach(vip + ":8080")
	for _, tc := range []struct {
		quirk, url string
		status     int
		location   string
	}{
		{"a fragment comments the condition out", ":8080/everything", 302, "https://h.example/a"},
		{"a quote cuts the value", ":8081/it&", 403, ""},
		{"so that it matches no more", ":8081/it's", 503, ""},
		{"an ampersand is escaped", ":8082/a&amp;b", 403, ""},
		{"so that it matches no more", ":8082/a&b", 503, ""},
	} {
		got, err := ask(t.Context(), noRedirects, "http://"+vip+tc.url)
		if err != nil || got.status != tc.status || got.header.Get("Location") != tc.location {
			t.Errorf("%s: %d %q %v", tc.quirk, got.status, got.header.Get("Location"), err)
		}
	}
	t.Run("an unknown flag breaks every later change", func(t *testing.T) {
		c := c.within(t)
		i := idsOf(lb)
		doc := c.must(201, "POST", "/lb/listeners", o{"listener": o{"name": "flag", "protocol": "HTTP", "protocol_port": 8083, "loadbalancer_id": i["lb"]}})
		c.active(i["lb"])
		id := str(doc, "listener", "id")
		doc = c.write(i["lb"], 201, "POST", "/lb/l7policies", o{"l7policy": o{"listener_id": id, "action": "REJECT"}})
		p := "/lb/l7policies/" + str(doc, "l7policy", "id")
		doc = c.write(i["lb"], 201, "POST", p+"/rules", o{"rule": rule("PATH", "EQUAL_TO", "-i")})
		status := func(kind, path string) any {
			return dig(c.must(200, "GET", path, nil), kind, "provisioning_status")
		}
		equal(t, "a known flag passes and matches nothing", status("rule", p+"/rules/"+str(doc, "rule", "id")), "ACTIVE")
		doc = c.write(i["lb"], 201, "POST", p+"/rules", o{"rule": rule("PATH", "EQUAL_TO", "-m")})
		bad := p + "/rules/" + str(doc, "rule", "id")
		equal(t, "rule, policy, listener", l{status("rule", bad), status("l7policy", p), status("listener", "/lb/listeners/"+id)}, l{"ERROR", "ACTIVE", "ACTIVE"})
		doc = c.write(i["lb"], 201, "POST", "/lb/pools", o{"pool": o{"name": "next", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "listener_id": id}})
		next := "/lb/pools/" + str(doc, "pool", "id")
		equal(t, "the next change fails too", status("pool", next), "ERROR")
		c.refused(409, "Pool "+str(doc, "pool", "id")+" is immutable and cannot be updated.", "PUT", next+"/members", o{"members": l{}})
		c.must(204, "DELETE", bad, nil)
		c.active(i["lb"])
		c.write(i["lb"], 200, "PUT", next, o{"pool": o{"name": "again"}})
		equal(t, "once the culprit is gone, an update heals", status("pool", next), "ACTIVE")
	})
}

func TestCreate_thatFailsLeavesErrorAndPendingChildren(t *testing.T) {
	c := begin(t)
	lb := c.createNow(o{"name": "contract-failed", "pools": l{pool("p")}, "listeners": l{
		o{"name": "bad", "protocol": "HTTP", "protocol_port": 8080, "l7policies": l{policy("REJECT", o{"name": "x"}, rule("PATH", "EQUAL_TO", "-m"))}},
		o{"name": "good", "protocol": "HTTP", "protocol_port": 8081}}})
	i := idsOf(lb)
	equal(t, "load balancer", c.wait(i["lb"]), "ERROR")
	got := o{}
	for kind, path := range map[string]string{"listener": "/lb/listeners/{good}", "pool": "/lb/pools/{p}", "l7policy": "/lb/l7policies/{x}", "rule": "/lb/l7policies/{x}/rules/{x.0}"} {
		got[kind] = dig(c.must(200, "GET", i.path(path), nil), kind, "provisioning_status")
	}
	equal(t, "children", got, o{"listener": "ERROR", "pool": "PENDING_CREATE", "l7policy": "PENDING_CREATE", "rule": "PENDING_CREATE"})
	c.refused(409, "Invalid state ERROR of loadbalancer resource "+i["lb"], "PUT", "/lb/loadbalancers/"+i["lb"], o{"loadbalancer": o{"name": "x"}})
	c.refused(409, "Load Balancer "+i["lb"]+" is immutable and cannot be updated.", "PUT", "/lb/listeners/"+i["good"], o{"listener": o{"name": "x"}})
	c.must(204, "DELETE", "/lb/loadbalancers/"+i["lb"]+"?cascade=true", nil)
	equal(t, "an ERROR load balancer can be deleted", c.wait(i["lb"]), "")
}
