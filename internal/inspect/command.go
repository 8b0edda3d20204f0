package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// The exit codes. Each command says which of them it uses.
const (
	exitOK = 0
	// exitFailed: the question could not be answered.
	exitFailed = 1
	// exitFindings: it was answered, and something is not as it shall be.
	exitFindings = 2
	// exitUnseen: nothing was found, but not everything could be seen.
	exitUnseen = 3
)

// Options are where the commands run.
type Options struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says that people read Out.
	Terminal bool
	// Cluster is the cluster to look at; nil finds one as kubectl does.
	Cluster *Cluster
	// Clock is nil for the real one.
	Clock cloud.Clock
	// Home is where the environment is read; nil is that of the process.
	Getenv func(string) string
}

// Cluster is a Kubernetes cluster.
type Cluster struct {
	Live   client.Reader
	Served kube.Served
	// Namespace is that of objects that are named without one.
	Namespace string
	// Server and Version are for support bundles.
	Server, Version string
}

// Standard are the streams and the environment of the process.
func Standard() Options {
	info, err := os.Stdout.Stat()
	return Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Main runs the command line of the process. The first signal ends it in good order, the second at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args[1:], Standard())
}

// Run executes one command and returns the exit code.
func Run(ctx context.Context, args []string, o Options) int {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	t := &tool{Options: o, kubeconfig: clientcmd.NewDefaultClientConfigLoadingRules()}
	c := t.command() //nolint:contextcheck // cobra gives each command its context
	c.SetArgs(args)
	c.SetIn(o.In)
	c.SetOut(o.Out)
	c.SetErr(o.Err)
	if err := c.ExecuteContext(ctx); err != nil {
		var code *exitError
		if errors.As(err, &code) {
			return code.code
		}
		_, _ = fmt.Fprintln(o.Err, "error:", printable(explained(err)))
		return exitFailed
	}
	return exitOK
}

// exitError ends a command that has said all there is to say.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// tool is one run of the program.
type tool struct {
	Options
	kubeconfig *clientcmd.ClientConfigLoadingRules
	overrides  clientcmd.ConfigOverrides

	cloudsFile, cloudName, region string
	clusterID, controller         string
	output, colour                string
	qps                           float64

	connected *Cluster
	client    *cloud.Client
	// still is what was read of the cluster.
	still *kube.Still
}

// now is the time of the snapshot.
func (t *tool) now() time.Time {
	if t.Clock != nil {
		return t.Clock.Now()
	}
	return time.Now()
}

func (t *tool) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-octavia",
		Short: "See what Gateways are in OpenStack Octavia",
		Long: "See what Gateways are in OpenStack Octavia, what the controller will do, and why a request goes where it goes.\n\n" +
			"The cluster is that of your kubeconfig, as for kubectl. The cloud is that of clouds.yaml: OS_CLIENT_CONFIG_FILE and OS_CLOUD, or --cloud.\n" +
			"Nothing is changed, neither in Kubernetes nor in OpenStack, but by \"probe --create\".",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl octavia"},
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&t.kubeconfig.ExplicitPath, "kubeconfig", "", "kubeconfig file")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.ShortName = "n"
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&t.overrides, f, names)
	f.StringVar(&t.cloudsFile, "clouds-file", "", "clouds.yaml with the credentials ($OS_CLIENT_CONFIG_FILE, and where the OpenStack clients look)")
	f.StringVar(&t.cloudName, "cloud", "", "entry of clouds.yaml to use ($OS_CLOUD)")
	f.StringVar(&t.region, "region", "", "region; empty takes that of the entry ($OS_REGION_NAME)")
	f.StringVar(&t.clusterID, "cluster-id", "", "cluster id of the controller; empty reads it from the controller's Deployment ($"+envClusterID+")")
	f.StringVar(&t.controller, "controller-name", "", "controllerName of the GatewayClasses; empty reads it from the controller's Deployment, or takes "+api.DefaultControllerName)
	f.Float64Var(&t.qps, "openstack-qps", 20, "requests to OpenStack per second")
	f.StringVarP(&t.output, "output", "o", "", "json or yaml; empty is for people")
	f.StringVar(&t.colour, "color", "auto", "auto, always or never; auto also obeys $NO_COLOR")
	for name, values := range map[string][]string{"output": {"json", "yaml"}, "color": {"auto", "always", "never"}} {
		if err := root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag exists
		}
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		switch {
		case t.output != "" && t.output != "json" && t.output != "yaml":
			return fmt.Errorf("--output must be json or yaml")
		case t.colour != "auto" && t.colour != "always" && t.colour != "never":
			return fmt.Errorf("--color must be auto, always or never")
		}
		return nil
	}
	root.AddCommand(t.treeCommand(), t.uiCommand(), t.endpointsCommand(), t.explainCommand(), t.planCommand(), t.renderCommand(), t.auditCommand(), t.dumpCommand(), t.probeCommand())
	return root
}

// painter paints for people, when they want colours.
func (t *tool) painter() painter {
	switch t.colour {
	case "always":
		return painter{on: true}
	case "never":
		return painter{}
	}
	return painter{on: t.Terminal && t.Getenv("NO_COLOR") == "" && t.Getenv("TERM") != "dumb"}
}

// version is the module version, or the revision of a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " (" + s.Value + ")"
		}
	}
	return info.Main.Version
}
