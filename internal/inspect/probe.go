package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Probe is what a cloud was found to be able to do.
type Probe struct {
	Cloud  cloud.Identity `json:"cloud"`
	Checks []Check        `json:"checks"`
}

// Check is one question to the cloud.
type Check struct {
	Result Result `json:"result"`
	Name   string `json:"name"`
	// Detail is what was found, and what to do about it.
	Detail string `json:"detail,omitempty"`
}

// Result is how a check ended.
type Result string

// The results.
const (
	Passed Result = "ok"
	// Warned: it works, with a limit that should be known.
	Warned Result = "warning"
	Failed Result = "failed"
	// Unchecked: it cannot be told from here, or only with --create.
	Unchecked Result = "not checked"
)

// networks are selectors of a class, or of the command line.
type networks struct {
	name    string
	request cloud.FactsRequest
	// nodes says that members are Nodes of the cluster.
	nodes bool
}

type probeFlags struct {
	create, cleanUp                      bool
	vipSubnet, memberSubnet, floatingNet string
	class                                string
	timeout                              time.Duration
	offline                              bool
}

func (t *tool) probeCommand() *cobra.Command {
	f := &probeFlags{}
	c := &cobra.Command{
		Use:   "probe",
		Short: "Check whether a cloud can serve Gateways, before or after installing",
		Long: "Check the credentials and the cloud: endpoints, API versions, the Amphora provider, tags, L7, quotas, roles, Barbican, and the networks " +
			"that GatewayClasses of the cluster name, or that flags name.\n\n" +
			"Without --create nothing is written: whether Octavia may read certificates in Barbican, and whether a load balancer comes up, cannot be told then. " +
			"With --create a secret, a load balancer with both kinds of listeners and, when a floating network is chosen, a floating IP are made on the chosen networks and deleted again, " +
			"also when the command is interrupted. What a killed process leaves behind is deleted with --clean-up.\n\n" +
			"Exit codes: 0 everything that was checked works, 1 the checks could not be made, 2 a check failed.",
		Example: "  kubectl octavia probe --no-cluster --vip-subnet lb-subnet --floating-network public\n  kubectl octavia probe --create",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return t.probe(c.Context(), f) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.create, "create", false, "also make a load balancer and delete it again: several minutes, and it counts against quotas meanwhile")
	flags.BoolVar(&f.cleanUp, "clean-up", false, "delete what an earlier probe left behind, and nothing else")
	flags.BoolVar(&f.offline, "no-cluster", false, "do not look at a cluster: the networks come from flags")
	flags.StringVar(&f.vipSubnet, "vip-subnet", "", "id or name of the subnet of virtual IPs")
	flags.StringVar(&f.memberSubnet, "member-subnet", "", "id or name of the subnet through which members are reached")
	flags.StringVar(&f.floatingNet, "floating-network", "", "id or name of the external network of floating IPs")
	flags.StringVar(&f.class, "class", "", "only the networks of this GatewayClass")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "with --create: how long the load balancer may take to come up")
	return c
}

