package compile

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// header is one header match: pattern is a regular expression for one whole element, without anchors.
type header struct {
	name    string
	exact   bool
	pattern string
}

// parseHeaders returns the matches sorted by name. Of several with one name the first counts, as Gateway API says.
func parseHeaders(matches []gwv1.HTTPHeaderMatch) ([]header, error) {
	var list []header
	for _, m := range matches {
		h, err := parseHeader(m)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(o header) bool { return o.name == h.name }) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b header) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func parseHeader(m gwv1.HTTPHeaderMatch) (header, error) {
	kind := gwv1.HeaderMatchExact
	if m.Type != nil {
		kind = *m.Type
	}
	h := header{name: textproto.CanonicalMIMEHeaderKey(string(m.Name))}
	if err := checkHeaderName(h.name); err != nil {
		return header{}, err
	}
	switch kind {
	case gwv1.HeaderMatchExact:
		if err := checkHeaderValue(m.Value); err != nil {
			return header{}, fmt.Errorf("header %s: %w", h.name, err)
		}
		h.exact, h.pattern = true, escape(m.Value)
	case gwv1.HeaderMatchRegularExpression:
		pattern, err := parseRegex(m.Value)
		if err != nil {
			return header{}, fmt.Errorf("header %s: value %w", h.name, err)
		}
		h.pattern = strings.TrimSuffix(pattern, "$")
	default:
		return header{}, fmt.Errorf("header match type %q is not known", kind)
	}
	if len(h.rules()[1].Value) > maxValue {
		return header{}, fmt.Errorf("header %s: the value is too long: Octavia takes %d characters after escaping", h.name, maxValue)
	}
	return h, nil
}

// checkHeaderName lets pass the characters that mean nothing else in HTML and in HAProxy's configuration, where Octavia
// prints the name as it is.
func checkHeaderName(name string) error {
	if name == "" || len(name) > maxValue {
		return fmt.Errorf("a header name must have 1 to %d characters", maxValue)
	}
	for _, c := range []byte(name) {
		if !literal(c) && c != '.' || c == '/' {
			return fmt.Errorf("a header name has a character other than letters, digits, '-', '_', '.' and '~'")
		}
	}
	return nil
}

// checkHeaderValue refuses values that HAProxy never sees as one element: it splits at commas outside double quotes and
// trims blanks.
func checkHeaderValue(value string) error {
	if value == "" || strings.Trim(value, " \t") != value {
		return fmt.Errorf("an empty value, or one with blanks at its ends, cannot be matched")
	}
	quoted, escaped := false, false
	for _, c := range []byte(value) {
		switch {
		case c < ' ' && c != '\t' || c >= 0x7f:
			return fmt.Errorf("the value must consist of printable ASCII characters")
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return fmt.Errorf("a value with a comma cannot be matched: Octavia compares the parts of a list one by one")
		}
	}
	return nil
}

// rules are the two conditions that together are exact: one element of the header matches, and none differs. A HEADER rule
// alone also matches when other elements are present.
func (h header) rules() [2]lb.Rule {
	return [2]lb.Rule{
		{Type: lb.RuleHeader, Compare: lb.Regex, Key: h.name, Value: "^" + h.pattern + "$"},
		{Type: lb.RuleHeader, Compare: lb.Regex, Key: h.name, Value: "^(?!" + h.pattern + "$)", Invert: true},
	}
}

// disjoint says whether provably no request matches both.
func (h header) disjoint(o header) bool {
	return h.name == o.name && h.exact && o.exact && h.pattern != o.pattern
}
