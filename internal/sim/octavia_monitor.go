package sim

type monitor struct {
	common
	Name           string   `json:"name"`
	Type           string   `json:"type"`
	Delay          int      `json:"delay"`
	Timeout        int      `json:"timeout"`
	MaxRetries     int      `json:"max_retries"`
	MaxRetriesDown int      `json:"max_retries_down"`
	HTTPMethod     *string  `json:"http_method"`
	URLPath        *string  `json:"url_path"`
	ExpectedCodes  *string  `json:"expected_codes"`
	HTTPVersion    *float64 `json:"http_version"`
	DomainName     *string  `json:"domain_name"`

	pool *pool
}

func (h *monitor) kind() string { return "healthmonitor" }

func (h *monitor) remove(c *Cloud) {
	delete(c.lb.monitors, h.ID)
	h.pool.monitor = nil
	c.quota(h.ProjectID).release("healthmonitor")
}

type monitorView struct {
	*monitor
	TenantID string   `json:"tenant_id"`
	Pools    []idOnly `json:"pools,omitempty"`
}

func (h *monitor) view() any { return monitorView{h, h.ProjectID, []idOnly{{h.pool.ID}}} }

func (h *monitor) fullView() any { return monitorView{monitor: h, TenantID: h.ProjectID} }

func (c *Cloud) monitorCall(r *request) (response, error) {
	switch {
	case r.is("GET", "healthmonitors"):
		return c.list(r, "healthmonitors", "healthmonitor", values(c.lb.monitors))
	case r.is("POST", "healthmonitors"):
		return c.createMonitor(r)
	case len(r.path) != 2:
		return response{}, refuse(404, "The resource could not be found.")
	}
	h := c.lb.monitors[r.path[1]]
	if h == nil || !r.sees(h) {
		return response{}, notFound("Health Monitor", r.path[1])
	}
	switch r.method {
	case "GET":
		return c.show(r, "healthmonitor", h)
	case "PUT":
		return c.updateMonitor(r, h)
	case "DELETE":
		if err := h.pool.childLock(); err != nil {
			return response{}, err
		}
		h.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: h.pool.lb, gone: []entity{h}}, Op{Resource: "healthmonitor", Action: "delete"}, h.pool.locks()...)
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

func (c *Cloud) createMonitor(r *request) (response, error) {
	a, err := c.parseObject(r, "health_monitor_", "healthmonitor", monitorPOST)
	if err != nil {
		return response{}, err
	}
	p := c.lb.pools[a.str("pool_id")]
	if p == nil || !r.sees(p) {
		return response{}, notFound("Pool", a.str("pool_id"))
	}
	if t := a.str("type"); (t == "UDP-CONNECT" || t == "SCTP") && p.Protocol != "UDP" && p.Protocol != "SCTP" {
		return response{}, invalid("The %s type is only supported for pools of type UDP/SCTP.", t)
	}
	quota := c.quota(p.ProjectID).trial()
	if !quota.take(c, "healthmonitor", 1) {
		return response{}, quotaMet("Health Monitor")
	}
	if err := p.childLock(); err != nil {
		return response{}, err
	}
	h, err := c.newMonitor(p, a)
	if err != nil {
		return response{}, err
	}
	quota.commit()
	p.monitor = h
	c.store(h)
	hold := c.begin(r, &change{lb: p.lb, settle: []entity{h}}, Op{Resource: "healthmonitor", Action: "create"}, p.locks()...)
	return response{status: 201, body: object{"healthmonitor": h.view()}, hold: hold}, nil
}

func isHTTPMonitor(t string) bool { return t == "HTTP" || t == "HTTPS" }

func (c *Cloud) newMonitor(p *pool, a attrs) (*monitor, error) {
	h := &monitor{common: c.newCommon(p.ProjectID, a), pool: p, MaxRetriesDown: 3}
	t := a.str("type")
	if isHTTPMonitor(t) {
		get, root, ok := "GET", "/", "200"
		h.HTTPMethod, h.URLPath, h.ExpectedCodes = &get, &root, &ok
		for _, k := range []string{"http_method", "url_path", "expected_codes"} {
			if !a.set(k) {
				delete(a, k)
			}
		}
	} else {
		for _, k := range []string{"http_method", "url_path", "expected_codes"} {
			if a.set(k) {
				return nil, invalidOption(k, "health monitors of type "+t)
			}
		}
	}
	version, _ := a["http_version"].(float64)
	if a.set("domain_name") && !a.set("http_version") {
		return nil, invalid("'http_version' must be specified when 'domain_name' is provided.")
	}
	if a.set("domain_name") && version < 1.1 {
		return nil, invalidOption("http_version 1.0", "health monitors HTTP 1.1 domain name health check")
	}
	if p.monitor != nil {
		return nil, refuse(409, "This pool already has a health monitor")
	}
	if !storeTags(h, a) {
		return nil, refuse(409, "This pool already has a health monitor")
	}
	a.without("tags", "project_id", "tenant_id", "pool_id").into(h)
	return h, nil
}

func (c *Cloud) updateMonitor(r *request, h *monitor) (response, error) {
	a, err := c.parseObject(r, "health_monitor_", "healthmonitor", monitorPUT)
	if err != nil {
		return response{}, err
	}
	if !isHTTPMonitor(h.Type) {
		for _, k := range []string{"http_method", "url_path", "expected_codes"} {
			if a.has(k) {
				return response{}, invalidOption(k, "health monitors of type "+h.Type)
			}
		}
	}
	for _, k := range []string{"delay", "max_retries", "timeout"} {
		if a.has(k) && !a.set(k) {
			return response{}, invalidOption("None", k)
		}
	}
	version, _ := a["http_version"].(float64)
	if version == 0 && h.HTTPVersion != nil {
		version = *h.HTTPVersion
	}
	if a.set("domain_name") && version == 0 {
		return response{}, invalid("'http_version' must be specified when 'domain_name' is provided.")
	}
	if (a.set("domain_name") || h.DomainName != nil) && version != 0 && version < 1.1 {
		return response{}, invalidOption("http_version 1.0", "health monitors HTTP 1.1 domain name health check")
	}
	for name, def := range map[string]any{"http_method": "GET", "url_path": "/", "expected_codes": "200", "max_retries_down": 3} {
		if a.has(name) && !a.set(name) {
			a[name] = def
		}
	}
	if err := h.pool.childLock(); err != nil {
		return response{}, err
	}
	next := *h
	if !storeTags(&next, a) {
		return response{}, refuse(500, duplicateTag)
	}
	a.without("tags").into(&next)
	*h = next
	hold := c.begin(r, &change{lb: h.pool.lb}, Op{Resource: "healthmonitor", Action: "update"}, append(h.pool.locks(), h)...)
	return response{status: 200, body: object{"healthmonitor": h.view()}, hold: hold}, nil
}
