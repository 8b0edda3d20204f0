package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// RouteExplanation is what became of a route.
type RouteExplanation struct {
	Route   string              `json:"route"`
	Parents []ParentExplanation `json:"parents"`
}

// ParentExplanation is what became of a route at one of its parents.
type ParentExplanation struct {
	Parent string `json:"parent"`
	// Why says why the parent is none of ours; "" when it is.
	Why        string             `json:"why,omitempty"`
	Conditions []status.Condition `json:"conditions,omitempty"`
	Rules      []RuleExplanation  `json:"rules,omitempty"`
	// Runbook is the page about the first condition that is not as it should be.
	Runbook string `json:"runbook,omitempty"`
}

// RuleExplanation is what became of one rule.
type RuleExplanation struct {
	Rule     int      `json:"rule"`
	Name     string   `json:"name,omitempty"`
	Policies []string `json:"policies"`
	// Note says what it means that there are none.
	Note string `json:"note,omitempty"`
}

func (t *tool) explainRouteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "route [NAMESPACE/]NAME",
		Short: "Say why an HTTPRoute is not attached, refused, or served in part",
		Long: "Say what became of an HTTPRoute at each of its parents, by compiling it now: why it is not attached, refused, or served in part, and which L7 policies its rules are.\n\n" +
			"Exit codes: 0 all parents take all of it, 1 failed, 2 something is not served.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			x, err := t.explainRoute(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := t.print(x, x.text); err != nil {
				return err
			}
			if slices.ContainsFunc(x.Parents, func(p ParentExplanation) bool { return p.Why != "" || p.Runbook != "" }) {
				return &exitError{exitFindings}
			}
			return nil
		},
	}
}

func (t *tool) explainRoute(ctx context.Context, arg string) (*RouteExplanation, error) {
	r, still, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	key, err := t.keyOf(arg)
	if err != nil {
		return nil, err
	}
	object := &gwv1.HTTPRoute{}
	if err := still.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no HTTPRoute %s", key)
		}
		return nil, fmt.Errorf("reading HTTPRoute %s: %w", key, err)
	}
	c, err := t.openstackIfChosen(ctx)
	if err != nil {
		return nil, err
	}
	x := &RouteExplanation{Route: key.String(), Parents: []ParentExplanation{}}
	views := map[types.NamespacedName]*view{}
	for _, ref := range object.Spec.ParentRefs {
		p := ParentExplanation{Parent: parentText(ref)}
		gateway, why, err := gatewayOf(ctx, still, ref, key.Namespace)
		if err != nil {
			return nil, err
		}
		v := views[gateway]
		if why == "" && v == nil {
			v, err = look(ctx, r, c, gateway, t.now())
			switch {
			case apierrors.IsNotFound(err):
				why = fmt.Sprintf("Gateway %s does not exist", gateway)
			case err != nil:
				return nil, err
			default:
				views[gateway] = v
			}
		}
		if why == "" {
			why = notOurs(r, v)
		}
		if p.Why = why; why == "" {
			p.attach(v, key, ref)
		}
		x.Parents = append(x.Parents, p)
	}
	if len(x.Parents) == 0 {
		x.Parents = append(x.Parents, ParentExplanation{Parent: "none", Why: "spec.parentRefs is empty: no Gateway looks at the route"})
	}
	return x, nil
}

func notOurs(r *kube.Reader, v *view) string {
	switch {
	case v.snapshot.Class == nil:
		return fmt.Sprintf("the GatewayClass %q of Gateway %s does not exist", v.snapshot.Gateway.Spec.GatewayClassName, v.key)
	case !r.Selects(v.snapshot.Class):
		return fmt.Sprintf("Gateway %s is of class %s, which another controller serves: %s", v.key, v.snapshot.Class.Name, v.snapshot.Class.Spec.ControllerName)
	case !v.snapshot.Gateway.DeletionTimestamp.IsZero():
		return fmt.Sprintf("Gateway %s is being deleted", v.key)
	case v.want == nil && len(v.compiled.Verdicts) == 0:
		return v.kept
	}
	return ""
}

