package robustness

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The environment chooses how much is done: GATEWAY_API_OPENSTACK_SEED=n plays one schedule and tells everything,
// GATEWAY_API_OPENSTACK_SCHEDULES=n plays n of them, GATEWAY_API_OPENSTACK_TIME=5m plays until the time is over.
// Otherwise a few are played. GATEWAY_API_OPENSTACK_FIRST_SEED=n begins with that seed, and GATEWAY_API_OPENSTACK_WHOLE=yes does not
// shorten what fails.
const (
	seedVariable      = "GATEWAY_API_OPENSTACK_SEED"
	schedulesVariable = "GATEWAY_API_OPENSTACK_SCHEDULES"
	timeVariable      = "GATEWAY_API_OPENSTACK_TIME"
	firstVariable     = "GATEWAY_API_OPENSTACK_FIRST_SEED"
	wholeVariable     = "GATEWAY_API_OPENSTACK_WHOLE"
)

// enough failing schedules are enough to look at.
const enough = 10

// share is how long the schedules of an ordinary test run may take.
const share = 8 * time.Second

func TestSchedules_endWell(t *testing.T) {
	t.Parallel()
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		replay(t, seed)
		return
	}
	count, limit := number(t, schedulesVariable, 1<<40), share
	if os.Getenv(schedulesVariable) != "" {
		limit = 1000 * time.Hour
	}
	if text := os.Getenv(timeVariable); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	// The share of an ordinary run is always the same schedules, as far as the time allows. Whoever asks for more gets others each time, so
	// that many runs see more than one does; the seed is all that it takes to see one again.
	otherwise := uint64(1)
	if limit != share {
		otherwise = uint64(time.Now().Unix()) % 1_000_000 * 1_000_000
	}
	first := number(t, firstVariable, otherwise)
	begun := time.Now()
	var next, done, failed atomic.Uint64
	var wg sync.WaitGroup
	progress := time.NewTicker(30 * time.Second)
	defer progress.Stop()
	finished := make(chan struct{})
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		dir := t.TempDir()
		wg.Go(func() {
			for failed.Load() < enough && time.Since(begun) < limit {
				n := next.Add(1) - 1
				if n >= count {
					return
				}
				if !endsWell(t, dir, first+n) {
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
	go func() { wg.Wait(); close(finished) }()
	for {
		select {
		case <-progress.C:
			fmt.Printf("%d schedules from seed %d, %d failed, %s\n", done.Load(), first, failed.Load(), time.Since(begun).Round(time.Second))
		case <-finished:
			summary := fmt.Sprintf("%d schedules from seed %d on in %s: %d failed", done.Load(), first, time.Since(begun).Round(time.Millisecond), failed.Load())
			if os.Getenv(schedulesVariable) != "" {
				fmt.Println(summary)
			}
			t.Log(summary)
			return
		}
	}
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// endsWell plays one schedule, and a failing one again and again until it is short.
func endsWell(t *testing.T, dir string, seed uint64) bool {
	schedule := newSchedule(seed)
	failure := play(dir, seed, schedule, nil)
	if failure == nil {
		return true
	}
	if os.Getenv(wholeVariable) != "" {
		t.Errorf("seed %d: %v", seed, failure)
		return false
	}
	short, failure := shrink(dir, seed, schedule, failure)
	t.Errorf("seed %d fails (replay: %s=%d go test ./test/robustness -v): %v\nthese events are enough:\n%s", seed, seedVariable, seed, failure, scheduleText(short))
	return false
}

// replay plays a schedule, then what is left of it when it fails, and tells everything.
func replay(t *testing.T, seed uint64) {
	schedule := newSchedule(seed)
	dir := t.TempDir()
	failure := play(dir, seed, schedule, nil)
	if failure == nil {
		t.Logf("seed %d ends well", seed)
		return
	}
	if os.Getenv(wholeVariable) == "" {
		schedule, _ = shrink(dir, seed, schedule, failure)
	}
	var b strings.Builder
	failure = play(dir, seed, schedule, func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	t.Logf("%s", b.String())
	t.Errorf("seed %d: %v\n%s", seed, failure, scheduleText(schedule))
}
