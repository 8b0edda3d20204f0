package sim

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

type loadBalancer struct {
	common
	Name             string          `json:"name"`
	Description      string          `json:"description"`
	VipAddress       string          `json:"vip_address"`
	VipPortID        string          `json:"vip_port_id"`
	VipSubnetID      string          `json:"vip_subnet_id"`
	VipNetworkID     string          `json:"vip_network_id"`
	VipSGIDs         []string        `json:"vip_sg_ids"`
	AdditionalVips   []additionalVip `json:"additional_vips"`
	Provider         string          `json:"provider"`
	FlavorID         *string         `json:"flavor_id"`
	VipQosPolicyID   *string         `json:"vip_qos_policy_id"`
	AvailabilityZone *string         `json:"availability_zone"`
	VipVnicType      string          `json:"vip_vnic_type"`

	ownsPort  bool
	listeners []*listener
	pools     []*pool
}

type additionalVip struct {
	SubnetID  string `json:"subnet_id"`
	IPAddress string `json:"ip_address"`
	PortID    string `json:"port_id"`
}

func (lb *loadBalancer) kind() string { return "loadbalancer" }

func (lb *loadBalancer) remove(c *Cloud) {
	q := c.quota(lb.ProjectID)
	for _, l := range slices.Clone(lb.listeners) {
		l.remove(c)
	}
	for _, p := range slices.Clone(lb.pools) {
		p.remove(c)
	}
	delete(c.lb.lbs, lb.ID)
	q.release("loadbalancer")
	c.releaseVIPPort(lb)
}

type lbView struct {
	*loadBalancer
	TenantID  string `json:"tenant_id"`
	Listeners any    `json:"listeners"`
	Pools     any    `json:"pools"`
}

func (lb *loadBalancer) view() any {
	return lbView{lb, lb.ProjectID, refs(unordered(lb.listeners)), refs(unordered(lb.pools))}
}

// fullView is the answer of the create call: the whole tree.
func (lb *loadBalancer) fullView() any {
	listeners, pools := []any{}, []any{}
	for _, l := range unordered(lb.listeners) {
		listeners = append(listeners, l.fullView())
	}
	for _, p := range unordered(lb.pools) {
		pools = append(pools, p.fullView())
	}
	return lbView{lb, lb.ProjectID, listeners, pools}
}

func (c *Cloud) loadBalancerCall(r *request) (response, error) {
	switch {
	case r.is("GET", "loadbalancers"):
		if lb := c.lb.lbs[r.query.Get("id")]; lb != nil {
			return c.list(r, "loadbalancers", "loadbalancer", []viewer{lb})
		}
		return c.list(r, "loadbalancers", "loadbalancer", values(c.lb.lbs))
	case r.is("POST", "loadbalancers"):
		return c.createLoadBalancer(r)
	case len(r.path) >= 2:
	default:
		return response{}, refuse(405, "Method Not Allowed")
	}
	lb, err := c.findLB(r, r.path[1])
	if err != nil {
		return response{}, err
	}
	switch {
	case r.is("GET", "loadbalancers", "*"):
		return c.show(r, "loadbalancer", lb)
	case r.is("GET", "loadbalancers", "*", "status"), r.is("GET", "loadbalancers", "*", "statuses"):
		return response{status: 200, body: object{"statuses": object{"loadbalancer": lb.statusTree()}}}, nil
	case r.is("GET", "loadbalancers", "*", "stats"):
		return response{status: 200, body: object{"stats": noStats()}}, nil
	case r.is("PUT", "loadbalancers", "*"):
		return c.updateLoadBalancer(r, lb)
	case r.is("DELETE", "loadbalancers", "*"):
		return c.deleteLoadBalancer(r, lb)
	case r.is("PUT", "loadbalancers", "*", "failover"):
		return c.failover(r, lb)
	}
	return response{}, refuse(404, "The resource could not be found.")
}