// gatewayOf is the Gateway that a parentRef leads to, through a ListenerSet too.
func gatewayOf(ctx context.Context, still *kube.Still, ref gwv1.ParentReference, namespace string) (key types.NamespacedName, why string, err error) {
	group, kind := gwv1.Group(gwv1.GroupName), gwv1.Kind("Gateway")
	if ref.Group != nil {
		group = *ref.Group
	}
	if ref.Kind != nil {
		kind = *ref.Kind
	}
	key = types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		key.Namespace = string(*ref.Namespace)
	}
	switch {
	case group == gwv1.GroupName && kind == "Gateway":
		return key, "", nil
	case group == gwv1.GroupName && kind == "ListenerSet":
		set := &gwv1.ListenerSet{}
		if err := still.Get(ctx, key, set); err != nil {
			if apierrors.IsNotFound(err) {
				return key, fmt.Sprintf("ListenerSet %s does not exist", key), nil
			}
			return key, "", fmt.Errorf("reading ListenerSet %s: %w", key, err)
		}
		of := types.NamespacedName{Namespace: key.Namespace, Name: string(set.Spec.ParentRef.Name)}
		if set.Spec.ParentRef.Namespace != nil {
			of.Namespace = string(*set.Spec.ParentRef.Namespace)
		}
		return of, "", nil
	}
	return key, fmt.Sprintf("a parent of kind %s is not served: only Gateways and ListenerSets are", strings.TrimSuffix(fmt.Sprintf("%s.%s", kind, group), ".")), nil
}

func parentText(ref gwv1.ParentReference) string {
	text := string(ref.Name)
	if ref.Namespace != nil {
		text = string(*ref.Namespace) + "/" + text
	}
	if ref.Kind != nil && *ref.Kind != "Gateway" {
		text = string(*ref.Kind) + " " + text
	}
	if ref.SectionName != nil {
		text += " listener " + string(*ref.SectionName)
	}
	if ref.Port != nil {
		text += fmt.Sprintf(" port %d", *ref.Port)
	}
	return text
}

// attach finds what compile made of the route at a parent.
func (p *ParentExplanation) attach(v *view, key types.NamespacedName, ref gwv1.ParentReference) {
	for _, verdict := range v.compiled.Verdicts {
		if verdict.Object.Kind == status.KindHTTPRoute && verdict.Object.Namespace == key.Namespace && verdict.Object.Name == key.Name &&
			verdict.Parent != nil && parentText(*verdict.Parent) == parentText(ref) {
			p.Conditions = verdict.Conditions
		}
	}
	accepted := false
	for _, c := range p.Conditions {
		if bad := c.Status != "True"; bad != (c.Type == string(gwv1.RouteConditionPartiallyInvalid)) && p.Runbook == "" {
			p.Runbook = "docs/runbook/" + c.Reason + ".md"
		}
		accepted = accepted || c.Type == string(gwv1.RouteConditionAccepted) && c.Status == "True"
	}
	if v.kept != "" {
		p.Why = "the Gateway is not served: " + v.kept
		return
	}
	object := routesOf(v.snapshot)[key.String()]
	if !accepted || v.want == nil || object == nil {
		return
	}
	for i, spec := range object.Spec.Rules {
		rule := RuleExplanation{Rule: i, Policies: []string{}}
		if spec.Name != nil {
			rule.Name = string(*spec.Name)
		}
		for _, l := range v.want.Listeners {
			for _, policy := range l.Policies {
				if o, ok := compile.OriginOf(policy.Key); ok && o.Route == key.String() && o.Rule == i {
					rule.Policies = append(rule.Policies, fmt.Sprintf("%s on %s -> %s", policy.Key, l.Key, target(&policy)))
				}
			}
		}
		if len(rule.Policies) == 0 {
			rule.Note = "no policy of its own: it takes what no policy takes, or another rule has the same matches and comes first, or it is refused (see the conditions)"
		}
		p.Rules = append(p.Rules, rule)
	}
}

func (x *RouteExplanation) text(p *printer) {
	p.words(words{{"HTTPRoute " + x.Route, bold}})
	for _, parent := range x.Parents {
		p.words(say("parent %s", parent.Parent))
		if parent.Why != "" {
			p.words(words{{"  ✗ ", red}}.and(plain, "%s", parent.Why))
		}
		for _, c := range parent.Conditions {
			mark := word{"  ✓ ", green}
			if (c.Status != "True") != (c.Type == string(gwv1.RouteConditionPartiallyInvalid)) {
				mark = word{"  ✗ ", red}
			}
			p.words(words{mark}.and(plain, "%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		if parent.Runbook != "" {
			p.words(words{{"  see " + parent.Runbook, dim}})
		}
		for _, r := range parent.Rules {
			name := strings.TrimSpace(fmt.Sprintf("rule %d %s", r.Rule, r.Name))
			for _, policy := range r.Policies {
				p.words(words{{"  " + name + ": ", cyan}}.and(plain, "%s", policy))
			}
			if r.Note != "" {
				p.words(words{{"  " + name + ": ", cyan}}.and(dim, "%s", r.Note))
			}
		}
	}
}