func (t *tool) probe(ctx context.Context, f *probeFlags) error {
	if f.vipSubnet == "" && (f.memberSubnet != "" || f.floatingNet != "") {
		return errors.New("--member-subnet and --floating-network need --vip-subnet")
	}
	c, err := t.openstack(ctx)
	if err != nil {
		return err
	}
	if f.cleanUp {
		return t.cleanUp(ctx, c)
	}
	p := &Probe{Cloud: c.Identity(ctx)}
	// Each line is printed as soon as it is known: a probe takes its time.
	show := func(Check) {}
	if t.output == "" {
		out := &printer{painter: t.painter(), w: t.Out}
		show = func(c Check) { c.text(out) }
	}
	add := func(result Result, name, format string, args ...any) {
		check := Check{result, name, fmt.Sprintf(format, args...)}
		p.Checks = append(p.Checks, check)
		show(check)
	}
	p.credentials(ctx, c, add)
	capable := p.octavia(ctx, c, add)
	p.barbican(ctx, c, add)
	p.quotas(ctx, c, add)
	nets, nodes, err := t.networks(ctx, f, add)
	if err != nil {
		return err
	}
	var usable *cloud.FactsRequest
	for _, n := range nets {
		if !capable {
			add(Unchecked, "networks of "+n.name, "Octavia cannot be used")
			continue
		}
		if p.network(ctx, c, n, nodes, add) && usable == nil {
			usable = &n.request
		}
	}
	switch {
	case !f.create:
		add(Unchecked, "Octavia reads certificates in Barbican", "only a listener shows it: --create makes one")
		add(Unchecked, "a load balancer comes up", "--create makes one and deletes it again")
	case usable == nil:
		add(Failed, "a load balancer comes up", "no VIP subnet to make it on: give --vip-subnet, or a GatewayClass whose networks are in order")
	default:
		if err := t.create(ctx, c, *usable, nodes, f.timeout, add); err != nil {
			return err
		}
	}
	if t.output != "" {
		if err := t.print(p, nil); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(p.Checks, func(c Check) bool { return c.Result == Failed }) {
		return &exitError{exitFindings}
	}
	return nil
}

type adder func(result Result, name, format string, args ...any)

func (c Check) text(p *printer) {
	mark := map[Result]word{Passed: {"✓", green}, Warned: {"!", yellow}, Failed: {"✗", red}, Unchecked: {"-", dim}}[c.Result]
	w := words{mark}.and(plain, " %s", c.Name)
	if c.Detail != "" {
		w = w.and(dim, ": %s", c.Detail)
	}
	p.words(w)
}

func (p *Probe) credentials(ctx context.Context, c *cloud.Client, add adder) {
	who := p.Cloud
	kind := "application credential"
	if !who.ApplicationCredential {
		kind = "password"
	}
	add(Passed, "credentials", "Keystone takes the %s of user %s for project %s (%s)", kind, who.User, who.Project, who.ProjectID)
	if !who.ApplicationCredential {
		add(Warned, "kind of credentials", "an application credential can be revoked alone and cannot be used elsewhere; this is none")
	}
	switch {
	case len(who.Roles) == 0:
		add(Unchecked, "roles", "the token does not say them")
	case slices.Contains(who.Roles, "admin"):
		add(Warned, "roles", "%s: less is enough; the controller needs no admin", strings.Join(who.Roles, ", "))
	default:
		add(Passed, "roles", "%s", strings.Join(who.Roles, ", "))
	}
	for _, e := range c.Endpoints(ctx) {
		add(Passed, "endpoint of "+e.Service, "%s", e.URL)
	}
}

// octavia says whether Octavia can be used at all.
func (p *Probe) octavia(ctx context.Context, c *cloud.Client, add adder) bool {
	found, err := c.Preflight(ctx)
	if err != nil {
		add(Failed, "Octavia", "%v", err)
		return false
	}
	add(Passed, "API version of Octavia", "%s, which has tags", found.Version)
	add(Passed, "providers", "%s", strings.Join(found.Providers, ", "))
	usable := true
	for _, one := range []struct{ collection, name string }{
		{"loadbalancers", "load balancers may be read"}, {"l7policies", "L7 policies may be read"}, {"floatingips", "floating IPs may be read"},
	} {
		if err := c.Readable(ctx, one.collection); err != nil {
			add(Failed, one.name, "%v", err)
			usable = false
			continue
		}
		add(Passed, one.name, "")
	}
	return usable
}

func (p *Probe) barbican(ctx context.Context, c *cloud.Client, add adder) {
	if !slices.ContainsFunc(c.Endpoints(ctx), func(e cloud.Endpoint) bool { return e.Service == "Barbican" }) {
		add(Warned, "Barbican", "the catalog has none: HTTPS listeners are refused")
		return
	}
	if err := c.Readable(ctx, "secrets"); err != nil {
		add(Failed, "secrets may be read", "%v; without it HTTPS listeners do not work", err)
		return
	}
	add(Passed, "secrets may be read", "")
}

// need is what one Gateway takes at least of a limit.
var need = map[string]int{
	"loadbalancers": 1, "listeners": 1, "pools": 1, "members": 1, "healthmonitors": 1, "L7 policies": 1, "L7 rules": 1,
	"floating IPs": 1, "ports": 2, "security groups": 1, "security group rules": 4,
}

func (p *Probe) quotas(ctx context.Context, c *cloud.Client, add adder) {
	for _, of := range []struct {
		service string
		read    func(context.Context) ([]cloud.Quota, error)
	}{{"Octavia", c.OctaviaQuotas}, {"Neutron", c.NeutronQuotas}} {
		quotas, err := of.read(ctx)
		if err != nil {
			add(Unchecked, "quotas of "+of.service, "%v", err)
			continue
		}
		var limits []string
		full := false
		for _, q := range quotas {
			switch {
			case q.Limit < 0:
				continue
			case q.Used < 0:
				limits = append(limits, fmt.Sprintf("%s %d (use unknown)", q.Resource, q.Limit))
				continue
			}
			limits = append(limits, fmt.Sprintf("%s %d of %d used", q.Resource, q.Used, q.Limit))
			if q.Left() < need[q.Resource] || q.Left() == 0 {
				full = true
				add(Failed, fmt.Sprintf("quota of %s for %s", of.service, q.Resource), "%d of %d are used: there is no room for a Gateway", q.Used, q.Limit)
			}
		}
		switch {
		case len(limits) == 0:
			add(Passed, "quotas of "+of.service, "no limits")
		case !full:
			add(Passed, "quotas of "+of.service, "%s", strings.Join(limits, ", "))
		}
	}
}

// networks are those of flags, or of the GatewayClasses of the cluster.
func (t *tool) networks(ctx context.Context, f *probeFlags, add adder) ([]networks, []*corev1.Node, error) {
	if f.vipSubnet != "" {
		n := networks{name: "the command line", request: cloud.FactsRequest{
			VIPSubnet: selector(f.vipSubnet), MemberSubnet: selector(f.memberSubnet), FloatingNetwork: selector(f.floatingNet)}}
		return []networks{n}, nil, nil
	}
	if f.offline {
		add(Unchecked, "networks", "none are named: give --vip-subnet, or leave out --no-cluster")
		return nil, nil, nil
	}
	// The cluster id does not matter for a probe.
	if t.clusterID == "" {
		t.clusterID = probeOwner
	}
	r, still, err := t.reader(ctx)
	if err != nil {
		add(Unchecked, "networks", "the cluster could not be asked for its GatewayClasses, give --vip-subnet instead: %v", err)
		return nil, nil, nil
	}
	var classes gwv1.GatewayClassList
	if err := still.List(ctx, &classes); err != nil {
		add(Unchecked, "networks", "the GatewayClasses of the cluster could not be read, give --vip-subnet instead: %v", err)
		return nil, nil, nil
	}
	var nodes corev1.NodeList
	if err := still.List(ctx, &nodes); err != nil {
		add(Unchecked, "addresses of Nodes", "%v", err)
	}
	var list []*corev1.Node
	for i := range nodes.Items {
		list = append(list, &nodes.Items[i])
	}
	var out []networks
	for i := range classes.Items {
		class := &classes.Items[i]
		if !r.Selects(class) || f.class != "" && class.Name != f.class {
			continue
		}
		config, err := r.Parameters(ctx, class)
		var parameters *kube.ParametersError
		switch {
		case errors.As(err, &parameters):
			add(Failed, "GatewayClass "+class.Name, "%s", parameters.Message)
		case err != nil:
			return nil, nil, fmt.Errorf("reading GatewayClass %s: %w", class.Name, err)
		default:
			out = append(out, networks{name: "GatewayClass " + class.Name, request: controller.FactsRequest(config), nodes: config.Spec.MemberMode != "PodIP"})
		}
	}
	if len(out) == 0 {
		add(Unchecked, "networks", "the cluster has no GatewayClass of %s with parameters: give --vip-subnet", r.Controller)
	}
	return out, list, nil
}

// selector takes what looks like an id for one.
func selector(text string) lb.Selector {
	if len(text) == 36 && strings.Count(text, "-") == 4 {
		return lb.Selector{ID: text}
	}
	return lb.Selector{Name: text}
}

// network checks what a class names; it says whether a load balancer can be made there.
func (p *Probe) network(ctx context.Context, c *cloud.Client, n networks, nodes []*corev1.Node, add adder) bool {
	of := " of " + n.name
	facts, err := c.Facts(ctx, n.request)
	if err != nil {
		add(Failed, "networks"+of, "%v", err)
		return false
	}
	if facts.VIPSubnet.ID == "" {
		add(Passed, "VIP network"+of, "%s; Octavia chooses the subnet", facts.VIPSubnet.NetworkID)
		add(Unchecked, "routers and members"+of, "they depend on the subnet that Octavia chooses")
		return true
	}
	vip, err := c.Subnet(ctx, facts.VIPSubnet.ID)
	if err != nil {
		add(Failed, "VIP subnet"+of, "%v", err)
		return false
	}
	add(Passed, "VIP subnet"+of, "%s (%s), %s", cmp.Or(vip.Name, vip.ID), vip.ID, vip.CIDR)
	routers, err := c.Routers(ctx, vip.ID, vip.NetworkID)
	if err != nil {
		add(Unchecked, "routers of the VIP subnet"+of, "%v", err)
	}
	reached := []string{vip.CIDR}
	for _, r := range routers {
		for _, id := range r.Subnets {
			if other, err := c.Subnet(ctx, id); err == nil && id != vip.ID {
				reached = append(reached, other.CIDR)
			}
		}
		if !r.Up {
			add(Warned, "router "+r.RouterID, "it is administratively down")
		}
	}
	switch joined := slices.ContainsFunc(routers, func(r cloud.Route) bool { return r.External == facts.FloatingNetworkID }); {
	case facts.FloatingNetworkID == "":
		add(Passed, "addresses"+of, "the virtual IP, without a floating IP")
	case joined:
		add(Passed, "floating IPs"+of, "a router joins the VIP subnet and the floating network")
	case len(routers) == 0:
		add(Warned, "floating IPs"+of, "the project sees no router on the VIP subnet: if there is none, Neutron will refuse the floating IP")
	default:
		add(Failed, "floating IPs"+of, "no router that the project sees joins the VIP subnet and the floating network: Neutron will refuse the floating IP")
	}
	p.members(ctx, c, n, facts, reached, nodes, add)
	return true
}

// members checks whether the load balancer can reach the Nodes, as far as addresses tell.
func (p *Probe) members(ctx context.Context, c *cloud.Client, n networks, facts lb.Facts, reached []string, nodes []*corev1.Node, add adder) {
	of := " of " + n.name
	through := "the VIP subnet or behind its routers"
	if facts.MemberSubnetID != "" {
		member, err := c.Subnet(ctx, facts.MemberSubnetID)
		if err != nil {
			add(Failed, "member subnet"+of, "%v", err)
			return
		}
		add(Passed, "member subnet"+of, "%s (%s), %s", cmp.Or(member.Name, member.ID), member.ID, member.CIDR)
		reached, through = []string{member.CIDR}, "the member subnet or behind its routers"
		if routers, err := c.Routers(ctx, member.ID, member.NetworkID); err == nil {
			for _, r := range routers {
				for _, id := range r.Subnets {
					if other, err := c.Subnet(ctx, id); err == nil && id != member.ID {
						reached = append(reached, other.CIDR)
					}
				}
			}
		}
	}
	if !n.nodes || len(nodes) == 0 {
		add(Unchecked, "members"+of, "whether the load balancer reaches them cannot be told from here")
		return
	}
	var out []string
	for _, node := range nodes {
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && !within(a.Address, reached) {
				out = append(out, node.Name+" "+a.Address)
			}
		}
	}
	if len(out) > 0 {
		add(Warned, "members"+of, "not in %s (%s): %s; their security groups and routes decide", through, strings.Join(reached, ", "), strings.Join(out, ", "))
		return
	}
	add(Passed, "members"+of, "the addresses of %s are in %s (%s); their security groups must let node ports in", plural(len(nodes), "Node"), through, strings.Join(reached, ", "))
}

func within(address string, cidrs []string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(cidrs, func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(ip)
	})
}
