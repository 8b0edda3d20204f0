package inspect

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Plans are what would change.
type Plans struct {
	Gateways []GatewayPlan `json:"gateways"`
	// Notes say what was assumed.
	Notes []string `json:"notes,omitempty"`
}

// GatewayPlan is what would change for one Gateway.
type GatewayPlan struct {
	Gateway string `json:"gateway"`
	// Plan has the calls to the cloud, in order.
	Plan plan.Plan `json:"plan"`
	// Conditions are those that would be other ones.
	Conditions []ConditionChange `json:"conditions,omitempty"`
	Unseen     string            `json:"unseen,omitempty"`
	Kept       string            `json:"kept,omitempty"`
}

// ConditionChange is a condition before and after.
type ConditionChange struct {
	Object string            `json:"object"`
	Type   string            `json:"type"`
	Before *status.Condition `json:"before,omitempty"`
	After  *status.Condition `json:"after,omitempty"`
}

func (t *tool) planCommand() *cobra.Command {
	var files []string
	var detailed bool
	c := &cobra.Command{
		Use:   "plan [-f FILE...] [[NAMESPACE/]GATEWAY...]",
		Short: "Show what would change in the cloud if manifests were applied",
		Long: "Show the calls that the controller would make if manifests were applied, in order and each with its reason, and the conditions that would change. " +
			"Without -f: what it would do now. Nothing is written, neither to Kubernetes nor to OpenStack.\n\n" +
			"Manifests are merged into what the cluster has as kubectl apply does. What the API server itself would refuse is not noticed: kubectl apply --dry-run=server does that.\n" +
			"Signs: + create, ~ update, - delete, ! cannot be done.\n" +
			"Exit codes: 0 planned, 1 failed, 2 with --detailed-exitcode when something would change, 3 the cloud or a part of it could not be seen.",
		Example:           "  kubectl octavia plan -f shop.yaml\n  kubectl kustomize overlays/prod | kubectl octavia plan -f - --detailed-exitcode",
		ValidArgsFunction: t.completeGateways,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := t.plan(c.Context(), files, args)
			if err != nil {
				return err
			}
			if err := t.print(p, p.text); err != nil {
				return err
			}
			switch {
			case slices.ContainsFunc(p.Gateways, func(g GatewayPlan) bool { return g.Unseen != "" }):
				return &exitError{exitUnseen}
			case detailed && slices.ContainsFunc(p.Gateways, func(g GatewayPlan) bool { return !g.Plan.Empty() || len(g.Conditions) > 0 }):
				return &exitError{exitFindings}
			}
			return nil
		},
	}
	c.Flags().StringSliceVarP(&files, "filename", "f", nil, "manifests: files, directories, or - for standard input")
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 when something would change")
	return c
}

func (t *tool) plan(ctx context.Context, files, args []string) (*Plans, error) {
	r, still, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.openstack(ctx)
	if err != nil {
		return nil, err
	}
	out := &Plans{Gateways: []GatewayPlan{}}
	before := map[types.NamespacedName]map[string]status.Condition{}
	all, err := t.gatewayKeys(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		for _, key := range all {
			v, err := look(ctx, r, nil, key, t.now())
			if err != nil {
				return nil, err
			}
			before[key] = conditionsOf(v)
		}
		objects, err := t.manifests(files, t.connected.Namespace)
		if err != nil {
			return nil, err
		}
		if out.Notes, err = t.lay(ctx, still, objects); err != nil {
			return nil, err
		}
	}
	keys, err := t.gatewayKeys(ctx, r, args)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		v, err := look(ctx, r, c, key, t.now())
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no Gateway %s", key)
		}
		if err != nil {
			return nil, err
		}
		g := GatewayPlan{Gateway: key.String(), Plan: v.todo, Kept: v.kept}
		switch {
		case v.unseen != nil:
			g.Unseen = v.unseen.Error()
		case v.busy():
			g.Unseen = "Octavia is at work (" + string(v.have.ProvisioningStatus) + "): what is below the load balancer was not read, look again in a minute"
		}
		if len(files) > 0 {
			g.Conditions = changes(before[key], conditionsOf(v))
		}
		if !v.todo.Empty() || len(g.Conditions) > 0 || g.Unseen != "" || g.Kept != "" || len(args) > 0 {
			out.Gateways = append(out.Gateways, g)
		}
	}
	return out, nil
}

