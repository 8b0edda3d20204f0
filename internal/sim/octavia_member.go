package sim

import "slices"

type member struct {
	common
	Name           string  `json:"name"`
	Address        string  `json:"address"`
	ProtocolPort   int     `json:"protocol_port"`
	Weight         int     `json:"weight"`
	Backup         bool    `json:"backup"`
	SubnetID       *string `json:"subnet_id"`
	MonitorAddress *string `json:"monitor_address"`
	MonitorPort    *int    `json:"monitor_port"`
	VnicType       string  `json:"vnic_type"`

	pool   *pool
	health string // scripted operating status, "" for healthy
}

func (m *member) kind() string { return "member" }

func (m *member) remove(c *Cloud) {
	delete(c.lb.members, m.ID)
	m.pool.members = removeFrom(m.pool.members, m)
	c.quota(m.ProjectID).release("member")
}

type memberView struct {
	*member
	TenantID string `json:"tenant_id"`
}

func (m *member) view() any { return memberView{m, m.ProjectID} }

func (c *Cloud) memberCall(r *request) (response, error) {
	p := c.lb.pools[r.path[1]]
	if p == nil || !r.sees(p) {
		return response{}, notFound("Pool", r.path[1])
	}
	switch {
	case r.is("GET", "pools", "*", "members"):
		return c.list(r, "members", "member", viewers(p.members))
	case r.is("POST", "pools", "*", "members"):
		return c.createMember(r, p)
	case r.is("PUT", "pools", "*", "members"):
		return c.batchMembers(r, p)
	case len(r.path) != 4:
		return response{}, refuse(404, "The resource could not be found.")
	}
	m := c.lb.members[r.path[3]]
	if m == nil || m.pool != p {
		return response{}, notFound("Member", r.path[3])
	}
	switch r.method {
	case "GET":
		return c.show(r, "member", m)
	case "PUT":
		a, err := c.parseObject(r, "member_", "member", memberPUT)
		if err != nil {
			return response{}, err
		}
		if err := p.childLock(); err != nil {
			return response{}, err
		}
		if err := m.change(a); err != nil {
			return response{}, err
		}
		hold := c.begin(r, &change{lb: p.lb}, Op{Resource: "member", Action: "update"}, append(p.locks(), m)...)
		return response{status: 200, body: object{"member": m.view()}, hold: hold}, nil
	case "DELETE":
		if err := p.childLock(); err != nil {
			return response{}, err
		}
		m.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: p.lb, gone: []entity{m}}, Op{Resource: "member", Action: "delete"}, p.locks()...)
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

// childLock tells whether members and monitors of the pool can be written:
// unlike other objects they need their parent to be ACTIVE too.
func (p *pool) childLock() error {
	if p.ProvisioningStatus != active {
		return immutable("Pool", p.ID)
	}
	return lockable(p.lb)
}

func (m *member) change(a attrs) error {
	next := *m
	if !storeTags(&next, a) {
		return refuse(500, duplicateTag)
	}
	if a.has("backup") && !a.set("backup") {
		a["backup"] = false
	}
	if a.has("weight") && !a.set("weight") {
		a["weight"] = 1
	}
	a.without("tags", "project_id", "tenant_id", "request_sriov", "address", "protocol_port").into(&next)
	*m = next
	return nil
}

func (c *Cloud) newMember(p *pool, a attrs) (*member, error) {
	if a.flag("request_sriov") {
		return nil, refuse(400, "The load balancer flavor does not allow SR-IOV member ports.")
	}
	for _, m := range p.members {
		if m.Address == a.str("address") && m.ProtocolPort == a.num("protocol_port") {
			return nil, refuse(409, "Another member on this pool is already using ip %s on protocol_port %d", m.Address, m.ProtocolPort)
		}
	}
	m := &member{common: c.newCommon(p.ProjectID, a), pool: p, Weight: 1, VnicType: "normal"}
	if p.monitor == nil {
		m.OperatingStatus = noMonitor
	}
	if !storeTags(m, a) {
		return nil, refuse(409, "Another member on this pool is already using ip %s on protocol_port %d", a.str("address"), a.num("protocol_port"))
	}
	a.without("tags", "project_id", "tenant_id", "request_sriov").into(m)
	return m, nil
}

