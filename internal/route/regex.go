package route

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// backtrackLimit bounds one match of an expression that needs backtracking. Such an expression, when hostile, then counts
// as not matching.
const backtrackLimit = 100 * time.Millisecond

// pattern says whether a subject matches.
type pattern func(subject string) bool

// newRegex compiles an expression as HAProxy's PCRE does, without UTF-8: every byte is a character. Go's linear engine
// takes what it can; the negations that we emit are turned around for it; only what is left backtracks.
func newRegex(expr string, foldCase bool) (pattern, error) {
	flags := ""
	if foldCase {
		flags = "(?i)"
	}
	if expr == "(?!)" {
		return func(string) bool { return false }, nil
	}
	if body, ok := negated(expr); ok {
		if re, err := regexp.Compile(flags + "^(?:" + latin1(body) + ")"); err == nil {
			return func(s string) bool { return !re.MatchString(latin1(s)) }, nil
		}
	}
	if re, err := regexp.Compile(flags + latin1(expr)); err == nil {
		return func(s string) bool { return re.MatchString(latin1(s)) }, nil
	}
	// HAProxy compiles without captures, so that it refuses references to them.
	var options regexp2.RegexOptions = regexp2.ExplicitCapture
	if foldCase {
		options |= regexp2.IgnoreCase
	}
	re, err := regexp2.Compile(latin1(expr), options)
	if err != nil {
		return nil, fmt.Errorf("the expression %q does not compile: %w", expr, err)
	}
	re.MatchTimeout = backtrackLimit
	return func(s string) bool {
		ok, err := re.MatchString(latin1(s))
		return ok && err == nil
	}, nil
}

// negated takes x out of ^(?!x), which matches whatever does not start with x. x must be an expression of its own: in
// ^(?!a)(b) the first group ends before the last parenthesis.
func negated(expr string) (string, bool) {
	body, ok := strings.CutPrefix(expr, "^(?!")
	if !ok {
		return "", false
	}
	if body, ok = strings.CutSuffix(body, ")"); !ok {
		return "", false
	}
	_, err := syntax.Parse(latin1(body), syntax.Perl)
	return body, err == nil
}

// latin1 makes each byte a character, which is how an engine for UTF-8 compares bytes.
func latin1(s string) string {
	ascii := true
	for i := 0; i < len(s) && ascii; i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return s
	}
	runes := make([]rune, len(s))
	for i := 0; i < len(s); i++ {
		runes[i] = rune(s[i])
	}
	return string(runes)
}
