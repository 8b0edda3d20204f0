package plan

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// language is the set of strings that the value of a rule matches, as a program that is run without input. It exists to
// prove that two rules exclude each other; where it is nil nothing is proven, which is always safe.
type language struct {
	prog *syntax.Prog
	// complement means all other strings.
	complement bool
	// start is what every string of the language starts with, after "^"; a cheap proof of difference.
	start    string
	anchored bool
	fold     bool
}

// newLanguage returns nil for what Go's syntax does not cover.
func newLanguage(r lb.Rule) *language {
	l := &language{fold: r.Type == lb.RuleHost}
	expr := r.Value
	switch r.Compare {
	case lb.EqualTo:
		expr = "^" + quote(expr) + "$"
	case lb.StartsWith:
		expr = "^" + quote(expr)
	case lb.EndsWith:
		expr = quote(expr) + "$"
	case lb.Contains:
		expr = quote(expr)
	case lb.Regex:
		// ^(?!x), by which exact headers exclude all other values, is the complement of ^x.
		if body, ok := negated(expr); ok {
			expr, l.complement = "^(?:"+body+")", true
		}
	default:
		return nil
	}
	// HAProxy compares bytes, this compares characters.
	if strings.ContainsFunc(expr, func(r rune) bool { return r >= 0x80 }) {
		return nil
	}
	flags := syntax.Perl
	if l.fold {
		flags |= syntax.FoldCase
	}
	parsed, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil
	}
	if l.prog, err = syntax.Compile(parsed.Simplify()); err != nil {
		return nil
	}
	for _, inst := range l.prog.Inst {
		if inst.Op == syntax.InstEmptyWidth && syntax.EmptyOp(inst.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil
		}
	}
	if rest, ok := strings.CutPrefix(expr, "^"); ok && !hasTopLevelAlternation(rest) {
		l.anchored, l.start = true, literalStart(rest)
		if l.fold {
			l.start = strings.ToLower(l.start)
		}
	}
	return l
}

// negated takes x out of ^(?!x). x must be an expression of its own: in ^(?!a)(b) the first group ends before the last
// parenthesis.
func negated(expr string) (string, bool) {
	body, ok := strings.CutPrefix(expr, "^(?!")
	if !ok {
		return "", false
	}
	if body, ok = strings.CutSuffix(body, ")"); !ok {
		return "", false
	}
	_, err := syntax.Parse(body, syntax.Perl)
	return body, err == nil
}

// quote makes a literal value an expression.
func quote(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '_' {
			b.WriteByte(c)
			continue
		}
		const digits = "0123456789abcdef"
		b.WriteString(`\x`)
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// literalStart is the run of plain characters at the start of an expression, without one that is repeated.
func literalStart(expr string) string {
	var out []byte
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/_~-", c) >= 0:
		case c == '\\' && i+1 < len(expr) && expr[i+1] == '.':
			i++
			c = '.'
		case strings.IndexByte("?*+{", c) >= 0 && len(out) > 0:
			return string(out[:len(out)-1])
		default:
			return string(out)
		}
		out = append(out, c)
	}
	return string(out)
}

func hasTopLevelAlternation(expr string) bool {
	depth, class := 0, false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			return true
		}
	}
	return false
}

// maxStates bounds a proof.
const maxStates = 2000

// disjoint says whether provably no string is in both.
func (l *language) disjoint(o *language) bool {
	if l == nil || o == nil {
		return false
	}
	switch {
	case l.complement && o.complement:
		return false
	case l.complement:
		return o.within(l.plain())
	case o.complement:
		return l.within(o.plain())
	}
	if l.startsApart(o) {
		return true
	}
	return explore(l, o, func(a, b bool) bool { return a && b })
}

// within says whether provably each string of l is in o.
func (l *language) within(o *language) bool {
	switch {
	case l == nil || o == nil || l.complement:
		return false
	case o.complement:
		return l.disjoint(o.plain())
	}
	return explore(l, o, func(a, b bool) bool { return a && !b })
}

func (l *language) plain() *language {
	plain := *l
	plain.complement = false
	return &plain
}

func (l *language) startsApart(o *language) bool {
	return l.anchored && o.anchored && l.fold == o.fold &&
		!strings.HasPrefix(l.start, o.start) && !strings.HasPrefix(o.start, l.start)
}

