package compile

import (
	"fmt"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// redirect is an answer of a policy.
type redirect struct {
	action lb.Action
	url    string
	code   int
}

// newRedirect makes the redirect that a filter asks for on one listener, for requests that match m. Octavia needs an absolute URL,
// has no variables, and can only put something before the path.
func newRedirect(filter *gwv1.HTTPRequestRedirectFilter, l *listener, m match) (*redirect, error) {
	r := &redirect{action: lb.RedirectPrefix, code: 302}
	if filter.StatusCode != nil {
		r.code = *filter.StatusCode
	}
	switch r.code {
	case 301, 302, 303, 307, 308:
	default:
		return nil, fmt.Errorf("redirects with status %d are not supported", r.code)
	}
	origin, err := redirectOrigin(filter, l, m)
	if err != nil {
		return nil, err
	}
	path, err := redirectPath(filter.Path, m.path)
	if err != nil {
		return nil, err
	}
	r.url = origin + path
	if len(r.url) > maxValue {
		return nil, fmt.Errorf("the redirect target is too long: Octavia takes %d characters", maxValue)
	}
	return r, nil
}

// redirectOrigin is scheme, host and port.
func redirectOrigin(filter *gwv1.HTTPRequestRedirectFilter, l *listener, m match) (string, error) {
	scheme, port := l.scheme(), l.port
	if filter.Scheme != nil {
		scheme = strings.ToLower(*filter.Scheme)
		switch scheme {
		case "http":
			port = 80
		case "https":
			port = 443
		default:
			return "", fmt.Errorf("redirects to another scheme than http and https are not supported")
		}
	}
	if filter.Port != nil {
		port = *filter.Port
	}
	var host hostname
	switch {
	case filter.Hostname != nil:
		parsed, ok := parseHostname(string(*filter.Hostname))
		if !ok || !parsed.exact() {
			return "", fmt.Errorf("the hostname of the redirect is not valid")
		}
		host = parsed
	case len(m.hosts) == 1 && m.hosts[0].exact():
		host = m.hosts[0]
	default:
		return "", fmt.Errorf("a redirect without hostname needs an exact hostname on the route or the listener: " +
			"Octavia cannot repeat the host of the request")
	}
	if scheme == "http" && port == 80 || scheme == "https" && port == 443 {
		return fmt.Sprintf("%s://%s", scheme, host), nil
	}
	return fmt.Sprintf("%s://%s:%d", scheme, host, port), nil
}

// redirectPath is what stands before the path of the request.
func redirectPath(modifier *gwv1.HTTPPathModifier, matched path) (string, error) {
	if modifier == nil {
		return "", nil
	}
	if modifier.Type != gwv1.PrefixMatchHTTPPathModifier {
		return "", fmt.Errorf("redirects with path type %s are not supported: Octavia would lose the query", modifier.Type)
	}
	if modifier.ReplacePrefixMatch == nil || matched.kind != anyPath && matched.kind != prefixPath {
		return "", fmt.Errorf("replacePrefixMatch needs a PathPrefix match")
	}
	replacement := strings.TrimSuffix(*modifier.ReplacePrefixMatch, "/")
	switch {
	case matched.kind == prefixPath && matched.value == replacement:
		return "", nil
	case matched.kind == prefixPath:
		return "", fmt.Errorf("replacePrefixMatch needs the prefix /: Octavia can put something before a path but remove nothing from it")
	case replacement == "":
		return "", nil
	}
	if !strings.HasPrefix(replacement, "/") {
		replacement = "/" + replacement
	}
	// An unescaped sign here would cut off the condition of the redirect: it would redirect every request of the port.
	for _, c := range []byte(replacement) {
		if !literal(c) && !strings.ContainsRune(":.!$()*+,;=@%", rune(c)) {
			return "", fmt.Errorf("the path of the redirect has a character that Octavia does not pass on safely")
		}
	}
	return replacement, nil
}
