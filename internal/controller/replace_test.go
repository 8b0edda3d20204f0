package controller

import (
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func TestUnreached_waitsForWhatTheOldOneReaches(t *testing.T) {
	t.Parallel()
	tree := func(statuses ...string) *lb.Tree {
		out := &lb.Tree{}
		for i, s := range statuses {
			if s != "" {
				out.Pools = append(out.Pools, lb.Pool{Meta: lb.Meta{Key: string(rune('a' + i)), OperatingStatus: s}})
			}
		}
		return out
	}
	for _, c := range []struct {
		name       string
		made, have *lb.Tree
		want       string
	}{
		{"both answer", tree("ONLINE", "DEGRADED"), tree("ONLINE", "ONLINE"), ""},
		{"the new one does not know yet", tree("OFFLINE", "ONLINE"), tree("ONLINE", "ONLINE"), "a"},
		{"the new one reaches none", tree("ONLINE", "ERROR"), tree("ONLINE", "DEGRADED"), "b"},
		{"neither reaches any", tree("ERROR"), tree("ERROR"), ""},
		{"a pool that is new", tree("", "OFFLINE"), tree("ONLINE"), ""},
	} {
		if got := unreached(c.made, c.have); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
