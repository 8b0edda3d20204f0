package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Octavia validates request bodies with a type system of its own, whose
// messages clients see. This file is that type system: a schema converts
// decoded JSON to attrs, or refuses it with the message of the real one.

// attrs are the attributes of a request object that were given, or defaulted.
type attrs map[string]any

func (a attrs) has(name string) bool { _, ok := a[name]; return ok }

// set tells whether the attribute is there and not null.
func (a attrs) set(name string) bool { return a[name] != nil }

func (a attrs) str(name string) string { s, _ := a[name].(string); return s }

func (a attrs) num(name string) int { n, _ := a[name].(int); return n }

func (a attrs) flag(name string) bool { b, _ := a[name].(bool); return b }

func (a attrs) list(name string) []any { l, _ := a[name].([]any); return l }

func (a attrs) strs(name string) []string {
	var out []string
	for _, v := range a.list(name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (a attrs) objects(name string) []attrs {
	var out []attrs
	for _, v := range a.list(name) {
		if o, ok := v.(attrs); ok {
			out = append(out, o)
		}
	}
	return out
}

func (a attrs) object(name string) attrs { o, _ := a[name].(attrs); return o }

// into copies the attributes to the fields of the same JSON names.
func (a attrs) into(dst any) {
	b, err := marshal(a)
	if err == nil {
		err = json.Unmarshal(b, dst)
	}
	if err != nil {
		panic(fmt.Sprintf("sim: attributes of %T: %v", dst, err))
	}
}

// valueError is a refused value; the attribute adds its name to it.
type valueError string

func (e valueError) Error() string { return string(e) }

type wtype interface {
	// check converts a value that is not null.
	check(s *schemaContext, v any) (any, error)
}

type schemaContext struct {
	minor int // API version
	root  any // the whole body, which conversion errors quote
	arg   string
}

type field struct {
	name      string
	typ       wtype
	mandatory bool
	def       any // nil: unset when not given
	since     int
}

type objectType struct{ fields []field }

func (o *objectType) check(s *schemaContext, v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &apiError{status: 500, message: fmt.Sprintf("'%s' object has no attribute 'keys'", pyType(v))}
	}
	known := map[string]bool{}
	for _, f := range o.fields {
		known[f.name] = f.since <= s.minor
	}
	var unknown []string
	for k := range m {
		if !known[k] {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return nil, &unknownAttribute{names: unknown}
	}
	out := attrs{}
	for _, f := range o.fields {
		raw, given := m[f.name]
		if !known[f.name] {
			continue
		}
		if !given {
			if f.mandatory {
				return nil, invalidInput(f.name, nil, "Mandatory field missing.")
			}
			if f.def != nil {
				out[f.name] = f.def
			}
			continue
		}
		if raw == nil {
			switch f.name {
			case "name", "description":
				out[f.name] = ""
			case "admin_state_up":
				out[f.name] = false
			default:
				out[f.name] = nil
			}
			continue
		}
		val, err := f.typ.check(s, raw)
		var bad valueError
		var unknown *unknownAttribute
		switch {
		case errors.As(err, &bad):
			return nil, invalidInput(f.name, raw, string(bad))
		case errors.As(err, &unknown):
			unknown.path = append([]string{f.name}, unknown.path...)
			return nil, unknown
		case err != nil:
			return nil, err
		}
		out[f.name] = val
	}
	return out, nil
}

type unknownAttribute struct {
	path  []string
	names []string
}

func (e *unknownAttribute) Error() string { return strings.Join(e.names, ", ") }

func invalidInput(name string, v any, msg string) error {
	return refuse(400, "Invalid input for field/attribute %s. Value: '%s'. %s", name, pyStr(v), msg)
}

// parseBody reads a request body of the form {"root": {...}}.
func (c *Cloud) parseBody(r *request, arg, root string, typ wtype) (any, error) {
	var doc any
	if err := json.Unmarshal(r.body, &doc); err != nil {
		return nil, refuse(400, "Request is not in valid JSON format")
	}
	s := &schemaContext{minor: c.lb.minor, root: doc, arg: arg}
	top := &objectType{fields: []field{{name: root, typ: typ}}}
	v, err := top.check(s, doc)
	if err != nil {
		var ua *unknownAttribute
		if errors.As(err, &ua) {
			noun := "attribute"
			if len(ua.names) > 1 {
				noun = "attributes"
			}
			return nil, refuse(400, "Unknown %s for argument %s: %s", noun,
				strings.Join(append([]string{arg}, ua.path...), "."), strings.Join(ua.names, ", "))
		}
		return nil, err
	}
	body := v.(attrs)[root]
	if body == nil {
		return nil, &apiError{status: 500, message: "'UnsetType' object has no attribute 'to_dict'"}
	}
	return body, nil
}

func (c *Cloud) parseObject(r *request, arg, root string, typ *objectType) (attrs, error) {
	v, err := c.parseBody(r, arg, root, typ)
	if err != nil {
		return nil, err
	}
	return v.(attrs), nil
}

// convertError is a failed conversion, which Octavia reports for the whole body.
func (s *schemaContext) convertError(msg string) error {
	return invalidInput(s.arg, s.root, msg)
}

type stringType struct {
	min, max int
	pattern  *regexp.Regexp
	shown    string // the pattern as the real service prints it
}

func (t stringType) check(_ *schemaContext, v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, valueError("Value should be string")
	}
	if n := utf8.RuneCountInString(s); n < t.min {
		return nil, valueError(fmt.Sprintf("Value should have a minimum character requirement of %d", t.min))
	} else if t.max > 0 && n > t.max {
		return nil, valueError(fmt.Sprintf("Value should have a maximum character requirement of %d", t.max))
	}
	if t.pattern != nil && !t.pattern.MatchString(s) {
		return nil, valueError("Value should match the pattern " + t.shown)
	}
	return s, nil
}

type boolType struct{}

func (boolType) check(s *schemaContext, v any) (any, error) {
	switch b := v.(type) {
	case bool:
		return b, nil
	case float64:
		return b != 0, nil
	case string:
		switch strings.ToLower(b) {
		case "true", "t", "yes", "y", "on", "1":
			return true, nil
		case "false", "f", "no", "n", "off", "0":
			return false, nil
		}
	}
	return nil, s.convertError("Value not an unambiguous boolean: " + pyStr(v))
}

type intType struct{ min, max *int }

func between(lo, hi int) intType { return intType{&lo, &hi} }

func atLeast(lo int) intType { return intType{min: &lo} }

func (t intType) check(s *schemaContext, v any) (any, error) {
	var n int
	switch x := v.(type) {
	case float64:
		n = int(x)
	case bool:
		if x {
			n = 1
		}
	case string:
		var err error
		if n, err = strconv.Atoi(strings.TrimSpace(x)); err != nil {
			return nil, s.convertError(fmt.Sprintf("invalid literal for int() with base 10: '%s'", x))
		}
	default:
		return nil, &apiError{status: 500, message: fmt.Sprintf("int() argument must be a string, a bytes-like object or a real number, not '%s'", pyType(v))}
	}
	if t.min != nil && n < *t.min {
		return nil, valueError(fmt.Sprintf("Value should be greater or equal to %d", *t.min))
	}
	if t.max != nil && n > *t.max {
		return nil, valueError(fmt.Sprintf("Value should be lower or equal to %d", *t.max))
	}
	return n, nil
}

type enumType []string

func (t enumType) check(_ *schemaContext, v any) (any, error) {
	s, ok := v.(string)
	for _, want := range t {
		if ok && s == want {
			return s, nil
		}
	}
	// The real service prints the values in a random order.
	return nil, valueError("Value should be one of: " + strings.Join(t, ", "))
}

type intEnumType []int

func (t intEnumType) check(_ *schemaContext, v any) (any, error) {
	n, ok := v.(float64)
	var names []string
	for _, want := range t {
		if ok && n == float64(want) {
			return want, nil
		}
		names = append(names, strconv.Itoa(want))
	}
	return nil, valueError("Value should be one of: " + strings.Join(names, ", "))
}

type floatEnumType []float64

func (t floatEnumType) check(_ *schemaContext, v any) (any, error) {
	n, ok := v.(float64)
	if s, isString := v.(string); isString {
		var err error
		n, err = strconv.ParseFloat(s, 64)
		ok = err == nil
	}
	var names []string
	for _, want := range t {
		if ok && n == want {
			return want, nil
		}
		names = append(names, strconv.FormatFloat(want, 'f', 1, 64))
	}
	return nil, valueError("Value should be one of: " + strings.Join(names, ", "))
}

type uuidType struct{}

var uuidHex = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (uuidType) check(_ *schemaContext, v any) (any, error) {
	s, _ := v.(string)
	h := strings.ToLower(strings.ReplaceAll(strings.Trim(s, "{}"), "-", ""))
	if !uuidHex.MatchString(h) {
		return nil, valueError("Value should be UUID format")
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

type ipType struct{}

func (ipType) check(_ *schemaContext, v any) (any, error) {
	s, _ := v.(string)
	if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
		return nil, valueError("Value should be IPv4 or IPv6 format")
	}
	return s, nil
}

type cidrType struct{}

func (cidrType) check(_ *schemaContext, v any) (any, error) {
	s, _ := v.(string)
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked().String(), nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()).String(), nil
	}
	return nil, valueError("Value should be IPv4 or IPv6 CIDR format")
}

