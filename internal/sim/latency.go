package sim

import "time"

// Op describes an accepted write to Octavia, for Latency.
type Op struct {
	Resource string // loadbalancer, listener, pool, member, healthmonitor, l7policy, rule
	Action   string // create, update, delete
	// The size of the load balancer after the write.
	Listeners, Pools, Members, Policies, Rules int
}

// Timing is how long a write takes.
type Timing struct {
	Hold    time.Duration // until the call is answered
	Pending time.Duration // from then until the load balancer is writable again
}

// Latency says how long writes take. A nil Latency makes them instant: the
// answer still says PENDING_*, the next call sees the result.
type Latency func(Op) Timing

// Pending is a Latency that answers at once and leaves every write pending for d.
func Pending(d time.Duration) Latency {
	return func(Op) Timing { return Timing{Pending: d} }
}

// Measured is the latency of a quiet real cloud with one worker and amphorae
// that boot at once: every write gets slower as the load balancer grows.
func Measured(op Op) Timing {
	ms := func(base int, perPolicy, perPool float64) time.Duration {
		return time.Duration(float64(base)+perPolicy*float64(op.Policies)+perPool*float64(op.Pools)) * time.Millisecond
	}
	switch op.Resource + " " + op.Action {
	case "loadbalancer create":
		return Timing{Hold: ms(900, 120, 230), Pending: ms(8500, 150, 1600)}
	case "loadbalancer delete":
		return Timing{Hold: ms(300, 120, 300), Pending: ms(3200, 20, 20)}
	case "loadbalancer update":
		return Timing{Hold: ms(200, 10, 10), Pending: ms(800, 60, 60)}
	case "member update":
		return Timing{Hold: ms(200, 10, 10), Pending: ms(1300, 120, 120)}
	}
	return Timing{Hold: ms(150, 10, 10), Pending: ms(700, 130, 130)}
}
