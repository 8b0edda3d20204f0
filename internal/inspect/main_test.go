package inspect_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/inspect"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
	"github.com/gateway-api-openstack/gateway-api-openstack/test/scenario"
)

// asProgram makes the test binary be kubectl-octavia, for tests that send signals.
const asProgram = "KUBECTL_OCTAVIA_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(inspect.Main())
	}
	os.Exit(m.Run())
}

// program is a process of kubectl-octavia with the credentials of a simulated cloud.
func program(t *testing.T, c *sim.Cloud, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, c.CloudsYAML("test"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "OS_CLIENT_CONFIG_FILE="+file, "OS_CLOUD=test")
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func newCloud(t *testing.T) *sim.Cloud {
	t.Helper()
	c, err := sim.New(sim.Options{Latency: func(sim.Op) sim.Timing { return sim.Timing{Pending: 300 * time.Millisecond} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// probe begins a probe and returns when it has made its load balancer.
func probe(t *testing.T, c *sim.Cloud) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	made := make(chan struct{})
	c.Inject(sim.Fault{Service: sim.Neutron, Method: "POST", Path: "/floatingips", Before: func() { close(made) }})
	cmd, out := program(t, c, "probe", "--no-cluster", "--create", "--vip-subnet", c.VIPSubnetID(), "--floating-network", c.PublicNetworkID())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	select {
	case <-made:
	case <-time.After(time.Minute):
		t.Fatalf("no load balancer was made:\n%s", out)
	}
	return cmd, out
}

func TestProbe_deletesWhatItMadeWhenInterrupted(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			before := c.Snapshot()
			cmd, out := probe(t, c)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if left := c.Snapshot().Leaks(before); len(left) > 0 {
				t.Errorf("left behind: %v\n%s", left, out)
			}
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "everything is deleted again") || !strings.Contains(out.String(), "interrupted") {
				t.Errorf("ended with %v:\n%s", err, out)
			}
		})
	}
}

// A process that is killed cannot clean up; the mark on what it made lets the next one do so.
func TestProbe_cleansUpAfterAKilledProbe(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	before := c.Snapshot()
	cmd, _ := probe(t, c)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if left := c.Snapshot().Leaks(before); len(left) == 0 {
		t.Fatal("nothing was left behind: the test tests nothing")
	}
	// It is nobody else's to delete.
	if _, err := c.Do(sim.Octavia, "POST", "/loadbalancers", map[string]any{"loadbalancer": map[string]any{
		"name": "gw_kubectl-octavia-probe_probe_probe", "vip_subnet_id": c.VIPSubnetID(), "tags": []string{"role=loadbalancer"}}}); err != nil {
		t.Fatal(err)
	}
	again, out := program(t, c, "probe", "--clean-up")
	if err := again.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if counts := c.Snapshot().Counts(); counts["loadbalancers"] != 1 || counts["floatingips"] != 0 || counts["secrets"] != 0 {
		t.Errorf("left: %v\n%s", counts, out)
	}
}

// run executes a command without a cluster.
func run(t *testing.T, o inspect.Options, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	o.Out, o.Err = &out, &out
	if o.In == nil {
		o.In = strings.NewReader("")
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	code := inspect.Run(ctx, args, o)
	return out.String(), code
}

func TestRun_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "clouds.yaml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"probe", "--no-cluster"}, "error: no cloud is chosen: give --cloud"},
		{[]string{"probe", "--no-cluster", "--cloud", "x", "--clouds-file", empty}, "no such file"},
		{[]string{"nonsense"}, `error: unknown command "nonsense"`},
		{[]string{"probe", "--no-such-flag"}, "error: unknown flag: --no-such-flag"},
		{[]string{"audit", "--color", "sometimes"}, "--color must be auto, always or never"},
		{[]string{"audit", "--kubeconfig", empty}, "error: finding the cluster"},
	} {
		out, code := run(t, inspect.Options{}, c.args...)
		if code != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, out)
		}
	}
}

func TestRun_hasHelpAndCompletion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--help":             "kubectl octavia",
		"probe --help":       "Exit codes:",
		"audit --help":       "foreign-below-ours",
		"completion bash":    "bash completion",
		"completion zsh":     "#compdef",
		"__complete --color": "auto",
	} {
		list := strings.Fields(args)
		if list[0] == "__complete" {
			list = append(list, "")
		}
		out, code := run(t, inspect.Options{}, list...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s", args, code, out)
		}
	}
}

func TestRun_coloursOnlyWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, c.CloudsYAML("test"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name     string
		terminal bool
		env      string
		args     []string
		want     bool
	}{
		{"a terminal", true, "", nil, true},
		{"a pipe", false, "", nil, false},
		{"a terminal with NO_COLOR", true, "NO_COLOR", nil, false},
		{"always", false, "", []string{"--color=always"}, true},
		{"never", true, "", []string{"--color=never"}, false},
	} {
		out, code := run(t, inspect.Options{Terminal: one.terminal, Getenv: func(name string) string {
			if name == one.env {
				return "1"
			}
			return ""
		}}, append([]string{"probe", "--no-cluster", "--cloud=test", "--clouds-file=" + file}, one.args...)...)
		if got := strings.Contains(out, "\x1b["); code != 0 || got != one.want {
			t.Errorf("%s: exit code %d, %q", one.name, code, out)
		}
	}
}

// A bundle holds what is needed, and nothing of keys, tokens or credentials.
func TestDump_holdsNoSecrets(t *testing.T) {
	t.Parallel()
	stage, err := scenario.NewStage(t.Context(), t.TempDir(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	do := func(line, input string) {
		t.Helper()
		if out, err := stage.Run(t.Context(), line, input); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
	do("certificate infra/web names=shop.example.com", "")
	do("apply", `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: openstack
  listeners: [{name: web, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: web}]}}]
`)
	do("apply ../../../../test/scenario/testdata/manifests/class.yaml", "")
	do("reconcile", "")
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	do("octavia dump --file "+file, "")
	zipped, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	plain, err := gzip.NewReader(zipped)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(head.Name, "octavia-dump/")] = string(content)
	}
	for name, want := range map[string]string{
		"about.yaml":                          "clusterID: blue",
		"audit.yaml":                          "matched",
		"gateways/infra/edge/kubernetes.yaml": "tls.key:",
		"gateways/infra/edge/wanted.yaml":     "privateKey: '[redacted]'",
		"gateways/infra/edge/observed.yaml":   "provisioningStatus: ACTIVE",
		"gateways/infra/edge/tree.txt":        "shop.example.com",
		"gateways/infra/edge/plan.txt":        "nothing to do",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
	credentials := string(stage.Cloud().CloudsYAML("x"))
	_, secret, _ := strings.Cut(credentials, "application_credential_secret: ")
	secret, _, _ = strings.Cut(secret, "\n")
	for name, content := range files {
		for _, forbidden := range []string{"PRIVATE KEY", "BEGIN CERT", "LS0tLS1CRUdJTi", "gAAAA", secret} {
			if strings.Contains(content, forbidden) {
				t.Errorf("%s holds %q", name, forbidden)
			}
		}
	}
}
