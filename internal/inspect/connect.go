package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// The environment of the controller that says who it is.
const (
	envClusterID      = "GATEWAY_API_OPENSTACK_CLUSTER_ID"
	envControllerName = "GATEWAY_API_OPENSTACK_CONTROLLER_NAME"
)

// cluster connects to the API server.
func (t *tool) cluster() (*Cluster, error) {
	if t.connected != nil {
		return t.connected, nil
	}
	if t.Cluster != nil {
		t.connected = t.Cluster
		return t.connected, nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(t.kubeconfig, &t.overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	// One look asks for a dozen kinds at once.
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "kubectl-octavia"
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	served, err := kube.ServedKinds(asked)
	if err != nil {
		return nil, err
	}
	scheme, err := kube.Scheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	c := &Cluster{Live: live, Served: served, Namespace: namespace, Server: config.Host}
	if v, err := asked.ServerVersion(); err == nil {
		c.Version = v.GitVersion
	}
	t.connected = c
	return c, nil
}

// reader looks at the cluster as the controller does, and at what is laid over it.
func (t *tool) reader(ctx context.Context) (*kube.Reader, *kube.Still, error) {
	c, err := t.cluster()
	if err != nil {
		return nil, nil, err
	}
	id, controller, err := t.identity(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	still, err := kube.NewStill(c.Live, controller, c.Served)
	if err != nil {
		return nil, nil, err
	}
	t.still = still
	return &kube.Reader{Client: still, Live: c.Live, Controller: controller, ClusterID: id, Served: c.Served}, still, nil
}

// identity is who the controller is: its cluster id and its controller name, from flags, from the environment, or from its Deployment.
func (t *tool) identity(ctx context.Context, c *Cluster) (id, controller string, err error) {
	id, controller = t.clusterID, t.controller
	if id == "" {
		id = t.Getenv(envClusterID)
	}
	if controller == "" {
		controller = t.Getenv(envControllerName)
	}
	if id == "" {
		found, err := installed(ctx, c.Live)
		if err != nil {
			return "", "", fmt.Errorf("the cluster id of the controller is not known, and its Deployment cannot be read: %w; give --cluster-id, or set %s", err, envClusterID)
		}
		if controller != "" {
			found = slices.DeleteFunc(found, func(s installation) bool { return s.controller != controller })
		}
		switch len(found) {
		case 0:
			return "", "", fmt.Errorf("no Deployment of the controller was found that says its cluster id; give --cluster-id, or set %s", envClusterID)
		case 1:
			id, controller = found[0].clusterID, found[0].controller
		default:
			return "", "", errors.New("several Deployments of the controller were found; give --controller-name or --cluster-id to choose one")
		}
	}
	if controller == "" {
		controller = api.DefaultControllerName
	}
	t.clusterID, t.controller = id, controller
	return id, controller, nil
}

// installation is a Deployment of the controller.
type installation struct {
	name                  types.NamespacedName
	clusterID, controller string
	images                []string
}

// partOf is the label of everything that an installation consists of.
const partOf = "gateway-api-openstack"

// installed finds the controller's Deployments that say their cluster id.
func installed(ctx context.Context, live client.Reader) ([]installation, error) {
	var list appsv1.DeploymentList
	if err := live.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/part-of": partOf}); err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	var out []installation
	for i := range list.Items {
		d := &list.Items[i]
		found := installation{name: client.ObjectKeyFromObject(d), controller: api.DefaultControllerName}
		for j := range d.Spec.Template.Spec.Containers {
			container := &d.Spec.Template.Spec.Containers[j]
			found.images = append(found.images, container.Image)
			settings, err := settingsOf(ctx, live, d.Namespace, container)
			if err != nil {
				return nil, err
			}
			if id := settings[envClusterID]; id != "" {
				found.clusterID = id
			}
			if name := settings[envControllerName]; name != "" {
				found.controller = name
			}
		}
		if found.clusterID != "" {
			out = append(out, found)
		}
	}
	return out, nil
}

// settingsOf are the settings of a container that matter here, by the names of the environment; flags win.
func settingsOf(ctx context.Context, live client.Reader, namespace string, c *corev1.Container) (map[string]string, error) {
	out := map[string]string{}
	fromConfigMap := func(name string, take func(map[string]string)) error {
		configMap := &corev1.ConfigMap{}
		switch err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, configMap); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
		default:
			take(configMap.Data)
		}
		return nil
	}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		err := fromConfigMap(from.ConfigMapRef.Name, func(data map[string]string) {
			for name, value := range data {
				out[from.Prefix+name] = value
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			out[e.Name] = e.Value
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			if err := fromConfigMap(ref.Name, func(data map[string]string) { out[e.Name] = data[ref.Key] }); err != nil {
				return nil, err
			}
		}
	}
	args := append(slices.Clone(c.Command), c.Args...)
	for i, arg := range args {
		for flag, name := range map[string]string{"--cluster-id": envClusterID, "--controller-name": envControllerName} {
			if value, ok := strings.CutPrefix(arg, flag+"="); ok {
				out[name] = value
			} else if arg == flag && i+1 < len(args) {
				out[name] = args[i+1]
			}
		}
	}
	for name, value := range out {
		// $(NAME) is replaced by Kubernetes from the same environment.
		if inner, ok := strings.CutPrefix(value, "$("); ok {
			out[name] = out[strings.TrimSuffix(inner, ")")]
		}
	}
	return out, nil
}

// openstackIfChosen is openstack; nil when nobody chose a cloud.
func (t *tool) openstackIfChosen(ctx context.Context) (*cloud.Client, error) {
	if t.cloudName == "" && t.Getenv("OS_CLOUD") == "" {
		return nil, nil //nolint:nilnil // commands that can do without say so
	}
	return t.openstack(ctx)
}

// openstack gets a token.
func (t *tool) openstack(ctx context.Context) (*cloud.Client, error) {
	if t.client != nil {
		return t.client, nil
	}
	name, region := t.cloudName, t.region
	if name == "" {
		name = t.Getenv("OS_CLOUD")
	}
	if region == "" {
		region = t.Getenv("OS_REGION_NAME")
	}
	if name == "" {
		return nil, errors.New("no cloud is chosen: give --cloud with an entry of clouds.yaml, or set OS_CLOUD")
	}
	file := t.cloudsFile
	if file == "" {
		file = t.Getenv("OS_CLIENT_CONFIG_FILE")
	}
	c, err := cloud.New(ctx, cloud.Options{CloudsFile: file, Cloud: name, Region: region, QPS: t.qps, Burst: 40, InFlight: 16, Clock: t.Clock, UserAgent: "kubectl-octavia"})
	if err != nil {
		return nil, fmt.Errorf("connecting to OpenStack: %w", err)
	}
	t.client = c
	return c, nil
}

// gatewayKeys are the Gateways that arguments name, or all of ours.
func (t *tool) gatewayKeys(ctx context.Context, r *kube.Reader, args []string) ([]types.NamespacedName, error) {
	if len(args) > 0 {
		var keys []types.NamespacedName
		for _, arg := range args {
			key, err := t.keyOf(arg)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
		return keys, nil
	}
	all, err := r.OurGateways(ctx)
	if err != nil {
		return nil, err
	}
	return sortedKeys(all), nil
}

func sortedKeys(gateways []*gwv1.Gateway) []types.NamespacedName {
	keys := make([]types.NamespacedName, len(gateways))
	for i, gw := range gateways {
		keys[i] = client.ObjectKeyFromObject(gw)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// keyOf is the object that an argument names: [KIND/]NAME in the current namespace, or NAMESPACE/NAME.
func (t *tool) keyOf(arg string) (types.NamespacedName, error) {
	c, err := t.cluster()
	if err != nil {
		return types.NamespacedName{}, err
	}
	parts := strings.Split(arg, "/")
	if kind := strings.ToLower(parts[0]); len(parts) > 1 && slices.Contains([]string{"gateway", "gateways", "gtw", "httproute", "httproutes"}, kind) {
		parts = parts[1:]
	}
	key := types.NamespacedName{Namespace: c.Namespace, Name: parts[len(parts)-1]}
	if len(parts) == 2 {
		key.Namespace = parts[0]
	}
	if key.Namespace == "" {
		key.Namespace = "default"
	}
	if len(parts) > 2 || key.Name == "" {
		return types.NamespacedName{}, fmt.Errorf("%q is not NAME or NAMESPACE/NAME", arg)
	}
	return key, nil
}

// explained adds to an error of the API server what the user can do about it.
func explained(err error) string {
	text := err.Error()
	if apierrors.IsForbidden(err) {
		text += "\nThis command looks at the cluster as the controller does: it lists Gateways, routes, Services, EndpointSlices, Nodes and Namespaces of all " +
			"namespaces, and reads the Secrets that listeners name. Ask for these rights, or use a kubeconfig that has them."
	}
	return text
}
