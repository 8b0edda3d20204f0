package route

import (
	"fmt"
	"strings"
)

// htmlEscaper is what Octavia's templates do to every value. A quote becomes an entity with '#', where HAProxy's
// comment starts; renderedWord refuses it for that.
var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// renderedWord is what HAProxy reads of a rule's value: an unquoted word of its configuration, in which Octavia escapes
// only backslash and space.
func renderedWord(value string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("the value is empty")
	}
	if strings.HasPrefix(value, "-") {
		return "", fmt.Errorf("the value %q would be read as a flag of HAProxy's acl", value)
	}
	return renderedLine(value)
}

// renderedLine is what HAProxy reads of a redirect's target.
func renderedLine(value string) (string, error) {
	value = htmlEscaper.Replace(value)
	if i := strings.IndexAny(value, "#\r\n\t\x00"); i >= 0 {
		return "", fmt.Errorf("the value %q would cut HAProxy's configuration line at byte %d", value, i)
	}
	return value, nil
}
