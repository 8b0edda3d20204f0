package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// atMost is how long the demo may take before something must be wrong.
const atMost = 4 * time.Minute

// Exit codes besides 0 and 1, as shells know them.
const (
	exitUsage       = 2
	exitInterrupted = 130
)

var errInterrupted = errors.New("interrupted")

func init() {
	// A child dies with the thread that started it (see attributes), so the main goroutine keeps to the main thread.
	runtime.LockOSThread()
}

func main() { os.Exit(run()) }

func run() int {
	d := &demo{stopping: make(chan struct{})}
	flag.StringVar(&d.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "directory with etcd, kube-apiserver and kubectl")
	flag.StringVar(&d.binary, "controller", "", "the controller's binary")
	flag.StringVar(&d.crds, "crds", "", "directory with the CRDs of Gateway API")
	flag.StringVar(&d.state, "state", os.TempDir(), "directory for what the demo writes while it runs")
	flag.BoolVar(&d.keep, "keep", false, "leave everything running until Ctrl-C, before the last step")
	// The controller's own manifests come from config/ below the working directory.
	flag.Parse()
	if d.assets == "" || d.binary == "" || d.crds == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "demo: use make demo, or give -assets, -controller and -crds")
		return exitUsage
	}
	// What the client libraries have to say would only disturb.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	d.show = newShow(os.Stdout)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d.cancel = cancel
	go onSignal(cancel)
	limit := time.AfterFunc(atMost, func() {
		cancel(fmt.Errorf("the demo took more than %s", atMost))
	})
	d.limit = limit
	defer limit.Stop()

	err := d.directory()
	if err == nil {
		err = d.within(ctx)
	}
	took := time.Since(d.started).Round(100 * time.Millisecond)
	switch {
	case err == nil:
		d.line("")
		d.line(d.paint(green, d.paint(bold, fmt.Sprintf("All was as expected, in %s. Everything is stopped.", took))))
		return 0
	case errors.Is(err, errInterrupted):
		d.line("")
		d.line(fmt.Sprintf("Interrupted after %s. Everything is stopped.", took))
		return exitInterrupted
	}
	d.line("")
	d.line(d.paint(red, d.paint(bold, "The demo failed")) + fmt.Sprintf(" after %s:", took))
	d.line(err.Error())
	d.line("")
	d.line("Logs are in " + d.dir)
	return 1
}

// within tells the story and stops everything afterwards, also when it panics.
func (d *demo) within(ctx context.Context) (err error) {
	defer func() {
		stopped := d.stop()
		if err == nil {
			err = stopped
		}
		if err == nil || errors.Is(err, errInterrupted) {
			// What is left is removed by the next demo.
			_ = os.RemoveAll(d.dir)
		}
	}()
	err = d.story(ctx)
	if err != nil && d.controller != nil && !errors.Is(err, errInterrupted) && !strings.Contains(err.Error(), d.controller.log) {
		err = fmt.Errorf("%w\n\n%s", err, d.controller.tail(25))
	}
	return err
}

// onSignal ends the demo at the first signal in order, and at the second at once: the children die with us.
func onSignal(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	<-signals
	cancel(errInterrupted)
	<-signals
	os.Exit(exitInterrupted)
}

// directory makes the directory of this run, and removes those of runs that are over.
func (d *demo) directory() error {
	const prefix = "demo-"
	if err := os.MkdirAll(d.state, 0o700); err != nil {
		return fmt.Errorf("making the demo's directory: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(d.state, prefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for earlier runs: %w", err)
	}
	for _, dir := range old {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if err == nil && syscall.Kill(pid, 0) != nil {
			// Somebody else's stays.
			_ = os.RemoveAll(dir)
		}
	}
	d.dir = filepath.Join(d.state, prefix+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("making the demo's directory: %w", err)
	}
	return nil
}
