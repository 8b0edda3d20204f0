package plan

import (
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func TestRuleBook_live(t *testing.T) {
	t.Parallel()
	rules := func(host, path string, more ...lb.Rule) []lb.Rule {
		return append(testPolicy("", "", host, path).Rules, more...)
	}
	for _, c := range []struct {
		name       string
		have, want []lb.Rule
		calls      int
		ok         bool
	}{
		{"nothing", rules("foo", "/a"), rules("foo", "/a"), 0, true},
		{"path", rules("foo", "/a"), rules("foo", "/b"), 1, true},
		{"host", rules("foo", "/a"), rules("bar", "/a"), 1, true},
		{"host and path", rules("foo", "/a"), rules("bar", "/b"), 2, false},
		{"narrow", rules("foo", ""), rules("foo", "/a", exactHeader("v1")...), 3, true},
		{"widen", rules("foo", "/a", exactHeader("v1")...), rules("foo", ""), 3, true},
		{"header value", rules("foo", "/a", exactHeader("v1")...), rules("foo", "/a", exactHeader("v2")...), 2, true},
		{"path and new rule", rules("foo", "/a"), rules("foo", "/b", exactHeader("v1")[0]), 2, false},
	} {
		edits := editRules(c.want, c.have)
		if _, ok := newRuleBook().live(edits, c.want, c.have); len(edits) != c.calls || ok != c.ok {
			t.Errorf("%s: got %d edits, %v", c.name, len(edits), ok)
		}
	}
}
