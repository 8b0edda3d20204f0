package compile

import (
	"fmt"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

type pathKind int

const (
	// anyPath is the prefix "/".
	anyPath pathKind = iota
	exactPath
	prefixPath
	regexPath
)

// path is one path match. Prefixes have no trailing "/": they match whole elements. The value of a regex is rewritten
// by parseRegex.
type path struct {
	kind  pathKind
	value string
	// length is what precedence counts.
	length int
}

func parsePath(m *gwv1.HTTPPathMatch) (path, error) {
	kind, value := gwv1.PathMatchPathPrefix, "/"
	if m != nil && m.Type != nil {
		kind = *m.Type
	}
	if m != nil && m.Value != nil {
		value = *m.Value
	}
	p := path{value: value, length: len(value)}
	switch kind {
	case gwv1.PathMatchExact:
		p.kind = exactPath
	case gwv1.PathMatchPathPrefix:
		p.kind = prefixPath
		p.value = strings.TrimSuffix(value, "/")
		p.length = len(p.value)
		if value == "/" {
			return path{kind: anyPath}, nil
		}
	case gwv1.PathMatchRegularExpression:
		rewritten, err := parseRegex(value)
		if err != nil {
			return path{}, fmt.Errorf("path %w", err)
		}
		p.kind, p.value = regexPath, rewritten
	default:
		return path{}, fmt.Errorf("path match type %q is not known", kind)
	}
	if p.kind != regexPath {
		if err := checkPath(value); err != nil {
			return path{}, err
		}
	}
	if len(p.rule().Value) > maxValue {
		return path{}, fmt.Errorf("the path is too long: Octavia takes %d characters after escaping", maxValue)
	}
	return p, nil
}

// checkPath checks what the API server should have checked.
func checkPath(value string) error {
	if !strings.HasPrefix(value, "/") || strings.Contains(value, "//") {
		return fmt.Errorf("the path must begin with / and must not have //")
	}
	for _, c := range []byte(value) {
		if !literal(c) && !strings.ContainsRune("._!$&'()*+,;=:@%", rune(c)) {
			return fmt.Errorf("the path has a character that is not allowed in paths")
		}
	}
	return nil
}

// fragment is the regular expression without its leading "^".
func (p path) fragment() string {
	switch p.kind {
	case exactPath:
		return escape(p.value) + "$"
	case prefixPath:
		return escape(p.value) + "(/|$)"
	default:
		return p.value
	}
}

// rule matches the path; not for anyPath, which needs none.
func (p path) rule() lb.Rule {
	if p.kind == exactPath && plain(p.value) {
		return lb.Rule{Type: lb.RulePath, Compare: lb.EqualTo, Value: p.value}
	}
	return lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: "^" + p.fragment()}
}

// covers says whether p provably matches each request path that o matches.
func (p path) covers(o path) bool {
	switch {
	case p.kind == anyPath:
		return true
	case p.kind == prefixPath && (o.kind == prefixPath || o.kind == exactPath):
		return o.value == p.value || strings.HasPrefix(o.value, p.value+"/")
	}
	return p.kind == o.kind && p.value == o.value
}

// disjoint says whether provably no request path matches both.
func (p path) disjoint(o path) bool {
	if p.kind == regexPath || o.kind == regexPath {
		return false
	}
	return !p.covers(o) && !o.covers(p)
}
