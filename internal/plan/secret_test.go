package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

var someSecrets = []string{"ca-1", "tls-1", "tls-2", "tls-3", "tls-4"}

// drawTLSTree is a load balancer with up to two HTTPS listeners, with exactly the secrets that they use.
func drawTLSTree(t *rapid.T) *lb.Tree {
	tree := &lb.Tree{Meta: lb.Meta{Name: "gw", Key: loadBalancerKey}}
	if rapid.IntRange(0, 5).Draw(t, "deleted") == 0 {
		return &lb.Tree{}
	}
	var used []string
	for _, port := range []int{80, 443, 8443} {
		if rapid.Bool().Draw(t, "without") {
			continue
		}
		l := lb.Listener{Meta: lb.Meta{Key: fmt.Sprintf("http-%d", port)}, Protocol: lb.HTTP, Port: port}
		if port != 80 {
			l.Key, l.Protocol = fmt.Sprintf("https-%d", port), lb.TerminatedHTTPS
			keys := rapid.SliceOfNDistinct(rapid.SampledFrom(someSecrets[1:]), 1, 3, rapid.ID[string]).Draw(t, "certificates")
			l.TLS = &lb.ListenerTLS{Default: keys[0], SNI: keys[1:]}
			if rapid.Bool().Draw(t, "clients") {
				l.TLS.ClientCA = someSecrets[0]
			}
			used = append(used, l.TLS.Secrets()...)
		}
		tree.Listeners = append(tree.Listeners, l)
	}
	slices.Sort(used)
	for _, key := range slices.Compact(used) {
		tree.Secrets = append(tree.Secrets, lb.Secret{Key: key, Name: "the mark of " + key})
	}
	return tree
}

// Whatever is there and wherever a plan ends, no listener ever refers to a secret that is not there (Apply refuses that), and the next
// plan leaves exactly the secrets that are wanted.
func TestSecrets_areThereForWhoRefersToThemAndThenGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		have := &lb.Tree{}
		for range 3 {
			want := drawTLSTree(t)
			if rapid.IntRange(0, 3).Draw(t, "orphan") == 0 && have.SecretByKey("orphan") == nil {
				have.Secrets = append(slices.Clone(have.Secrets), lb.Secret{ID: "o", Key: "orphan"})
			}
			steps := New(want, have).Steps
			for _, s := range steps[:rapid.IntRange(0, len(steps)).Draw(t, "done before a crash")] {
				if err := Apply(have, s); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := drawTLSTree(t)
		if rapid.Bool().Draw(t, "refused") {
			for _, s := range New(WithoutCertificates(want, have), have).Steps {
				if s.Kind == lb.KindSecret && s.Verb == Create {
					t.Fatal("stores a certificate that the cloud refuses")
				}
				if !want.Empty() {
					if err := Apply(have, s); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, s := range New(want, have).Steps {
			if err := Apply(have, s); err != nil {
				t.Fatal(err)
			}
		}
		var got, wanted []string
		for _, s := range have.Secrets {
			got = append(got, s.Key)
		}
		for _, s := range want.Secrets {
			wanted = append(wanted, s.Key)
		}
		if !slices.Equal(got, wanted) {
			t.Fatalf("left are %q, wanted %q", got, wanted)
		}
		if again := New(want, have); len(again.Steps) > 0 {
			t.Fatalf("a second plan does\n%s", again)
		}
	})
}
