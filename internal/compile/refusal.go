package compile

import (
	"fmt"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Refusals are what the cloud did not take when it was asked last. The listeners that need it say so; all others go on.
type Refusals struct {
	// Secrets are by key.
	Secrets map[string]Refusal
	// Unclaimed are the keys of secrets that the Octavia listener of a port refers to and that no Secret holds any more, the default certificate first: what the
	// refused ones would have replaced stays where it is.
	Unclaimed map[int][]string
}

// Refusal is one refused secret.
type Refusal struct {
	// Why is what the cloud said, in our words.
	Why string
	// Stored says that Barbican has it: it stays there for the next attempt.
	Stored bool
}

// refused takes the certificates that the cloud does not take from a listener. Left are those that can be served.
func (t *terminator) refused(l *listener) {
	var why []string
	l.certificates = slices.DeleteFunc(slices.Clone(l.certificates), func(c *certificate) bool {
		r, ok := t.in.Refusals.Secrets[c.key]
		if !ok {
			return false
		}
		if r.Stored {
			t.want(lb.Secret{Key: c.key, Certificate: &c.Certificate})
		}
		why = append(why, fmt.Sprintf("the certificate of Secret %s: %s", c.secret, r.Why))
		return true
	})
	l.cloudRefusal = strings.Join(why, "; ")
}

// leftovers are the certificates that the Octavia listener of a port has and that no listener of the Gateway wants: those that a
// refused renewal would have replaced.
func (t *terminator) leftovers(port gwv1.PortNumber, wanted func(key string) bool) []string {
	var keys []string
	for _, key := range t.in.Refusals.Unclaimed[int(port)] {
		if lb.IsCertificateKey(key) && !wanted(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// settleRefusals decides about the listeners of a port that have refused certificates. Left are those that stay in the tree: with another
// certificate of theirs, or with what the port has already; which of it was theirs is not known, so all of it stays.
func (t *terminator) settleRefusals(port gwv1.PortNumber, listeners []*listener) (left []*listener, kept []string) {
	if !slices.ContainsFunc(listeners, func(l *listener) bool { return l.cloudRefusal != "" }) {
		return listeners, nil
	}
	all := certificatesOf(listeners)
	kept = t.leftovers(port, func(key string) bool {
		return slices.ContainsFunc(all, func(c *certificate) bool { return c.key == key }) || t.in.Refusals.Secrets[key].Why != ""
	})
	for _, l := range listeners {
		switch {
		case l.cloudRefusal == "":
			left = append(left, l)
		case len(l.certificates) > 0:
			l.programmed = status.ListenerRefusedByCloud(l.cloudRefusal, status.ServedPartly)
			left = append(left, l)
		case len(kept) > 0:
			l.programmed = status.ListenerRefusedByCloud(l.cloudRefusal, status.ServedAsBefore)
			left = append(left, l)
		default:
			l.programmed = status.ListenerRefusedByCloud(l.cloudRefusal, status.NotServed)
			l.notProgrammed = "the cloud does not take its certificate"
		}
	}
	return left, kept
}
