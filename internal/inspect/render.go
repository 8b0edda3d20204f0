package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Rendered is what a Gateway of manifests would be.
type Rendered struct {
	Gateway string `json:"gateway"`
	// Tree is the wanted load balancer; empty when the Gateway is refused as a whole.
	Tree     lb.Tree          `json:"tree"`
	Verdicts []status.Verdict `json:"verdicts"`

	view *view
}

func (t *tool) renderCommand() *cobra.Command {
	var files []string
	var rules bool
	c := &cobra.Command{
		Use:   "render -f FILE...",
		Short: "Show the load balancer that manifests mean, without a cluster and a cloud",
		Long: "Compile manifests to load balancers and conditions, without a cluster and without a cloud: for reviews and for CI. A GatewayClass that is not in the manifests is taken for " +
			"one of this controller. Node ports must be in the Services; Nodes and EndpointSlices may be left out, the pools are then without members.\n\n" +
			"Exit codes: 0 everything is served, 1 failed, 2 something is refused.",
		Example: "  kubectl octavia render -f gateway.yaml -f routes/\n  kubectl kustomize . | kubectl octavia render -f - -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := t.render(c.Context(), files)
			if err != nil {
				return err
			}
			refused := false
			for i := range all {
				refused = refused || len(refusals(all[i].Verdicts)) > 0
			}
			if err := t.print(all, func(p *printer) {
				for i := range all {
					if i > 0 {
						p.line("")
					}
					tree := t.tree(all[i].view)
					tree.Unseen, tree.Status = "", rendered
					tree.node(rules).draw(p)
					for _, c := range refusals(all[i].Verdicts) {
						p.words(words{{"✗ ", red}}.and(plain, "%s", c))
					}
				}
			}); err != nil {
				return err
			}
			if refused {
				return &exitError{exitFindings}
			}
			return nil
		},
	}
	c.Flags().StringSliceVarP(&files, "filename", "f", nil, "manifests: files, directories, or - for standard input (required)")
	c.Flags().BoolVar(&rules, "rules", false, "show the L7 rules of each policy")
	return c
}

// rendered stands where the status of a Gateway in a cluster would.
const rendered = "rendered"

// refusals are the conditions that say that something is not served.
func refusals(verdicts []status.Verdict) []string {
	var out []string
	for _, v := range verdicts {
		name := fmt.Sprintf("%s %s/%s", v.Object.Kind, v.Object.Namespace, v.Object.Name)
		if v.Listener != "" {
			name += " listener " + string(v.Listener)
		}
		if v.Parent != nil {
			name += " at " + parentText(*v.Parent)
		}
		for _, c := range v.Conditions {
			switch c.Type {
			case string(gwv1.ListenerConditionConflicted), string(gwv1.RouteConditionPartiallyInvalid):
				if c.Status == metav1.ConditionTrue {
					out = append(out, fmt.Sprintf("%s: %s %s: %s", name, c.Type, c.Reason, c.Message))
				}
			case string(gwv1.ListenerConditionProgrammed):
				// It repeats what another condition says.
			default:
				if c.Status == metav1.ConditionFalse {
					out = append(out, fmt.Sprintf("%s: not %s, %s: %s", name, c.Type, c.Reason, c.Message))
				}
			}
		}
	}
	return out
}

func (t *tool) render(ctx context.Context, files []string) ([]Rendered, error) {
	if len(files) == 0 {
		return nil, errors.New("give manifests with -f")
	}
	controller := cmp.Or(t.controller, t.Getenv(envControllerName), api.DefaultControllerName)
	served := kube.Served{ListenerSets: true, ReferenceGrants: "v1"}
	still, err := kube.NewStill(nil, controller, served)
	if err != nil {
		return nil, err
	}
	t.still = still
	objects, err := t.manifests(files, cmp.Or(t.overrides.Context.Namespace, "default"))
	if err != nil {
		return nil, err
	}
	var keys []types.NamespacedName
	classes, missing := map[string]bool{}, map[string]bool{}
	for i, o := range objects {
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("rendered-%d", i)))
		}
		switch o := o.(type) {
		case *gwv1.Gateway:
			if key := client.ObjectKeyFromObject(o); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			missing[string(o.Spec.GatewayClassName)] = true
		case *gwv1.GatewayClass:
			classes[o.Name] = true
		}
		if err := still.Put(o); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the manifests hold no Gateway")
	}
	for name := range missing {
		if classes[name] {
			continue
		}
		for _, o := range assumedClass(name, controller) {
			if err := still.Put(o); err != nil {
				return nil, err
			}
		}
	}
	r := &kube.Reader{Client: still, Live: still, Controller: controller, ClusterID: cmp.Or(t.clusterID, "rendered"), Served: served}
	out := []Rendered{}
	for _, key := range keys {
		v, err := look(ctx, r, nil, key, t.now())
		if err != nil {
			return nil, err
		}
		switch {
		case !r.Selects(v.snapshot.Class):
			continue
		case v.kept != "" && len(v.compiled.Verdicts) == 0:
			return nil, fmt.Errorf("Gateway %s: %s", key, v.kept) //nolint:staticcheck // it begins with a kind
		}
		out = append(out, Rendered{Gateway: key.String(), Tree: v.compiled.Tree, Verdicts: v.compiled.Verdicts, view: v})
	}
	return out, nil
}

// assumedClass stands in for a class that the manifests do not hold.
func assumedClass(name, controller string) []client.Object {
	return []client.Object{
		&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gwv1.GatewayClassSpec{
			ControllerName: gwv1.GatewayController(controller),
			ParametersRef:  &gwv1.ParametersReference{Group: api.Domain, Kind: "OpenStackGatewayClassConfig", Name: "assumed-" + name},
		}},
		&v1alpha1.OpenStackGatewayClassConfig{ObjectMeta: metav1.ObjectMeta{Name: "assumed-" + name},
			Spec: v1alpha1.OpenStackGatewayClassConfigSpec{VIPSubnet: &v1alpha1.Selector{Name: "vip-subnet"}}},
	}
}