func noStats() object {
	return object{"bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": 0, "request_errors": 0}
}

func (c *Cloud) findLB(r *request, id string) (*loadBalancer, error) {
	lb := c.lb.lbs[id]
	if lb == nil || !r.token.admin() && lb.ProjectID != r.token.projectID {
		return nil, notFound("Load Balancer", id)
	}
	return lb, nil
}

// lockable tells whether writes below the load balancer are accepted.
func lockable(lb *loadBalancer) error {
	if lb.ProvisioningStatus != active {
		return immutable("Load Balancer", lb.ID)
	}
	return nil
}

func (c *Cloud) createLoadBalancer(r *request) (response, error) {
	a, err := c.parseObject(r, "load_balancer", "loadbalancer", lbPOST)
	if err != nil {
		return response{}, err
	}
	project := r.token.projectID
	if p := a.str("project_id"); p != "" && p != project {
		if !r.token.admin() {
			return response{}, refuse(403, "Policy does not allow this request to be performed.")
		}
		project = p
	}
	lb := &loadBalancer{common: c.newCommon(project, a), Name: a.str("name"), Description: a.str("description"),
		Provider: "amphora", VipVnicType: "normal", VipSGIDs: []string{}, AdditionalVips: []additionalVip{}}
	want, err := c.vipFor(lb, a)
	if err != nil {
		return response{}, err
	}
	if err := c.choose(lb, a); err != nil {
		return response{}, err
	}
	quota := c.quota(project).trial()
	if !quota.take(c, "loadbalancer", 1) {
		return response{}, quotaMet("Load Balancer")
	}
	if !storeTags(lb, a) {
		return response{}, refuse(409, "Already an entity with that specified id.")
	}
	if err := c.claimVIP(lb, want); err != nil {
		return response{}, err
	}
	g := &graph{c: c, lb: lb, quota: quota}
	if err := g.build(a); err != nil {
		// The VIP port stays behind: Octavia undoes only what is in its
		// database.
		return response{}, err
	}
	g.commit()
	quota.commit()
	c.lb.lbs[lb.ID] = lb
	ch := &change{lb: lb, settle: g.made}
	if c.opts.BrokenCreate && len(lb.listeners) > 0 {
		for _, l := range slices.Clone(lb.listeners) {
			l.remove(c)
		}
		ch.settle = nil
	}
	hold := c.begin(r, ch, Op{Resource: "loadbalancer", Action: "create"})
	return response{status: 201, body: object{"loadbalancer": lb.fullView()}, hold: hold}, nil
}

func (c *Cloud) updateLoadBalancer(r *request, lb *loadBalancer) (response, error) {
	a, err := c.parseObject(r, "load_balancer", "loadbalancer", lbPUT)
	if err != nil {
		return response{}, err
	}
	if a.set("vip_qos_policy_id") {
		return response{}, noSubresource("qos_policy", a.str("vip_qos_policy_id"))
	}
	for _, sg := range a.strs("vip_sg_ids") {
		if c.net.find("security_groups", sg) == nil {
			return response{}, noSubresource("Security Group", sg)
		}
	}
	if lb.ProvisioningStatus != active {
		return response{}, refuse(409, "Invalid state %s of loadbalancer resource %s", lb.ProvisioningStatus, lb.ID)
	}
	next := *lb
	if !storeTags(&next, a) {
		return response{}, refuse(500, duplicateTag)
	}
	delete(a, "tags")
	delete(a, "vip_qos_policy_id")
	if a.has("vip_sg_ids") && !a.set("vip_sg_ids") {
		a["vip_sg_ids"] = []any{}
	}
	a.into(&next)
	*lb = next
	hold := c.begin(r, &change{lb: lb}, Op{Resource: "loadbalancer", Action: "update"})
	return response{status: 200, body: object{"loadbalancer": lb.view()}, hold: hold}, nil
}

