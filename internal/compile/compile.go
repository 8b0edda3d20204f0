package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// compiler is one run.
type compiler struct {
	in       *input
	owner    lb.Owner
	pools    *pools
	policies *policies
	backends *backends
	// tls has what HTTPS listeners need.
	tls *terminator
	// addresses is what spec.addresses asks for.
	addresses addresses
	// responder gives the answers that Octavia cannot.
	responder *responder
	// redirects are those that the tree takes from it.
	redirects answer.Table
}

// Gateway says what a Gateway means: the load balancer to have and what to tell in status. Mistakes of users are verdicts; it never
// fails, changes nothing in s, and the order of objects in s does not matter.
func Gateway(s Snapshot) Result {
	if s.Gateway == nil || s.Gateway.DeletionTimestamp != nil {
		return Result{}
	}
	in := newInput(s)
	c := &compiler{
		in: in,
		owner: lb.Owner{
			ClusterID: s.ClusterID, Controller: s.Controller,
			Namespace: s.Gateway.Namespace, Name: s.Gateway.Name, UID: string(s.Gateway.UID),
		},
		policies: newPolicies(in),
	}
	c.backends = newBackends(in, c.policies)
	var refused, unusable *status.Condition
	c.addresses, refused, unusable = in.addresses()
	c.responder = newResponder(in, c.backends)
	c.pools = newPools(c.responder)
	own, sets := in.listeners(), in.listenerSets()
	byOwner := owners{ungenerated(in.object()): own}
	groups := [][]*listener{own}
	for _, set := range sets {
		byOwner[ungenerated(set.owner())] = set.listeners
		groups = append(groups, set.listeners)
	}
	markConflicts(groups...)
	c.tls = terminate(in, c.owner, slices.Concat(groups...))
	routes := c.routes(byOwner)
	tree := c.tree(slices.Concat(groups...), routes)

	result := Result{Tree: tree, Redirects: c.redirects}
	gateway, state := status.Verdict{Object: in.object()}, parentAccepted
	switch {
	case refused != nil:
		result.Tree, result.Redirects, result.Hold, state = lb.Tree{}, nil, true, parentRefused
		gateway.Conditions = []status.Condition{*refused}
	case unusable != nil:
		result.Tree, result.Redirects, result.Hold = lb.Tree{}, nil, true
		gateway.Conditions = []status.Condition{acceptance(own, sets), *unusable}
	default:
		gateway.Conditions = []status.Condition{acceptance(own, sets)}
	}
	if resolved := c.tls.clientCertificate(); resolved != nil {
		gateway.Conditions = append(gateway.Conditions, *resolved)
	}
	for _, set := range sets {
		if set.attached() && state == parentAccepted {
			gateway.AttachedListenerSets++
		}
		result.Verdicts = append(result.Verdicts, set.verdicts(state)...)
	}
	result.Verdicts = append(result.Verdicts, gateway)
	for _, l := range own {
		result.Verdicts = append(result.Verdicts, l.verdict())
	}
	for _, r := range routes {
		for _, p := range r.parents {
			result.Verdicts = append(result.Verdicts, r.verdict(p))
		}
	}
	result.Verdicts = append(result.Verdicts, c.policies.verdicts(usedServices(routes))...)
	slices.SortStableFunc(result.Verdicts, compareVerdicts)
	return result
}

// ungenerated is an object as references name it.
func ungenerated(o status.Object) status.Object {
	o.Generation = 0
	return o
}

func (in *input) object() status.Object {
	return status.Object{Kind: status.KindGateway, Namespace: in.Gateway.Namespace, Name: in.Gateway.Name, Generation: in.Gateway.Generation}
}

func compareVerdicts(a, b status.Verdict) int {
	return cmp.Or(
		strings.Compare(string(a.Object.Kind), string(b.Object.Kind)),
		strings.Compare(a.Object.Namespace, b.Object.Namespace),
		strings.Compare(a.Object.Name, b.Object.Name),
		strings.Compare(string(a.Listener), string(b.Listener)),
	)
}

// routes reads and attaches all routes, sorted by name.
func (c *compiler) routes(byOwner owners) []*route {
	var list []*route
	for _, object := range c.in.HTTPRoutes {
		if object == nil || object.DeletionTimestamp != nil {
			continue
		}
		r := c.newRoute(object)
		if c.in.attach(r, byOwner); len(r.parents) > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *route) int { return strings.Compare(a.id, b.id) })
	return list
}

