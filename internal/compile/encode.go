package compile

import (
	"fmt"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Octavia takes almost any rule value, escapes it for HTML, and prints it as one unquoted word of HAProxy's configuration:
// "#" starts a comment there, a leading "-" is a flag, a newline is a new line. So no value of a user gets out of this file
// unless it consists of characters that survive all of that.

// maxValue is Octavia's limit for rule values and redirect targets, in characters.
const maxValue = 255

// maxRules is Octavia's limit of rules in one policy.
const maxRules = 50

// escape makes s a regular expression that matches exactly s. Every value that is made of it begins with "^" or "(".
func escape(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := range len(s) {
		switch c := s[i]; {
		case literal(c):
			b.WriteByte(c)
		case c == '.':
			b.WriteString(`\.`)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// literal says whether c means itself in a regular expression, in HTML and in HAProxy's configuration.
func literal(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '/' || c == '_' || c == '~' || c == '-'
}

// plain says whether s needs no regular expression.
func plain(s string) bool {
	for i := range len(s) {
		if !literal(s[i]) && s[i] != '.' {
			return false
		}
	}
	return !strings.HasPrefix(s, "-")
}

// hostRules matches any of the hosts, with any port or none: one rule when they fit into one value, else one for each part.
// Each is a whole condition: a request matches when one of the rules does.
func hostRules(h hosts) []lb.Rule {
	fragments := make([]string, len(h))
	for i, host := range h {
		fragments[i] = hostFragment(host)
	}
	var rules []lb.Rule
	for _, value := range alternations(fragments, "^", "(:[0-9]*)?$") {
		rules = append(rules, lb.Rule{Type: lb.RuleHost, Compare: lb.Regex, Value: value})
	}
	return rules
}

func hostFragment(h hostname) string {
	if h.wildcard() {
		return "[^:]+" + escape(string(h[1:]))
	}
	return escape(string(h))
}

// hostFits says whether a hostname can be matched at all.
func hostFits(h hostname) bool { return len("^")+len(hostFragment(h))+len("(:[0-9]*)?$") <= maxValue }

// alternations packs fragments into as few values before(a|b|c)after as fit.
func alternations(fragments []string, before, after string) []string {
	var values []string
	room := maxValue - len(before) - len(after) - len("()")
	for start := 0; start < len(fragments); {
		end, size := start+1, len(fragments[start])
		for end < len(fragments) && size+1+len(fragments[end]) <= room {
			size += 1 + len(fragments[end])
			end++
		}
		body := fragments[start]
		if end-start > 1 {
			body = "(" + strings.Join(fragments[start:end], "|") + ")"
		}
		values = append(values, before+body+after)
		start = end
	}
	return values
}

// everything is a rule that holds for every request, even one without a path.
func everything() lb.Rule {
	return lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: "(?!)", Invert: true}
}

func inverted(r lb.Rule) lb.Rule {
	r.Invert = !r.Invert
	return r
}