type urlType struct{}

func (urlType) check(_ *schemaContext, v any) (any, error) {
	s, _ := v.(string)
	if !validURL(s) {
		return nil, valueError("Value must be a valid URL string")
	}
	return s, nil
}

// The real check follows RFC 3986 for scheme, host and path only: a fragment,
// a quote in the query or an ampersand pass.
var (
	urlParts = regexp.MustCompile(`^(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$`)
	urlPath  = regexp.MustCompile(`^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$`)
	urlHost  = regexp.MustCompile(`^(?:[^@]*@)?(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?$`)
)

func validURL(s string) bool {
	m := urlParts.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	scheme := strings.ToLower(m[1])
	return (scheme == "http" || scheme == "https") && urlHost.MatchString(m[2]) && urlPath.MatchString(m[3])
}

type urlPathType struct{}

func (urlPathType) check(_ *schemaContext, v any) (any, error) {
	s, _ := v.(string)
	m := urlParts.FindStringSubmatch(s)
	if m == nil || strings.ContainsAny(s, " \t\r\n") || m[1] != "" || m[2] != "" ||
		!strings.HasPrefix(m[3], "/") || !urlPath.MatchString(m[3]) {
		return nil, valueError("Value must be a valid URL Path string")
	}
	if _, err := url.PathUnescape(m[3]); err != nil {
		return nil, valueError("Value must be a valid URL Path string")
	}
	return s, nil
}

