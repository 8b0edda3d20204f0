package compile

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Octavia gives HAProxy a list of certificates without the hostnames of listeners, so that HAProxy chooses by the names inside the
// certificates alone: for each kind of key the exact name, else the wildcard with one label more, and of the kinds that are found the
// one that the client can use. A server name that nothing matches gets the default certificate.
//
// Gateway API wants the certificate of the listener that a server name belongs to. So the choice is computed here, and a listener
// that would be presented with another one's certificate is refused:
//
//   - for its own hostname (for a wildcard: any name with one label more), the later listener is refused, in the order in which listeners win
//     conflicts
//   - when its certificates do not name its hostname, it is refused unless the default certificate is its own
//
// The default certificate is the first one of the listener without a hostname, to which unknown names belong; without such a
// listener, that of the widest wildcard; else that of the first listener. Names below a wildcard with several labels more get the default
// certificate too, which differs only for clients that do not verify: no certificate of that listener could name them.
//
// A name inside a certificate that is not the listener's hostname takes that name from a wider listener of the port. That certificate is
// valid for the name, so it is told in OverlappingTLSConfig and not refused.

// presented are the certificates that HAProxy may present to clients that ask for host. For a wildcard that is any name with one label
// more that no certificate has as an exact name.
func presented(all []*certificate, host hostname) []*certificate {
	exact, wild := string(host), ""
	if host.wildcard() {
		exact, wild = "", string(host)
	} else if _, parent, found := strings.Cut(exact, "."); found {
		wild = "*." + parent
	}
	var found []*certificate
	for _, algorithm := range []string{"ECDSA", "RSA"} {
		for _, n := range []string{exact, wild} {
			before := len(found)
			for _, c := range all {
				if n != "" && c.Algorithm == algorithm && slices.Contains(c.Names, n) {
					found = append(found, c)
				}
			}
			if len(found) > before {
				break
			}
		}
	}
	return found
}

func (l *listener) has(key string) bool {
	return slices.ContainsFunc(l.certificates, func(c *certificate) bool { return c.key == key })
}

// certificatesOf are the different certificates of some listeners, in their order.
func certificatesOf(listeners []*listener) []*certificate {
	var all []*certificate
	for _, l := range listeners {
		for _, c := range l.certificates {
			if !slices.ContainsFunc(all, func(o *certificate) bool { return o.key == c.key }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// distinguishable returns the listeners of a port, without those that it refuses because HAProxy could not tell their certificates
// from those of earlier ones. It also returns the default certificate.
func distinguishable(listeners []*listener) (left []*listener, byDefault *certificate) {
	for _, l := range listeners {
		if host, other := confused(append(slices.Clone(left), l)); other != nil {
			l.refuse(status.ListenerCertificateConfused(string(host), other.nameFor(l)))
			continue
		}
		left = append(left, l)
	}
	byDefault = defaultCertificate(left)
	all := certificatesOf(left)
	left = slices.DeleteFunc(left, func(l *listener) bool {
		if l.hostname == "" || byDefault == nil || l.has(byDefault.key) || len(presented(all, l.hostname)) > 0 {
			return false
		}
		l.refuse(status.ListenerCertificateNamesOthers(string(l.hostname)))
		return true
	})
	return left, byDefault
}

// confused looks for a listener whose hostname may be presented with the certificate of another one; the newest of all is the last, and
// what is returned is the one that it stands in the way of, or that stands in its way.
func confused(listeners []*listener) (host hostname, other *listener) {
	all := certificatesOf(listeners)
	newest := listeners[len(listeners)-1]
	for _, l := range listeners {
		if l.hostname == "" {
			continue
		}
		for _, c := range presented(all, l.hostname) {
			if l.has(c.key) {
				continue
			}
			if l != newest {
				return l.hostname, l
			}
			i := slices.IndexFunc(listeners, func(o *listener) bool { return o.has(c.key) })
			return l.hostname, listeners[i]
		}
	}
	return "", nil
}

// defaultCertificate follows the rule above.
func defaultCertificate(listeners []*listener) *certificate {
	var best *listener
	for _, l := range listeners {
		if best == nil || width(l.hostname) < width(best.hostname) {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	return best.certificates[0]
}

// width orders hostnames from any to exact.
func width(h hostname) int {
	switch {
	case h == "":
		return 0
	case h.wildcard():
		return strings.Count(string(h), ".")
	}
	return 1000
}

// markOverlaps tells listeners of one port whose hostnames or certificates overlap: a client that reuses a connection may send there what
// belongs to another listener.
func markOverlaps(listeners []*listener) {
	for _, l := range listeners {
		var hosts, certificates []string
		for _, o := range listeners {
			if o == l {
				continue
			}
			if l.hostname.covers(o.hostname) || o.hostname.covers(l.hostname) {
				hosts = append(hosts, o.nameFor(l))
			}
			if overlap(l, o) {
				certificates = append(certificates, o.nameFor(l))
			}
		}
		switch {
		case len(certificates) > 0:
			l.overlapping = status.ListenerOverlapping(gwv1.ListenerReasonOverlappingCertificates, l.port, slices.Compact(certificates))
		case len(hosts) > 0:
			l.overlapping = status.ListenerOverlapping(gwv1.ListenerReasonOverlappingHostnames, l.port, slices.Compact(hosts))
		}
	}
}

// overlap says whether certificates of two listeners name the same server.
func overlap(l, o *listener) bool {
	for _, a := range l.certificates {
		for _, b := range o.certificates {
			for _, n := range a.Names {
				for _, m := range b.Names {
					if n == m || oneLabelMore(n, m) || oneLabelMore(m, n) {
						return true
					}
				}
			}
		}
	}
	return false
}

// oneLabelMore says whether a wildcard name stands for an exact one.
func oneLabelMore(wild, exact string) bool {
	_, parent, found := strings.Cut(exact, ".")
	return found && wild == "*."+parent
}
