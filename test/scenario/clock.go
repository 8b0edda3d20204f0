package scenario

import (
	"context"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// clock is the time of a story. It moves on when somebody sleeps: nothing else would wake them.
type clock struct{ *sim.FakeClock }

func newClock() clock {
	return clock{sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
}

// Sleep lets d pass for everybody.
func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		c.Advance(d)
	}
	return ctx.Err()
}

// Since makes it a clock.PassiveClock.
func (c clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
