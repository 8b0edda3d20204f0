package compile

import (
	"cmp"
	"slices"
	"strings"
)

// maxWeight is Octavia's limit for the weight of a member. A weight of 0 would still get requests of existing sessions, so a
// share of nothing has no member instead.
const maxWeight = 256

// share is a backend's part of the requests of a rule.
type share struct {
	backend *backend
	weight  int64
}

// normalShares puts shares into one form: one for each backend, sorted, weights without a common factor.
func normalShares(shares []share) []share {
	var merged []share
	for _, s := range shares {
		i := slices.IndexFunc(merged, func(o share) bool { return o.backend.String() == s.backend.String() })
		if i < 0 {
			merged = append(merged, s)
			continue
		}
		merged[i].weight += s.weight
	}
	var divisor int64
	for _, s := range merged {
		divisor = gcd(divisor, s.weight)
	}
	for i := range merged {
		if divisor > 0 {
			merged[i].weight /= divisor
		}
	}
	slices.SortFunc(merged, func(a, b share) int { return strings.Compare(a.backend.String(), b.backend.String()) })
	return merged
}

// weigh spreads shares over endpoints: the weights of a backend's endpoints add up to its share, whatever their number.
//
// With w the weights and n the numbers of endpoints this is exact when some k has n <= k*w <= 256*n for every backend: the
// backend then gets k*w, evenly spread or, if k*w is no multiple of n, with a difference of one. Otherwise the nearest possible
// weights are taken. No share is then off by more than 1/128 of the share of the endpoint that has most, for each endpoint and
// each backend: what rounding and the smallest weight of 1 can cost. An endpoint of several backends is one member with the sum
// of their weights.
func weigh(shares []share) []weighted {
	shares = slices.DeleteFunc(slices.Clone(shares), func(s share) bool {
		return s.weight <= 0 || len(s.backend.endpoints) == 0
	})
	if len(shares) == 0 {
		return nil
	}
	var divisor int64
	for _, s := range shares {
		divisor = gcd(divisor, s.weight)
	}
	for i := range shares {
		shares[i].weight /= divisor
	}
	totals := exactTotals(shares, maxWeight)
	if totals == nil {
		totals = nearestTotals(shares)
	}
	members := spread(shares, totals)
	// Endpoints of several backends can exceed the limit: once more, with less room for each backend.
	if highest := slices.MaxFunc(members, compareWeights).weight; highest > maxWeight {
		if totals := exactTotals(shares, maxWeight*maxWeight/highest); totals != nil {
			members = spread(shares, totals)
		}
		for i := range members {
			members[i].weight = min(members[i].weight, maxWeight)
		}
	}
	return members
}

// weighted is an endpoint with its weight.
type weighted struct {
	endpoint
	weight int64
}

func compareWeights(a, b weighted) int { return cmp.Compare(a.weight, b.weight) }

// exactTotals is the total weight of each backend when it can be exact with member weights up to limit, else nil.
func exactTotals(shares []share, limit int64) []int64 {
	lowest, highest, even := int64(1), int64(1)<<40, int64(1)
	for _, s := range shares {
		n := int64(len(s.backend.endpoints))
		lowest = max(lowest, (n+s.weight-1)/s.weight)
		highest = min(highest, limit*n/s.weight)
		step := n / gcd(n, s.weight)
		if even <= highest {
			even = even / gcd(even, step) * step
		}
	}
	if lowest > highest {
		return nil
	}
	k := (lowest + even - 1) / even * even
	if k > highest {
		k = highest
	}
	totals := make([]int64, len(shares))
	for i, s := range shares {
		totals[i] = k * s.weight
	}
	return totals
}

// nearestTotals tries each weight for the endpoints of the backend that needs the highest one.
func nearestTotals(shares []share) []int64 {
	top := slices.MaxFunc(shares, func(a, b share) int {
		return cmp.Compare(a.weight*int64(len(b.backend.endpoints)), b.weight*int64(len(a.backend.endpoints)))
	})
	var best []int64
	var bestError float64
	for w := int64(maxWeight); w >= maxWeight/2; w-- {
		totals := make([]int64, len(shares))
		for i, s := range shares {
			n := int64(len(s.backend.endpoints))
			ideal := (2*s.weight*w*int64(len(top.backend.endpoints)) + top.weight) / (2 * top.weight)
			totals[i] = min(max(ideal, n), maxWeight*n)
		}
		if e := worstError(shares, totals); best == nil || e < bestError {
			best, bestError = totals, e
		}
	}
	return best
}

// worstError is the greatest difference between the wanted and the given part of a backend.
func worstError(shares []share, totals []int64) float64 {
	var wanted, given int64
	for i, s := range shares {
		wanted += s.weight
		given += totals[i]
	}
	worst := 0.0
	for i, s := range shares {
		// The conversions keep the compiler from fusing operations, which would differ between machines.
		e := float64(float64(s.weight)/float64(wanted)) - float64(float64(totals[i])/float64(given))
		worst = max(worst, e, -e)
	}
	return worst
}

func spread(shares []share, totals []int64) []weighted {
	var members []weighted
	for i, s := range shares {
		n := int64(len(s.backend.endpoints))
		each, rest := totals[i]/n, totals[i]%n
		for j, e := range s.backend.endpoints {
			w := each
			if int64(j) < rest {
				w++
			}
			members = append(members, weighted{e, w})
		}
	}
	if len(shares) == 1 {
		return members
	}
	slices.SortStableFunc(members, func(a, b weighted) int { return compareEndpoints(a.endpoint, b.endpoint) })
	distinct := members[:0]
	for _, m := range members {
		if last := len(distinct) - 1; last >= 0 && compareEndpoints(distinct[last].endpoint, m.endpoint) == 0 {
			distinct[last].weight += m.weight
			continue
		}
		distinct = append(distinct, m)
	}
	return distinct
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
