package route

import "strings"

// elements splits a header line as HAProxy's req.hdr does: at commas outside of double quotes, blanks trimmed. An empty
// line is one empty element.
func elements(line string) []string {
	var out []string
	quoted, start := false, 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			out = append(out, strings.Trim(line[start:i], " \t"))
			start = i + 1
		}
	}
	return append(out, strings.Trim(line[start:], " \t"))
}

// pathOf is HAProxy's path fetch: the target without its query. Targets such as "*" have none.
func pathOf(target string) (string, bool) {
	path, _, _ := strings.Cut(pathAndQuery(target), "?")
	return path, path != ""
}

// pathAndQuery is the target without scheme and authority, which clients of proxies send; "" when there is no path.
func pathAndQuery(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, absolute := strings.Cut(target, "://")
	switch slash := strings.IndexByte(rest, '/'); {
	case absolute && slash >= 0:
		return rest[slash:]
	case absolute:
		// HAProxy adds it.
		return "/"
	}
	return ""
}

// hostOf is the Host header. With an absolute target HAProxy takes the scheme's own port from it.
func hostOf(r Request) string {
	switch scheme, _, _ := strings.Cut(r.Path, "://"); strings.ToLower(scheme) {
	case "http":
		return strings.TrimSuffix(r.Host, ":80")
	case "https":
		return strings.TrimSuffix(r.Host, ":443")
	}
	return r.Host
}