type alpnType struct{}

func (alpnType) check(_ *schemaContext, v any) (any, error) {
	switch v {
	case "h2", "http/1.1", "http/1.0":
		return v, nil
	}
	return nil, valueError("Value should be a valid ALPN protocol ID")
}

type listType struct{ of wtype }

func (t listType) check(s *schemaContext, v any) (any, error) {
	l, ok := v.([]any)
	if !ok {
		return nil, valueError(fmt.Sprintf("Wrong type. Expected a list, got '<class '%s'>'", pyType(v)))
	}
	out := make([]any, 0, len(l))
	for _, item := range l {
		if item == nil {
			out = append(out, nil)
			continue
		}
		val, err := t.of.check(s, item)
		if err != nil {
			return nil, err
		}
		out = append(out, val)
	}
	return out, nil
}

type dictType struct{ value wtype }

func (t dictType) check(s *schemaContext, v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &apiError{status: 500, message: fmt.Sprintf("'%s' object has no attribute 'items'", pyType(v))}
	}
	out := map[string]any{}
	for k, item := range m {
		// Octavia takes JSON booleans and numbers here and stores their text.
		switch x := item.(type) {
		case bool, float64:
			item = pyStr(x)
		}
		val, err := t.value.check(s, item)
		if err != nil {
			return nil, err
		}
		out[k] = val
	}
	return out, nil
}

// pyStr is str() of a decoded JSON value, pyRepr its repr().
func pyStr(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return pyRepr(v)
}

func pyRepr(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case string:
		return "'" + strings.ReplaceAll(strings.ReplaceAll(x, `\`, `\\`), "'", `\'`) + "'"
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case []any:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = pyRepr(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []string:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = pyRepr(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for i, k := range keys {
			keys[i] = pyRepr(k) + ": " + pyRepr(x[k])
		}
		return "{" + strings.Join(keys, ", ") + "}"
	}
	return fmt.Sprint(v)
}

func pyType(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case string:
		return "str"
	case float64:
		return "float"
	case []any:
		return "list"
	}
	return "dict"
}