// acceptance is the Gateway's Accepted condition. Routes never change it. A Gateway with nothing but a valid ListenerSet is accepted.
func acceptance(own []*listener, sets []*listenerSet) status.Condition {
	refused := refusedListeners(own)
	valid := len(own) - len(refused)
	for _, set := range sets {
		if set.attached() {
			valid++
		}
	}
	if len(refused) > 0 || valid == 0 {
		return status.GatewayListenersNotValid(refused, valid)
	}
	return status.GatewayAccepted()
}

// tree builds the load balancer. It also decides which routes stay detached from which listeners.
func (c *compiler) tree(listeners []*listener, routes []*route) lb.Tree {
	tree := lb.Tree{
		Meta:      lb.Meta{Key: treeKey, Name: c.owner.LoadBalancerName(), Tags: c.owner.Tags(lb.KindLoadBalancer, treeKey)},
		Owner:     c.owner,
		ProjectID: c.in.Facts.ProjectID,
		Description: lb.Shorten(fmt.Sprintf("Gateway %s/%s of Kubernetes cluster %s",
			c.owner.Namespace, c.owner.Name, c.owner.ClusterID)),
		Provider: c.in.Facts.Provider,
		FlavorID: c.in.Facts.FlavorID,

		VIPSecurityGroupIDs: c.in.Facts.VIPSecurityGroupIDs,
	}
	tree.Replaces = c.in.Gateway.Annotations[api.ReplaceAnnotation]
	if i := c.in.Gateway.Spec.Infrastructure; i != nil {
		tree.Tags = append(tree.Tags, lb.InfrastructureTags(unnamed(i.Labels), unnamed(i.Annotations))...)
	}
	if c.in.Config != nil {
		tree.AvailabilityZone = c.in.Config.Spec.AvailabilityZone
		tree.Tags = append(tree.Tags, lb.ExtraTags(c.in.Config.Spec.ExtraTags)...)
	}
	slices.Sort(tree.Tags)
	tree.VIP, tree.AdditionalVIPs = c.vips()
	tree.FloatingIP = c.floatingIP()
	byListener := attachments(routes)
	used := map[*pool]bool{}
	var programs []*program
	for _, f := range frontends(listeners) {
		p := c.program(f, byListener)
		for pool := range p.pools() {
			used[pool] = true
		}
		programs = append(programs, p)
	}
	pools := make([]*pool, 0, len(used))
	for p := range used {
		pools = append(pools, p)
	}
	assignKeys(pools)
	slices.SortFunc(pools, func(a, b *pool) int { return strings.Compare(a.key, b.key) })
	for _, p := range pools {
		tree.Pools = append(tree.Pools, c.pool(p))
		if p.settings.tls != nil {
			for _, s := range p.settings.tls.secrets {
				c.tls.want(s)
			}
		}
		for _, s := range p.shares {
			if redirect, ok := c.responder.redirects[s.backend.answers]; ok {
				if c.redirects == nil {
					c.redirects = answer.Table{}
				}
				c.redirects[s.backend.answers] = redirect
			}
		}
	}
	tree.Secrets = c.tls.list()
	for _, p := range programs {
		tree.Listeners = append(tree.Listeners, c.listener(p))
	}
	for _, list := range byListener {
		for _, a := range list {
			if !a.detached {
				a.listener.attached++
			}
		}
	}
	return tree
}

func unnamed[K, V ~string](m map[K]V) map[string]string {
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[string(key)] = string(value)
	}
	return out
}

// treeKey is the key of the load balancer itself.
const treeKey = "loadbalancer"

// attachments groups the attachments of all routes by listener. Routes without a rule that could be served anywhere are
// detached at once.
func attachments(routes []*route) map[*listener][]*attachment {
	byListener := map[*listener][]*attachment{}
	for _, r := range routes {
		seen := map[*attachment]bool{}
		for _, p := range r.parents {
			for _, a := range p.attached {
				if !seen[a] {
					seen[a] = true
					a.settle()
					byListener[a.listener] = append(byListener[a.listener], a)
				}
			}
		}
	}
	return byListener
}

// settle detaches the route from the listener when none of its rules can be served there.
func (a *attachment) settle() {
	if len(a.route.rules) == 0 {
		return
	}
	a.detached = !slices.ContainsFunc(a.route.rules, func(r *rule) bool { return r.fault() == nil && a.faults[r] == nil })
}

// meta names and marks an object.
func (c *compiler) meta(kind lb.Kind, key string, extra ...string) lb.Meta {
	return lb.Meta{Key: key, Name: lb.Shorten(key), Tags: c.owner.Tags(kind, key, extra...)}
}
