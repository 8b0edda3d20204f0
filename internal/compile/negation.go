package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// HAProxy asks all policies that redirect before all that forward. A redirect that stands below forwards in precedence must
// therefore match only what they leave: its own match and not theirs. A policy is a conjunction, so that is written as several
// policies with the same target. Hosts and paths are nested or disjoint, so they are cut into regions first, which adds up instead
// of multiplying; only header conditions multiply.

// maxTerms bounds the policies that one match of a redirect may need.
const maxTerms = 16

// maxForwards bounds how many forwards a redirect may have to yield to.
const maxForwards = 2000

var errTooComplex = fmt.Errorf("the redirect stands below too many other rules that overlap it: Octavia would need more than %d "+
	"policies or %d conditions in one to leave their requests to them; give the redirect hostnames of its own or fewer overlaps", maxTerms, maxRules)

// forwards are the entries that forward, in order of precedence.
type forwards struct {
	all []*entry
	// byHost are the positions of those with only exact hosts, wide those of all others.
	byHost map[hostname][]int
	wide   []int
}

func newForwards() *forwards { return &forwards{byHost: map[hostname][]int{}} }

func (f *forwards) add(e *entry) {
	position := len(f.all)
	f.all = append(f.all, e)
	if len(e.hosts) == 0 || !e.hosts[len(e.hosts)-1].exact() {
		f.wide = append(f.wide, position)
		return
	}
	for _, h := range e.hosts {
		f.byHost[h] = append(f.byHost[h], position)
	}
}

// overlapping are the matches that may have requests in common with m.
func (f *forwards) overlapping(m match) []match {
	var positions []int
	if len(m.hosts) > 0 && m.hosts[len(m.hosts)-1].exact() {
		positions = slices.Clone(f.wide)
		for _, h := range m.hosts {
			positions = append(positions, f.byHost[h]...)
		}
		slices.Sort(positions)
		positions = slices.Compact(positions)
	} else {
		positions = make([]int, len(f.all))
		for i := range positions {
			positions[i] = i
		}
	}
	var list []match
	for _, i := range positions {
		if !f.all[i].disjoint(m) {
			list = append(list, f.all[i].match)
		}
	}
	return list
}

// clause is a match that must not hold, less what m implies: one of its conditions must fail.
type clause struct {
	hosts    hosts
	anyHost  bool
	path     path
	literals []lb.Rule
}

// key tells clauses apart.
func (c clause) key() string {
	var b strings.Builder
	for _, h := range c.hosts {
		b.WriteString(string(h))
		b.WriteByte(' ')
	}
	b.WriteByte(byte('0' + c.path.kind))
	b.WriteString(c.path.value)
	for _, l := range c.literals {
		b.WriteByte(' ')
		b.WriteString(l.Key)
		b.WriteByte(' ')
		b.WriteString(l.Value)
	}
	return b.String()
}

// exclude expresses m without all that the others match: the disjunction of what it returns. None when nothing is left of m. An empty
// conjunction means everything.
func exclude(m match, others []match) ([][]lb.Rule, error) {
	if len(others) > maxForwards {
		return nil, errTooComplex
	}
	var clauses []clause
	seen := map[string]bool{}
	for _, o := range others {
		c := residual(m, o)
		if c.anyHost && c.path.kind == anyPath && len(c.literals) == 0 {
			return nil, nil
		}
		if key := c.key(); !seen[key] {
			seen[key] = true
			clauses = append(clauses, c)
		}
	}
	terms, err := excludeHosts(m, clauses)
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		if len(t) > maxRules {
			return nil, errTooComplex
		}
	}
	return terms, nil
}

// residual are the conditions of o that m does not imply.
func residual(m, o match) clause {
	c := clause{anyHost: true}
	if !o.hosts.covers(m.hosts) {
		both, _ := o.hosts.intersect(m.hosts)
		c.anyHost, c.hosts = false, both
	}
	if o.path.covers(m.path) {
		c.path = path{kind: anyPath}
	} else if o.path.kind == regexPath {
		c.literals = append(c.literals, o.path.rule())
	} else {
		c.path = o.path
	}
	for _, h := range o.headers {
		if slices.Contains(m.headers, h) {
			continue
		}
		both := h.rules()
		c.literals = append(c.literals, both[:]...)
	}
	return c
}

