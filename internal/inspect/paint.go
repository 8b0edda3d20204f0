package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// colour is an SGR parameter.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// painter colours words when it is on.
type painter struct{ on bool }

func (p painter) paint(c colour, text string) string {
	if !p.on || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// printable makes text of others fit for a terminal: nothing in it moves the cursor, changes colours or reverses the direction.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// word is a piece of text with its colour.
type word struct {
	text string
	colour
}

// words are printed beside each other.
type words []word

func say(format string, args ...any) words { return words{{fmt.Sprintf(format, args...), plain}} }

func (w words) and(c colour, format string, args ...any) words {
	text := fmt.Sprintf(format, args...)
	if text == "" {
		return w
	}
	return append(w[:len(w):len(w)], word{text, c})
}

func (w words) paint(p painter) string {
	var b strings.Builder
	for _, one := range w {
		b.WriteString(p.paint(one.colour, oneLine(one.text)))
	}
	return b.String()
}

func oneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(text))
}

func (w words) width() int {
	n := 0
	for _, one := range w {
		n += utf8.RuneCountInString(one.text)
	}
	return n
}

// node is one line of a tree, with what is below it.
type node struct {
	words
	children []*node
}

// add puts a new line below n, as the last one, and returns it.
func (n *node) add(w words) *node {
	child := &node{words: w}
	n.children = append(n.children, child)
	return child
}

func (n *node) draw(out *printer) { n.line(out, "", "") }

// line prints n behind first and everything below it behind rest.
func (n *node) line(out *printer, first, rest string) {
	out.line(out.paint(dim, first) + n.paint(out.painter))
	for i, child := range n.children {
		if i < len(n.children)-1 {
			child.line(out, rest+"├─ ", rest+"│  ")
		} else {
			child.line(out, rest+"└─ ", rest+"   ")
		}
	}
}

// printer writes lines. The first failure is kept.
type printer struct {
	painter
	w   io.Writer
	err error
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(text, " "))
	}
}

func (p *printer) say(format string, args ...any) { p.words(say(format, args...)) }

func (p *printer) words(w words) { p.line(w.paint(p.painter)) }

// table prints rows in aligned columns, the first as a head.
func (p *printer) table(rows [][]words) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cell.width())
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if n == 0 {
				cell = words{{cell[0].text, bold}}
			}
			b.WriteString(cell.paint(p.painter))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-cell.width()+2))
			}
		}
		p.line(b.String())
	}
}

func head(names ...string) []words {
	var out []words
	for _, n := range names {
		out = append(out, say("%s", n))
	}
	return out
}

// print writes a result in the form that was asked for; text writes it for people.
func (t *tool) print(result any, text func(*printer)) error {
	var out []byte
	var err error
	switch t.output {
	case "json":
		out, err = json.MarshalIndent(result, "", "  ")
		out = append(out, '\n')
	case "yaml":
		out, err = yaml.Marshal(result)
	default:
		p := &printer{painter: t.painter(), w: t.Out}
		text(p)
		if p.err != nil {
			return fmt.Errorf("writing: %w", p.err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if _, err := t.Out.Write(out); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// statusColour is that of Octavia's statuses.
func statusColour(status string) colour {
	switch status {
	case "ACTIVE", "ONLINE":
		return green
	case "ERROR":
		return red
	case "NO_MONITOR", "":
		return dim
	}
	return yellow
}
