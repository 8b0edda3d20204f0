package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// GatewayTree is a Gateway with the load balancer that it is.
type GatewayTree struct {
	Gateway   string   `json:"gateway"`
	Class     string   `json:"class"`
	Status    string   `json:"status"`
	Message   string   `json:"message,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Wanted says that the load balancer is not there yet, or was not looked at: the tree is the wanted one.
	Wanted       bool           `json:"wanted"`
	LoadBalancer *LoadBalancer  `json:"loadBalancer,omitempty"`
	Listeners    []ListenerTree `json:"listeners,omitempty"`
	Pools        []PoolTree     `json:"pools,omitempty"`
	Foreign      []lb.Foreign   `json:"foreign,omitempty"`
	// Steps is how many calls the controller would make now.
	Steps int `json:"steps"`
	// Unseen is why the cloud, or a part of it, is not shown.
	Unseen string `json:"unseen,omitempty"`
	// Kept is why the load balancer stays as it is whatever Kubernetes says.
	Kept string `json:"kept,omitempty"`
}

// LoadBalancer is the load balancer itself.
type LoadBalancer struct {
	Name               string `json:"name"`
	ID                 string `json:"id,omitempty"`
	ProvisioningStatus string `json:"provisioningStatus,omitempty"`
	OperatingStatus    string `json:"operatingStatus,omitempty"`
	VIP                string `json:"vip,omitempty"`
	FloatingIP         string `json:"floatingIP,omitempty"`
}

// ListenerTree is an Octavia listener with its policies in the order in which HAProxy asks them.
type ListenerTree struct {
	Key                string   `json:"key"`
	ID                 string   `json:"id,omitempty"`
	Protocol           string   `json:"protocol"`
	Port               int      `json:"port"`
	ProvisioningStatus string   `json:"provisioningStatus,omitempty"`
	OperatingStatus    string   `json:"operatingStatus,omitempty"`
	GatewayListeners   []string `json:"gatewayListeners"`
	// Certificates are the names in the certificates, by the Secrets' content addresses.
	Certificates []string     `json:"certificates,omitempty"`
	Policies     []PolicyTree `json:"policies,omitempty"`
	// DefaultPool takes what no policy takes; "" is 503.
	DefaultPool string `json:"defaultPool,omitempty"`
}

// PolicyTree is an L7 policy.
type PolicyTree struct {
	Key    string         `json:"key"`
	ID     string         `json:"id,omitempty"`
	Origin compile.Origin `json:"origin,omitzero"`
	// Match is what the route says, for people.
	Match  string   `json:"match,omitempty"`
	Action string   `json:"action"`
	Target string   `json:"target"`
	Rules  []string `json:"rules"`
	// NotRendered says why HAProxy does not know the policy.
	NotRendered        string `json:"notRendered,omitempty"`
	ProvisioningStatus string `json:"provisioningStatus,omitempty"`
}

// PoolTree is a pool with its members.
type PoolTree struct {
	Key                string       `json:"key"`
	ID                 string       `json:"id,omitempty"`
	ProvisioningStatus string       `json:"provisioningStatus,omitempty"`
	OperatingStatus    string       `json:"operatingStatus,omitempty"`
	Services           []string     `json:"services,omitempty"`
	Algorithm          string       `json:"algorithm"`
	Monitor            string       `json:"monitor,omitempty"`
	Members            []MemberTree `json:"members,omitempty"`
}

// MemberTree is a member, and what is behind its address.
type MemberTree struct {
	Address         string `json:"address"`
	Weight          int    `json:"weight"`
	OperatingStatus string `json:"operatingStatus,omitempty"`
	Disabled        bool   `json:"disabled,omitempty"`
	Node            string `json:"node,omitempty"`
	Pod             string `json:"pod,omitempty"`
	// Pods are the ready endpoints of the Services on the Node.
	Pods []string `json:"pods,omitempty"`
}

func (t *tool) treeCommand() *cobra.Command {
	var rules bool
	c := &cobra.Command{
		Use:   "tree [[NAMESPACE/]GATEWAY...]",
		Short: "Show a Gateway down to the members of its load balancer",
		Long: "Show Gateways with listeners, L7 policies in the order in which HAProxy asks them and the route and rule that each comes from, pools, and " +
			"members with their live operating status and the Node or Pod behind each. Without arguments all Gateways of the controller are shown.\n\n" +
			"Without a cloud (--cloud, OS_CLOUD) the wanted load balancer is shown.\n" +
			"Exit codes: 0 shown, 1 it could not be read, 3 the cloud or a part of it could not be seen.",
		Example:           "  kubectl octavia tree edge -n infra\n  kubectl octavia tree infra/edge --rules",
		ValidArgsFunction: t.completeGateways,
		RunE: func(c *cobra.Command, args []string) error {
			trees, err := t.trees(c.Context(), args)
			if err != nil {
				return err
			}
			err = t.print(trees, func(p *printer) {
				for i := range trees {
					if i > 0 {
						p.line("")
					}
					trees[i].node(rules).draw(p)
				}
				if len(trees) == 0 {
					p.say("No Gateway of %s.", t.controller)
				}
			})
			if err == nil && slices.ContainsFunc(trees, func(g GatewayTree) bool { return g.Unseen != "" }) {
				return &exitError{exitUnseen}
			}
			return err
		},
	}
	c.Flags().BoolVar(&rules, "rules", false, "show the L7 rules of each policy")
	return c
}

// noCloud says that no cloud was chosen: commands that can do without show what Kubernetes says.
const noCloud = "no cloud is chosen (--cloud, OS_CLOUD): this is the wanted load balancer"

// views looks at Gateways; without a chosen cloud only at what is wanted.
func (t *tool) views(ctx context.Context, args []string) ([]*view, error) {
	r, _, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.openstackIfChosen(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := t.gatewayKeys(ctx, r, args)
	if err != nil {
		return nil, err
	}
	var out []*view
	for _, key := range keys {
		v, err := look(ctx, r, c, key, t.now())
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("there is no Gateway %s", key)
		case err != nil:
			return nil, err
		case !r.Ours(v.snapshot):
			return nil, fmt.Errorf("the class %q of Gateway %s is not one of %s", v.snapshot.Gateway.Spec.GatewayClassName, key, r.Controller)
		}
		out = append(out, v)
	}
	return out, nil
}

func (t *tool) trees(ctx context.Context, args []string) ([]GatewayTree, error) {
	views, err := t.views(ctx, args)
	if err != nil {
		return nil, err
	}
	out := make([]GatewayTree, 0, len(views))
	for _, v := range views {
		out = append(out, t.tree(v))
	}
	return out, nil
}

func (t *tool) tree(v *view) GatewayTree {
	out := GatewayTree{Gateway: v.key.String(), Class: string(v.snapshot.Gateway.Spec.GatewayClassName), Kept: v.kept, Steps: len(v.todo.Steps)}
	out.Status, out.Message, out.Addresses = published(v.snapshot.Gateway)
	switch {
	case v.unseen != nil:
		out.Unseen = v.unseen.Error()
	case v.busy():
		out.Unseen = "Octavia is at work (" + string(v.have.ProvisioningStatus) + "): what is below the load balancer was not read"
	case v.have == nil && t.client == nil:
		out.Unseen = noCloud
	}
	tree, wanted := v.tree()
	out.Wanted = wanted
	if v.busy() {
		tree = v.have
		out.Wanted = false
	}
	if tree.Empty() {
		return out
	}
	out.LoadBalancer = &LoadBalancer{Name: tree.Name, ID: tree.ID, ProvisioningStatus: string(tree.ProvisioningStatus), OperatingStatus: tree.OperatingStatus, VIP: tree.VIP.Address}
	if tree.FloatingIP != nil {
		out.LoadBalancer.FloatingIP = tree.FloatingIP.Address
	}
	out.Foreign = tree.Foreign
	routes := routesOf(v.snapshot)
	evaluator, err := route.New(tree)
	if err != nil {
		out.Unseen = cmp.Or(out.Unseen, "HAProxy would not take this configuration: "+err.Error())
	}
	for i := range tree.Listeners {
		out.Listeners = append(out.Listeners, listenerTree(v, &tree.Listeners[i], evaluator, routes, certificateNames(v, tree)))
	}
	behind := t.behind(v)
	for i := range tree.Pools {
		out.Pools = append(out.Pools, behind.pool(&tree.Pools[i]))
	}
	return out
}

// certificateNames tells the names in certificates: what the cloud has is only known by its content address.
func certificateNames(v *view, tree *lb.Tree) func(key string) string {
	names := map[string]string{}
	for _, t := range []*lb.Tree{tree, v.want} {
		if t == nil {
			continue
		}
		for _, s := range t.Secrets {
			if s.Certificate != nil {
				names[s.Key] = strings.Join(s.Certificate.Names, " ")
			}
		}
	}
	return func(key string) string {
		if n := names[key]; n != "" {
			return n + " (" + key + ")"
		}
		return key
	}
}

func routesOf(s compile.Snapshot) map[string]*gwv1.HTTPRoute {
	out := map[string]*gwv1.HTTPRoute{}
	for _, r := range s.HTTPRoutes {
		out[r.Namespace+"/"+r.Name] = r
	}
	return out
}

func listenerTree(v *view, l *lb.Listener, evaluator *route.Evaluator, routes map[string]*gwv1.HTTPRoute, certificate func(string) string) ListenerTree {
	out := ListenerTree{Key: l.Key, ID: l.ID, Protocol: string(l.Protocol), Port: l.Port, DefaultPool: l.DefaultPool,
		ProvisioningStatus: string(l.ProvisioningStatus), OperatingStatus: l.OperatingStatus, GatewayListeners: []string{}}
	for _, one := range v.snapshot.Gateway.Spec.Listeners {
		if int(one.Port) == l.Port {
			out.GatewayListeners = append(out.GatewayListeners, listenerName(one.Name, one.Hostname))
		}
	}
	for _, set := range v.snapshot.ListenerSets {
		for _, one := range set.Spec.Listeners {
			if int(one.Port) == l.Port {
				out.GatewayListeners = append(out.GatewayListeners, set.Namespace+"/"+set.Name+"/"+listenerName(one.Name, one.Hostname))
			}
		}
	}
	if l.TLS != nil {
		for _, key := range append([]string{l.TLS.Default}, l.TLS.SNI...) {
			out.Certificates = append(out.Certificates, certificate(key))
		}
	}
	policies := make([]route.PolicyExplanation, len(l.Policies))
	for i := range l.Policies {
		policies[i].Policy = &l.Policies[i]
	}
	if evaluator != nil && !l.Disabled {
		policies = evaluator.Explain(route.Request{Port: l.Port}).Policies
	}
	for _, x := range policies {
		p := x.Policy
		one := PolicyTree{Key: p.Key, ID: p.ID, Action: string(p.Action), Target: target(p), NotRendered: x.NotRendered, ProvisioningStatus: string(p.ProvisioningStatus), Rules: []string{}}
		one.Origin, _ = compile.OriginOf(p.Key)
		one.Match = matchText(routes[one.Origin.Route], one.Origin)
		for _, r := range p.Rules {
			one.Rules = append(one.Rules, ruleText(r))
		}
		out.Policies = append(out.Policies, one)
	}
	return out
}

func listenerName(name gwv1.SectionName, host *gwv1.Hostname) string {
	if host != nil && *host != "" {
		return fmt.Sprintf("%s (%s)", name, *host)
	}
	return string(name)
}

func target(p *lb.Policy) string {
	switch p.Action {
	case lb.RedirectToPool:
		return "pool " + p.Pool
	case lb.Reject:
		return "403"
	case lb.RedirectPrefix:
		return fmt.Sprintf("%d %s...", p.Code, p.URL)
	}
	return fmt.Sprintf("%d %s", p.Code, p.URL)
}

// matchText is what the author of a route wrote for a match.
func matchText(r *gwv1.HTTPRoute, o compile.Origin) string {
	if r == nil || o.Rule >= len(r.Spec.Rules) {
		return ""
	}
	var words []string
	if len(r.Spec.Hostnames) > 0 {
		var hosts []string
		for _, h := range r.Spec.Hostnames {
			hosts = append(hosts, string(h))
		}
		words = append(words, strings.Join(hosts, "|"))
	}
	rule := &r.Spec.Rules[o.Rule]
	if o.Match < len(rule.Matches) {
		m := &rule.Matches[o.Match]
		if m.Path != nil && m.Path.Value != nil {
			kind := gwv1.PathMatchPathPrefix
			if m.Path.Type != nil {
				kind = *m.Path.Type
			}
			words = append(words, string(kind)+" "+*m.Path.Value)
		}
		for _, h := range m.Headers {
			sign := "="
			if h.Type != nil && *h.Type == gwv1.HeaderMatchRegularExpression {
				sign = "~"
			}
			words = append(words, string(h.Name)+sign+h.Value)
		}
	}
	return strings.Join(words, ", ")
}

// behind knows what stands behind the addresses of members.
type behind struct {
	nodes map[string]string
	// pods are by address and port, and by Service and Node.
	pods   map[string]string
	onNode map[string][]string
	// nodePorts are the Services by node port.
	nodePorts map[int]string
}

func (t *tool) behind(v *view) behind {
	out := behind{nodes: map[string]string{}, pods: map[string]string{}, onNode: map[string][]string{}, nodePorts: map[int]string{}}
	for _, s := range v.snapshot.Services {
		for _, port := range s.Spec.Ports {
			if port.NodePort != 0 {
				out.nodePorts[int(port.NodePort)] = s.Namespace + "/" + s.Name
			}
		}
	}
	for _, n := range v.snapshot.Nodes {
		for _, a := range n.Status.Addresses {
			out.nodes[a.Address] = n.Name
		}
	}
	for _, s := range v.snapshot.EndpointSlices {
		service := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		if t.still != nil {
			if whole, ok := t.still.Whole(s).(*discoveryv1.EndpointSlice); ok {
				s = whole
			}
		}
		for _, e := range s.Endpoints {
			name := ""
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				name = s.Namespace + "/" + e.TargetRef.Name
			}
			node := ""
			if e.NodeName != nil {
				node = *e.NodeName
			}
			for _, a := range e.Addresses {
				for _, port := range s.Ports {
					if port.Port != nil {
						out.pods[a+":"+strconv.Itoa(int(*port.Port))] = name
					}
				}
				if node != "" && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					key := service.String() + " " + node
					out.onNode[key] = append(out.onNode[key], cmp.Or(name, a))
				}
			}
		}
	}
	return out
}

func (b behind) pool(p *lb.Pool) PoolTree {
	out := PoolTree{Key: p.Key, ID: p.ID, ProvisioningStatus: string(p.ProvisioningStatus), OperatingStatus: p.OperatingStatus, Algorithm: p.Algorithm}
	for _, tag := range p.Tags {
		if service, ok := strings.CutPrefix(tag, "service="); ok {
			out.Services = append(out.Services, service)
		}
	}
	if m := p.Monitor; m != nil {
		out.Monitor = fmt.Sprintf("%s every %d s", m.Type, m.Delay)
		if m.URLPath != "" {
			out.Monitor = fmt.Sprintf("%s %s every %d s", m.HTTPMethod, m.URLPath, m.Delay)
		}
	}
	for _, m := range p.Members {
		one := MemberTree{Address: memberAt(m), Weight: m.Weight, OperatingStatus: m.OperatingStatus, Disabled: m.Disabled, Node: b.nodes[m.Address], Pod: b.pods[memberAt(m)]}
		if service := b.nodePorts[m.Port]; one.Node != "" && service != "" {
			one.Pods = slices.Sorted(slices.Values(b.onNode[service+" "+one.Node]))
		}
		out.Members = append(out.Members, one)
	}
	return out
}

// what stands behind a member, in a few words.
func (m MemberTree) what() string {
	switch {
	case m.Node != "" && len(m.Pods) > 0:
		return fmt.Sprintf("Node %s with %s", m.Node, strings.Join(shortList(m.Pods, 3), ", "))
	case m.Node != "":
		return "Node " + m.Node
	case m.Pod != "":
		return "Pod " + m.Pod
	}
	return ""
}

// shortList keeps a few and counts the rest.
func shortList(list []string, most int) []string {
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("%d more", len(list)-most))
}

// statuses are what Octavia says about an object.
func statuses(w words, provisioning, operating string) words {
	if provisioning != "" && provisioning != string(lb.Active) {
		w = w.and(statusColour(provisioning), " %s", provisioning)
	}
	if operating != "" {
		w = w.and(statusColour(operating), " %s", operating)
	}
	return w
}

func (g *GatewayTree) node(rules bool) *node {
	c := yellow
	if g.Status == "Programmed" {
		c = green
	}
	root := &node{words: words{{"Gateway " + g.Gateway, bold}}.and(plain, " class %s ", g.Class).and(c, "%s", g.Status)}
	if len(g.Addresses) > 0 {
		root.words = root.and(plain, " on %s", strings.Join(g.Addresses, ", "))
	}
	if g.Status != "Programmed" && g.Message != "" {
		root.add(words{{g.Message, yellow}})
	}
	if g.Kept != "" {
		root.add(words{{"What it has stays as it is: " + g.Kept, yellow}})
	}
	if b := g.LoadBalancer; b != nil {
		line := say("load balancer %s", b.Name)
		if g.Wanted {
			line = line.and(yellow, " as wanted")
			if g.Unseen == "" && g.Status != rendered {
				line = line.and(yellow, ", not in the cloud")
			}
		}
		line = statuses(line, b.ProvisioningStatus, b.OperatingStatus)
		if b.VIP != "" {
			line = line.and(plain, " VIP %s", b.VIP)
		}
		if b.FloatingIP != "" {
			line = line.and(plain, ", floating IP %s", b.FloatingIP)
		}
		root.add(line.and(dim, " %s", b.ID))
	}
	for _, l := range g.Listeners {
		l.node(root, rules)
	}
	for _, p := range g.Pools {
		p.node(root)
	}
	for _, f := range g.Foreign {
		root.add(words{{fmt.Sprintf("%s %s %s is not ours", f.Kind, f.ID, f.Name), red}})
	}
	if g.Steps > 0 {
		root.add(words{{fmt.Sprintf("The controller has %s to make: kubectl octavia plan %s", plural(g.Steps, "call"), g.Gateway), yellow}})
	}
	if g.Unseen != "" {
		root.add(words{{"Not seen: " + g.Unseen, yellow}})
	}
	return root
}

func (l *ListenerTree) node(parent *node, rules bool) {
	line := words{{"listener " + l.Key, bold}}.and(plain, " %s port %d", l.Protocol, l.Port)
	n := parent.add(statuses(line, l.ProvisioningStatus, l.OperatingStatus).and(dim, " for %s", strings.Join(l.GatewayListeners, ", ")))
	for i, c := range l.Certificates {
		if i == 0 {
			c += ", the default"
		}
		n.add(say("certificate %s", c))
	}
	for i, p := range l.Policies {
		line := say("%d. ", i+1).and(cyan, "%s", p.from())
		if p.Match != "" {
			line = line.and(plain, " [%s]", p.Match)
		}
		line = statuses(line.and(plain, " -> %s", p.Target), p.ProvisioningStatus, "")
		if p.NotRendered != "" {
			line = line.and(red, " not in effect: %s", p.NotRendered)
		}
		policy := n.add(line)
		if rules {
			for _, r := range p.Rules {
				policy.add(words{{r, dim}})
			}
		}
	}
	if l.DefaultPool != "" {
		n.add(say("otherwise -> pool %s", l.DefaultPool))
	} else {
		n.add(say("otherwise -> 503"))
	}
}

// from says where a policy comes from.
func (p *PolicyTree) from() string {
	switch o := p.Origin; {
	case o.Route != "":
		return fmt.Sprintf("HTTPRoute %s rule %d match %d", o.Route, o.Rule, o.Match)
	case o.Listener != "":
		return "the end of listener " + o.Listener
	}
	return "policy " + p.Key
}

func (p *PoolTree) node(parent *node) {
	line := statuses(words{{"pool " + p.Key, bold}}, p.ProvisioningStatus, p.OperatingStatus)
	if p.Monitor != "" {
		line = line.and(dim, " checked by %s", p.Monitor)
	}
	n := parent.add(line)
	if len(p.Members) == 0 {
		n.add(words{{"no members: its requests are answered with 503", yellow}})
	}
	for _, m := range p.Members {
		line := statuses(say("%s weight %d", m.Address, m.Weight), "", m.OperatingStatus)
		if m.Disabled {
			line = line.and(yellow, " disabled")
		}
		n.add(line.and(dim, " %s", m.what()))
	}
}
