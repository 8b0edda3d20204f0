package compile

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// someShares generates backends with endpoints of their own.
func someShares(t *rapid.T) []share {
	var shares []share
	for i := range rapid.IntRange(1, 5).Draw(t, "backends") {
		b := &backend{service: name{"n", fmt.Sprint(i)}, port: 80}
		for j := range rapid.IntRange(1, 12).Draw(t, "endpoints") {
			b.endpoints = append(b.endpoints, endpoint{address: fmt.Sprintf("10.0.%d.%d", i, j), port: 80})
		}
		shares = append(shares, share{b, rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1000000)).Draw(t, "weight")})
	}
	return shares
}

// totalOf adds up the members of one backend.
func totalOf(b *backend, members []weighted) int64 {
	var total int64
	for _, m := range members {
		for _, e := range b.endpoints {
			if compareEndpoints(e, m.endpoint) == 0 {
				total += m.weight
			}
		}
	}
	return total
}

// canBeExact tries every total for the first backend.
func canBeExact(shares []share) bool {
	for total := int64(len(shares[0].backend.endpoints)); total <= maxWeight*int64(len(shares[0].backend.endpoints)); total++ {
		fits := true
		for _, s := range shares {
			n := int64(len(s.backend.endpoints))
			exact := total * s.weight
			fits = fits && exact%shares[0].weight == 0 && exact/shares[0].weight >= n && exact/shares[0].weight <= maxWeight*n
		}
		if fits {
			return true
		}
	}
	return false
}

func TestWeigh_isExactWhereWeightsCanBe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shares := someShares(t)
		members := weigh(shares)
		for _, m := range members {
			if m.weight < 1 || m.weight > maxWeight {
				t.Fatalf("weight %d", m.weight)
			}
		}
		var given, wanted int64
		for _, s := range shares {
			given += totalOf(s.backend, members)
			wanted += s.weight
		}
		exact := canBeExact(shares)
		for _, s := range shares {
			if exact && totalOf(s.backend, members)*wanted != s.weight*given {
				t.Fatalf("backend %s gets %d of %d for %d of %d", s.backend, totalOf(s.backend, members), given, s.weight, wanted)
			}
		}
	})
}

func TestWeigh_staysNearWhereItCannotBeExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shares := someShares(t)
		members := weigh(shares)
		var given, wanted, all, needed float64
		for _, s := range shares {
			given += float64(totalOf(s.backend, members))
			wanted += float64(s.weight)
			all += float64(len(s.backend.endpoints))
		}
		// The backend with the highest weight for each endpoint gets at least half of the range, so the weights of all others are
		// rounded to at most one part of this.
		for _, s := range shares {
			needed = max(needed, float64(s.weight)/float64(len(s.backend.endpoints)))
		}
		step := needed / (maxWeight / 2)
		bound := (all*step + float64(len(shares))*step) / wanted
		for _, s := range shares {
			e := float64(s.weight)/wanted - float64(totalOf(s.backend, members))/given
			if max(e, -e) > bound {
				t.Fatalf("backend %s is off by %.4f, more than %.4f", s.backend, e, bound)
			}
		}
	})
}

func TestWeigh_addsUpEndpointsOfSeveralBackends(t *testing.T) {
	t.Parallel()
	same := []endpoint{{address: "10.0.0.1", port: 80}, {address: "10.0.0.2", port: 80}}
	members := weigh([]share{{&backend{endpoints: same}, 3}, {&backend{port: 1, endpoints: same[:1]}, 1}})
	if len(members) != 2 {
		t.Fatalf("got %v", members)
	}
	// 3 of 4 over two endpoints, 1 of 4 on the first alone: 5 to 3.
	if members[0].weight*3 != members[1].weight*5 {
		t.Errorf("got %v", members)
	}
	for _, m := range weigh([]share{{&backend{endpoints: same[:1]}, 256}, {&backend{port: 1, endpoints: same[:1]}, 255}}) {
		if m.weight > maxWeight {
			t.Errorf("weight %d", m.weight)
		}
	}
}

func TestWeigh_givesNothingToShareOfNothing(t *testing.T) {
	t.Parallel()
	one := []endpoint{{address: "10.0.0.1", port: 80}}
	if got := weigh([]share{{&backend{endpoints: one}, 0}, {&backend{port: 1}, 5}}); got != nil {
		t.Errorf("got %v", got)
	}
}
