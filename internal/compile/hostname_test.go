package compile

import "testing"

func TestHostname_coversAndIntersects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow hostname
		covers       bool
	}{
		{"", "", true}, {"", "a.test", true}, {"", "*.test", true}, {"a.test", "", false},
		{"*.test", "a.test", true}, {"*.test", "b.a.test", true}, {"*.test", "test", false}, {"*.test", "*.a.test", true},
		{"*.test", "*.test", true}, {"*.a.test", "*.test", false}, {"*.a.test", "a.test", false}, {"*.a.test", "xa.test", false},
		{"a.test", "*.test", false}, {"a.test", "a.test", true},
	} {
		if got := c.wide.covers(c.narrow); got != c.covers {
			t.Errorf("%q covers %q: got %v", c.wide, c.narrow, got)
		}
	}
	if _, ok := intersect("*.a.test", "*.b.test"); ok {
		t.Error("two hosts that are not nested intersect")
	}
}
