package compile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// The keys of tls.options. Lists have commas.
const (
	optionVersions          = api.Domain + "/tls-versions"
	optionCiphers           = api.Domain + "/tls-ciphers"
	optionALPN              = api.Domain + "/alpn-protocols"
	optionMaxAge            = api.Domain + "/hsts-max-age"
	optionIncludeSubdomains = api.Domain + "/hsts-include-subdomains"
	optionPreload           = api.Domain + "/hsts-preload"
)

// allOptions are the keys, as messages list them.
var allOptions = []string{optionVersions, optionCiphers, optionALPN, optionMaxAge, optionIncludeSubdomains, optionPreload}

// tlsOptions are settings that Octavia has once for a port.
type tlsOptions struct {
	versions []string
	alpn     []string
	// ciphers are in the order of knownCiphers.
	ciphers []string
	hsts    *lb.HSTS
}

func (o tlsOptions) equal(other tlsOptions) bool {
	return slices.Equal(o.versions, other.versions) && slices.Equal(o.alpn, other.alpn) && slices.Equal(o.ciphers, other.ciphers) &&
		o.hsts.Header() == other.hsts.Header()
}

// The API versions of Octavia that brought the attributes: older ones refuse a listener that has them.
const (
	minorCiphers  = 15
	minorVersions = 17
	minorALPN     = 20
	minorHSTS     = 27
)

// What is served when a listener does not say. It is said to Octavia in so many words, so that an option that is taken away is taken
// back, whatever an operator has made the default.
var (
	standardVersions = []string{"TLSv1.2", "TLSv1.3"}
	standardALPN     = []string{"h2", "http/1.1"}

	allowedVersions = []string{"TLSv1.2", "TLSv1.3"}
	allowedALPN     = []string{"h2", "http/1.1", "http/1.0"}
)

// cipher is a cipher suite of TLS 1.2.
type cipher struct {
	name string
	// certificate is the kind of key that it needs.
	certificate string
	// modern suites have forward secrecy and authenticate what they encrypt. HTTP/2 needs one.
	modern bool
	// standard says that it is served when a listener does not say.
	standard bool
}

// knownCiphers are the suites that OpenSSL has at the security level of current distributions, the preferred first. OpenSSL passes over
// names that it does not know, and a list that is empty then stops HAProxy: so no other name gets there. The suites of TLS 1.3 are
// not among them: most releases of Octavia pass them to HAProxy where HAProxy does not look for them.
var knownCiphers = []cipher{
	{"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDSA", true, true},
	{"ECDHE-RSA-AES256-GCM-SHA384", "RSA", true, true},
	{"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDSA", true, true},
	{"ECDHE-RSA-CHACHA20-POLY1305", "RSA", true, true},
	{"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDSA", true, true},
	{"ECDHE-RSA-AES128-GCM-SHA256", "RSA", true, true},
	{"DHE-RSA-AES256-GCM-SHA384", "RSA", true, true},
	{"DHE-RSA-AES128-GCM-SHA256", "RSA", true, true},
	{"ECDHE-ECDSA-AES256-SHA384", "ECDSA", false, true},
	{"ECDHE-RSA-AES256-SHA384", "RSA", false, true},
	{"ECDHE-ECDSA-AES128-SHA256", "ECDSA", false, true},
	{"ECDHE-RSA-AES128-SHA256", "RSA", false, true},
	{"DHE-RSA-AES256-SHA256", "RSA", false, true},
	{"DHE-RSA-AES128-SHA256", "RSA", false, true},
	{"ECDHE-ECDSA-AES256-SHA", "ECDSA", false, false},
	{"ECDHE-RSA-AES256-SHA", "RSA", false, false},
	{"ECDHE-ECDSA-AES128-SHA", "ECDSA", false, false},
	{"ECDHE-RSA-AES128-SHA", "RSA", false, false},
	{"AES256-GCM-SHA384", "RSA", false, false},
	{"AES128-GCM-SHA256", "RSA", false, false},
	{"AES256-SHA256", "RSA", false, false},
	{"AES128-SHA256", "RSA", false, false},
	{"AES256-SHA", "RSA", false, false},
	{"AES128-SHA", "RSA", false, false},
}