// explore runs both programs over all strings at once. It returns true when no string was found on which bad holds, and
// false when one was or the bound was met.
func explore(l, o *language, bad func(inL, inO bool) bool) bool {
	classes := representatives(l.prog, o.prog)
	type pair struct{ a, b string }
	first := [2]state{initial(l.prog), initial(o.prog)}
	seen := map[pair]bool{{first[0].id(), first[1].id()}: true}
	for queue := [][2]state{first}; len(queue) > 0; queue = queue[1:] {
		a, b := queue[0][0], queue[0][1]
		if bad(a.accepts(l.prog), b.accepts(o.prog)) {
			return false
		}
		// Both questions are about strings of l.
		if a.dead() {
			continue
		}
		for _, c := range classes {
			next := [2]state{a.step(l.prog, c), b.step(o.prog, c)}
			key := pair{next[0].id(), next[1].id()}
			if seen[key] {
				continue
			}
			if len(seen) >= maxStates {
				return false
			}
			seen[key] = true
			queue = append(queue, next)
		}
	}
	return true
}

// state is the set of instructions that a program may be at.
type state struct {
	at []uint32
	// matched says that everything from here is in the language.
	matched bool
	// begun says that the start of the text is passed.
	begun bool
	// anchored says that the program cannot start anew.
	anchored bool
}

func initial(prog *syntax.Prog) state {
	s := state{anchored: prog.StartCond()&syntax.EmptyBeginText != 0}
	s.add(prog, uint32(prog.Start))
	s.sort()
	return s
}

// add follows what needs no character. What waits for the end of the text stays, see accepts.
func (s *state) add(prog *syntax.Prog, pc uint32) {
	if slices.Contains(s.at, pc) {
		return
	}
	inst := &prog.Inst[pc]
	s.at = append(s.at, pc)
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		s.add(prog, inst.Out)
		s.add(prog, inst.Arg)
	case syntax.InstNop, syntax.InstCapture:
		s.add(prog, inst.Out)
	case syntax.InstEmptyWidth:
		op := syntax.EmptyOp(inst.Arg)
		if op&syntax.EmptyEndText == 0 && (op&syntax.EmptyBeginText == 0 || !s.begun) {
			s.add(prog, inst.Out)
		}
	case syntax.InstMatch:
		s.matched = true
	}
}

// sort keeps only what tells states apart.
func (s *state) sort() {
	if s.matched {
		s.at = nil
	}
	slices.Sort(s.at)
}

func (s state) step(prog *syntax.Prog, c rune) state {
	next := state{matched: s.matched, begun: true, anchored: s.anchored}
	if s.matched {
		return next
	}
	for _, pc := range s.at {
		inst := &prog.Inst[pc]
		switch inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if inst.MatchRune(c) {
				next.add(prog, inst.Out)
			}
		}
	}
	if !s.anchored {
		next.add(prog, uint32(prog.Start))
	}
	next.sort()
	return next
}

// accepts says whether the text may end here.
func (s state) accepts(prog *syntax.Prog) bool {
	if s.matched {
		return true
	}
	seen := map[uint32]bool{}
	var ends func(pc uint32) bool
	ends = func(pc uint32) bool {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		inst := &prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			return ends(inst.Out) || ends(inst.Arg)
		case syntax.InstNop, syntax.InstCapture:
			return ends(inst.Out)
		case syntax.InstEmptyWidth:
			return (syntax.EmptyOp(inst.Arg)&syntax.EmptyBeginText == 0 || !s.begun) && ends(inst.Out)
		}
		return false
	}
	return slices.ContainsFunc(s.at, ends)
}

func (s state) dead() bool { return !s.matched && len(s.at) == 0 }

func (s state) id() string {
	b := make([]byte, 0, 2*len(s.at)+2)
	b = append(b, boolByte(s.matched), boolByte(s.begun))
	for _, pc := range s.at {
		b = append(b, byte(pc>>8), byte(pc))
	}
	return string(b)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// representatives holds one character of each class that neither program tells apart.
func representatives(progs ...*syntax.Prog) []rune {
	bounds := []rune{0}
	for _, prog := range progs {
		for i := range prog.Inst {
			inst := &prog.Inst[i]
			switch inst.Op {
			case syntax.InstRuneAnyNotNL:
				bounds = append(bounds, '\n', '\n'+1)
			case syntax.InstRune, syntax.InstRune1:
				for j := 0; j < len(inst.Rune); j += 2 {
					low, high := inst.Rune[j], inst.Rune[min(j+1, len(inst.Rune)-1)]
					bounds = append(bounds, low, high+1)
					if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
						other := swapCase(low)
						bounds = append(bounds, other, other+1)
					}
				}
			}
		}
	}
	slices.Sort(bounds)
	return slices.DeleteFunc(slices.Compact(bounds), func(r rune) bool { return r > 0xff })
}

func swapCase(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}
