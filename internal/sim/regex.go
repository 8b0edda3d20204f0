package sim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// The API compiles expressions with Python's re, HAProxy with PCRE. A third
// engine stands for both here; what only one of the two knows is refused, so
// that nobody relies on it.
var (
	namedGroup  = regexp.MustCompile(`\(\?P<([A-Za-z_][A-Za-z0-9_]*)>`)
	pythonLacks = regexp.MustCompile(`\\[pPKRXhHGQE]|\(\?<[A-Za-z_]|\(\?'|\[\[:`)
)

func compileRegex(expr string) (*regexp2.Regexp, error) {
	if m := pythonLacks.FindString(strings.ReplaceAll(expr, `\\`, "")); m != "" {
		return nil, fmt.Errorf("bad escape %s", m)
	}
	re, err := regexp2.Compile(namedGroup.ReplaceAllString(expr, "(?<$1>"), regexp2.None)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = 2 * time.Second
	return re, nil
}

// checkRegex refuses what Python cannot compile. The reason after the colon is
// ours, except for the commonest mistake.
func checkRegex(expr string) error {
	_, err := compileRegex(expr)
	if err == nil {
		return nil
	}
	reason := err.Error()
	if open := unclosedGroup(expr); open >= 0 {
		reason = fmt.Sprintf("missing ), unterminated subpattern at position %d", open)
	}
	return refuse(400, "%sUnable to parse regular expression: %s", errRuleStart, reason)
}

// unclosedGroup is the position of the last group that is never closed, or -1.
func unclosedGroup(expr string) int {
	var open []int
	class := false
	for i := 0; i < len(expr); i++ {
		switch ch := expr[i]; {
		case ch == '\\':
			i++
		case class:
			class = ch != ']'
		case ch == '[':
			class = true
		case ch == '(':
			open = append(open, i)
		case ch == ')':
			if len(open) == 0 {
				return -1
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return -1
	}
	return open[len(open)-1]
}