// ciphersNamed returns the known ciphers that keep chooses.
func ciphersNamed(keep func(cipher) bool) []string {
	var names []string
	for _, c := range knownCiphers {
		if keep(c) {
			names = append(names, c.name)
		}
	}
	return names
}

// readTLSOptions reads tls.options for a cloud; why says what is not supported. It accepts nothing that Octavia would refuse, because what
// it refuses holds up the whole load balancer.
//
// What the options do not say, the class does.
func readTLSOptions(given map[gwv1.AnnotationKey]gwv1.AnnotationValue, class v1alpha1.TLS, cloud lb.Facts) (o tlsOptions, why string) {
	o = standardOptions(cloud)
	if _, own := given[optionVersions]; !own && len(class.Versions) > 0 {
		if o.versions, why = readVersions(joined(class.Versions), cloud); why != "" {
			return o, ofClass(why, optionVersions, "versions")
		}
	}
	if _, own := given[optionCiphers]; !own && len(class.Ciphers) > 0 {
		if o.ciphers, why = readCiphers(joined(class.Ciphers), cloud); why != "" {
			return o, ofClass(why, optionCiphers, "ciphers")
		}
	}
	hsts := lb.HSTS{MaxAge: -1}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := string(given[key])
		switch string(key) {
		case optionVersions:
			o.versions, why = readVersions(value, cloud)
		case optionCiphers:
			o.ciphers, why = readCiphers(value, cloud)
		case optionALPN:
			o.alpn, why = readList(optionALPN, value, allowedALPN, cloud, minorALPN)
		case optionMaxAge:
			hsts.MaxAge, why = readSeconds(value)
		case optionIncludeSubdomains:
			hsts.IncludeSubdomains, why = readFlag(optionIncludeSubdomains, value)
		case optionPreload:
			hsts.Preload, why = readFlag(optionPreload, value)
		default:
			why = fmt.Sprintf("the key %s in tls.options is not supported: use %s", key, strings.Join(allOptions, ", "))
		}
		if why != "" {
			return o, why
		}
	}
	switch {
	case hsts.MaxAge >= 0 && !cloud.Octavia(minorHSTS):
		return o, needsVersion(optionMaxAge, minorHSTS)
	case hsts.MaxAge >= 0:
		o.hsts = &hsts
	case hsts.IncludeSubdomains || hsts.Preload:
		return o, fmt.Sprintf("the options %s and %s in tls.options need %s", optionIncludeSubdomains, optionPreload, optionMaxAge)
	}
	_, chosen := given[optionCiphers]
	return o, o.unservable(chosen)
}

func joined[T ~string](list []T) string {
	all := make([]string, 0, len(list))
	for _, v := range list {
		all = append(all, string(v))
	}
	return strings.Join(all, ",")
}

// ofClass says of a field of the class what was said of an option.
func ofClass(why, option, field string) string {
	return strings.ReplaceAll(why, "the option "+option+" in tls.options", "spec.tls."+field+" of the configuration of the class")
}

// standardOptions are what is served when a listener does not say, as far as the cloud takes them.
func standardOptions(cloud lb.Facts) (o tlsOptions) {
	if cloud.Octavia(minorVersions) {
		o.versions = slices.DeleteFunc(slices.Clone(standardVersions), func(v string) bool { return v < cloud.MinimumTLSVersion })
	}
	if cloud.Octavia(minorALPN) {
		o.alpn = standardALPN
	}
	if cloud.Octavia(minorCiphers) {
		o.ciphers = ciphersNamed(func(c cipher) bool { return c.standard && !slices.Contains(cloud.ProhibitedCiphers, c.name) })
	}
	return o
}

