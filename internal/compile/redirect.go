package compile

import (
	"fmt"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// redirect is an answer of a policy to requests for some hosts.
type redirect struct {
	hosts  hosts
	action lb.Action
	url    string
	code   int
}

// target finds who gives the redirect that the rule of e asks for: Octavia, or else the responder.
func (c *compiler) target(e *entry) *fault {
	redirects, err := newRedirects(e.rule.redirect, e.listener, e.match)
	if err == nil {
		e.redirects = redirects
		return nil
	}
	if !c.responder.on {
		return unsupported("%s", err)
	}
	wanted, invalid := wanted(e.rule.redirect, e.match)
	if invalid != nil {
		return unsupported("%s", invalid)
	}
	answering, full := c.responder.redirect(wanted)
	if full != nil {
		return unsupported("%s; %s", err, full)
	}
	e.pool = c.pools.get([]share{{answering, 1}}, poolSettings{}, e.base())
	return nil
}

// redirect adds the policies of an entry that redirects. HAProxy would ask them before all that forward, so they leave out what these
// match. When that takes more than one policy, the responder may take the requests instead: forwards need not yield to forwards. Its
// ports for redirects are few, so those are for what cannot be had otherwise.
func (c *compiler) redirect(p *program, e *entry, above *forwards) *fault {
	policies, simple, err := yielding(e, above)
	if !simple && c.responder.on {
		if wanted, invalid := wanted(e.rule.redirect, e.match); invalid == nil {
			answering, ok := c.responder.always(wanted)
			if !ok && err != nil {
				var full error
				if answering, full = c.responder.redirect(wanted); full != nil {
					return unsupported("%s; %s", err, full)
				}
				ok = true
			}
			if ok {
				e.pool = c.pools.get([]share{{answering, 1}}, poolSettings{}, e.base())
				return nil
			}
		}
	}
	if err != nil {
		return unsupported("%s", err)
	}
	p.policies = append(p.policies, policies...)
	return nil
}

// yielding are the policies of an entry that redirects; simple says that no target needs more than one.
func yielding(e *entry, above *forwards) (policies []policy, simple bool, err error) {
	simple = true
	for _, r := range e.redirects {
		m := e.match
		m.hosts = r.hosts
		terms, tooComplex := exclude(m, above.overlapping(m))
		if tooComplex != nil {
			return nil, false, tooComplex
		}
		simple = simple && len(terms) <= 1
		for _, rules := range terms {
			if len(rules) == 0 {
				rules = []lb.Rule{everything()}
			}
			policies = append(policies, policy{base: e.base(), route: e.route(), redirect: r, rules: rules})
		}
	}
	return policies, simple, nil
}

// newRedirects makes the redirects that a filter asks for: one for all hosts when its target is the same for all, else one for each.
func newRedirects(filter *gwv1.HTTPRequestRedirectFilter, l *listener, m match) ([]*redirect, error) {
	each := []hosts{m.hosts}
	if filter.Hostname == nil {
		each = nil
		for _, h := range m.hosts.all() {
			each = append(each, newHosts(h))
		}
	}
	list := make([]*redirect, len(each))
	for i, h := range each {
		var err error
		m.hosts = h
		if list[i], err = newRedirect(filter, l, m); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// newRedirect makes the redirect that a filter asks for on one listener, for requests that match m. Octavia needs an absolute URL,
// has no variables, and can only put something before the path.
func newRedirect(filter *gwv1.HTTPRequestRedirectFilter, l *listener, m match) (*redirect, error) {
	r := &redirect{hosts: m.hosts, action: lb.RedirectPrefix, code: 302}
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
