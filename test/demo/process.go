package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a child. It dies with the demo, even when the demo is killed (attributes). Its output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// spawn starts a child. Call it from the main goroutine only: a child dies with the thread that started it.
func spawn(dir, name, path string, env []string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	// Not CommandContext: the order of stopping matters, and the demo decides it.
	p.cmd = exec.Command(path, args...) //nolint:noctx // see above
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended says whether the child is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop signals the child and waits until it is gone; when that takes too long it is killed, and stop says so.
func (p *process) stop(signal syscall.Signal, patience time.Duration) error {
	if p == nil || p.ended() {
		return nil
	}
	// The error is that it has ended meanwhile.
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
		var exit *exec.ExitError
		if signal == syscall.SIGTERM && errors.As(p.err, &exit) {
			return fmt.Errorf("%s ended with %w after SIGTERM", p.name, p.err)
		}
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within %s of a signal", p.name, patience)
	}
}

// failed describes an end that nobody asked for.
func (p *process) failed() error {
	return fmt.Errorf("%s ended unexpectedly: %w\n%s", p.name, cause(p.err), p.tail(15))
}

func cause(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// tail is the end of the child's output.
func (p *process) tail(lines int) string {
	if p == nil {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "--- end of " + p.log + "\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}

// pause waits, or returns why the demo ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// eventually tries until there is no error; after the patience it returns the last one.
func eventually(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s in vain: %w", patience, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
