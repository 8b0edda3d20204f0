package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container runs one container of a Pod: it starts the process, starts it
// again as the restart policy says, and keeps what status and logs need.
type container struct {
	spec   *corev1.Container
	policy corev1.RestartPolicy
	grace  time.Duration // for a restart after a failed liveness probe
	ip     netip.Addr
	// prepare resolves everything that a start needs; it runs before each
	// start, so that a restart sees changed Secrets.
	prepare func() (*launch, error)
	changed func()                                 // the status is another one
	event   func(kind, reason, message string)     // for kubectl describe
	openLog func(restart int32) (io.Writer, error) // where a copy of the output goes
	backoff backoff

	mu             sync.Mutex
	state, last    corev1.ContainerState
	restarts       int32
	ready, started bool
	book, previous *logbook
	cmd            *exec.Cmd
	finished       bool // the policy wants no other run
	unhealthy      string
	stopping       chan struct{} // closed by stop
	stopOnce       sync.Once
	done           chan struct{} // closed at the end of run
}

func newContainer(spec *corev1.Container, policy corev1.RestartPolicy) *container {
	c := &container{spec: spec, policy: policy, stopping: make(chan struct{}), done: make(chan struct{}), backoff: backoff{first: time.Second, limit: 30 * time.Second}}
	c.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return c
}

// run returns when the container has been stopped or needs no other run.
func (c *container) run() {
	defer close(c.done)
	for {
		began := time.Now()
		if c.once() {
			return
		}
		select {
		case <-c.stopping:
			return
		case <-time.After(c.backoff.next(time.Since(began))):
		}
	}
}

// once is one run of the process. It says whether it was the last.
func (c *container) once() (last bool) {
	l, err := c.prepare()
	if err != nil {
		c.wait("CreateContainerConfigError", err)
		return c.stopped()
	}
	c.mu.Lock()
	restart := c.restarts
	c.mu.Unlock()
	copyTo, err := c.openLog(restart)
	if err != nil {
		c.wait("CreateContainerError", err)
		return c.stopped()
	}
	if closer, ok := copyTo.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	book := newLogbook(copyTo)
	out, errOut := &lineWriter{book: book, now: time.Now}, &lineWriter{book: book, now: time.Now}

	c.mu.Lock()
	if c.stopped() { // nothing starts once stop has looked for a process to end
		c.mu.Unlock()
		return true
	}
	cmd, err := l.start(out, errOut)
	if err != nil {
		c.mu.Unlock()
		c.event(corev1.EventTypeWarning, "Failed", fmt.Sprintf("container %s: %v", c.spec.Name, err))
		c.wait("RunContainerError", err)
		return c.stopped()
	}
	c.previous, c.book, c.cmd, c.unhealthy = c.book, book, cmd, ""
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	c.started = c.spec.StartupProbe == nil
	c.ready = c.started && c.spec.ReadinessProbe == nil
	c.mu.Unlock()
	c.event(corev1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	c.changed()

	ctx, cancel := context.WithCancel(context.Background())
	var probes sync.WaitGroup
	probes.Go(func() { c.probe(ctx) })
	_ = cmd.Wait() // how it ended is in ProcessState
	cancel()
	probes.Wait()
	out.flush()
	errOut.flush()
	book.end()
	return c.ended(cmd)
}

// ended records how a process ended.
func (c *container) ended(cmd *exec.Cmd) (last bool) {
	defer c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: c.state.Running.StartedAt, FinishedAt: metav1.Now()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		t.Signal = int32(ws.Signal())
		t.ExitCode = 128 + t.Signal
	} else {
		t.ExitCode = int32(cmd.ProcessState.ExitCode())
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
		t.Message = c.book.tail(20, 2048)
	}
	c.cmd, c.ready, c.started = nil, false, false
	c.state = corev1.ContainerState{Terminated: t}
	c.finished = !again(c.policy, t.ExitCode)
	if c.stopped() || c.finished {
		return true
	}
	c.last = c.state
	c.restarts++
	reason, message := "CrashLoopBackOff", fmt.Sprintf("the process ended with exit code %d; starting it again after a pause", t.ExitCode)
	if c.unhealthy != "" {
		message = c.unhealthy
	}
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return false
}