func (c *Cloud) deleteLoadBalancer(r *request, lb *loadBalancer) (response, error) {
	cascade := pyBool(r.query.Get("cascade"))
	if (len(lb.listeners) > 0 || len(lb.pools) > 0) && !cascade {
		return response{}, invalid("Cannot delete Load Balancer %s - it has children", lb.ID)
	}
	if lb.ProvisioningStatus != active && lb.ProvisioningStatus != inError {
		return response{}, refuse(409, "Invalid state %s of loadbalancer resource %s", lb.ProvisioningStatus, lb.ID)
	}
	lb.ProvisioningStatus = pendingDelete
	ch := &change{lb: lb, gone: []entity{lb}}
	hold := c.begin(r, ch, Op{Resource: "loadbalancer", Action: "delete"})
	for _, l := range lb.listeners {
		l.ProvisioningStatus = pendingDelete
	}
	for _, p := range lb.pools {
		p.ProvisioningStatus = pendingDelete
	}
	return response{status: 204, hold: hold}, nil
}

func (c *Cloud) failover(r *request, lb *loadBalancer) (response, error) {
	if !r.token.admin() {
		return response{}, refuse(403, "Policy does not allow this request to be performed.")
	}
	if lb.ProvisioningStatus != active && lb.ProvisioningStatus != inError {
		return response{}, refuse(409, "Invalid state %s of loadbalancer resource %s", lb.ProvisioningStatus, lb.ID)
	}
	c.begin(r, &change{lb: lb}, Op{Resource: "loadbalancer", Action: "update"})
	return response{status: 202}, nil
}

// pyBool reads a boolean query parameter.
func pyBool(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "t", "true", "on", "y", "yes":
		return true
	}
	return false
}

// statusTree is the answer of the status call. Names are never null there.
func (lb *loadBalancer) statusTree() object {
	listeners := []object{}
	for _, l := range lb.listeners {
		pools := []object{}
		for _, p := range l.pools() {
			pools = append(pools, p.statusTree())
		}
		listeners = append(listeners, object{"id": l.ID, "name": l.Name, "operating_status": l.OperatingStatus,
			"provisioning_status": l.ProvisioningStatus, "pools": pools})
	}
	return object{"id": lb.ID, "name": lb.Name, "operating_status": lb.OperatingStatus,
		"provisioning_status": lb.ProvisioningStatus, "listeners": listeners}
}

func (p *pool) statusTree() object {
	members := []object{}
	for _, m := range p.members {
		members = append(members, object{"id": m.ID, "name": m.Name, "operating_status": m.OperatingStatus,
			"provisioning_status": m.ProvisioningStatus, "address": m.Address, "protocol_port": m.ProtocolPort})
	}
	out := object{"id": p.ID, "name": p.Name, "operating_status": p.OperatingStatus,
		"provisioning_status": p.ProvisioningStatus, "members": members}
	if h := p.monitor; h != nil {
		out["health_monitor"] = object{"id": h.ID, "name": h.Name, "type": h.Type,
			"operating_status": h.OperatingStatus, "provisioning_status": h.ProvisioningStatus}
	}
	return out
}

// isIPv6 tells the family of an address or a CIDR.
func isIPv6(s string) bool {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Addr().Is6()
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6()
}

// graph builds what hangs below a new load balancer, and only then commits it.
type graph struct {
	c     *Cloud
	lb    *loadBalancer
	quota *trialQuota
	pools map[string]*pool
	made  []entity
}

