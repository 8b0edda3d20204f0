package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// place orders what HAProxy asks: by class, then by rank. Old and new places of all policies of a side are in one order.
type place struct {
	class int
	rank  int64
}

func (a place) before(b place) bool {
	return a.class < b.class || a.class == b.class && a.rank < b.rank
}

// HAProxy's classes, in the order in which it asks them. The default pool comes after all policies.
const (
	classReject = iota
	classRedirect
	classPool
	classDefault
)

func classOf(action lb.Action) int {
	switch action {
	case lb.Reject:
		return classReject
	case lb.RedirectToPool:
		return classPool
	}
	return classRedirect
}

// maxComparisons bounds the search for policies that may stay out of order.
const maxComparisons = 1 << 24

// order finds which policies have to move. Position counts only within a class, and there only between policies that
// may match the same request and do something else with it: most keep their positions though the wanted order differs.
func (s *side) order(book *ruleBook) {
	index := map[*lb.Policy]int{}
	for i := range s.want.Policies {
		index[&s.want.Policies[i]] = i
	}
	for class := classReject; class <= classPool; class++ {
		var have, want []*slot
		for _, one := range s.slots {
			if one.have != nil && classOf(one.have.Action) == class {
				have = append(have, one)
			}
			if one.want != nil && classOf(one.want.Action) == class {
				want = append(want, one)
			}
		}
		slices.SortFunc(want, func(a, b *slot) int { return index[a.want] - index[b.want] })
		orderClass(class, have, want, book)
	}
}

// orderClass sets the places of one class. The longest part of the wanted order that exists already is the core. Ranks
// count by the gap of the core in which a slot lies; within a gap new places come before old ones.
func orderClass(class int, have, want []*slot, book *ruleBook) {
	position := map[*slot]int{}
	for i, one := range have {
		position[one] = i
	}
	var staying []*slot
	for _, one := range want {
		// A policy that changes its class, or that is disabled, gets its position with that call.
		if _, found := position[one]; found && !one.have.Disabled {
			staying = append(staying, one)
		}
	}
	core := map[*slot]bool{}
	for _, i := range increasing(len(staying), func(i int) int { return position[staying[i]] }) {
		core[staying[i]] = true
	}
	rank := func(gap, part, i int) place {
		return place{class, int64(gap)<<32 | int64(part)<<30 | int64(i)}
	}
	gap := 0
	for i, one := range have {
		if core[one] {
			gap++
			one.old = rank(gap, 0, 0)
		} else {
			one.old = rank(gap, 2, i)
		}
		one.now = one.old
	}
	gap = 0
	for i, one := range want {
		if core[one] {
			gap++
			one.new, one.moved = one.old, false
			continue
		}
		one.new, one.moved = rank(gap, 1, i), one.have != nil
	}
	keepOutOfOrder(want, slices.DeleteFunc(staying, func(one *slot) bool { return core[one] }), book)
}

// keepOutOfOrder lets displaced policies stay where they are, as long as that makes no difference.
func keepOutOfOrder(want, displaced []*slot, book *ruleBook) {
	if len(displaced)*len(want) > maxComparisons {
		return
	}
	wanted := make(map[*slot]int, len(want))
	for i, one := range want {
		wanted[one] = i
	}
	target := make(map[*slot]place, len(displaced))
	for _, one := range displaced {
		target[one] = one.new
		one.new, one.moved = one.old, false
	}
	differs := func(one *slot) bool {
		for i, other := range want {
			if other != one && one.new.before(other.new) != (wanted[one] < i) &&
				one.to != other.to && book.overlap(one.after, other.after) {
				return true
			}
		}
		return false
	}
	for again := true; again; {
		again = false
		for _, one := range displaced {
			if !one.moved && differs(one) {
				one.new, one.moved = target[one], true
				again = true
			}
		}
	}
}

// increasing returns the indexes of a longest increasing subsequence.
func increasing(n int, value func(int) int) []int {
	var tails []int // indexes of the smallest ends of subsequences of each length
	previous := make([]int, n)
	for i := range n {
		at, _ := slices.BinarySearchFunc(tails, value(i), func(t, v int) int { return value(t) - v })
		previous[i] = -1
		if at > 0 {
			previous[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]int, len(tails))
	for i, at := len(tails)-1, tails[len(tails)-1]; i >= 0; i-- {
		out[i], at = at, previous[at]
	}
	return out
}