// excludeHosts cuts m into regions of hosts in which each clause either has no host condition any more or cannot be violated.
func excludeHosts(m match, clauses []clause) ([][]lb.Rule, error) {
	var whole, cut []hostname
	for _, c := range clauses {
		if c.anyHost {
			continue
		}
		if c.path.kind == anyPath && len(c.literals) == 0 {
			whole = append(whole, c.hosts...)
		} else {
			cut = append(cut, c.hosts...)
		}
	}
	excluded := outermost(whole)
	patterns := newHosts(append(slices.Clone(cut), excluded.list...)...)

	// The rest: what lies in none of the patterns.
	var terms [][]lb.Rule
	var rest []clause
	for _, c := range clauses {
		if c.anyHost {
			rest = append(rest, c)
		}
	}
	left := slices.DeleteFunc(slices.Clone(m.hosts), func(h hostname) bool { return slices.Contains(patterns, h) })
	if len(m.hosts) == 0 || len(left) > 0 {
		found, err := excludePaths(m, rest)
		if err != nil {
			return nil, err
		}
		terms = append(terms, conjoin(hostConditions(left, outermost(inside(patterns, left)).list), found)...)
	}

	// One region for each pattern: the pattern without the narrower ones.
	groups, err := hostRegions(clauses, patterns, excluded)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		found, err := excludePaths(m, slices.Concat(rest, g.clauses))
		if err != nil {
			return nil, err
		}
		narrower := slices.DeleteFunc(inside(patterns, g.hosts), func(h hostname) bool { return slices.Contains(g.hosts, h) })
		terms = append(terms, conjoin(hostConditions(g.hosts, outermost(narrower).list), found)...)
		if len(terms) > maxTerms {
			return nil, errTooComplex
		}
	}
	return terms, nil
}

// hostRegion is a set of hosts for which the same clauses remain.
type hostRegion struct {
	hosts   hosts
	clauses []clause
}

// hostRegions finds the clauses with a host condition that remain for each pattern, and puts patterns together where they are the same.
func hostRegions(clauses []clause, patterns hosts, excluded outermostHosts) ([]*hostRegion, error) {
	byHost := map[hostname][]int{}
	for i, c := range clauses {
		if !c.anyHost {
			for _, h := range c.hosts {
				byHost[h] = append(byHost[h], i)
			}
		}
	}
	known := map[string]*hostRegion{}
	var regions []*hostRegion
	for _, h := range patterns {
		if excluded.covers(h) {
			continue
		}
		var own []int
		for wide := h; wide != ""; wide = wide.parent() {
			own = append(own, byHost[wide]...)
		}
		slices.Sort(own)
		own = slices.Compact(own)
		key := fmt.Sprint(own)
		if h.wildcard() {
			// A wildcard has narrower patterns of its own to leave out.
			key += string(h)
		}
		region := known[key]
		if region == nil {
			if len(regions) == maxTerms {
				return nil, errTooComplex
			}
			region = &hostRegion{}
			for _, i := range own {
				region.clauses = append(region.clauses, clauses[i])
			}
			known[key] = region
			regions = append(regions, region)
		}
		region.hosts = append(region.hosts, h)
	}
	return regions, nil
}

// inside are the patterns that lie within one of the hosts.
func inside(patterns []hostname, within hosts) []hostname {
	return slices.DeleteFunc(slices.Clone(patterns), func(p hostname) bool { return !within.covers(hosts{p}) })
}

// hostConditions are the ways to say "one of these hosts, and none of those": at least one.
func hostConditions(these hosts, none []hostname) [][]lb.Rule {
	var not []lb.Rule
	if len(none) > 0 {
		for _, r := range hostRules(newHosts(none...)) {
			not = append(not, inverted(r))
		}
	}
	if len(these) == 0 {
		return [][]lb.Rule{not}
	}
	var ways [][]lb.Rule
	for _, r := range hostRules(these) {
		ways = append(ways, append([]lb.Rule{r}, not...))
	}
	return ways
}

// conjoin is (a or b) and (c or d) as a disjunction.
func conjoin(left, right [][]lb.Rule) [][]lb.Rule {
	var both [][]lb.Rule
	for _, l := range left {
		for _, r := range right {
			both = append(both, slices.Concat(l, r))
		}
	}
	return both
}

// outermostHosts is a set of hostnames of which none covers another.
type outermostHosts struct {
	list []hostname
	set  map[hostname]bool
}

func outermost(list []hostname) outermostHosts {
	all := outermostHosts{set: map[hostname]bool{}}
	for _, h := range list {
		all.set[h] = true
	}
	result := outermostHosts{set: map[hostname]bool{}}
	for _, h := range newHosts(slices.Clone(list)...) {
		if !all.coversParent(h) {
			result.list = append(result.list, h)
			result.set[h] = true
		}
	}
	return result
}

func (o outermostHosts) covers(h hostname) bool { return o.set[h] || o.coversParent(h) }

func (o outermostHosts) coversParent(h hostname) bool {
	for h = h.parent(); h != ""; h = h.parent() {
		if o.set[h] {
			return true
		}
	}
	return false
}

