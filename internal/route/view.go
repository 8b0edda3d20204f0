package route

import "strings"

// view is one request during one evaluation: its parsed parts, and what is known of each distinct rule.
type view struct {
	request Request
	path    string
	hasPath bool
	headers map[string][]string
	// known has one entry per distinct rule of the tree: policies of one host share the host's rule.
	known []verdict
}

type verdict uint8

const (
	unknown verdict = iota
	holds
	fails
)

func newView(r Request, rules int) *view {
	v := &view{request: r, known: make([]verdict, rules)}
	v.path, v.hasPath = pathOf(r.Path)
	return v
}

// header returns the elements of a header, of all its lines in order.
func (v *view) header(name string) []string {
	if v.headers == nil {
		v.headers = make(map[string][]string, len(v.request.Header)+1)
		if host := hostOf(v.request); host != "" {
			v.headers["host"] = elements(host)
		}
		for key, lines := range v.request.Header {
			key = strings.ToLower(key)
			for _, line := range lines {
				v.headers[key] = append(v.headers[key], elements(line)...)
			}
		}
	}
	return v.headers[name]
}

func (v *view) holds(index int, m *matcher) bool {
	if v.known[index] == unknown {
		v.known[index] = fails
		if m.holds(v) {
			v.known[index] = holds
		}
	}
	return v.known[index] == holds
}
