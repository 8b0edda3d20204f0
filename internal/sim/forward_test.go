package sim_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// tree is a fully-populated create body under construction.
type tree map[string]any

func backendServer(t *testing.T, name string) (string, int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s host=%s xff=%v xfp=%s proto=%s", name, r.RequestURI, r.Host, r.Header.Values("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Port"), r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(s.Close)
	host, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	return host, n
}

func poolTree(name string, members ...tree) tree {
	return tree{"name": name, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "members": members}
}

func policyTree(action string, more tree, rules ...tree) tree {
	p := tree{"action": action, "rules": rules}
	for k, v := range more {
		p[k] = v
	}
	return p
}

func ruleTree(typ, compare, value string) tree {
	return tree{"type": typ, "compare_type": compare, "value": value}
}

// make creates a load balancer and waits until it serves.
func create(t *testing.T, c *sim.Cloud, body tree) (id, vip string) {
	t.Helper()
	body["vip_subnet_id"] = c.VIPSubnetID()
	out, err := c.Do(sim.Octavia, "POST", "/loadbalancers", tree{"loadbalancer": body})
	if err != nil {
		t.Fatal(err)
	}
	lb := out["loadbalancer"].(map[string]any)
	return lb["id"].(string), lb["vip_address"].(string)
}

var plain = &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func get(t *testing.T, url string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func startForwarding(t *testing.T) *sim.Cloud {
	t.Helper()
	c, err := sim.New(sim.Options{Forward: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestForward_decidesLikeHAProxy(t *testing.T) {
	t.Parallel()
	c := startForwarding(t)
	ha, pa := backendServer(t, "a")
	hb, pb := backendServer(t, "b")
	_, vip := create(t, c, tree{"name": "gw", "pools": []tree{poolTree("off", tree{"address": ha, "protocol_port": pa})},
		"listeners": []tree{
			{"protocol": "HTTP", "protocol_port": 8080, "default_pool": poolTree("b", tree{"address": hb, "protocol_port": pb}),
				"insert_headers": tree{"X-Forwarded-For": "true", "X-Forwarded-Port": "true", "X-Forwarded-Proto": "true"},
				"l7policies": []tree{
					policyTree("REDIRECT_TO_POOL", tree{"redirect_pool": poolTree("a", tree{"address": ha, "protocol_port": pa})},
						ruleTree("HOST_NAME", "REGEX", `^a\.example(:[0-9]*)?$`), ruleTree("PATH", "REGEX", "^/app(/|$)")),
					policyTree("REDIRECT_TO_POOL", tree{"redirect_pool": tree{"name": "a"}},
						tree{"type": "HEADER", "compare_type": "EQUAL_TO", "key": "X-V", "value": "v1"},
						tree{"type": "HEADER", "compare_type": "REGEX", "key": "x-v", "value": "^(?!v1$)", "invert": true}),
					policyTree("REDIRECT_TO_POOL", tree{"redirect_pool": tree{"name": "a"}}, ruleTree("PATH", "EQUAL_TO", "/shadowed")),
					policyTree("REDIRECT_PREFIX", tree{"redirect_prefix": "https://x.example", "redirect_http_code": 308}, ruleTree("PATH", "STARTS_WITH", "/shadow")),
					policyTree("REDIRECT_TO_URL", tree{"redirect_url": "https://x.example/y"}, ruleTree("PATH", "STARTS_WITH", "/url")),
					policyTree("REJECT", nil, ruleTree("PATH", "ENDS_WITH", "/no")),
					policyTree("REJECT", nil), // without rules: not rendered
					{"action": "REJECT", "admin_state_up": false, "rules": []tree{ruleTree("PATH", "STARTS_WITH", "/")}},
					policyTree("REJECT", nil, tree{"type": "COOKIE", "compare_type": "EQUAL_TO", "key": "s", "value": "bad"}),
				}},
			{"protocol": "HTTP", "protocol_port": 8081},
		}})
	base := "http://" + vip + ":8080"
	for _, tc := range []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"default pool", "/", nil, 200, "b /"},
		{"host with a port and a prefix", "/app/x?q=1", []string{"Host", "A.example:8080"}, 200, "a /app/x?q=1 host=A.example:8080"},
		{"host alone", "/other", []string{"Host", "a.example"}, 200, "b /other"},
		{"prefix is no substring", "/apple", []string{"Host", "a.example"}, 200, "b /apple"},
		{"path is case-sensitive", "/APP", []string{"Host", "a.example"}, 200, "b /APP"},
		{"exact header", "/", []string{"X-V", "v1"}, 200, "a /"},
		{"exact header among others", "/", []string{"X-V", "v1, v2"}, 200, "b /"},
		{"a later redirect beats an earlier pool", "/shadowed?k=v", nil, 308, "https://x.example/shadowed?k=v"},
		{"a URL redirect drops the query", "/url?k=v", nil, 302, "https://x.example/y"},
		{"rejection beats redirects", "/shadow/no", nil, 403, "403 Forbidden"},
		{"cookie", "/", []string{"Cookie", "x=1; s=bad"}, 403, "403 Forbidden"},
		{"nothing is decoded", "/%61pp", []string{"Host", "a.example"}, 200, "b /%61pp"},
		{"a client header stays, ours is added", "/", []string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "ftp"}, 200, "xff=[1.2.3.4 127.0.0.1] xfp=8080 proto=http"},
	} {
		status, body, h := get(t, base+tc.path, tc.headers...)
		if status != tc.status || !strings.Contains(body+h.Get("Location"), tc.want) {
			t.Errorf("%s: %d %q %q", tc.name, status, body, h.Get("Location"))
		}
	}
	if status, _, _ := get(t, "http://"+vip+":8081/"); status != 503 {
		t.Errorf("a listener without anything answered %d", status)
	}
}

func TestForward_sharesByWeight(t *testing.T) {
	t.Parallel()
	c := startForwarding(t)
	ha, pa := backendServer(t, "a")
	hb, pb := backendServer(t, "b")
	_, vip := create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 8080, "default_pool": poolTree("p",
		tree{"address": ha, "protocol_port": pa, "weight": 9}, tree{"address": hb, "protocol_port": pb, "weight": 1},
		tree{"address": "127.0.0.1", "protocol_port": 1, "weight": 0})}}})
	counts := map[string]int{}
	for range 100 {
		_, body, _ := get(t, "http://"+vip+":8080/")
		counts[body[:1]]++
	}
	if counts["a"] != 90 || counts["b"] != 10 {
		t.Fatalf("shares %v", counts)
	}
}

