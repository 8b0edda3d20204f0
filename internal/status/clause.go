package status

import (
	"fmt"
	"slices"
	"strings"
)

// maxClauses bounds how many causes one message tells.
const maxClauses = 8

// joined lists causes, each once, and says how many are left out.
func joined(clauses []string) string {
	var list []string
	for _, c := range clauses {
		if c = shortened(c, 400); !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return strings.Join(atMost(list), "; ")
}

// atMost keeps a list short, so that a message stays within what Kubernetes takes.
func atMost(list []string) []string {
	if more := len(list) - maxClauses; more > 0 {
		return append(slices.Clone(list[:maxClauses]), fmt.Sprintf("and %d more", more))
	}
	return list
}

// asSentence makes a clause a sentence.
func asSentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}

// printable makes a user's value safe to print: short, without control characters.
func printable(value string) string { return shortened(value, 80) }

func shortened(value string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range value {
		if n == limit {
			b.WriteString("...")
			break
		}
		if r < ' ' || r == 0x7f {
			r = '?'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
