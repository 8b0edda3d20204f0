package compile

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// parseRegex takes a regular expression that means the same to Go, to Python (Octavia's API compiles it) and to PCRE
// (HAProxy runs it), and rewrites it for Octavia's template. The result matches the whole subject: "(?:...)$", to be put
// behind "^".
func parseRegex(expression string) (string, error) {
	if expression == "" {
		return "", fmt.Errorf("regular expression is empty")
	}
	if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
		return "", fmt.Errorf("regular expression is not valid RE2 syntax")
	}
	var b strings.Builder
	b.WriteString("(?:")
	class := false
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		rest := expression[i:]
		switch {
		case c < ' ' || c >= 0x7f:
			return "", fmt.Errorf("regular expression must consist of printable ASCII characters")
		case c == '\\':
			i++
			if i == len(expression) {
				return "", fmt.Errorf("regular expression ends in a backslash")
			}
			escaped := expression[i]
			switch {
			case strings.IndexByte("dDwWsSbB", escaped) >= 0 || !alphanumeric(escaped) && literal(escaped) || strings.IndexByte(`.\+*?()|[]{}^$-`, escaped) >= 0:
				b.WriteByte('\\')
				b.WriteByte(escaped)
			case escaped == 'x' && len(expression) > i+2 && hex(expression[i+1]) && hex(expression[i+2]) && expression[i+1] < '8':
				b.WriteString(expression[i-1 : i+3])
				i += 2
			case !alphanumeric(escaped):
				fmt.Fprintf(&b, `\x%02x`, escaped)
			default:
				return "", fmt.Errorf(`regular expression has the escape \%c, which is not supported`, escaped)
			}
		case class && c == '[':
			return "", fmt.Errorf("regular expression has [ inside a character class: escape it")
		case class && (strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||") || strings.HasPrefix(rest, "~~")):
			return "", fmt.Errorf("regular expression has a doubled sign inside a character class: escape it")
		case class && c == ']':
			class = false
			b.WriteByte(c)
		case class:
			writeRegexByte(&b, c)
		case c == '[':
			class = true
			b.WriteByte(c)
			if strings.HasPrefix(rest, "[^") {
				b.WriteByte('^')
				i++
			}
			if i+1 < len(expression) && expression[i+1] == ']' {
				return "", fmt.Errorf("regular expression has ] first in a character class: escape it")
			}
		case c == '(' && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return "", fmt.Errorf("regular expression has a group that is neither ( nor (?:, which is not supported")
		case c == '{' && !repetition(rest) || c == '}':
			if c == '}' && closes(expression[:i]) {
				b.WriteByte(c)
				continue
			}
			return "", fmt.Errorf("regular expression has { or } outside of a repetition: escape it")
		default:
			writeRegexByte(&b, c)
		}
	}
	if explosive(expression) {
		return "", fmt.Errorf("regular expression repeats something that matches one text in several ways, which can take exponential time: write it without")
	}
	b.WriteString(")$")
	return b.String(), nil
}

// writeRegexByte replaces what Octavia's template or HAProxy's parser would change by the equivalent escape.
func writeRegexByte(b *strings.Builder, c byte) {
	if strings.IndexByte("&<>'\"#` ", c) >= 0 {
		fmt.Fprintf(b, `\x%02x`, c)
		return
	}
	b.WriteByte(c)
}

// repetition says whether s begins with {n}, {n,} or {n,m}, which all dialects read alike.
func repetition(s string) bool {
	body, _, found := strings.Cut(s[1:], "}")
	from, to, _ := strings.Cut(body, ",")
	return found && from != "" && digits(from) && digits(to)
}

// closes says whether a "}" after s ends a repetition.
func closes(s string) bool {
	open := strings.LastIndexByte(s, '{')
	return open >= 0 && repetition(s[open:]+"}")
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
