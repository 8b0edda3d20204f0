package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// crash runs commands in fresh worlds. In each, the last command is run by a process that dies after another one of its calls that
// change something (what it reads in between changes nothing): the cloud has done it, and nobody learns. A new process then begins with
// what it finds. All must come to what an undisturbed one comes to, and leave as much in the cloud.
func crash(ctx context.Context, _ *world, c *command) (string, error) {
	return inEachPlace(ctx, c, "the process died in %d places; the next one", func(w *world, after int) {
		w.cloud.Inject(sim.Fault{Skip: after, Cut: sim.CutAfter, Before: func() { w.kube.dead = true }})
		w.cloud.Inject(sim.Fault{Skip: after + 1, Times: -1, Cut: sim.CutBefore})
	})
}

// lose is crash with a process that lives on: it is told that the call failed.
func lose(ctx context.Context, _ *world, c *command) (string, error) {
	return inEachPlace(ctx, c, "the answer was lost in %d places; it", func(w *world, after int) {
		w.cloud.Inject(sim.Fault{Skip: after, Cut: sim.CutAfter})
	})
}

// inEachPlace runs a script undisturbed, and then disturbed after each call of its last command that changes something.
func inEachPlace(ctx context.Context, c *command, said string, disturb func(w *world, after int)) (string, error) {
	o, err := cloudOptions(c)
	if err != nil {
		return "", err
	}
	undisturbed, calls, err := disturbed(ctx, o, c.input, nil)
	if err != nil {
		return "", err
	}
	n := 0
	for i, call := range calls {
		if i > 0 && !call.Mutating() {
			continue
		}
		n++
		got, _, err := disturbed(ctx, o, c.input, func(w *world) { disturb(w, i) })
		if err != nil {
			return "", fmt.Errorf("disturbed after %s: %w", call, err)
		}
		if got != undisturbed {
			return fmt.Sprintf("disturbed after %s it comes to\n%sand without that to\n%s", call, got, undisturbed), nil
		}
	}
	return fmt.Sprintf(said+" always came to\n%s", n, undisturbed), nil
}

// disturbed runs a script, with a disturbance before the last command. Where the process dies of it, a new one follows.
func disturbed(ctx context.Context, o sim.Options, script string, disturb func(*world)) (end string, calls []sim.Call, err error) {
	dir, err := os.MkdirTemp("", "story")
	if err != nil {
		return "", nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWorld(ctx, dir, o)
	if err != nil {
		return "", nil, err
	}
	defer w.close()
	lines := strings.Split(strings.TrimSpace(script), "\n")
	for i, l := range lines {
		if i == len(lines)-1 {
			w.cloud.ResetCalls()
			if disturb != nil {
				disturb(w)
			}
		}
		if _, err := w.run(ctx, parse(l, "")); err != nil {
			return "", nil, err
		}
	}
	calls = w.cloud.Calls()
	if w.kube.dead {
		w.cloud.ClearFaults()
		if err := w.restart(ctx); err != nil {
			return "", nil, err
		}
		if err := w.reconcile(ctx); err != nil {
			return "", nil, err
		}
	}
	// Whatever was still to come.
	w.tick(ctx, 2*resync)
	return anonymous(w.trees() + "\nin the cloud:\n" + w.inventory() + "\n"), calls, nil
}
