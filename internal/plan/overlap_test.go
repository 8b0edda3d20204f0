package plan

import (
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func exactHeader(value string) []lb.Rule {
	return []lb.Rule{
		{Type: lb.RuleHeader, Compare: lb.Regex, Key: "X-V", Value: "^" + value + "$"},
		{Type: lb.RuleHeader, Compare: lb.Regex, Key: "x-v", Value: "^(?!" + value + "$)", Invert: true},
	}
}

func TestRuleBook_overlap(t *testing.T) {
	t.Parallel()
	foo, bar := testPolicy("", "", "foo", "").Rules, testPolicy("", "", "bar", "").Rules
	fooA, fooB := testPolicy("", "", "foo", "/a").Rules, testPolicy("", "", "foo", "/b").Rules
	notA := []lb.Rule{{Type: lb.RulePath, Compare: lb.Regex, Value: "^/a(/|$)", Invert: true}}
	below := []lb.Rule{{Type: lb.RulePath, Compare: lb.EqualTo, Value: "/a/b"}}
	everything := []lb.Rule{{Type: lb.RulePath, Compare: lb.Regex, Value: "(?!)", Invert: true}}
	b := newRuleBook()
	for _, c := range []struct {
		name string
		x, y []lb.Rule
		want bool
	}{
		{"hosts", foo, bar, false},
		{"host and its path", foo, fooA, true},
		{"paths", fooA, fooB, false},
		{"path and its exclusion", fooA, notA, false},
		{"path below and the exclusion", below, notA, false},
		{"other path and the exclusion", fooB, notA, true},
		{"everything", everything, fooA, true},
		{"default", nil, fooA, true},
		{"exact headers", exactHeader("v1"), exactHeader("v2"), false},
		{"exact header and host", exactHeader("v1"), foo, true},
		{"one element each", exactHeader("v1")[:1], exactHeader("v2")[:1], true},
	} {
		if got := b.overlap(b.matches(c.x), b.matches(c.y)); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
	if !b.empty(b.matches(append(exactHeader("v1")[:1:1], exactHeader("v2")[1]))) {
		t.Error("v1, and nothing but v2: not proven empty")
	}
	if !b.covered(b.matches(foo), b.matches(below), b.matches(append(foo[:1:1], below...))) {
		t.Error("not proven covered")
	}
}
