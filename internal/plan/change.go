package plan

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// change goes from one load balancer to another form of itself. It first decides what becomes of each pool and policy
// with the fewest calls, then looks for a safe order. Where there is none, some shortcut is to blame; it is given up and
// all is decided again. Without any shortcut there always is an order: everything new is added in order of evaluation,
// then everything old is deleted in reverse.
type change struct {
	*planner
	book *ruleBook
	// without holds the shortcuts that are given up.
	without shortcuts

	pools  []*poolChange
	sides  []*side
	events []*event
	// byWant and byHave find the pools by their key in the wanted and in the observed tree.
	byWant, byHave map[string]*poolChange
}

// shortcuts are the ways to save calls that can stand in the way of a safe order.
type shortcuts struct {
	// reuse is to turn this policy into another one.
	reuse map[*lb.Policy]bool
	// enable is to go on with this disabled pool.
	enable map[*lb.Pool]bool
	// together is to show the policies of this wanted pool all at once.
	together map[*lb.Pool]bool
	// convert is to turn another pool into this wanted one below its policies.
	convert map[*lb.Pool]bool
}

func (p *planner) change() {
	p.immutable()
	// First: it takes no lock, and the Gateway has no address without it. One that takes the place of another may be refused by
	// Neutron, and must not keep the rest from being done.
	exchange := p.have.FloatingIP != nil
	if !exchange {
		p.reserveFloatingIP()
		p.floatingIP()
	}
	p.createSecrets()
	p.withdrawSecurityGroups()
	p.writeAgain()
	c := &change{planner: p, book: newRuleBook(), without: shortcuts{
		reuse:    map[*lb.Policy]bool{},
		enable:   map[*lb.Pool]bool{},
		together: map[*lb.Pool]bool{},
		convert:  map[*lb.Pool]bool{},
	}}
	order := c.decide()
	for _, pool := range c.pools {
		c.preparePool(pool)
	}
	for _, e := range order {
		e.do(c)
	}
	c.finishListeners()
	for _, pool := range c.pools {
		if pool.want == nil {
			c.deletePool(pool.have, "nothing uses the pool any more")
		}
	}
	p.updateLoadBalancer()
	p.deleteSecrets()
	if exchange {
		p.reserveFloatingIP()
		p.floatingIP()
	}
}

// writeAgain writes a listener in ERROR as it is: an amphora that could not be reached when something changed has the old configuration, and
// with the next write Octavia applies the whole anew and has the listener ACTIVE again (seen on Octavia 16). It comes first, so that nothing
// else meets a listener in ERROR. Pools, policies and monitors in ERROR are made anew instead, since Octavia refuses changes below them.
func (p *planner) writeAgain() {
	for i := range p.have.Listeners {
		if l := &p.have.Listeners[i]; l.ProvisioningStatus == lb.Errored {
			same := *l
			same.Policies, same.DefaultPool = nil, ""
			p.add(Step{Verb: Update, Kind: lb.KindListener, Ref: listenerRef(l), Fields: []string{"admin_state_up"}, ListenerTo: &same,
				Reason: "it is in ERROR, and Octavia applies it again when it is written"})
		}
	}
}

// withdrawSecurityGroups gives the VIP back to the group that Octavia makes, when that is wanted. It comes first: Octavia takes allowed_cidrs only
// then.
func (p *planner) withdrawSecurityGroups() {
	if len(p.want.VIPSecurityGroupIDs) > 0 || len(p.have.VIPSecurityGroupIDs) == 0 {
		return
	}
	p.add(Step{Verb: Update, Kind: lb.KindLoadBalancer, Ref: loadBalancerRef(p.have), Tree: &lb.Tree{Meta: p.have.Meta, Owner: p.have.Owner},
		Fields: []string{"vip_sg_ids"}, Reason: notAsWanted})
}

func (p *planner) updateLoadBalancer() {
	after := lb.Tree{Meta: p.have.Meta, Owner: p.have.Owner}
	var fields []string
	if p.have.Disabled != p.want.Disabled {
		after.Disabled = p.want.Disabled
		fields = append(fields, "admin_state_up")
	}
	had, others := lb.SplitTags(p.have.Tags)
	if decided, _ := lb.SplitTags(p.want.Tags); !slices.Equal(had, decided) {
		// An update replaces all tags. What others have added stays.
		after.Tags = slices.Concat(p.want.Tags, others)
		slices.Sort(after.Tags)
		after.Tags = slices.Compact(after.Tags)
		fields = append(fields, "tags")
	}
	if len(p.want.VIPSecurityGroupIDs) > 0 && !sameSet(p.have.VIPSecurityGroupIDs, p.want.VIPSecurityGroupIDs) {
		after.VIPSecurityGroupIDs = p.want.VIPSecurityGroupIDs
		fields = append(fields, "vip_sg_ids")
	}
	if len(fields) > 0 {
		p.add(Step{Verb: Update, Kind: lb.KindLoadBalancer, Ref: loadBalancerRef(p.have), Tree: &after, Fields: fields, Reason: notAsWanted})
	}
}

// decide matches until the events have a safe order.
func (c *change) decide() []*event {
	for {
		c.matchPools()
		c.matchSides()
		for _, s := range c.sides {
			s.order(c.book)
		}
		c.convertPools()
		if !c.groupPools() {
			continue
		}
		c.findEvents()
		order, culprits := c.schedule()
		if len(culprits) == 0 {
			return order
		}
		for _, e := range culprits {
			e.giveUp(c)
		}
	}
}
