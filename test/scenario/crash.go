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
	o, err := cloudOptions(c)
	if err != nil {
		return "", err
	}
	undisturbed, calls, err := crashed(ctx, o, c.input, -1)
	if err != nil {
		return "", err
	}
	n := 0
	for i, call := range calls {
		if i > 0 && !call.Mutating() {
			continue
		}
		n++
		got, _, err := crashed(ctx, o, c.input, i)
		if err != nil {
			return "", fmt.Errorf("dying after %s: %w", call, err)
		}
		if got != undisturbed {
			return fmt.Sprintf("dying after %s leads to\n%sand without that it is\n%s", call, got, undisturbed), nil
		}
	}
	return fmt.Sprintf("the process died in %d places; the next one always came to\n%s", n, undisturbed), nil
}

// crashed runs a script and lets the process die in the last command after some calls, or not at all when after is negative.
func crashed(ctx context.Context, o sim.Options, script string, after int) (end string, calls []sim.Call, err error) {
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
		if i < len(lines)-1 {
			if _, err := w.run(ctx, parse(l, "")); err != nil {
				return "", nil, err
			}
			continue
		}
		w.cloud.ResetCalls()
		if after >= 0 {
			w.cloud.Inject(sim.Fault{Skip: after, Cut: sim.CutAfter, Before: func() { w.kube.dead = true }})
			w.cloud.Inject(sim.Fault{Skip: after + 1, Times: -1, Cut: sim.CutBefore})
		}
		if _, err := w.run(ctx, parse(l, "")); err != nil {
			return "", nil, err
		}
		calls = w.cloud.Calls()
	}
	if after >= 0 {
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
