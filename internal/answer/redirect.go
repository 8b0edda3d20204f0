package answer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Redirect is one redirect, in a normal form: equal ones are equal values.
type Redirect struct {
	Code int `json:"code"`
	// Scheme is http or https; "" repeats that of the listener.
	Scheme string `json:"scheme,omitempty"`
	// Host is where to; "" repeats that of the request, without its port.
	Host string `json:"host,omitempty"`
	// Port is where to; 0 means the usual one of Scheme, or that of the listener when Scheme is "".
	Port int `json:"port,omitempty"`
	// FullPath replaces the path; "" keeps it. The query stays in any case.
	FullPath string `json:"fullPath,omitempty"`
	// Prefix is taken from the beginning of the path and Replacement put there. Both have no "/" at the end.
	Prefix      string `json:"prefix,omitempty"`
	Replacement string `json:"replacement,omitempty"`
}

// Codes are the statuses that a redirect can have.
var Codes = []int{301, 302, 303, 307, 308}

// maxPath is what Gateway API allows for paths.
const maxPath = 1024

// Normal returns the redirect in its normal form, or why it is none.
func (r Redirect) Normal() (Redirect, error) {
	r.Scheme, r.Host = strings.ToLower(r.Scheme), strings.ToLower(r.Host)
	r.Prefix, r.Replacement = strings.TrimSuffix(r.Prefix, "/"), strings.TrimSuffix(r.Replacement, "/")
	switch {
	case !slices.Contains(Codes, r.Code):
		return r, fmt.Errorf("redirects with status %d are not supported", r.Code)
	case r.Scheme != "" && r.Scheme != "http" && r.Scheme != "https":
		return r, fmt.Errorf("redirects to another scheme than http and https are not supported")
	case r.Port < 0 || r.Port > 65535:
		return r, fmt.Errorf("the port of the redirect is not between 1 and 65535")
	case r.Host != "" && !validName(r.Host):
		return r, fmt.Errorf("the hostname of the redirect is not valid")
	case r.FullPath != "" && (r.Prefix != "" || r.Replacement != ""):
		return r, fmt.Errorf("a redirect has only one path")
	}
	for _, path := range []*string{&r.FullPath, &r.Prefix, &r.Replacement} {
		if *path != "" && !strings.HasPrefix(*path, "/") {
			*path = "/" + *path
		}
		if len(*path) > maxPath {
			return r, fmt.Errorf("the path of the redirect is longer than %d characters", maxPath)
		}
		if strings.IndexFunc(*path, func(c rune) bool { return !pathCharacter(c) }) >= 0 {
			return r, fmt.Errorf("the path of the redirect has a character that is not allowed in paths")
		}
	}
	if r.Prefix == r.Replacement {
		r.Prefix, r.Replacement = "", ""
	}
	if r.Port == usualPort(r.Scheme) {
		r.Port = 0
	}
	return r, nil
}

func pathCharacter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._~!$&'()*+,;=:@%-", c)
}

// usualPort is the port that a scheme leaves out; 0 when there is no scheme.
func usualPort(scheme string) int {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}

// Request is what a redirect depends on.
type Request struct {
	// Scheme and Port are those of the listener: the load balancer says them, not the client.
	Scheme string
	Port   int
	// Host is the raw Host header.
	Host string
	// Target is the raw request target: the path with the query.
	Target string
}

// Location is where the redirect sends a request to. It fails when the request is none that a redirect can answer: the message is for
// its client. What it returns consists of printable ASCII characters, whatever the request is.
func (r Redirect) Location(q Request) (string, error) {
	scheme, port, host := r.Scheme, r.Port, r.Host
	if scheme == "" {
		scheme = q.Scheme
		if port == 0 {
			port = q.Port
		}
	}
	if scheme != "http" && scheme != "https" || port < 0 || port > 65535 {
		return "", fmt.Errorf("the load balancer does not say how the request came")
	}
	if host == "" {
		var ok bool
		if host, ok = hostOf(q.Host); !ok {
			return "", fmt.Errorf("the Host header is not valid")
		}
	}
	path, query, hasQuery := strings.Cut(q.Target, "?")
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("the request has no path")
	}
	path, ok := r.path(path)
	if !ok {
		return "", fmt.Errorf("the path is not below the one that is replaced")
	}
	var b strings.Builder
	b.WriteString(scheme + "://" + host)
	if port != 0 && port != usualPort(scheme) {
		fmt.Fprintf(&b, ":%d", port)
	}
	escape(&b, path)
	if hasQuery {
		b.WriteByte('?')
		escape(&b, query)
	}
	return b.String(), nil
}

func (r Redirect) path(path string) (string, bool) {
	if r.FullPath != "" {
		return r.FullPath, true
	}
	rest, ok := strings.CutPrefix(path, r.Prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	if path = r.Replacement + rest; path == "" {
		path = "/"
	}
	return path, true
}

// escape writes s with everything escaped that must not be in a URL. What the client has escaped stays as it is.
func escape(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"#<>\^{|}`+"`", c) >= 0 {
			fmt.Fprintf(b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
}

// hostOf is the host of a Host header, in lower case and without port.
func hostOf(header string) (string, bool) {
	host := strings.ToLower(header)
	if inside, found := strings.CutPrefix(host, "["); found {
		address, rest, closed := strings.Cut(inside, "]")
		parsed, err := netip.ParseAddr(address)
		if !closed || err != nil || !parsed.Is6() || parsed.Zone() != "" || !validPort(rest) {
			return "", false
		}
		return "[" + address + "]", true
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		if !validPort(host[i:]) {
			return "", false
		}
		host = host[:i]
	}
	return host, validName(host)
}

// validPort takes ":" with digits or none, and nothing at all.
func validPort(s string) bool {
	return s == "" || s[0] == ':' && strings.Trim(s[1:], "0123456789") == ""
}

// validName takes names and IPv4 addresses. Underscores are no part of a DNS host name but clients send them.
func validName(s string) bool {
	return s != "" && len(s) <= 253 && s[0] != '.' && !strings.Contains(s, "..") &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}
