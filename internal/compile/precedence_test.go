package compile

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCompareEntries_isATotalOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) *entry {
			host := rapid.SampledFrom([]hostname{"", "a.test", "*.test", "*.a.test"})
			e := &entry{listener: &listener{hostname: host.Draw(t, label)}}
			e.hosts = newHosts(host.Draw(t, label))
			e.class = host.Draw(t, label).class()
			e.path = path{kind: pathKind(rapid.IntRange(0, 3).Draw(t, label)), length: rapid.IntRange(0, 2).Draw(t, label)}
			e.headers = make([]header, rapid.IntRange(0, 2).Draw(t, label))
			if rapid.IntRange(0, 5).Draw(t, label) > 0 {
				e.rule = &rule{index: rapid.IntRange(0, 1).Draw(t, label), route: &route{id: rapid.SampledFrom([]string{"a/b", "a/c"}).Draw(t, label)}}
			}
			return e
		}
		a, b, c := some("a"), some("b"), some("c")
		if compareEntries(a, b) != -compareEntries(b, a) {
			t.Fatal("the order depends on the side")
		}
		if compareEntries(a, b) < 0 && compareEntries(b, c) < 0 && compareEntries(a, c) >= 0 {
			t.Fatal("the order is not transitive")
		}
	})
}