func TestForward_followsChangesAndFloatingIPs(t *testing.T) {
	t.Parallel()
	c := startForwarding(t)
	ha, pa := backendServer(t, "a")
	hb, pb := backendServer(t, "b")
	id, vip := create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 8080, "default_pool": poolTree("p", tree{"address": ha, "protocol_port": pa})}}})
	snap := c.Snapshot()
	lb := snap["loadbalancers"][id]
	out, err := c.Do(sim.Neutron, "POST", "/floatingips", tree{"floatingip": tree{"floating_network_id": c.PublicNetworkID(), "port_id": lb["vip_port_id"]}})
	if err != nil {
		t.Fatal(err)
	}
	fip := out["floatingip"].(map[string]any)["floating_ip_address"].(string)
	if _, body, _ := get(t, "http://"+fip+":8080/f"); !strings.HasPrefix(body, "a /f") {
		t.Fatal(body)
	}
	var poolID string
	for id := range snap["pools"] {
		poolID = id
	}
	if _, err := c.Do(sim.Octavia, "PUT", "/pools/"+poolID+"/members", tree{"members": []tree{{"address": hb, "protocol_port": pb}}}); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := get(t, "http://"+vip+":8080/g"); !strings.HasPrefix(body, "b /g") {
		t.Fatal(body)
	}
	if _, err := c.Do(sim.Octavia, "DELETE", "/loadbalancers/"+id+"?cascade=true", nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{vip, fip} {
		if conn, err := net.DialTimeout("tcp", a+":8080", time.Second); err == nil {
			_ = conn.Close()
			t.Fatalf("%s still listens", a)
		}
	}
}

func TestForward_reproducesTheTrapsOfTheTemplate(t *testing.T) {
	t.Parallel()
	c := startForwarding(t)
	_, vip := create(t, c, tree{"listeners": []tree{{"protocol": "HTTP", "protocol_port": 8080,
		"l7policies": []tree{policyTree("REDIRECT_TO_URL", tree{"redirect_url": "https://h/a#frag"}, ruleTree("PATH", "EQUAL_TO", "/only"))}}}})
	if status, _, h := get(t, "http://"+vip+":8080/everything"); status != 302 || h.Get("Location") != "https://h/a" {
		t.Errorf("a fragment loses the condition: %d %v", status, h)
	}
}

// selfSigned makes a certificate for names and its PKCS#12 bundle.
func selfSigned(t *testing.T, names ...string) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	p12, err := pkcs12.Passwordless.Encode(key, cert, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return cert, p12
}

func TestForward_terminatesTLSByServerName(t *testing.T) {
	t.Parallel()
	c := startForwarding(t)
	ha, pa := backendServer(t, "a")
	var refs []string
	for _, name := range []string{"default.example", "*.wild.example", "exact.wild.example"} {
		_, p12 := selfSigned(t, name)
		out, err := c.Do(sim.Barbican, "POST", "/secrets", tree{"name": name, "payload": base64.StdEncoding.EncodeToString(p12),
			"payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"})
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, out["secret_ref"].(string))
	}
	_, vip := create(t, c, tree{"listeners": []tree{{"protocol": "TERMINATED_HTTPS", "protocol_port": 8443, "hsts_max_age": 60,
		"default_tls_container_ref": refs[0], "sni_container_refs": refs[1:], "insert_headers": tree{"X-Forwarded-Proto": "true"},
		"default_pool": poolTree("p", tree{"address": ha, "protocol_port": pa})}}})
	for sni, want := range map[string]string{"exact.wild.example": "exact.wild.example", "other.wild.example": "*.wild.example",
		"a.b.wild.example": "default.example", "": "default.example"} {
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: sni}}
		req, err := http.NewRequestWithContext(context.Background(), "GET", "https://"+vip+":8443/t", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		tr.CloseIdleConnections()
		if got := resp.TLS.PeerCertificates[0].Subject.CommonName; got != want || resp.ProtoMajor != 2 ||
			!strings.HasPrefix(string(b), "a /t") || !strings.HasSuffix(string(b), "proto=https") || resp.Header.Get("Strict-Transport-Security") != "max-age=60;" {
			t.Errorf("SNI %q: certificate %q, %s, %q, %v", sni, got, resp.Proto, b, resp.Header)
		}
	}
}
