package plan

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func path(compare lb.Compare, value string) lb.Rule {
	return lb.Rule{Type: lb.RulePath, Compare: compare, Value: value}
}

func TestLanguage_disjoint(t *testing.T) {
	t.Parallel()
	host := func(v string) lb.Rule { return lb.Rule{Type: lb.RuleHost, Compare: lb.Regex, Value: v} }
	header := func(v string) lb.Rule {
		return lb.Rule{Type: lb.RuleHeader, Compare: lb.Regex, Key: "X", Value: v}
	}
	for _, c := range []struct {
		a, b lb.Rule
		want bool
	}{
		{path(lb.EqualTo, "/a"), path(lb.EqualTo, "/b"), true},
		{path(lb.EqualTo, "/a"), path(lb.EqualTo, "/a"), false},
		{path(lb.EqualTo, "/a.b"), path(lb.EqualTo, "/axb"), true},
		{path(lb.Regex, "^/a(/|$)"), path(lb.EqualTo, "/ab"), true},
		{path(lb.Regex, "^/a(/|$)"), path(lb.EqualTo, "/a/b"), false},
		{path(lb.Regex, "^/a(/|$)"), path(lb.Regex, "^/ab(/|$)"), true},
		{path(lb.Regex, "^/a(/|$)"), path(lb.Regex, "^/a/b(/|$)"), false},
		{path(lb.Regex, "^/a(/|$)"), path(lb.StartsWith, "/a"), false},
		{path(lb.Regex, "a"), path(lb.Regex, "b"), false},
		{path(lb.Regex, "^a|b"), path(lb.Regex, "^c"), false},
		{path(lb.EndsWith, ".png"), path(lb.EndsWith, ".gif"), true},
		{path(lb.EndsWith, "g"), path(lb.Contains, "p"), false},
		{path(lb.Regex, "^/[0-9]+$"), path(lb.Regex, "^/[a-z]+$"), true},
		{path(lb.Regex, "^/[0-9]*$"), path(lb.Regex, "^/[a-z]*$"), false},
		{path(lb.Regex, `^/\bx`), path(lb.Regex, `^/y`), false},
		{host(`^foo\.example(:[0-9]*)?$`), host(`^bar\.example(:[0-9]*)?$`), true},
		{host(`^foo\.example(:[0-9]*)?$`), host(`^FOO\.example(:[0-9]*)?$`), false},
		{host(`^[^:]+\.example(:[0-9]*)?$`), host(`^bar\.example(:[0-9]*)?$`), false},
		{host(`^[^:]+\.a\.example(:[0-9]*)?$`), host(`^[^:]+\.b\.example(:[0-9]*)?$`), true},
		{host(`^(a|b)\.example(:[0-9]*)?$`), host(`^(c|d)\.example(:[0-9]*)?$`), true},
		{host(`^(a|b)\.example(:[0-9]*)?$`), host(`^(c|b)\.example(:[0-9]*)?$`), false},
		{header("^v1$"), header("^(?!v1$)"), true},
		{header("^v2$"), header("^(?!v1$)"), false},
		{header("^v[0-9]$"), header("^(?!v1$)"), false},
		{header("^(?!v2$)"), header("^(?!v1$)"), false},
		{header("^v2$"), header("^(?!v|b$)"), true},
		{header("^v2$"), header("^(?!(?:v1|v2)$)"), true},
		{header("^v2$"), header("^(?!v2)(x$)"), false},
	} {
		for _, pair := range [][2]lb.Rule{{c.a, c.b}, {c.b, c.a}} {
			if got := newLanguage(pair[0]).disjoint(newLanguage(pair[1])); got != c.want {
				t.Errorf("%s and %s: got %v", ruleText(pair[0]), ruleText(pair[1]), got)
			}
		}
	}
}

// A proof must never be wrong: strings are tried against Go's own engine.
func TestLanguage_provesNothingFalse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	atoms := []string{"a", "b", "[ab]", ".", "(a|bb)", "a*", "(ab)?", "b+", "^", "$", "|", "(b|$)", "[^a]"}
	expression := func() string {
		s := ""
		if random.IntN(2) == 0 {
			s = "^"
		}
		for range 1 + random.IntN(4) {
			s += atoms[random.IntN(len(atoms))]
		}
		if random.IntN(2) == 0 {
			s += "$"
		}
		return s
	}
	var texts []string
	for length := range 6 {
		for n := range 1 << length {
			text := ""
			for i := range length {
				text += string("ab"[n>>i&1])
			}
			texts = append(texts, text)
		}
	}
	proven := 0
	for range 3000 {
		a, b := expression(), expression()
		ra, rb := regexp.MustCompile(a), regexp.MustCompile(b)
		first, second := newLanguage(path(lb.Regex, a)), newLanguage(path(lb.Regex, b))
		disjoint, within := first.disjoint(second), first.within(second)
		if disjoint || within {
			proven++
		}
		shown := fmt.Sprintf("%s and %s", a, b)
		for _, text := range texts {
			inA, inB := ra.MatchString(text), rb.MatchString(text)
			if disjoint && inA && inB {
				t.Fatalf("%s: %q is in both", shown, text)
			}
			if within && inA && !inB {
				t.Fatalf("%s: %q is only in the first", shown, text)
			}
		}
	}
	if proven < 300 {
		t.Errorf("only %d proofs were found", proven)
	}
}
