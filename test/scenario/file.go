package scenario

import (
	"fmt"
	"os"
	"strings"
)

// A file is a list of steps. Lines that begin with # and blank lines before a command are comments. A command is one line; input may
// follow it. A line of four dashes begins the expected output, which ends at a blank line or the end of the file.
type file struct {
	path  string
	steps []step
	// tail is what follows the last step: comments.
	tail string
}

type step struct {
	// comment is everything between the step before and the command, as it is.
	comment string
	line    int
	command string
	input   string
	want    string
}

const dashes = "----"

func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a story: %w", err)
	}
	f := &file{path: path}
	lines := strings.SplitAfter(string(text), "\n")
	trimmed := func(i int) string { return strings.TrimRight(lines[i], "\n") }
	for i := 0; i < len(lines); {
		var s step
		for i < len(lines) && (trimmed(i) == "" || strings.HasPrefix(lines[i], "#")) {
			s.comment += lines[i]
			i++
		}
		if i == len(lines) {
			f.tail = s.comment
			break
		}
		s.line, s.command = i+1, trimmed(i)
		for i++; i < len(lines) && trimmed(i) != dashes; i++ {
			s.input += lines[i]
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s:%d: no line %q after the command", path, s.line, dashes)
		}
		for i++; i < len(lines) && trimmed(i) != ""; i++ {
			s.want += lines[i]
		}
		f.steps = append(f.steps, s)
	}
	return f, nil
}

// write replaces the file by one with the outputs of this run.
func (f *file) write(outputs []string) error {
	var b strings.Builder
	for i, s := range f.steps {
		fmt.Fprintf(&b, "%s%s\n%s%s\n%s", s.comment, s.command, s.input, dashes, outputs[i])
	}
	b.WriteString(f.tail)
	if err := os.WriteFile(f.path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a file of the source tree
		return fmt.Errorf("writing a story: %w", err)
	}
	return nil
}

// printable makes an output that can stand in a file: no blank lines, no dashes, one newline at the end.
func printable(out string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(out, "\n") {
		l = strings.TrimRight(l, " ")
		if l == "" || l == dashes {
			continue
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
