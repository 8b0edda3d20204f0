package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// show writes for people: plain text, coloured only on a terminal.
type show struct {
	w       io.Writer
	colour  bool
	started time.Time
	section int
}

func newShow(out *os.File) *show {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &show{w: out, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", started: time.Now()}
}

// The colours: SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s *show) paint(how, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + how + "m" + text + "\x1b[0m"
}

func (s *show) line(text string) {
	// A demo whose output cannot be written has nobody to tell.
	_, _ = fmt.Fprintln(s.w, strings.TrimRight(text, " "))
}

// title begins a numbered part.
func (s *show) title(text string) {
	s.section++
	s.line("")
	s.line(s.paint(bold, fmt.Sprintf("%d. %s", s.section, text)) +
		s.paint(dim, fmt.Sprintf("  [%.1f s]", time.Since(s.started).Seconds())))
}

func (s *show) say(format string, args ...any) { s.line("   " + fmt.Sprintf(format, args...)) }

// good tells an expectation that held.
func (s *show) good(format string, args ...any) {
	s.line(" " + s.paint(green, "✓") + " " + fmt.Sprintf(format, args...))
}

// command shows what a user would type, or what was run.
func (s *show) command(text string) { s.line(" " + s.paint(bold, "$ "+text)) }

// text shows a file or an output.
func (s *show) text(text string) {
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		s.line("   " + s.paint(dim, "│ ") + s.paint(cyan, l))
	}
}

// table aligns columns.
func (s *show) table(rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)))
			}
		}
		s.say("%s", b.String())
	}
}

// bar draws a share of one as blocks.
func bar(share float64, width int) string {
	full := int(share*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", max(0, width-full))
}
