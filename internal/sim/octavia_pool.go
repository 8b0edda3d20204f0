package sim

import "slices"

type pool struct {
	common
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	Protocol           string            `json:"protocol"`
	LBAlgorithm        string            `json:"lb_algorithm"`
	SessionPersistence *sessionPersister `json:"session_persistence"`
	TLSContainerRef    *string           `json:"tls_container_ref"`
	CATLSContainerRef  *string           `json:"ca_tls_container_ref"`
	CRLContainerRef    *string           `json:"crl_container_ref"`
	TLSEnabled         bool              `json:"tls_enabled"`
	TLSCiphers         *string           `json:"tls_ciphers"`
	TLSVersions        []string          `json:"tls_versions"`
	ALPNProtocols      []string          `json:"alpn_protocols"`

	lb      *loadBalancer
	members []*member
	monitor *monitor
}

type sessionPersister struct {
	Type        string  `json:"type"`
	CookieName  *string `json:"cookie_name"`
	Timeout     *int    `json:"persistence_timeout"`
	Granularity *string `json:"persistence_granularity"`
}

func (p *pool) kind() string { return "pool" }

func (p *pool) remove(c *Cloud) {
	for _, m := range slices.Clone(p.members) {
		m.remove(c)
	}
	if p.monitor != nil {
		p.monitor.remove(c)
	}
	for _, l := range p.lb.listeners {
		if l.DefaultPoolID != nil && *l.DefaultPoolID == p.ID {
			l.DefaultPoolID = nil
		}
	}
	delete(c.lb.pools, p.ID)
	p.lb.pools = removeFrom(p.lb.pools, p)
	c.quota(p.ProjectID).release("pool")
}

// usedBy are the listeners whose traffic can reach the pool.
func (p *pool) usedBy() []*listener {
	var out []*listener
	for _, l := range p.lb.listeners {
		if l.poolIDs()[p.ID] {
			out = append(out, l)
		}
	}
	return out
}

// policies are those that redirect to the pool.
func (p *pool) policies() []*policy {
	var out []*policy
	for _, l := range p.lb.listeners {
		for _, pol := range l.policies {
			if pol.RedirectPoolID != nil && *pol.RedirectPoolID == p.ID {
				out = append(out, pol)
			}
		}
	}
	return out
}

type poolView struct {
	*pool
	TenantID        string   `json:"tenant_id"`
	LoadBalancers   []idOnly `json:"loadbalancers"`
	Listeners       []idOnly `json:"listeners"`
	HealthMonitorID *string  `json:"healthmonitor_id"`
	Members         []idOnly `json:"members"`
}

func (p *pool) view() any {
	v := poolView{p, p.ProjectID, []idOnly{{p.lb.ID}}, refs(p.usedBy()), nil, refs(unordered(p.members))}
	if p.monitor != nil {
		v.HealthMonitorID = &p.monitor.ID
	}
	return v
}

type poolFullView struct {
	*pool
	TenantID      string   `json:"tenant_id"`
	Listeners     []idOnly `json:"listeners"`
	HealthMonitor any      `json:"healthmonitor"`
	Members       []any    `json:"members"`
}

func (p *pool) fullView() any {
	v := poolFullView{pool: p, TenantID: p.ProjectID, Listeners: refs(p.usedBy()), Members: []any{}}
	if p.monitor != nil {
		v.HealthMonitor = p.monitor.fullView()
	}
	for _, m := range unordered(p.members) {
		v.Members = append(v.Members, m.view())
	}
	return v
}

// locks are the objects that a write to the pool's children makes pending.
func (p *pool) locks() []entity {
	out := []entity{p}
	for _, l := range p.usedBy() {
		out = append(out, l)
	}
	return out
}

func (c *Cloud) poolCall(r *request) (response, error) {
	switch {
	case r.is("GET", "pools"):
		if lb := c.lb.lbs[r.query.Get("loadbalancer_id")]; lb != nil {
			return c.list(r, "pools", "pool", viewers(lb.pools))
		}
		return c.list(r, "pools", "pool", values(c.lb.pools))
	case r.is("POST", "pools"):
		return c.createPool(r)
	case len(r.path) < 2:
		return response{}, refuse(405, "Method Not Allowed")
	}
	p := c.lb.pools[r.path[1]]
	if p == nil || !r.sees(p) {
		return response{}, notFound("Pool", r.path[1])
	}
	switch {
	case r.is("GET", "pools", "*"):
		return c.show(r, "pool", p)
	case r.is("PUT", "pools", "*"):
		return c.updatePool(r, p)
	case r.is("DELETE", "pools", "*"):
		if users := p.policies(); len(users) > 0 {
			return response{}, refuse(409, "Pool %s is in use by L7 policy %s", p.ID, users[0].ID)
		}
		if err := lockable(p.lb); err != nil {
			return response{}, err
		}
		var touched []entity
		for _, l := range p.usedBy() {
			touched = append(touched, l)
		}
		p.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: p.lb, gone: []entity{p}}, Op{Resource: "pool", Action: "delete"}, touched...)
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(404, "The resource could not be found.")
}