func (c *Cloud) createMember(r *request, p *pool) (response, error) {
	a, err := c.parseObject(r, "member_", "member", memberPOST)
	if err != nil {
		return response{}, err
	}
	if id := a.str("subnet_id"); id != "" && c.net.find("subnets", id) == nil {
		return response{}, noSubresource("Subnet", id)
	}
	quota := c.quota(p.ProjectID).trial()
	if !quota.take(c, "member", 1) {
		return response{}, quotaMet("Member")
	}
	if err := p.childLock(); err != nil {
		return response{}, err
	}
	m, err := c.newMember(p, a)
	if err != nil {
		return response{}, err
	}
	quota.commit()
	p.members = append(p.members, m)
	c.store(m)
	hold := c.begin(r, &change{lb: p.lb, settle: []entity{m}}, Op{Resource: "member", Action: "create"}, p.locks()...)
	return response{status: 201, body: object{"member": m.view()}, hold: hold}, nil
}

// batchMembers replaces the members of a pool, keyed by address and port.
func (c *Cloud) batchMembers(r *request, p *pool) (response, error) {
	v, err := c.parseBody(r, "members_", "members", listType{memberPOST})
	if err != nil {
		return response{}, err
	}
	if err := p.childLock(); err != nil {
		return response{}, err
	}
	type key struct {
		address string
		port    int
	}
	old := map[key]*member{}
	for _, m := range p.members {
		old[key{m.Address, m.ProtocolPort}] = m
	}
	wanted, updated := map[key]bool{}, map[key]bool{}
	var fresh []attrs
	var changed []attrs
	for _, item := range v.([]any) {
		a := item.(attrs)
		k := key{a.str("address"), a.num("protocol_port")}
		wanted[k] = true
		if old[k] == nil {
			fresh = append(fresh, a)
			continue
		}
		if updated[k] {
			return response{}, invalid("Member must be updated only once in the same request.")
		}
		updated[k] = true
		changed = append(changed, a)
	}
	additive := pyBool(r.query.Get("additive_only"))
	var gone []entity
	stale := 0
	for k, m := range old {
		if !wanted[k] {
			stale++
			if !additive {
				gone = append(gone, m)
			}
		}
	}
	if len(fresh) == 0 && len(changed) == 0 && stale == 0 {
		return response{status: 202}, nil
	}
	quota := c.quota(p.ProjectID).trial()
	if grow := len(fresh) - len(gone); grow > 0 && !quota.take(c, "member", grow) {
		return response{}, quotaMet("Member")
	}
	shadow := *p
	shadow.members = slices.Clone(p.members)
	var made []*member
	for _, a := range fresh {
		if id := a.str("subnet_id"); id != "" && c.net.find("subnets", id) == nil {
			return response{}, noSubresource("Subnet", id)
		}
		m, err := c.newMember(&shadow, a)
		if err != nil {
			return response{}, err
		}
		m.pool = p
		shadow.members = append(shadow.members, m)
		made = append(made, m)
	}
	touched := p.locks()
	for _, a := range changed {
		if tags := a.strs("tags"); len(slices.Compact(slices.Sorted(slices.Values(tags)))) != len(tags) {
			return response{}, refuse(500, duplicateTag)
		}
	}
	for _, a := range changed {
		m := old[key{a.str("address"), a.num("protocol_port")}]
		// The items are of the create type: what is left out gets its default.
		for _, name := range []string{"monitor_port", "monitor_address"} {
			if !a.has(name) {
				a[name] = nil
			}
		}
		if err := m.change(a); err != nil {
			return response{}, err
		}
		touched = append(touched, m)
	}
	// Octavia counts the difference at once and releases the members that go
	// when they are gone; the sum is the same.
	quota.refund("member", len(fresh)-len(gone))
	quota.add("member", len(fresh))
	quota.commit()
	ch := &change{lb: p.lb, gone: gone}
	for _, m := range made {
		p.members = append(p.members, m)
		c.store(m)
		ch.settle = append(ch.settle, m)
	}
	hold := c.begin(r, ch, Op{Resource: "member", Action: "update"}, touched...)
	return response{status: 202, hold: hold}, nil
}
