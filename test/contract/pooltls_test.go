package contract

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tlsBackend serves over TLS in this process and says what it saw of it. It returns the member for create bodies.
func (c *cloud) tlsBackend(name string, own keyPair) o {
	c.t.Helper()
	pair, err := tls.X509KeyPair(own.certPEM, own.key)
	if err != nil {
		c.t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", net.JoinHostPort(c.here(), "0"), &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert,
		NextProtos: []string{"http/1.1"}})
	if err != nil {
		c.t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := ""
		if len(r.TLS.PeerCertificates) > 0 {
			client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s sni=%s client=%s %s", name, r.TLS.ServerName, client, tls.VersionName(r.TLS.Version))
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

// TLS to members: who is verified against what, what is sent, and what changes in place.
func TestDataPlane_speaksTLSToMembers(t *testing.T) {
	c := beginForwarding(t)
	site, stranger, own := newPair(t, "site.example"), newPair(t, "stranger.example"), newPair(t, "own.example")
	ca := func(p keyPair) string {
		return c.secret(o{"name": "contract-ca", "payload": string(p.certPEM), "payload_content_type": "text/plain"})
	}
	right, wrong, client, front := ca(site), ca(stranger), c.secret(binary("contract-own", own.pkcs12)), c.secret(binary("contract-front", newPair(t, "front.example").pkcs12))
	p := pool("a", c.tlsBackend("a", site))
	p["tls_enabled"], p["ca_tls_container_ref"], p["tls_container_ref"], p["tls_versions"], p["alpn_protocols"] = true, right, client, l{"TLSv1.2"}, l{"http/1.1"}
	// A fully-populated create breaks without ciphers, and leaves its port; everywhere else they have a default.
	ports := func() map[string]bool {
		ids := map[string]bool{}
		for _, p := range list(c.must(200, "GET", "/network/ports?device_owner=Octavia", nil), "ports") {
			ids[str(p, "id")] = true
		}
		return ids
	}
	before := ports()
	c.refused(500, "'tls_ciphers'", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"name": "contract-pool-tls", "vip_subnet_id": c.subnet, "pools": l{p},
		"listeners": l{o{"name": "plain", "protocol": "HTTP", "protocol_port": 8080, "default_pool": o{"name": "a"}}}}})
	for port := range ports() {
		if !before[port] {
			c.must(204, "DELETE", "/network/ports/"+port, nil)
		}
	}
	p["tls_ciphers"] = "ECDHE-ECDSA-AES256-GCM-SHA384"
	lb := c.create(o{"name": "contract-pool-tls", "pools": l{p}, "listeners": l{
		o{"name": "plain", "protocol": "HTTP", "protocol_port": 8080, "default_pool": o{"name": "a"}},
		o{"name": "tls", "protocol": "TERMINATED_HTTPS", "protocol_port": 8443, "default_tls_container_ref": front, "default_pool": o{"name": "a"}},
	}})
	id, vip := str(lb, "id"), str(lb, "vip_address")
	c.reach(vip + ":8080")
	c.reach(vip + ":8443")
	made := list(c.must(200, "GET", "/lb/pools?loadbalancer_id="+id, nil), "pools")[0]
	poolID := str(made, "id")
	equal(t, "a pool with TLS", l{dig(made, "tls_enabled"), dig(made, "ca_tls_container_ref"), dig(made, "tls_container_ref"), dig(made, "tls_versions"), dig(made, "alpn_protocols")},
		l{true, right, client, l{"TLSv1.2"}, l{"http/1.1"}})

	plain := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	named := func(name string) *http.Client {
		return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true}}}
	}
	// becomes waits for an answer: HAProxy takes over what Octavia says is done, but a moment later.
	becomes := func(what string, client *http.Client, url, want string) {
		t.Helper()
		last := ""
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			got, err := ask(t.Context(), client, url)
			switch {
			case err != nil:
				last = err.Error()
			case got.status != 200:
				last = strconv.Itoa(got.status)
			default:
				last = got.body
			}
			if strings.HasPrefix(last, want) {
				return
			}
		}
		t.Errorf("%s: %s, want %s", what, last, want)
	}
	change := func(status int, fields o) o {
		t.Helper()
		doc := c.write(id, status, "PUT", "/lb/pools/"+poolID, o{"pool": fields})
		out, _ := doc["pool"].(o)
		return out
	}
	becomes("from HTTP no name is sent or checked", plain, "http://"+vip+":8080/", "a sni= client=own.example TLS 1.2")
	becomes("from HTTPS the client's name is sent", named("site.example"), "https://"+vip+":8443/", "a sni=site.example client=own.example")
	becomes("and the certificate must have it", named("other.example"), "https://"+vip+":8443/", "503")

	change(200, o{"ca_tls_container_ref": wrong})
	becomes("the wrong CA", plain, "http://"+vip+":8080/", "503")
	// A monitor of this type switches the verification of requests off: nobody may ever create one here.
	doc := c.write(id, 201, "POST", "/lb/healthmonitors", o{"healthmonitor": o{"pool_id": poolID, "type": "HTTPS", "delay": 60, "timeout": 5, "max_retries": 1}})
	becomes("the wrong CA beside an HTTPS monitor", plain, "http://"+vip+":8080/", "a ")
	c.write(id, 204, "DELETE", "/lb/healthmonitors/"+str(doc, "healthmonitor", "id"), nil)
	becomes("and without it", plain, "http://"+vip+":8080/", "503")

	got := change(200, o{"ca_tls_container_ref": nil, "tls_container_ref": nil, "tls_versions": nil, "tls_ciphers": nil, "alpn_protocols": nil})
	equal(t, "null takes references away, is the default of versions, and no ALPN at all", l{got["ca_tls_container_ref"], got["tls_container_ref"], got["tls_versions"], got["alpn_protocols"]},
		l{nil, nil, l{"TLSv1.2", "TLSv1.3"}, nil})
	becomes("no CA verifies nothing", plain, "http://"+vip+":8080/", "a sni= client= TLS 1.3")
	got = change(200, o{"tls_ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256", "tls_versions": l{"TLSv1.2"}})
	equal(t, "ciphers", got["tls_ciphers"], "ECDHE-ECDSA-AES128-GCM-SHA256")
	becomes("with its own cipher", plain, "http://"+vip+":8080/", "a sni= client= TLS 1.2")

	change(200, o{"tls_enabled": false})
	becomes("in plain text", plain, "http://"+vip+":8080/", "400")
}
