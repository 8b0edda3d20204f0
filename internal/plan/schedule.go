package plan

import (
	"cmp"
	"slices"
)

// defaultPairs bounds how many events are compared in pairs.
const defaultPairs = 2000

// schedule orders the events so that each request always gets its old or its new answer. When there is no such order it
// returns events to do without.
//
// A request is answered by the first element that matches it. Let it be o before and n after all events. It goes wrong
// between when the first is neither, which three rules exclude, each for the requests that are in both elements:
//
//  1. an old element that comes after o goes no later than o does
//  2. a new element that comes after n comes no earlier than n does
//  3. n comes no later than o goes
//
// An event that takes o away may add an element in its place which takes the same requests; then the rule is kept by that.
func (c *change) schedule() (order, culprits []*event) {
	simple := !slices.ContainsFunc(c.events, func(e *event) bool { return !e.simple() })
	after := make([][]int, len(c.events))
	if !simple {
		if len(c.events) > c.pairs {
			return c.scheduleMany()
		}
		after = c.constraints()
	}
	return sortEvents(c.events, after)
}

// scheduleMany does without all shortcuts that would need comparisons. What only gives policies another action is safe
// among additions and deletions.
func (c *change) scheduleMany() (order, culprits []*event) {
	for _, e := range c.events {
		exchanges := e.pool == nil && len(e.slots) == 1 && len(e.slots[0].edits) == 0 && !e.slots[0].moved && len(e.first) == 0
		if !e.simple() && !exchanges && e.cost() > 0 {
			culprits = append(culprits, e)
		}
	}
	if len(culprits) > 0 {
		return nil, culprits
	}
	after := make([][]int, len(c.events))
	enabling := map[*poolChange]int{}
	for i, e := range c.events {
		if e.pool != nil {
			enabling[e.pool] = i
		}
	}
	for i, e := range c.events {
		for _, pool := range e.first {
			after[enabling[pool]] = append(after[enabling[pool]], i)
		}
	}
	return sortEvents(c.events, after)
}

// constraints returns for each event those that must come after it.
func (c *change) constraints() [][]int {
	after := make([][]int, len(c.events))
	for i, e := range c.events {
		for j, f := range c.events {
			if i != j && c.mustPrecede(f, e) {
				after[j] = append(after[j], i)
			}
		}
	}
	return after
}

// mustPrecede says whether f has to come before e, because e before f would misroute.
func (c *change) mustPrecede(f, e *event) bool {
	if f.pool != nil && slices.Contains(e.first, f.pool) {
		return true
	}
	for i := range e.removes {
		o := &e.removes[i]
		for j := range f.removes {
			// Rule 1: o is gone, x is first and still old.
			x := &f.removes[j]
			if o.place.before(x.place) && o.side == x.side && o.goal != x.goal && c.book.overlap(o.match, x.match) && !c.takes(e.adds, o, x) {
				return true
			}
		}
		for j := range f.adds {
			// Rule 3: o is gone, n not there yet. What e adds above n would be the new answer; what f will remove above o
			// is the old one.
			n := &f.adds[j]
			if o.side == n.side && c.book.overlap(o.match, n.match) && !c.takes(e.adds, o, n) && !c.takes(f.removes, n, o) {
				return true
			}
		}
	}
	for i := range e.adds {
		x := &e.adds[i]
		for j := range f.adds {
			// Rule 2: x is first and new, n, which comes before it, is not there yet.
			n := &f.adds[j]
			if n.place.before(x.place) && n.side == x.side && n.goal != x.goal && c.book.overlap(n.match, x.match) && !c.takes(f.removes, n, x) {
				return true
			}
		}
	}
	return false
}

// takes says whether one of the elements comes before x and takes all requests that are in both o and x.
func (c *change) takes(elements []element, o, x *element) bool {
	for i := range elements {
		e := &elements[i]
		if e.side == x.side && e.place.before(x.place) && c.book.covered(o.match, x.match, e.match) {
			return true
		}
	}
	return false
}

// sortEvents is a topological sort that prefers the order of phases. Of what is left when it cannot go on, it picks the
// cheapest event of a cycle, goes on as if that one were done, and so on.
func sortEvents(events []*event, after [][]int) (order, culprits []*event) {
	rank := make([]int, len(events))
	for i := range rank {
		rank[i] = i
	}
	slices.SortStableFunc(rank, func(i, j int) int { return compareEvents(events[i], events[j]) })
	waits := make([]int, len(events))
	for _, list := range after {
		for _, j := range list {
			waits[j]++
		}
	}
	done := make([]bool, len(events))
	finish := func(i int) {
		done[i] = true
		for _, j := range after[i] {
			waits[j]--
		}
	}
	for left := len(events); left > 0; {
		progress := false
		for _, i := range rank {
			if done[i] || waits[i] > 0 {
				continue
			}
			finish(i)
			order = append(order, events[i])
			left--
			if progress = len(after[i]) > 0; progress {
				// Something that comes earlier may be free now.
				break
			}
			progress = true
		}
		if progress {
			continue
		}
		i := cheapest(events, after, done)
		if events[i].cost() > 0 {
			culprits = append(culprits, events[i])
		} else {
			// Additions and deletions alone have no cycle, so this is for safety only: going on beats doing nothing.
			order = append(order, events[i])
		}
		finish(i)
		left--
	}
	return order, culprits
}

// compareEvents is the order of phases: additions in the order in which HAProxy asks, deletions in the reverse of it.
func compareEvents(e, f *event) int {
	if e.phase() != f.phase() {
		return cmp.Compare(e.phase(), f.phase())
	}
	a, b := e.place(), f.place()
	if e.phase() == 2 {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.rank, b.rank))
}

// cheapest finds a cycle among what is not done, and in it the event whose shortcut saves the least.
func cheapest(events []*event, after [][]int, done []bool) int {
	before := make([]int, len(events)) // one predecessor of each that is not done
	for i := range before {
		before[i] = -1
	}
	start := -1
	for i, list := range after {
		if done[i] {
			continue
		}
		for _, j := range list {
			if !done[j] {
				before[j], start = i, j
			}
		}
	}
	// Everything left that waits, waits for something left: going back must come to a cycle.
	seen := map[int]bool{}
	for !seen[start] {
		seen[start] = true
		start = before[start]
	}
	best := -1
	for i, first := start, true; first || i != start; i, first = before[i], false {
		if cost := events[i].cost(); cost > 0 && (best < 0 || cost < events[best].cost()) {
			best = i
		}
	}
	if best < 0 {
		return start
	}
	return best
}