func (c *Cloud) createPool(r *request) (response, error) {
	a, err := c.parseObject(r, "pool_", "pool", poolPOST)
	if err != nil {
		return response{}, err
	}
	for _, name := range []string{"protocol", "lb_algorithm"} {
		if !a.has(name) {
			return response{}, invalidInput(name, nil, "Mandatory field missing.")
		}
	}
	var l *listener
	lbID := a.str("loadbalancer_id")
	if id := a.str("listener_id"); id != "" {
		if l = c.lb.listeners[id]; l == nil || !r.sees(l) {
			return response{}, notFound("Listener", id)
		}
		if lbID == "" {
			lbID = l.lb.ID
		}
	} else if lbID == "" {
		return response{}, invalid("Must provide at least one of: loadbalancer_id, listener_id")
	}
	lb, err := c.findLB(r, lbID)
	if err != nil {
		return response{}, err
	}
	if l != nil {
		if err := checkProtocols(l.Protocol, a.str("protocol")); err != nil {
			return response{}, err
		}
	}
	if err := checkPersistence(a, a.str("protocol")); err != nil {
		return response{}, err
	}
	quota := c.quota(lb.ProjectID).trial()
	if !quota.take(c, "pool", 1) {
		return response{}, quotaMet("Pool")
	}
	if l != nil && l.DefaultPoolID != nil {
		return response{}, refuse(409, "This listener already has a default pool")
	}
	if err := lockable(lb); err != nil {
		return response{}, err
	}
	p, err := c.newPool(lb, a)
	if err != nil {
		return response{}, err
	}
	if len(a.list("members")) > 0 || a.set("healthmonitor") {
		return response{}, refuse(500, nestedCrash)
	}
	quota.commit()
	lb.pools = append(lb.pools, p)
	c.store(p)
	var touched []entity
	if l != nil {
		l.DefaultPoolID = &p.ID
		touched = append(touched, l)
	}
	hold := c.begin(r, &change{lb: lb, settle: []entity{p}}, Op{Resource: "pool", Action: "create"}, touched...)
	return response{status: 201, body: object{"pool": p.view()}, hold: hold}, nil
}

func checkPersistence(a attrs, protocol string) error {
	sp := a.object("session_persistence")
	if sp == nil {
		return nil
	}
	if protocol != "UDP" && protocol != "SCTP" && (sp.set("persistence_timeout") || sp.set("persistence_granularity")) {
		return invalid("persistence_timeout and persistence_granularity is only for UDP and SCTP protocol pools.")
	}
	if sp.set("cookie_name") && sp.str("type") != "APP_COOKIE" {
		return invalid(`Field "cookie_name" can only be specified with session persistence of type "APP_COOKIE".`)
	}
	if sp.str("type") == "APP_COOKIE" && !sp.set("cookie_name") {
		return invalid(`Field "cookie_name" must be specified when using the "APP_COOKIE" session persistence type.`)
	}
	return nil
}

// newPool checks and makes a pool without its children.
func (c *Cloud) newPool(lb *loadBalancer, a attrs) (*pool, error) {
	if a.set("crl_container_ref") && !a.set("ca_tls_container_ref") {
		return nil, invalid("A CA certificate reference is required to specify a revocation list.")
	}
	if ref := a.str("tls_container_ref"); ref != "" {
		if err := c.checkCertificates([]string{ref}); err != nil {
			return nil, err
		}
	}
	if err := c.checkCA(a.str("ca_tls_container_ref")); err != nil {
		return nil, err
	}
	p := &pool{common: c.newCommon(lb.ProjectID, a), lb: lb}
	if err := c.checkCiphers(a); err != nil {
		return nil, err
	}
	if a.flag("tls_enabled") {
		if err := c.checkTLSLists(a); err != nil {
			return nil, err
		}
		p.setTLSDefaults()
	}
	if !storeTags(p, a) {
		return nil, refuse(409, "Already an entity with that specified id.")
	}
	for _, k := range []string{"tls_ciphers", "tls_versions", "alpn_protocols"} {
		if !a.set(k) {
			delete(a, k)
		}
	}
	a.without("tags", "project_id", "tenant_id", "members", "healthmonitor", "listener_id", "loadbalancer_id").into(p)
	return p, nil
}

func (p *pool) setTLSDefaults() {
	ciphers := defaultTLS
	p.TLSCiphers = &ciphers
	p.TLSVersions = []string{"TLSv1.2", "TLSv1.3"}
	p.ALPNProtocols = []string{"h2", "http/1.1", "http/1.0"}
}

func (c *Cloud) updatePool(r *request, p *pool) (response, error) {
	a, err := c.parseObject(r, "pool_", "pool", poolPUT)
	if err != nil {
		return response{}, err
	}
	if err := checkPersistence(a, p.Protocol); err != nil {
		return response{}, err
	}
	if ref := a.str("tls_container_ref"); ref != "" {
		if err := c.checkCertificates([]string{ref}); err != nil {
			return response{}, err
		}
	}
	ca := a.str("ca_tls_container_ref")
	if !a.has("ca_tls_container_ref") && p.CATLSContainerRef != nil {
		ca = *p.CATLSContainerRef
	}
	if err := c.checkCA(ca); err != nil {
		return response{}, err
	}
	if a.has("tls_versions") && !a.set("tls_versions") {
		a["tls_versions"] = []any{"TLSv1.2", "TLSv1.3"}
	}
	if a.has("tls_ciphers") && !a.set("tls_ciphers") {
		a["tls_ciphers"] = defaultTLS
	}
	if err := c.checkCiphers(a); err != nil {
		return response{}, err
	}
	if err := c.checkTLSLists(a); err != nil {
		return response{}, err
	}
	if err := lockable(p.lb); err != nil {
		return response{}, err
	}
	next := *p
	if !storeTags(&next, a) {
		return response{}, refuse(500, duplicateTag)
	}
	if a.has("session_persistence") {
		next.SessionPersistence = nil
	}
	a.without("tags").into(&next)
	*p = next
	hold := c.begin(r, &change{lb: p.lb}, Op{Resource: "pool", Action: "update"}, p.locks()...)
	return response{status: 200, body: object{"pool": p.view()}, hold: hold}, nil
}
