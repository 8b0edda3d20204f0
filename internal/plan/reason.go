package plan

import "strings"

// differ is the reason of an update in place.
func differ(fields []string) string {
	return strings.Join(fields, ", ") + " differs"
}
