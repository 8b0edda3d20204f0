package route

import (
	"fmt"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// matcher is one L7 rule, ready to be asked.
type matcher struct {
	rule lb.Rule
	// header is the lower-case name, for headers and the host.
	header string
	match  pattern
}

func newMatcher(rule lb.Rule) (*matcher, error) {
	value, err := renderedWord(rule.Value)
	if err != nil {
		return nil, err
	}
	m := &matcher{rule: rule}
	switch rule.Type {
	case lb.RulePath:
	case lb.RuleHost:
		m.header = "host"
	case lb.RuleHeader:
		if rule.Key == "" {
			return nil, fmt.Errorf("a HEADER rule needs a header name")
		}
		m.header = strings.ToLower(rule.Key)
	default:
		return nil, fmt.Errorf("rules of type %q are not known", rule.Type)
	}
	// HOST_NAME is the only type that Octavia renders with -i.
	m.match, err = newPattern(rule.Compare, value, rule.Type == lb.RuleHost)
	return m, err
}

func newPattern(compare lb.Compare, value string, foldCase bool) (pattern, error) {
	if compare == lb.Regex {
		return newRegex(value, foldCase)
	}
	var compared func(subject, value string) bool
	switch compare {
	case lb.EqualTo:
		compared = func(s, v string) bool { return s == v }
	case lb.StartsWith:
		compared = strings.HasPrefix
	case lb.EndsWith:
		compared = strings.HasSuffix
	case lb.Contains:
		compared = strings.Contains
	default:
		return nil, fmt.Errorf("comparison %q is not known", compare)
	}
	if foldCase {
		value = lowerASCII(value)
		return func(s string) bool { return compared(lowerASCII(s), value) }, nil
	}
	return func(s string) bool { return compared(s, value) }, nil
}

// holds says whether the rule, inversion included, is true for a request. What the request does not have matches nothing,
// so that an inverted rule is true for it.
func (m *matcher) holds(v *view) bool {
	return m.matches(v) != m.rule.Invert
}

func (m *matcher) matches(v *view) bool {
	if m.rule.Type == lb.RulePath {
		return v.hasPath && m.match(v.path)
	}
	for _, element := range v.header(m.header) {
		if m.match(element) {
			return true
		}
	}
	return false
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