func again(policy corev1.RestartPolicy, exitCode int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

func (c *container) wait(reason string, err error) {
	c.mu.Lock()
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}}
	c.mu.Unlock()
	c.changed()
}

// probe runs the container's probes while its process lives.
func (c *container) probe(ctx context.Context) {
	if p := c.spec.StartupProbe; p != nil {
		answer := awaitStart(ctx, p, c.spec, c.ip)
		switch {
		case ctx.Err() != nil:
			return
		case answer != nil:
			c.restart("Startup", answer)
			return
		}
		c.set(func() { c.started, c.ready = true, c.spec.ReadinessProbe == nil })
	}
	var all sync.WaitGroup
	if p := c.spec.LivenessProbe; p != nil {
		all.Go(func() {
			watch(ctx, p, c.spec, c.ip, true, func(good bool, answer error) {
				if !good {
					c.restart("Liveness", answer)
				}
			})
		})
	}
	if p := c.spec.ReadinessProbe; p != nil {
		all.Go(func() {
			watch(ctx, p, c.spec, c.ip, false, func(good bool, answer error) {
				if !good {
					c.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("Readiness probe failed: %v", answer))
				}
				c.set(func() { c.ready = good })
			})
		})
	}
	all.Wait()
}

func (c *container) set(change func()) {
	c.mu.Lock()
	if c.cmd != nil {
		change()
	}
	c.mu.Unlock()
	c.changed()
}

// restart ends a process that a probe found dead; run starts the next one.
func (c *container) restart(probe string, answer error) {
	message := fmt.Sprintf("%s probe failed: %v", probe, answer)
	c.event(corev1.EventTypeWarning, "Unhealthy", message)
	c.mu.Lock()
	c.unhealthy, c.ready = message, false
	cmd := c.cmd
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	time.AfterFunc(c.grace, func() { _ = cmd.Process.Kill() })
}

func (c *container) stopped() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// stop ends the container: the preStop hook, SIGTERM, and SIGKILL when ctx
// ends before the process does. It returns when the process is gone.
func (c *container) stop(ctx context.Context) {
	c.stopOnce.Do(func() { close(c.stopping) })
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	if cmd != nil {
		c.preStop(ctx)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
			return
		case <-ctx.Done():
			_ = cmd.Process.Kill()
		}
	}
	<-c.done
}

// preStop runs the hook kinds that need nothing inside the image.
func (c *container) preStop(ctx context.Context) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	switch h := c.spec.Lifecycle.PreStop; {
	case h.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-c.done:
		case <-time.After(time.Duration(h.Sleep.Seconds) * time.Second):
		}
	case h.HTTPGet != nil:
		if err := askHTTP(ctx, h.HTTPGet, c.spec, c.ip); err != nil {
			c.event(corev1.EventTypeWarning, "FailedPreStopHook", err.Error())
		}
	}
}

// status is what the Pod's status says about the container.
func (c *container) status() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := c.started
	s := corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, State: *c.state.DeepCopy(), LastTerminationState: *c.last.DeepCopy(),
		Ready: c.ready, Started: &started, RestartCount: c.restarts}
	if c.cmd != nil {
		s.ContainerID = fmt.Sprintf("process://%d", c.cmd.Process.Pid)
	}
	return s
}

// log returns the output of the current or the previous run; nil when there
// was none.
func (c *container) log(previous bool) *logbook {
	c.mu.Lock()
	defer c.mu.Unlock()
	if previous {
		return c.previous
	}
	return c.book
}

// backoff is the growing pause between restarts. It is shorter than the real
// kubelet's (10 s to 5 min), because tests wait for it.
type backoff struct{ first, limit, current time.Duration }

// next returns the pause after a run of the given length.
func (b *backoff) next(ran time.Duration) time.Duration {
	if b.current == 0 || ran > 2*b.limit {
		b.current = b.first
		return b.current
	}
	b.current = min(2*b.current, b.limit)
	return b.current
}
