package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// binary is the controller as users run it.
var binary string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "scale")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if os.Getenv("KUBEBUILDER_ASSETS") != "" {
			binary = filepath.Join(dir, "controller")
			if out, err := exec.Command("go", "build", "-trimpath", "-o", binary, "../../../cmd/openstack-gateway-controller").CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "building the controller: %v\n%s", err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// world is a cluster and a cloud. Nothing but what a test makes is in it.
type world struct {
	*testing.T
	dir     string
	env     *envtest.Environment
	client  client.Client
	cloud   *sim.Cloud
	started int // controllers, for the names of their logs
}

// newWorld starts both.
func newWorld(t *testing.T, latency sim.Latency) *world {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: run make bench-scale")
	}
	w := &world{T: t, dir: t.TempDir()}
	w.env = &envtest.Environment{
		CRDDirectoryPaths:        []string{gatewayAPICRDs(t), "../../../config/crd"},
		ErrorIfCRDPathMissing:    true,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: 3 * time.Minute},
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	// Every Service has node ports and an address of its own.
	w.env.ControlPlane.GetAPIServer().Configure().
		Set("service-cluster-ip-range", "10.96.0.0/14").
		Set("service-node-port-range", "10000-60000")
	config, err := w.env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.env.Stop(); err != nil {
			t.Error("stopping the API server:", err)
		}
	})
	w.client = newClient(t, config)
	if err = os.WriteFile(w.file("kubeconfig"), w.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if w.cloud, err = sim.New(sim.Options{Latency: latency}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cloud.Close)
	if err = os.WriteFile(w.file("clouds.yaml"), w.cloud.CloudsYAML("scale"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func gatewayAPICRDs(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard")
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// controller is a running process of it.
type controller struct {
	w       *world
	cmd     *exec.Cmd
	log     string
	metrics string
	started time.Time
	done    chan struct{}
}

// start runs a controller with its default settings and more flags.
func (w *world) start(flags ...string) *controller {
	w.Helper()
	ports := freePorts(w.T, 2)
	w.started++
	c := &controller{w: w, log: w.file(fmt.Sprintf("controller-%d.log", w.started)), metrics: "http://127.0.0.1:" + ports[0] + "/metrics", done: make(chan struct{})}
	out, err := os.Create(c.log)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	c.cmd = exec.Command(binary, append([]string{
		"--kubeconfig=" + w.file("kubeconfig"), "--clouds-file=" + w.file("clouds.yaml"), "--cloud=scale", "--cluster-id=scale",
		"--metrics-bind-address=127.0.0.1:" + ports[0], "--health-probe-bind-address=127.0.0.1:" + ports[1],
	}, flags...)...)
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	w.Cleanup(func() {
		c.kill()
		if w.Failed() {
			w.Log(tail(c.log))
		}
	})
	return c
}

func tail(file string) string {
	text, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// stop ends a controller as Kubernetes does.
func (c *controller) stop() {
	c.w.Helper()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(time.Minute):
		c.kill()
		c.w.Error("the controller did not end within a minute of SIGTERM")
	}
}

// kill ends it as a broken machine does.
func (c *controller) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports
}

// usage is what a process has used and holds.
type usage struct {
	// resident and peak are bytes.
	resident, peak float64
	cpu            time.Duration
}

var vm = regexp.MustCompile(`(?m)^(VmRSS|VmHWM):\s+(\d+) kB$`)

func (c *controller) usage() usage {
	c.w.Helper()
	proc := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		c.w.Fatal(err)
	}
	var u usage
	for _, m := range vm.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.ParseFloat(m[2], 64)
		if m[1] == "VmRSS" {
			u.resident = n * 1024
		} else {
			u.peak = n * 1024
		}
	}
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		c.w.Fatal(err)
	}
	// The name, which may hold blanks, ends with the last parenthesis; utime and stime are fields 14 and 15, in hundredths of a second.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, f := range fields[11:13] {
		n, _ := strconv.Atoi(f)
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return u
}

// metric sums a metric over the series with these labels. A controller that does not answer yet has 0 of everything.
func (c *controller) metric(name string, labels map[string]string) float64 {
	c.w.Helper()
	resp, err := http.Get(c.metrics)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		c.w.Fatal(err)
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		matches := 0
		for _, l := range m.GetLabel() {
			if v, ok := labels[l.GetName()]; ok && v == l.GetValue() {
				matches++
			}
		}
		if matches == len(labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func (c *controller) passes() int {
	return int(c.metric("controller_runtime_reconcile_total", map[string]string{"controller": "gateway"}))
}

// programmed is how many Gateways are as they shall be.
func (c *controller) programmed() int {
	return int(c.metric("gateway_api_openstack_gateways", map[string]string{"outcome": "Programmed"}))
}

// settled waits until that is so of n Gateways, nothing waits in the queue and nothing is asked of the cloud for a while.
func (c *controller) settled(n int, patience time.Duration) {
	c.w.Helper()
	c.until(patience, func() error {
		if got := c.programmed(); got != n {
			return fmt.Errorf("%d of %d Gateways are programmed", got, n)
		}
		return nil
	})
	c.quiet(3*time.Second, patience)
}

// quiet waits until nothing is asked of the cloud and no pass is made for a while.
func (c *controller) quiet(while, patience time.Duration) {
	c.w.Helper()
	var calls, passes int
	since := time.Now()
	c.until(patience, func() error {
		if n, p := len(c.w.cloud.Calls()), c.passes(); n != calls || p != passes {
			calls, passes, since = n, p, time.Now()
		}
		if time.Since(since) < while {
			return errors.New("the controller is at work")
		}
		return nil
	})
}

func (c *controller) until(patience time.Duration, try func() error) {
	c.w.Helper()
	if err := eventually(c.w.Context(), patience, func() error {
		select {
		case <-c.done:
			return errors.New("the controller has ended")
		default:
			return try()
		}
	}); err != nil {
		c.w.Fatalf("%v\n%s", err, tail(c.log))
	}
}

func eventually(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("waited %s in vain: %w", patience, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// amphora is the time that a real cloud takes; a new amphora boots first.
func amphora(op sim.Op) sim.Timing {
	t := sim.Measured(op)
	if op.Resource == "loadbalancer" && op.Action == "create" {
		t.Pending += boot
	}
	return t
}

const boot = 45 * time.Second

// quick is for smoke tests.
func quick(sim.Op) sim.Timing {
	return sim.Timing{Hold: 5 * time.Millisecond, Pending: 50 * time.Millisecond}
}