// unservable says why no client could be served with the options, "" when some can. chosen says that the ciphers were asked for.
func (o tlsOptions) unservable(chosen bool) string {
	if !chosen {
		return ""
	}
	if !slices.Contains(o.versions, "TLSv1.2") {
		return fmt.Sprintf("the option %s in tls.options would have no effect: it chooses among the ciphers of TLSv1.2, which %s leaves out", optionCiphers, optionVersions)
	}
	modern := ciphersNamed(func(c cipher) bool { return c.modern && slices.Contains(o.ciphers, c.name) })
	if slices.Contains(o.alpn, "h2") && len(modern) == 0 {
		return fmt.Sprintf("HTTP/2 does not allow any of the %s in tls.options: add one such as %s, or set %s to http/1.1",
			optionCiphers, knownCiphers[0].name, optionALPN)
	}
	return ""
}

// serves says whether the options leave a client of TLS 1.2 or TLS 1.3 a way to be served with a certificate.
func (o tlsOptions) serves(c *certificate) bool {
	if len(o.ciphers) == 0 || len(o.versions) == 0 || slices.Contains(o.versions, "TLSv1.3") {
		return true
	}
	return len(ciphersNamed(func(k cipher) bool { return k.certificate == c.Algorithm && slices.Contains(o.ciphers, k.name) })) > 0
}

func needsVersion(option string, minor int) string {
	return fmt.Sprintf("the option %s in tls.options needs version 2.%d of Octavia's API, which this cloud does not have", option, minor)
}

func readVersions(value string, cloud lb.Facts) ([]string, string) {
	list, why := readList(optionVersions, value, allowedVersions, cloud, minorVersions)
	if why != "" {
		return nil, why
	}
	slices.Sort(list)
	if list[0] < cloud.MinimumTLSVersion {
		return nil, fmt.Sprintf("the option %s in tls.options has a version below %s, which is the least that the administrator of this cloud's Octavia allows",
			optionVersions, cloud.MinimumTLSVersion)
	}
	return list, ""
}

func readCiphers(value string, cloud lb.Facts) ([]string, string) {
	all := ciphersNamed(func(cipher) bool { return true })
	list, why := readList(optionCiphers, value, all, cloud, minorCiphers)
	if why != "" {
		return nil, why
	}
	var prohibited []string
	for _, name := range list {
		if slices.Contains(cloud.ProhibitedCiphers, name) {
			prohibited = append(prohibited, name)
		}
	}
	if len(prohibited) > 0 {
		return nil, fmt.Sprintf("the administrator of this cloud's Octavia has prohibited ciphers of the option %s in tls.options: %s",
			optionCiphers, strings.Join(prohibited, ", "))
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(list, name) }), ""
}

// readList reads a list of distinct allowed values.
func readList(option, value string, allowed []string, cloud lb.Facts, minor int) ([]string, string) {
	if !cloud.Octavia(minor) {
		return nil, needsVersion(option, minor)
	}
	var list []string
	for _, v := range strings.Split(value, ",") {
		v = strings.TrimSpace(v)
		if !slices.Contains(allowed, v) || slices.Contains(list, v) {
			return nil, fmt.Sprintf("the option %s in tls.options must be a list, with commas, of %s", option, strings.Join(allowed, ", "))
		}
		list = append(list, v)
	}
	return list, ""
}

// longestMaxAge is what Octavia's database can hold: 68 years.
const longestMaxAge = 1<<31 - 1

func readSeconds(value string) (int, string) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > longestMaxAge || value != strconv.Itoa(n) {
		return 0, fmt.Sprintf("the option %s in tls.options must be a number of seconds between 0 and %d", optionMaxAge, longestMaxAge)
	}
	return n, ""
}

// readFlag reads a word that is on or off.
func readFlag(option, value string) (on bool, why string) {
	switch value {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return false, fmt.Sprintf("the option %s in tls.options must be true or false", option)
}

// agree refuses the listeners of a port that want other options than the first.
func agree(listeners []*listener) []*listener {
	first := listeners[0]
	return slices.DeleteFunc(listeners, func(l *listener) bool {
		if l.options.equal(first.options) {
			return false
		}
		l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("the tls.options differ from those of %s, and Octavia has them once for port %d",
			first.nameFor(l), l.port)))
		return true
	})
}
