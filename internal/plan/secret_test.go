package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"open", "secret", "either"}), 0, 3, rapid.ID[string]).Draw(t, "pools") {
		if len(tree.Listeners) == 0 {
			break
		}
		pool := drawTLSPool(t, name)
		tree.Pools = append(tree.Pools, pool)
		used = append(used, pool.TLS.Secrets()...)
		l := &tree.Listeners[rapid.IntRange(0, len(tree.Listeners)-1).Draw(t, "listener")]
		if l.DefaultPool == "" && rapid.Bool().Draw(t, "default") {
			l.DefaultPool = pool.Key
			continue
		}
		l.Policies = append(l.Policies, lb.Policy{Meta: lb.Meta{Key: fmt.Sprint("p", len(l.Policies))}, Action: lb.RedirectToPool, Pool: pool.Key,
			Rules: []lb.Rule{path(lb.EqualTo, rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path"))}})
	}
	slices.SortFunc(tree.Pools, func(a, b lb.Pool) int { return cmp.Compare(a.Key, b.Key) })
	slices.Sort(used)
	for _, key := range slices.Compact(used) {
		tree.Secrets = append(tree.Secrets, lb.Secret{Key: key, Name: "the mark of " + key})
	}
	return tree
}

// drawTLSPool is a pool whose members say how they are spoken to: 10.0.0.x in plain text, 10.0.1.x over TLS, 10.0.2.x as the pool is.
func drawTLSPool(t *rapid.T, name string) lb.Pool {
	pool := lb.Pool{Meta: lb.Meta{Key: name, Name: name}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN"}
	net := map[string]int{"open": 0, "secret": 1, "either": 2}[name]
	for i := range rapid.IntRange(1, 2).Draw(t, "members") {
		pool.Members = append(pool.Members, lb.Member{Address: fmt.Sprintf("10.0.%d.%d", net, i), Port: 80, Weight: 1})
	}
	if name == "secret" || name == "either" && rapid.Bool().Draw(t, "over TLS") {
		pool.TLS = &lb.PoolTLS{CA: rapid.SampledFrom([]string{"", "ca-1", "ca-2"}).Draw(t, "CA"), Certificate: rapid.SampledFrom([]string{"", "tls-1"}).Draw(t, "certificate")}
	}
	return pool
}

// spokenToAsWanted fails when members that are always behind TLS are in a pool without, or the other way round.
func spokenToAsWanted(t *rapid.T, tree *lb.Tree) {
	for _, pool := range tree.Pools {
		for _, m := range pool.Members {
			if strings.HasPrefix(m.Address, "10.0.0.") && pool.TLS != nil || strings.HasPrefix(m.Address, "10.0.1.") && pool.TLS == nil {
				t.Fatalf("%s is in pool %s with TLS %v", m.Address, pool.Key, pool.TLS)
			}
		}
	}
}

// Whatever is there and wherever a plan ends, no listener ever refers to a secret that is not there (Apply refuses that), and the next
// plan leaves exactly the secrets that are wanted.
func TestSecrets_areThereForWhoRefersToThemAndThenGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		have := &lb.Tree{}
		do := func(s Step) {
			if err := Apply(have, s); err != nil {
				t.Fatal(err)
			}
			spokenToAsWanted(t, have)
		}
		for range 3 {
			want := drawTLSTree(t)
			if rapid.IntRange(0, 3).Draw(t, "orphan") == 0 && have.SecretByKey("orphan") == nil {
				have.Secrets = append(slices.Clone(have.Secrets), lb.Secret{ID: "o", Key: "orphan"})
			}
			steps := New(want, have).Steps
			for _, s := range steps[:rapid.IntRange(0, len(steps)).Draw(t, "done before a crash")] {
				do(s)
			}
		}
		want := drawTLSTree(t)
		if rapid.Bool().Draw(t, "refused") {
			for _, s := range New(WithoutCertificates(want, have), have).Steps {
				if s.Kind == lb.KindSecret && s.Verb == Create {
					t.Fatal("stores a certificate that the cloud refuses")
				}
				if !want.Empty() {
					do(s)
				}
			}
		}
		for _, s := range New(want, have).Steps {
			do(s)
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