func (g *graph) build(a attrs) error {
	pools := a.objects("pools")
	listeners := a.objects("listeners")
	var needed []string
	// A pool in a reference is a definition when it says more than a name.
	reference := func(owner attrs, key string) error {
		p := owner.object(key)
		if p == nil {
			return nil
		}
		name := p.str("name")
		if name == "" {
			return invalid("Pools must be named when creating a fully populated loadbalancer.")
		}
		if len(p) > 3 {
			pools = append(pools, p)
		} else {
			needed = append(needed, name)
		}
		return nil
	}
	for _, l := range listeners {
		if err := reference(l, "default_pool"); err != nil {
			return err
		}
		for _, p := range l.objects("l7policies") {
			if err := reference(p, "redirect_pool"); err != nil {
				return err
			}
		}
	}
	names := map[string]bool{}
	for _, p := range pools {
		if names[p.str("name")] {
			return invalid("Pool names must be unique when creating a fully populated loadbalancer.")
		}
		names[p.str("name")] = true
	}
	for _, n := range needed {
		if !names[n] {
			return invalid("Pool '%s' was referenced but no full definition was found.", n)
		}
	}
	if len(pools) > 0 && !g.quota.take(g.c, "pool", len(pools)) {
		return quotaMet("Pool")
	}
	g.pools = map[string]*pool{}
	for _, pa := range pools {
		for _, attr := range []string{"protocol", "lb_algorithm"} {
			if !pa.has(attr) {
				return invalid("Pool definition for '%s' missing required attribute: %s", pa.str("name"), attr)
			}
		}
		p, err := g.pool(pa)
		if err != nil {
			return err
		}
		g.pools[p.Name] = p
	}
	if len(listeners) > 0 && !g.quota.take(g.c, "listener", len(listeners)) {
		return quotaMet("Listener")
	}
	for _, la := range listeners {
		if err := g.listener(la); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) pool(a attrs) (*pool, error) {
	if a.flag("tls_enabled") && !a.set("tls_ciphers") {
		// Elsewhere they have a default.
		return nil, refuse(500, "'tls_ciphers'")
	}
	p, err := g.c.newPool(g.lb, a)
	if err != nil {
		return nil, err
	}
	g.lb.pools = append(g.lb.pools, p)
	g.made = append(g.made, p)
	if hm := a.object("healthmonitor"); hm != nil {
		if !g.quota.take(g.c, "healthmonitor", 1) {
			return nil, quotaMet("Health Monitor")
		}
		h, err := g.c.newMonitor(p, hm)
		if err != nil {
			return nil, err
		}
		p.monitor = h
		g.made = append(g.made, h)
	}
	members := a.objects("members")
	if len(members) > 0 && !g.quota.take(g.c, "member", len(members)) {
		return nil, quotaMet("Member")
	}
	for _, ma := range members {
		m, err := g.c.newMember(p, ma)
		if err != nil {
			return nil, err
		}
		p.members = append(p.members, m)
		g.made = append(g.made, m)
	}
	return p, nil
}

func (g *graph) listener(a attrs) error {
	if dp := a.object("default_pool"); dp != nil {
		a["default_pool_id"] = g.pools[dp.str("name")].ID
	}
	l, err := g.c.newListener(g.lb, a, g.lb.pools)
	if err != nil {
		return err
	}
	g.lb.listeners = append(g.lb.listeners, l)
	g.made = append(g.made, l)
	for _, pa := range a.objects("l7policies") {
		p, err := g.c.newPolicy(l, pa, g.pools)
		if err != nil {
			return err
		}
		l.insert(p, pa.num("position"))
		g.made = append(g.made, p)
		for _, ru := range p.rules {
			g.made = append(g.made, ru)
		}
	}
	return nil
}

func (g *graph) commit() {
	for _, e := range g.made {
		g.c.store(e)
	}
}

// store makes an object findable by its id.
func (c *Cloud) store(e entity) {
	switch x := e.(type) {
	case *listener:
		c.lb.listeners[x.ID] = x
	case *pool:
		c.lb.pools[x.ID] = x
	case *member:
		c.lb.members[x.ID] = x
	case *monitor:
		c.lb.monitors[x.ID] = x
	case *policy:
		c.lb.policies[x.ID] = x
	case *rule:
		c.lb.rules[x.ID] = x
	}
}
