package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// Stage is a world for tests that measure one instead of telling a story.
type Stage struct{ w *world }

// NewStage makes a world in which the controller has just started. dir is for its credentials.
func NewStage(ctx context.Context, dir string, o sim.Options) (*Stage, error) {
	w, err := newWorld(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return &Stage{w}, nil
}

// Close ends the world.
func (s *Stage) Close() { s.w.close() }

// Cloud is the simulator.
func (s *Stage) Cloud() *sim.Cloud { return s.w.cloud }

// Run executes a command of a story and returns what it prints.
func (s *Stage) Run(ctx context.Context, line, input string) (string, error) {
	return s.w.run(ctx, parse(line, input))
}

// Settle makes the passes that follow an event, until no Gateway is due before its resync. It returns how long that took in the world.
func (s *Stage) Settle(ctx context.Context) (time.Duration, error) {
	if err := s.w.enqueue(ctx); err != nil {
		return 0, err
	}
	started := s.w.clock.Now()
	for range 1000 {
		k, at, ok := s.w.next()
		if !ok || s.settled() {
			return s.w.clock.Now().Sub(started), nil
		}
		if at.After(s.w.clock.Now()) {
			s.w.clock.Advance(at.Sub(s.w.clock.Now()))
		}
		s.w.pass(ctx, k)
		if s.w.process.errors[k] > 0 {
			return 0, fmt.Errorf("a pass failed: %s", s.w.last[k])
		}
	}
	return 0, errors.New("not quiet after 1000 passes")
}

func (s *Stage) settled() bool {
	now := s.w.clock.Now()
	for k, at := range s.w.due {
		// A class that is due now has not been looked at yet.
		if !at.After(now) || k.kind == "gateway" && !at.After(now.Add(resync/2)) {
			return false
		}
	}
	return true
}
