package compile

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// PCRE backtracks: it tries every way in which an expression can match a text. When a loop of the expression can take one text in two
// ways, the ways double with each turn, and one request takes all of the load balancer's time. That is so in (a+)+, (a|a)* and (\w{1,2})*,
// and not in (?:/[^/]+)* and (foo|fob)+.

// explosive says whether some loop takes one text in two ways, or that this is too much work to find out. The expression has passed
// the checks of parseRegex.
func explosive(expression string) bool {
	r := reader{rest: expression}
	p := &places{}
	p.add(r.alternation().Simplify())
	return p.many || p.twice()
}

// reader parses again, because syntax.Parse has rewritten what PCRE will see as it is: it reads (a|a)* as a*.
type reader struct{ rest string }

func (r *reader) alternation() *syntax.Regexp {
	all := &syntax.Regexp{Op: syntax.OpAlternate, Sub: []*syntax.Regexp{r.sequence()}}
	for strings.HasPrefix(r.rest, "|") {
		r.rest = r.rest[1:]
		all.Sub = append(all.Sub, r.sequence())
	}
	return all
}

func (r *reader) sequence() *syntax.Regexp {
	all := &syntax.Regexp{Op: syntax.OpConcat}
	for r.rest != "" && r.rest[0] != '|' && r.rest[0] != ')' {
		all.Sub = append(all.Sub, r.repetition(r.atom()))
	}
	return all
}

func (r *reader) repetition(of *syntax.Regexp) *syntax.Regexp {
	for r.rest != "" {
		again := &syntax.Regexp{Sub: []*syntax.Regexp{of}}
		size := 1
		switch r.rest[0] {
		case '?':
			again.Op = syntax.OpQuest
		case '*':
			again.Op = syntax.OpStar
		case '+':
			again.Op = syntax.OpPlus
		case '{':
			body, _, _ := strings.Cut(r.rest[1:], "}")
			size = len(body) + 2
			from, to, several := strings.Cut(body, ",")
			again.Op = syntax.OpRepeat
			again.Min, _ = strconv.Atoi(from)
			switch again.Max = again.Min; {
			case several && to == "":
				again.Max = -1
			case several:
				again.Max, _ = strconv.Atoi(to)
			}
		default:
			return of
		}
		// The sign of a lazy one changes the order of the ways, not their number.
		r.rest = strings.TrimPrefix(r.rest[size:], "?")
		of = again
	}
	return of
}

func (r *reader) atom() *syntax.Regexp {
	size := 1
	switch {
	case r.rest[0] == '(':
		r.rest = strings.TrimPrefix(r.rest[1:], "?:")
		inner := r.alternation()
		r.rest = strings.TrimPrefix(r.rest, ")")
		return inner
	case r.rest[0] == '[':
		for size < len(r.rest) && r.rest[size] != ']' {
			if r.rest[size] == '\\' {
				size++
			}
			size++
		}
		size++
	case strings.HasPrefix(r.rest, `\x`):
		size = 4
	case r.rest[0] == '\\':
		size = 2
	}
	size = min(size, len(r.rest))
	one, err := syntax.Parse(r.rest[:size], syntax.Perl)
	r.rest = r.rest[size:]
	if err != nil {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return one
}

// These bound the work: {100} makes a hundred places of one.
const (
	maxPlaces = 300
	maxPairs  = 1 << 18
)

// places are the characters of an expression, each occurrence for itself, and what can follow what.
type places struct {
	// takes are sorted ranges of characters.
	takes [][]rune
	next  [][]int
	// many says that there is too much, or that a place follows another one in two ways, which only nested loops do.
	many bool
}

// part is a part of an expression: where it can begin and end, and whether it can be empty.
type part struct {
	first, last []int
	empty       bool
}

func (p *places) add(r *syntax.Regexp) part {
	if len(p.takes) > maxPlaces {
		p.many = true
	}
	if p.many {
		return part{empty: true}
	}
	whole := part{empty: true}
	switch r.Op {
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			whole = p.concat(whole, p.place([]rune{c, c}))
		}
	case syntax.OpCharClass:
		whole = p.place(r.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		whole = p.place([]rune{0, 0x10ffff})
	case syntax.OpCapture:
		whole = p.add(r.Sub[0])
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			whole = p.concat(whole, p.add(sub))
		}
	case syntax.OpAlternate:
		whole.empty = false
		for _, sub := range r.Sub {
			one := p.add(sub)
			whole.first, whole.last = append(whole.first, one.first...), append(whole.last, one.last...)
			whole.empty = whole.empty || one.empty
		}
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus:
		one := p.add(r.Sub[0])
		if r.Op != syntax.OpQuest {
			p.follow(one.last, one.first)
		}
		one.empty = one.empty || r.Op != syntax.OpPlus
		whole = one
	}
	// Anchors and the like take no character.
	return whole
}

func (p *places) place(takes []rune) part {
	p.takes, p.next = append(p.takes, takes), append(p.next, nil)
	only := []int{len(p.takes) - 1}
	return part{first: only, last: only}
}

func (p *places) concat(a, b part) part {
	p.follow(a.last, b.first)
	whole := part{first: slices.Clone(a.first), last: slices.Clone(b.last), empty: a.empty && b.empty}
	if a.empty {
		whole.first = append(whole.first, b.first...)
	}
	if b.empty {
		whole.last = append(whole.last, a.last...)
	}
	return whole
}

func (p *places) follow(from, to []int) {
	for _, i := range from {
		for _, j := range to {
			if slices.Contains(p.next[i], j) {
				p.many = true
				return
			}
			p.next[i] = append(p.next[i], j)
		}
	}
}

// twice looks for two different ways from a place back to itself that take the same text: in the graph of pairs of places that take the
// same characters, that is a cycle through a pair of one place and a pair of two.
func (p *places) twice() bool {
	type pair struct{ a, b int }
	var (
		index   = map[pair]int{} // 1, 2, ... in the order of discovery
		low     []int
		stack   []pair
		onStack = map[pair]bool{}
		work    int
	)
	var visit func(pair) bool
	visit = func(from pair) bool {
		low = append(low, len(low)+1)
		at := len(low)
		index[from] = at
		stack = append(stack, from)
		onStack[from] = true
		for _, a := range p.next[from.a] {
			for _, b := range p.next[from.b] {
				if work++; work > maxPairs {
					return true
				}
				to := pair{a, b}
				if !meet(p.takes[a], p.takes[b]) {
					continue
				}
				if index[to] == 0 && visit(to) {
					return true
				}
				if onStack[to] {
					low[at-1] = min(low[at-1], low[index[to]-1])
				}
			}
		}
		if low[at-1] != at {
			return false
		}
		one, two := false, false
		for {
			last := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			delete(onStack, last)
			one, two = one || last.a == last.b, two || last.a != last.b
			if last == from {
				return one && two
			}
		}
	}
	for i := range p.takes {
		if from := (pair{i, i}); index[from] == 0 && visit(from) {
			return true
		}
	}
	return false
}

// meet says whether two sorted lists of ranges have a character in common.
func meet(a, b []rune) bool {
	for i, j := 0, 0; i+1 < len(a) && j+1 < len(b); {
		switch {
		case a[i+1] < b[j]:
			i += 2
		case b[j+1] < a[i]:
			j += 2
		default:
			return true
		}
	}
	return false
}
