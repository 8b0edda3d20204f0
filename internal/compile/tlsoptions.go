package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// The keys of tls.options. Their values are lists with commas.
const (
	optionVersions = api.Domain + "/tls-versions"
	optionALPN     = api.Domain + "/alpn-protocols"
)

// tlsOptions are settings that Octavia has once for a port.
type tlsOptions struct {
	versions []string
	alpn     []string
}

// What is served when a listener does not say. It is said to Octavia in so many words, so that an option that is taken away is taken
// back, whatever an operator has made the default.
var (
	standardVersions = []string{"TLSv1.2", "TLSv1.3"}
	standardALPN     = []string{"h2", "http/1.1"}

	allowedVersions = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
	allowedALPN     = []string{"h2", "http/1.1", "http/1.0"}
)

// readTLSOptions reads tls.options; why says what is not supported.
func readTLSOptions(given map[gwv1.AnnotationKey]gwv1.AnnotationValue) (o tlsOptions, why string) {
	o = tlsOptions{versions: standardVersions, alpn: standardALPN}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		var allowed []string
		switch string(key) {
		case optionVersions:
			allowed = allowedVersions
		case optionALPN:
			allowed = allowedALPN
		default:
			return o, fmt.Sprintf("a key in tls.options is not supported: use %s and %s", optionVersions, optionALPN)
		}
		list, ok := splitList(string(given[key]), allowed)
		if !ok {
			return o, fmt.Sprintf("the option %s in tls.options must be a list, with commas, of %s", key, strings.Join(allowed, ", "))
		}
		if string(key) == optionVersions {
			slices.Sort(list)
			o.versions = list
		} else {
			o.alpn = list
		}
	}
	return o, ""
}

// splitList splits a list of distinct allowed values.
func splitList(text string, allowed []string) ([]string, bool) {
	var list []string
	for _, v := range strings.Split(text, ",") {
		v = strings.TrimSpace(v)
		if !slices.Contains(allowed, v) || slices.Contains(list, v) {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

// agree refuses the listeners of a port that want other options than the first.
func agree(listeners []*listener) []*listener {
	first := listeners[0]
	return slices.DeleteFunc(listeners, func(l *listener) bool {
		if slices.Equal(l.options.versions, first.options.versions) && slices.Equal(l.options.alpn, first.options.alpn) {
			return false
		}
		l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("the tls.options differ from those of %s, and Octavia has them once for port %d",
			first.nameFor(l), l.port)))
		return true
	})
}
