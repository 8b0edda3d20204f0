package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// haproxyPresents is what HAProxy does with one connection, written after its own lookup: full names, then the name from its first dot,
// remembering the first certificate of each kind of key; then the best kind that the client can use.
func haproxyPresents(list []*certificate, server string, ecdsa bool) *certificate {
	full, wild := map[string][]*certificate{}, map[string][]*certificate{}
	for _, c := range list {
		for _, n := range c.Names {
			if rest, ok := strings.CutPrefix(n, "*"); ok {
				wild[rest] = append(wild[rest], c)
			} else {
				full[n] = append(full[n], c)
			}
		}
	}
	first := map[string]*certificate{}
	note := func(found []*certificate) {
		for _, c := range found {
			if first[c.Algorithm] == nil {
				first[c.Algorithm] = c
			}
		}
	}
	note(full[server])
	if i := strings.Index(server, "."); i >= 0 {
		note(wild[server[i:]])
	}
	switch {
	case ecdsa && first["ECDSA"] != nil:
		return first["ECDSA"]
	case first["RSA"] != nil:
		return first["RSA"]
	case first["ECDSA"] != nil:
		return first["ECDSA"]
	}
	return list[0]
}

// Whatever listeners and certificates there are: a client that asks for the hostname of a listener that is served gets a certificate of
// that listener, whatever it can verify and in whatever order the certificates stand.
func TestDistinguishable_servesEachListenersOwnCertificate(t *testing.T) {
	t.Parallel()
	hosts := []hostname{"", "*.test", "*.a.test", "a.test", "b.test", "x.a.test", "y.a.test"}
	rapid.Check(t, func(t *rapid.T) {
		var pool []*certificate
		for i := range rapid.IntRange(1, 6).Draw(t, "certificates") {
			c := &certificate{key: fmt.Sprintf("tls-%d", i), Certificate: lb.Certificate{Algorithm: rapid.SampledFrom([]string{"RSA", "ECDSA"}).Draw(t, "algorithm")}}
			for _, h := range rapid.SliceOfNDistinct(rapid.SampledFrom(hosts[1:]), 1, 3, rapid.ID[hostname]).Draw(t, "names") {
				c.Names = append(c.Names, string(h))
			}
			pool = append(pool, c)
		}
		var listeners []*listener
		for _, h := range rapid.SliceOfNDistinct(rapid.SampledFrom(hosts), 1, len(hosts), rapid.ID[hostname]).Draw(t, "hostnames") {
			l := &listener{name: gwv1.SectionName("l" + h), hostname: h, accepted: status.ListenerAccepted()}
			l.certificates = rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 1, 2, func(c *certificate) string { return c.key }).Draw(t, "of "+string(h))
			listeners = append(listeners, l)
		}
		left, byDefault := distinguishable(slices.Clone(listeners))
		if len(left) == 0 || byDefault == nil {
			t.Fatal("the first listener is always served")
		}
		rest := slices.DeleteFunc(certificatesOf(left), func(c *certificate) bool { return c.key == byDefault.key })
		order := append([]*certificate{byDefault}, rapid.Permutation(rest).Draw(t, "order")...)
		for _, l := range left {
			server := string(l.hostname)
			switch {
			case server == "":
				server = "nobody.example"
			case l.hostname.wildcard():
				server = "unnamed" + server[1:]
			}
			for _, ecdsa := range []bool{true, false} {
				if got := haproxyPresents(order, server, ecdsa); !l.has(got.key) {
					t.Fatalf("listener %q: a client of %s (ECDSA %v) is presented %s %v", l.hostname, server, ecdsa, got.key, got.Names)
				}
			}
		}
		for _, l := range listeners {
			if l.served() != slices.Contains(left, l) || l.served() != (l.accepted == status.ListenerAccepted()) {
				t.Fatalf("listener %q is neither served nor refused", l.hostname)
			}
		}
	})
}