// lay puts manifests over the cluster. The notes say what the API server would decide and was assumed here.
func (t *tool) lay(ctx context.Context, still *kube.Still, objects []client.Object) (notes []string, err error) {
	for i, o := range objects {
		live, err := newLike(o)
		if err != nil {
			return nil, err
		}
		switch err := still.Get(ctx, client.ObjectKeyFromObject(o), live); {
		case apierrors.IsNotFound(err):
			o.SetUID(types.UID(fmt.Sprintf("new-%d", i)))
			o.SetGeneration(1)
			o.SetCreationTimestamp(metav1.NewTime(t.now()))
			if service, ok := o.(*corev1.Service); ok {
				notes = append(notes, assumeNodePorts(service, 32767-10*i)...)
			}
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", named(o), err)
		default:
			// The caches drop the annotation that the merge needs.
			if whole := still.Whole(live); whole != nil {
				live = whole
			}
			if o, err = applied(live, o); err != nil {
				return nil, fmt.Errorf("merging %s: %w", named(o), err)
			}
		}
		if err := still.Put(o); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// assumeNodePorts gives a new Service the ports that the API server would choose.
func assumeNodePorts(s *corev1.Service, from int) (notes []string) {
	if s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.NodePort == 0 {
			p.NodePort = int32(from - i) //nolint:gosec // at most 32767
			notes = append(notes, fmt.Sprintf("The node port of Service %s/%s for port %d is chosen when it is created; %d stands for it.", s.Namespace, s.Name, p.Port, p.NodePort))
		}
	}
	return notes
}

func newLike(o client.Object) (client.Object, error) {
	fresh, ok := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", o)
	}
	return fresh, nil
}

func mergePatch(current, patch []byte) ([]byte, error) { return jsonpatch.MergePatch(current, patch) }

// conditionsOf are the conditions of all verdicts, by object and type.
func conditionsOf(v *view) map[string]status.Condition {
	out := map[string]status.Condition{}
	for _, verdict := range v.compiled.Verdicts {
		object := fmt.Sprintf("%s %s/%s", verdict.Object.Kind, verdict.Object.Namespace, verdict.Object.Name)
		if verdict.Listener != "" {
			object += " listener " + string(verdict.Listener)
		}
		if p := verdict.Parent; p != nil {
			object += " at " + parentText(*p)
		}
		for _, c := range verdict.Conditions {
			out[object+"\x00"+c.Type] = c
		}
	}
	return out
}

func changes(before, after map[string]status.Condition) []ConditionChange {
	var out []ConditionChange
	for _, key := range slices.Sorted(maps.Keys(merged(before, after))) {
		b, was := before[key]
		a, is := after[key]
		if was == is && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message {
			continue
		}
		object, kind, _ := strings.Cut(key, "\x00")
		change := ConditionChange{Object: object, Type: kind}
		if was {
			change.Before = &b
		}
		if is {
			change.After = &a
		}
		out = append(out, change)
	}
	return out
}

func merged[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, b)
	return out
}

func (p *Plans) text(out *printer) {
	for _, n := range p.Notes {
		out.words(words{{"Note: " + n, dim}})
	}
	count := map[plan.Verb]int{}
	locks, conflicts := 0, 0
	for _, g := range p.Gateways {
		out.words(words{{"Gateway " + g.Gateway, bold}})
		if g.Kept != "" {
			out.words(words{{"  What it has stays as it is: " + g.Kept, yellow}})
		}
		for _, s := range g.Plan.Steps {
			count[s.Verb]++
			if s.Locks() {
				locks++
			}
			out.words(words{{"  " + s.String(), map[plan.Verb]colour{plan.Create: green, plan.Update: yellow, plan.Delete: red}[s.Verb]}})
		}
		for _, c := range g.Plan.Conflicts {
			conflicts++
			out.words(words{{fmt.Sprintf("  ! %s %s: %s", c.Kind, c.Key, c.Reason), red}})
		}
		for _, c := range g.Conditions {
			out.words(words{{"  " + c.Object + ": ", cyan}}.and(plain, "%s", c.text()))
		}
		if g.Unseen != "" {
			out.words(words{{"  Not seen: " + g.Unseen, yellow}})
		}
		if g.Plan.Empty() && g.Kept == "" && g.Unseen == "" {
			out.say("  No change in the cloud.")
		}
	}
	if len(p.Gateways) == 0 {
		out.words(words{{"✓", green}}.and(plain, " No changes: the cloud has what is wanted."))
		return
	}
	out.line("")
	out.say("Plan: %d to create, %d to update, %d to delete%s; %s the load balancer.", count[plan.Create], count[plan.Update], count[plan.Delete],
		map[bool]string{true: fmt.Sprintf(", %d in conflict", conflicts)}[conflicts > 0], plural(locks, "call")+map[bool]string{true: " locks", false: " lock"}[locks == 1])
}

func (c ConditionChange) text() string {
	say := func(s *status.Condition) string {
		if s == nil {
			return "none"
		}
		return fmt.Sprintf("%s %s", s.Status, s.Reason)
	}
	text := fmt.Sprintf("%s %s -> %s", c.Type, say(c.Before), say(c.After))
	if c.After != nil && c.After.Message != "" {
		text += ": " + c.After.Message
	}
	return text
}
