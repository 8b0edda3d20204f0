package sim

import (
	"context"
	"sync"
	"time"
)

// Clock is the time of a Cloud.
type Clock interface {
	Now() time.Time
	// Sleep returns when d has passed or the context has ended.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f once d has passed. The result stops it.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (realClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// FakeClock is a Clock that only moves when it is told to.
type FakeClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters map[*waiter]struct{}
}

type waiter struct {
	at time.Time
	f  func()
}

// NewFakeClock returns a clock that stands at start.
func NewFakeClock(start time.Time) *FakeClock {
	return &FakeClock{now: start, waiters: map[*waiter]struct{}{}}
}

// Now returns the time at which the clock stands.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock forward and wakes what is due, oldest first.
func (f *FakeClock) Advance(d time.Duration) {
	f.mu.Lock()
	target := f.now.Add(d)
	for {
		var next *waiter
		for w := range f.waiters {
			if !w.at.After(target) && (next == nil || w.at.Before(next.at)) {
				next = w
			}
		}
		if next == nil {
			break
		}
		delete(f.waiters, next)
		if next.at.After(f.now) {
			f.now = next.at
		}
		f.mu.Unlock()
		next.f()
		f.mu.Lock()
	}
	f.now = target
	f.mu.Unlock()
}

// Waiting returns how many sleepers and timers wait for the clock to move.
func (f *FakeClock) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiters)
}

// NextDue returns when the next sleeper or timer is due.
func (f *FakeClock) NextDue() (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var next time.Time
	for w := range f.waiters {
		if next.IsZero() || w.at.Before(next) {
			next = w.at
		}
	}
	return next, !next.IsZero()
}

// Sleep returns when the clock has been advanced by d.
func (f *FakeClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	done := make(chan struct{})
	stop := f.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AfterFunc calls fn, from Advance, when the clock has been advanced by d.
func (f *FakeClock) AfterFunc(d time.Duration, fn func()) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &waiter{at: f.now.Add(d), f: fn}
	f.waiters[w] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiters, w)
	}
}