// excludePaths does for paths what excludeHosts does for hosts. No clause has a host condition any more.
func excludePaths(m match, clauses []clause) ([][]lb.Rule, error) {
	var whole, cut []path
	for _, c := range clauses {
		switch {
		case c.path.kind == anyPath:
		case len(c.literals) == 0:
			whole = append(whole, c.path)
		default:
			cut = append(cut, c.path)
		}
	}
	excluded := outermostPaths(whole)
	patterns := distinctPaths(slices.Concat(cut, excluded))
	var bare []clause
	for _, c := range clauses {
		if c.path.kind == anyPath {
			bare = append(bare, c)
		}
	}
	regions := slices.DeleteFunc(distinctPaths(cut), newPathSet(excluded).covers)
	if len(regions) > maxTerms {
		return nil, errTooComplex
	}
	var terms [][]lb.Rule
	found, err := excludeLiterals(m, bare)
	if err != nil {
		return nil, err
	}
	terms = append(terms, conjoin([][]lb.Rule{pathConditions(m.path, outermostPaths(patterns))}, found)...)
	for _, p := range regions {
		var own []clause
		for _, c := range clauses {
			if c.path.kind == anyPath || c.path.covers(p) {
				own = append(own, c)
			}
		}
		found, err := excludeLiterals(m, own)
		if err != nil {
			return nil, err
		}
		narrower := slices.DeleteFunc(slices.Clone(patterns), func(o path) bool { return samePath(o, p) || !p.covers(o) })
		conditions := pathConditions(p, outermostPaths(narrower))
		if m.path.kind == regexPath {
			conditions = append([]lb.Rule{m.path.rule()}, conditions...)
		}
		terms = append(terms, conjoin([][]lb.Rule{conditions}, found)...)
	}
	return terms, nil
}

// pathConditions say "this path, and none of those".
func pathConditions(this path, none []path) []lb.Rule {
	var rules []lb.Rule
	if this.kind != anyPath {
		rules = append(rules, this.rule())
	}
	if len(none) == 1 {
		return append(rules, inverted(none[0].rule()))
	}
	fragments := make([]string, len(none))
	for i, p := range none {
		fragments[i] = p.fragment()
	}
	for _, value := range alternations(fragments, "^", "") {
		rules = append(rules, lb.Rule{Type: lb.RulePath, Compare: lb.Regex, Value: value, Invert: true})
	}
	return rules
}

func samePath(a, b path) bool { return a.kind == b.kind && a.value == b.value }

func distinctPaths(list []path) []path {
	list = slices.Clone(list)
	slices.SortFunc(list, comparePaths)
	return slices.CompactFunc(list, samePath)
}

// comparePaths puts a path before those that it covers.
func comparePaths(a, b path) int {
	if c := strings.Compare(a.value, b.value); c != 0 {
		return c
	}
	return int(b.kind) - int(a.kind)
}

// pathSet finds what its paths cover. There are no regular expressions among them.
type pathSet struct{ prefixes, exact map[string]bool }

func newPathSet(list []path) pathSet {
	s := pathSet{map[string]bool{}, map[string]bool{}}
	for _, p := range list {
		if p.kind == prefixPath {
			s.prefixes[p.value] = true
		} else {
			s.exact[p.value] = true
		}
	}
	return s
}

func (s pathSet) covers(p path) bool {
	return s.prefixes[p.value] || p.kind == exactPath && s.exact[p.value] || s.coversWider(p)
}

// coversWider says whether a path of the set is strictly wider than p.
func (s pathSet) coversWider(p path) bool {
	if p.kind == exactPath && s.prefixes[p.value] {
		return true
	}
	value := p.value
	for i := strings.LastIndexByte(value, '/'); i > 0; i = strings.LastIndexByte(value, '/') {
		value = value[:i]
		if s.prefixes[value] {
			return true
		}
	}
	return false
}

// outermostPaths leaves out paths that others cover.
func outermostPaths(list []path) []path {
	return slices.DeleteFunc(distinctPaths(list), newPathSet(list).coversWider)
}

// excludeLiterals multiplies out what is left: of each clause, one literal must be false. What m has in common with all terms stands first.
func excludeLiterals(m match, clauses []clause) ([][]lb.Rule, error) {
	var common []lb.Rule
	for _, h := range m.headers {
		both := h.rules()
		common = append(common, both[:]...)
	}
	// Clauses with one literal leave no choice, so they come first.
	sorted := slices.Clone(clauses)
	slices.SortStableFunc(sorted, func(a, b clause) int { return len(a.literals) - len(b.literals) })
	terms := [][]lb.Rule{common}
	for _, c := range sorted {
		if len(c.literals) == 0 {
			return nil, nil
		}
		var next [][]lb.Rule
		for _, t := range terms {
			if slices.ContainsFunc(c.literals, func(l lb.Rule) bool { return slices.Contains(t, inverted(l)) }) {
				next = append(next, t)
				continue
			}
			for _, l := range c.literals {
				if !slices.Contains(t, l) {
					next = append(next, append(slices.Clip(t), inverted(l)))
				}
			}
		}
		terms = absorb(next)
		if len(terms) > maxTerms*4 {
			return nil, errTooComplex
		}
	}
	return terms, nil
}

// absorb leaves out terms that demand all that another one demands, and more.
func absorb(terms [][]lb.Rule) [][]lb.Rule {
	var kept [][]lb.Rule
	for i, t := range terms {
		implied := slices.ContainsFunc(terms, func(o []lb.Rule) bool { return len(o) < len(t) && containsAll(t, o) }) ||
			slices.ContainsFunc(terms[:i], func(o []lb.Rule) bool { return len(o) == len(t) && containsAll(t, o) })
		if !implied {
			kept = append(kept, t)
		}
	}
	return kept
}

func containsAll(t, o []lb.Rule) bool {
	return !slices.ContainsFunc(o, func(r lb.Rule) bool { return !slices.Contains(t, r) })
}
