package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

// settings are the flags. Each has an environment fallback: see environment.
type settings struct {
	kubeconfig         string
	cloudsFile         string
	cloud              string
	region             string
	clusterID          string
	controllerName     string
	resync             time.Duration
	slice              time.Duration
	debounce           time.Duration
	qps                float64
	burst              int
	inFlight           int
	httpTimeout        time.Duration
	workers            int
	leaderElect        bool
	leaderElectionNS   string
	probeAddress       string
	metricsAddress     string
	logLevel           string
	logFormat          string
	gracefulShutdownIn time.Duration
	responder          string
}

// environment names the variable of a flag: --cluster-id is GATEWAY_API_OPENSTACK_CLUSTER_ID. The variables that all OpenStack
// clients know come first.
func environment(flag string) []string {
	own := "GATEWAY_API_OPENSTACK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	switch flag {
	case "clouds-file":
		return []string{own, "OS_CLIENT_CONFIG_FILE"}
	case "cloud":
		return []string{own, "OS_CLOUD"}
	case "region":
		return []string{own, "OS_REGION_NAME"}
	}
	return []string{own}
}

func command() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:           "openstack-gateway-controller",
		Short:         "Serve Kubernetes Gateways with OpenStack Octavia load balancers",
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	f := c.Flags()
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; empty uses the Pod's service account, or $KUBECONFIG")
	f.StringVar(&s.cloudsFile, "clouds-file", "", "clouds.yaml with the credentials; read again when it changes")
	f.StringVar(&s.cloud, "cloud", "", "entry of clouds.yaml to use")
	f.StringVar(&s.region, "region", "", "region; empty takes that of the entry")
	f.StringVar(&s.clusterID, "cluster-id", "", "name of this cluster in ownership marks, unique among the clusters that share the project; never change it (required)")
	f.StringVar(&s.controllerName, "controller-name", api.DefaultControllerName, "spec.controllerName of the GatewayClasses to serve")
	f.DurationVar(&s.resync, "resync", 10*time.Minute, "how often each Gateway is compared with the cloud without a cause")
	f.DurationVar(&s.slice, "slice", 20*time.Second, "how long one Gateway may wait for Octavia before others get their turn")
	f.DurationVar(&s.debounce, "debounce", time.Second, "how long changes of Nodes and endpoints are gathered into one; 0 makes each its own")
	f.Float64Var(&s.qps, "openstack-qps", 20, "requests to OpenStack per second of this process, all services together")
	f.IntVar(&s.burst, "openstack-burst", 40, "requests to OpenStack that may exceed the rate for a moment")
	f.IntVar(&s.inFlight, "openstack-in-flight", 16, "requests to OpenStack at the same time")
	f.DurationVar(&s.httpTimeout, "openstack-timeout", 2*time.Minute, "time for one request; creating a large load balancer takes Octavia half a minute")
	f.IntVar(&s.workers, "workers", 8, "Gateways to work on at the same time")
	f.BoolVar(&s.leaderElect, "leader-elect", false, "only the elected one of several replicas works")
	f.StringVar(&s.leaderElectionNS, "leader-election-namespace", "", "namespace of the lease; empty takes the Pod's")
	f.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.StringVar(&s.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 serves none")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&s.logFormat, "log-format", "json", "json or console")
	f.DurationVar(&s.gracefulShutdownIn, "shutdown-timeout", 30*time.Second, "time for a running step to finish after a signal")
	f.StringVar(&s.responder, "responder", "", "namespace/name of the Service through which load balancers reach the fallback responder of this process; empty serves none")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := fromEnvironment(c.Flags()); err != nil {
			return report(err)
		}
		return report(s.check())
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return report(run(c.Context(), s)) }
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return report(err) })
	return c
}

// report prints an error once; cobra would print it together with the usage.
func report(err error) error {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return err
}

func fromEnvironment(flags *pflag.FlagSet) error {
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || first != nil {
			return
		}
		for _, name := range environment(f.Name) {
			if v, ok := os.LookupEnv(name); ok && v != "" {
				if err := flags.Set(f.Name, v); err != nil {
					// Only the name: the value may be anything.
					first = fmt.Errorf("environment variable %s is not a value for --%s", name, f.Name)
				}
				return
			}
		}
	})
	return first
}

var (
	serviceNamePattern    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	clusterIDPattern      = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	controllerNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)
)

func (s *settings) check() error {
	switch {
	case s.clusterID == "":
		return fmt.Errorf("--cluster-id is required (or %s): a name for this cluster, unique among the clusters that share the OpenStack project; the UID of the namespace kube-system is a good one", environment("cluster-id")[0])
	case !clusterIDPattern.MatchString(s.clusterID):
		return fmt.Errorf("--cluster-id %q must be 1 to 63 letters, digits, '.', '_' or '-', with a letter or digit at both ends", s.clusterID)
	case len(s.controllerName) > 253 || !controllerNamePattern.MatchString(s.controllerName):
		return fmt.Errorf("--controller-name %q must be a domain and a path, such as %s", s.controllerName, api.DefaultControllerName)
	case s.resync < time.Minute:
		return fmt.Errorf("--resync must be at least 1m")
	case s.slice < time.Second:
		return fmt.Errorf("--slice must be at least 1s")
	case s.debounce < 0 || s.debounce > time.Minute:
		return fmt.Errorf("--debounce must be between 0 and 1m")
	case s.workers < 1:
		return fmt.Errorf("--workers must be at least 1")
	case s.qps <= 0 || s.burst < 1 || s.inFlight < 1:
		return fmt.Errorf("--openstack-qps, --openstack-burst and --openstack-in-flight must be positive")
	case s.responder != "" && !serviceNamePattern.MatchString(s.responder):
		return fmt.Errorf("--responder %q must be namespace/name of a Service", s.responder)
	case s.logFormat != "json" && s.logFormat != "console":
		return fmt.Errorf("--log-format must be json or console")
	}
	return nil
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
