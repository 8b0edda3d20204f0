package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// record is a Neutron object.
type record map[string]any

func (r record) id() string { return r.str("id") }

func (r record) str(name string) string { s, _ := r[name].(string); return s }

func (r record) strs(name string) []string {
	switch l := r[name].(type) {
	case []string:
		return l
	case []any:
		var out []string
		for _, v := range l {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

type neutronState struct {
	// objects by collection, as in JSON: networks, security_groups, ...
	objects map[string]map[string]record
	order   map[string]int // creation order of all objects
	next    int
	quotas  map[string]int
	cursor  map[string]netip.Addr // next address to try, by subnet
	used    map[string]map[netip.Addr]bool
	mac     int

	publicNet, publicSubnet, vipNet, vipSubnet, memberNet, memberSubnet, router string
}

func (n *neutronState) find(collection, id string) record { return n.objects[collection][id] }

func (n *neutronState) setQuota(kind string, limit int) bool {
	switch kind {
	case "floatingip", "port", "security_group", "security_group_rule", "network", "subnet", "router":
		n.quotas[kind] = limit
		return true
	}
	return false
}

// resource describes a collection.
type resource struct {
	collection, singular string
	exception            string          // the type of its not-found error
	title                string          // its name in that error
	create               map[string]any  // attributes of POST with their defaults
	update               map[string]bool // attributes of PUT

}

func names(list ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range list {
		out[n] = true
	}
	return out
}

var neutronResources = map[string]*resource{
	"networks": {collection: "networks", singular: "network", exception: "NetworkNotFound", title: "Network",
		create: map[string]any{"name": "", "description": "", "admin_state_up": true, "shared": false, "router:external": false, "port_security_enabled": true, "mtu": 1500},
		update: names("name", "description", "admin_state_up", "shared", "port_security_enabled", "mtu")},
	"subnets": {collection: "subnets", singular: "subnet", exception: "SubnetNotFound", title: "Subnet",
		create: map[string]any{"name": "", "description": "", "network_id": nil, "cidr": nil, "ip_version": 4, "gateway_ip": "auto", "enable_dhcp": true, "dns_nameservers": []any{}, "host_routes": []any{}, "allocation_pools": nil},
		update: names("name", "description", "gateway_ip", "enable_dhcp", "dns_nameservers", "host_routes", "allocation_pools")},
	"ports": {collection: "ports", singular: "port", exception: "PortNotFound", title: "Port",
		create: map[string]any{"name": "", "description": "", "network_id": nil, "admin_state_up": true, "fixed_ips": nil, "device_id": "", "device_owner": "", "security_groups": nil, "allowed_address_pairs": []any{}, "mac_address": nil, "port_security_enabled": true, "binding:vnic_type": "normal"},
		update: names("name", "description", "admin_state_up", "device_id", "device_owner", "security_groups", "allowed_address_pairs", "port_security_enabled", "fixed_ips")},
	"routers": {collection: "routers", singular: "router", exception: "RouterNotFound", title: "Router",
		create: map[string]any{"name": "", "description": "", "admin_state_up": true, "external_gateway_info": nil},
		update: names("name", "description", "admin_state_up", "external_gateway_info", "routes")},
	"floatingips": {collection: "floatingips", singular: "floatingip", exception: "FloatingIPNotFound", title: "Floating IP",
		create: map[string]any{"floating_network_id": nil, "floating_ip_address": nil, "port_id": nil, "fixed_ip_address": nil, "subnet_id": nil, "description": "", "qos_policy_id": nil, "dns_name": "", "dns_domain": ""},
		update: names("port_id", "fixed_ip_address", "description", "qos_policy_id")},
	"security-groups": {collection: "security_groups", singular: "security_group", exception: "SecurityGroupNotFound", title: "Security group",
		create: map[string]any{"name": "", "description": "", "stateful": true},
		update: names("name", "description", "stateful")},
	"security-group-rules": {collection: "security_group_rules", singular: "security_group_rule", exception: "SecurityGroupRuleNotFound", title: "Security group rule",
		create: map[string]any{"security_group_id": nil, "direction": nil, "ethertype": "IPv4", "protocol": nil, "port_range_min": nil, "port_range_max": nil, "remote_ip_prefix": nil, "remote_group_id": nil, "description": ""},
		update: names()},
}

func neutronFault(status int, kind, format string, args ...any) error {
	return &apiError{status: status, kind: kind, message: fmt.Sprintf(format, args...)}
}

func neutronError(e *apiError) any {
	kind := e.kind
	if kind == "" {
		kind = map[int]string{400: "HTTPBadRequest", 403: "PolicyNotAuthorized", 404: "HTTPNotFound", 409: "Conflict",
			429: "OverLimit", 503: "HTTPServiceUnavailable"}[e.status]
		if kind == "" {
			kind = "HTTPInternalServerError"
		}
	}
	return object{"NeutronError": object{"type": kind, "message": e.message, "detail": ""}}
}

func (c *Cloud) neutron(r *request) (response, error) {
	if len(r.path) == 0 {
		return response{status: 200, body: object{"versions": []object{{"id": "v2.0", "status": "CURRENT",
			"links": []object{{"rel": "self", "href": r.base + "/network/v2.0/"}}}}}}, nil
	}
	switch {
	case r.is("GET", "extensions"):
		return response{status: 200, body: object{"extensions": neutronExtensions()}}, nil
	case r.is("GET", "extensions", "*"):
		for _, e := range neutronExtensions() {
			if e["alias"] == r.path[1] {
				return response{status: 200, body: object{"extension": e}}, nil
			}
		}
		return response{}, neutronFault(404, "HTTPNotFound", "The resource could not be found.")
	case r.path[0] == "quotas" && len(r.path) >= 2:
		return c.neutronQuota(r)
	}
	res := neutronResources[r.path[0]]
	if res == nil {
		return response{}, neutronFault(404, "HTTPNotFound", "The resource could not be found.")
	}
	switch {
	case len(r.path) == 1 && r.method == "GET":
		return c.listNeutron(r, res)
	case len(r.path) == 1 && r.method == "POST":
		return c.createNeutron(r, res)
	case len(r.path) == 1:
		return response{}, neutronFault(405, "HTTPMethodNotAllowed", "Method Not Allowed")
	}
	o := c.net.find(res.collection, r.path[1])
	if o == nil || !c.visible(r.token, res.collection, o) {
		return response{}, res.notFound(r.path[1])
	}
	switch {
	case len(r.path) == 2 && r.method == "GET":
		return response{status: 200, body: object{res.singular: chooseFields(c.neutronView(res.collection, o), r.query["fields"])}}, nil
	case len(r.path) == 2 && r.method == "PUT":
		return c.updateNeutron(r, res, o)
	case len(r.path) == 2 && r.method == "DELETE":
		if !c.owned(r.token, o) {
			return response{}, res.notFound(o.id())
		}
		if err := c.deleteNeutron(res.collection, o); err != nil {
			return response{}, err
		}
		return response{status: 204}, nil
	case r.path[2] == "tags":
		return c.tagCall(r, o)
	case res.collection == "routers" && len(r.path) == 3 && r.method == "PUT":
		return c.routerInterface(r, o)
	}
	return response{}, neutronFault(404, "HTTPNotFound", "The resource could not be found.")
}

func (res *resource) notFound(id string) error {
	if res.collection == "floatingips" {
		return neutronFault(404, res.exception, "%s %s could not be found", res.title, id)
	}
	return neutronFault(404, res.exception, "%s %s could not be found.", res.title, id)
}

func neutronExtensions() []object {
	var out []object
	for _, alias := range []string{"router", "external-net", "security-group", "standard-attr-tag", "standard-attr-description",
		"standard-attr-revisions", "standard-attr-timestamp", "revision-if-match", "project-id", "extraroute", "quotas",
		"port-security", "pagination", "sorting", "filter-validation", "allowed-address-pairs"} {
		out = append(out, object{"alias": alias, "name": alias, "description": "", "updated": "2020-01-01T00:00:00-00:00", "links": []any{}})
	}
	return out
}

func (c *Cloud) owned(t *token, o record) bool {
	return t.admin() || o.str("project_id") == t.projectID
}

func (c *Cloud) visible(t *token, collection string, o record) bool {
	if c.owned(t, o) {
		return true
	}
	switch collection {
	case "networks":
		return o["router:external"] == true || o["shared"] == true
	case "subnets":
		n := c.net.find("networks", o.str("network_id"))
		return n["shared"] == true
	}
	return false
}

// add stores a new object with what all objects have.
func (c *Cloud) add(collection, project string, o record) record {
	if o.id() == "" {
		o["id"] = c.newID()
	}
	now := c.clock.Now().UTC().Format("2006-01-02T15:04:05Z")
	o["project_id"], o["tenant_id"] = project, project
	o["created_at"], o["updated_at"], o["revision_number"] = now, now, 1
	if o["tags"] == nil {
		o["tags"] = []string{}
	}
	if c.net.objects[collection] == nil {
		c.net.objects[collection] = map[string]record{}
	}
	c.net.objects[collection][o.id()] = o
	c.net.next++
	c.net.order[o.id()] = c.net.next
	return o
}

// bump marks an object as changed.
func (c *Cloud) bump(o record) {
	o["updated_at"] = c.clock.Now().UTC().Format("2006-01-02T15:04:05Z")
	n, _ := o["revision_number"].(int)
	o["revision_number"] = n + 1
}

// neutronView adds what is computed.
func (c *Cloud) neutronView(collection string, o record) record {
	out := record{}
	for k, v := range o {
		if !strings.HasPrefix(k, "_") {
			out[k] = v
		}
	}
	switch collection {
	case "networks":
		subnets := []string{}
		for _, s := range c.ordered("subnets") {
			if s.str("network_id") == o.id() {
				subnets = append(subnets, s.id())
			}
		}
		out["subnets"] = subnets
	case "security_groups":
		rules := []record{}
		for _, ru := range c.ordered("security_group_rules") {
			if ru.str("security_group_id") == o.id() {
				rules = append(rules, ru)
			}
		}
		out["security_group_rules"] = rules
	case "floatingips":
		out["port_details"] = nil
		if p := c.net.find("ports", o.str("port_id")); p != nil {
			out["port_details"] = record{"name": p["name"], "network_id": p["network_id"], "mac_address": p["mac_address"],
				"admin_state_up": p["admin_state_up"], "status": p["status"], "device_id": p["device_id"], "device_owner": p["device_owner"]}
		}
	}
	return out
}

func chooseFields(o record, fields []string) record {
	if len(fields) == 0 {
		return o
	}
	out := record{}
	for _, f := range fields {
		if v, ok := o[f]; ok {
			out[f] = v
		}
	}
	return out
}

// ordered are the objects of a collection, oldest first.
func (c *Cloud) ordered(collection string) []record {
	out := make([]record, 0, len(c.net.objects[collection]))
	for _, o := range c.net.objects[collection] {
		out = append(out, o)
	}
	sort.Slice(out, func(i, j int) bool { return c.net.order[out[i].id()] < c.net.order[out[j].id()] })
	return out
}

func (c *Cloud) listNeutron(r *request, res *resource) (response, error) {
	q := r.query
	var items []record
	for _, o := range c.ordered(res.collection) {
		if c.visible(r.token, res.collection, o) && matchesTags(q, o.strs("tags")) {
			items = append(items, o)
		}
	}
	for name, want := range q {
		switch name {
		case "tags", "tags-any", "not-tags", "not-tags-any", "fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir":
			continue
		}
		var bad bool
		items = slices.DeleteFunc(items, func(o record) bool {
			v, ok := o[name]
			if !ok {
				bad = true
			}
			return !slices.ContainsFunc(want, func(w string) bool { return neutronEqual(v, w) })
		})
		if bad {
			return response{}, neutronFault(400, "HTTPBadRequest", "['%s'] is invalid attribute for filtering", name)
		}
	}
	// Neutron sorts by id when it is asked to page, else as the database likes.
	limit, _ := strconv.Atoi(q.Get("limit"))
	if len(q["sort_key"]) != len(q["sort_dir"]) {
		return response{}, neutronFault(400, "HTTPBadRequest", "The number of sort_keys and sort_dirs must be same")
	}
	if limit > 0 || q.Get("marker") != "" || c.opts.PageLimit < len(items) {
		sort.Slice(items, func(i, j int) bool { return items[i].id() < items[j].id() })
	}
	if m := q.Get("marker"); m != "" {
		i := slices.IndexFunc(items, func(o record) bool { return o.id() == m })
		if i < 0 {
			return response{}, res.notFound(m)
		}
		items = items[i+1:]
	}
	if limit <= 0 || limit > c.opts.PageLimit {
		limit = c.opts.PageLimit
	}
	body := object{}
	if len(items) > limit {
		items = items[:limit]
		next := q
		next.Set("limit", itoa(limit))
		next.Set("marker", items[limit-1].id())
		body[res.collection+"_links"] = []object{{"rel": "next",
			"href": r.base + "/network/v2.0/" + r.path[0] + "?" + next.Encode()}}
	}
	out := make([]record, 0, len(items))
	for _, o := range items {
		out = append(out, chooseFields(c.neutronView(res.collection, o), q["fields"]))
	}
	body[res.collection] = out
	return response{status: 200, body: body}, nil
}

func neutronEqual(v any, want string) bool {
	switch x := v.(type) {
	case nil:
		return want == ""
	case bool:
		return x == pyBool(want)
	case []record: // fixed_ips=subnet_id=...
		name, val, _ := strings.Cut(want, "=")
		return slices.ContainsFunc(x, func(f record) bool { return fmt.Sprint(f[name]) == val })
	case []string:
		return slices.Contains(x, want)
	}
	return fmt.Sprint(v) == want
}

func (c *Cloud) parseNeutron(r *request, res *resource, allowed func(string) bool) (record, error) {
	var doc map[string]record
	if err := json.Unmarshal(r.body, &doc); err != nil || doc[res.singular] == nil {
		return nil, neutronFault(400, "HTTPBadRequest", "Unable to find '%s' in request body", res.singular)
	}
	in := doc[res.singular]
	var unknown []string
	for k := range in {
		if !allowed(k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return nil, neutronFault(400, "HTTPBadRequest", "Unrecognized attribute(s) '%s'", strings.Join(unknown, ", "))
	}
	for _, k := range []string{"name", "description"} {
		if s := in.str(k); len(s) > 255 {
			return nil, neutronFault(400, "HTTPBadRequest", "Invalid input for %s. Reason: '%s' exceeds maximum length of 255.", k, s)
		}
	}
	return in, nil
}

func (c *Cloud) createNeutron(r *request, res *resource) (response, error) {
	in, err := c.parseNeutron(r, res, func(k string) bool {
		_, ok := res.create[k]
		return ok || k == "project_id" || k == "tenant_id" || k == "tags" && res.collection != "security_group_rules"
	})
	if err != nil {
		return response{}, err
	}
	project := r.token.projectID
	for _, k := range []string{"project_id", "tenant_id"} {
		if p := in.str(k); p != "" && p != project {
			if !r.token.admin() {
				return response{}, neutronFault(403, "PolicyNotAuthorized", "rule:create_%s is disallowed by policy", res.singular)
			}
			project = p
		}
		delete(in, k)
	}
	o := record{}
	for k, def := range res.create {
		o[k] = def
		if v, ok := in[k]; ok {
			o[k] = v
		}
	}
	if v := in.strs("tags"); v != nil {
		sort.Strings(v)
		o["tags"] = v
	}
	if limit, ok := c.net.quotas[res.singular]; ok && limit >= 0 {
		if c.owns(project, res.collection) >= limit {
			return response{}, neutronFault(409, "OverQuota", "Quota exceeded for resources: ['%s'].", res.singular)
		}
	}
	if o, err = c.makeNeutron(r.token, res, project, o); err != nil {
		return response{}, err
	}
	return response{status: 201, body: object{res.singular: c.neutronView(res.collection, o)}}, nil
}

// owns counts what a project has.
func (c *Cloud) owns(project, collection string) int {
	n := 0
	for _, o := range c.net.objects[collection] {
		if o.str("project_id") == project {
			n++
		}
	}
	return n
}

func (c *Cloud) neutronQuota(r *request) (response, error) {
	if !r.token.admin() && (r.method != "GET" || r.path[1] != r.token.projectID) {
		return response{}, neutronFault(403, "PolicyNotAuthorized", "rule:update_quota is disallowed by policy")
	}
	limits, details := object{}, object{}
	for _, res := range neutronResources {
		limit, ok := c.net.quotas[res.singular]
		if !ok {
			limit = -1
		}
		limits[res.singular] = limit
		details[res.singular] = object{"limit": limit, "used": c.owns(r.path[1], res.collection), "reserved": 0}
	}
	switch {
	case r.is("GET", "quotas", "*"):
		return response{status: 200, body: object{"quota": limits}}, nil
	case r.method == "GET" && len(r.path) == 3 && strings.HasPrefix(r.path[2], "details"):
		return response{status: 200, body: object{"quota": details}}, nil
	case r.is("PUT", "quotas", "*"):
		var in struct {
			Quota map[string]int `json:"quota"`
		}
		if err := json.Unmarshal(r.body, &in); err != nil {
			return response{}, neutronFault(400, "HTTPBadRequest", "Malformed request body.")
		}
		for _, res := range neutronResources {
			limit, ok := in.Quota[res.singular]
			if used := c.owns(r.path[1], res.collection); ok && limit >= 0 && limit < used {
				return response{}, neutronFault(400, "HTTPBadRequest", "Quota limit %d for %s must be greater than or equal to already used %d", limit, res.singular, used)
			}
		}
		for kind, limit := range in.Quota {
			c.net.setQuota(kind, limit)
			limits[kind] = limit
		}
		return response{status: 200, body: object{"quota": limits}}, nil
	case r.is("DELETE", "quotas", "*"):
		clear(c.net.quotas)
		return response{status: 204}, nil
	}
	return response{}, neutronFault(404, "HTTPNotFound", "The resource could not be found.")
}

// makeNeutron completes and stores an object of any collection.
func (c *Cloud) makeNeutron(t *token, res *resource, project string, o record) (record, error) {
	switch res.collection {
	case "networks":
		o["status"], o["availability_zones"] = "ACTIVE", []string{}
		return c.add("networks", project, o), nil
	case "subnets":
		return c.makeSubnet(project, o)
	case "ports":
		return c.makePort(project, o)
	case "routers":
		o["status"], o["routes"] = "ACTIVE", []any{}
		return c.add("routers", project, o), nil
	case "floatingips":
		return c.makeFloatingIP(t, project, o)
	case "security_groups":
		g := c.add("security_groups", project, o)
		for _, et := range []string{"IPv4", "IPv6"} {
			c.addSGRule(project, record{"security_group_id": g.id(), "direction": "egress", "ethertype": et})
		}
		return g, nil
	}
	return c.makeSGRule(project, o)
}

func (c *Cloud) addSGRule(project string, o record) record {
	for _, k := range []string{"protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"} {
		if _, ok := o[k]; !ok {
			o[k] = nil
		}
	}
	if o["description"] == nil {
		o["description"] = ""
	}
	return c.add("security_group_rules", project, o)
}

func (c *Cloud) makeSGRule(project string, o record) (record, error) {
	g := c.net.find("security_groups", o.str("security_group_id"))
	if g == nil {
		return nil, neutronFault(404, "SecurityGroupNotFound", "Security group %s does not exist", o.str("security_group_id"))
	}
	if d := o.str("direction"); d != "ingress" && d != "egress" {
		return nil, neutronFault(400, "HTTPBadRequest", "Invalid input for direction. Reason: '%v' is not in ['ingress', 'egress'].", o["direction"])
	}
	same := func(a record) bool {
		for _, k := range []string{"security_group_id", "direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"} {
			if fmt.Sprint(a[k]) != fmt.Sprint(o[k]) {
				return false
			}
		}
		return true
	}
	for _, other := range c.ordered("security_group_rules") {
		if same(other) {
			return nil, neutronFault(409, "SecurityGroupRuleExists", "Security group rule already exists. Rule id is %s.", other.id())
		}
	}
	c.bump(g)
	return c.addSGRule(project, o), nil
}

func (c *Cloud) updateNeutron(r *request, res *resource, o record) (response, error) {
	if !c.owned(r.token, o) {
		return response{}, neutronFault(403, "PolicyNotAuthorized", "rule:update_%s is disallowed by policy", res.singular)
	}
	in, err := c.parseNeutron(r, res, func(k string) bool { _, ok := o[k]; return ok || res.update[k] })
	if err != nil {
		return response{}, err
	}
	for k := range in {
		if !res.update[k] {
			return response{}, neutronFault(400, "HTTPBadRequest", "Cannot update read-only attribute %s", k)
		}
	}
	if m := r.header.Get("If-Match"); m != "" {
		if want, ok := strings.CutPrefix(m, "revision_number="); ok && want != fmt.Sprint(o["revision_number"]) {
			return response{}, neutronFault(412, "RevisionNumberConstraintFailed", "Constrained to %s, but current revision is %v", want, o["revision_number"])
		}
	}
	if res.collection == "floatingips" {
		if err := c.updateFloatingIP(o, in); err != nil {
			return response{}, err
		}
	} else {
		for k, v := range in {
			if k == "fixed_ips" || k == "allocation_pools" {
				return response{}, neutronFault(501, "NotImplemented", "the simulator cannot change %s", k)
			}
			o[k] = v
		}
	}
	c.bump(o)
	return response{status: 200, body: object{res.singular: c.neutronView(res.collection, o)}}, nil
}

func (c *Cloud) deleteNeutron(collection string, o record) error {
	id := o.id()
	switch collection {
	case "networks":
		for _, p := range c.net.objects["ports"] {
			if p.str("network_id") == id {
				return neutronFault(409, "NetworkInUse", "Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.", id, p.id())
			}
		}
		for _, s := range c.ordered("subnets") {
			if s.str("network_id") == id {
				delete(c.net.objects["subnets"], s.id())
			}
		}
	case "subnets":
		if len(c.net.used[id]) > 0 {
			return neutronFault(409, "SubnetInUse", "Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", id)
		}
	case "ports":
		if owner := o.str("device_owner"); strings.HasPrefix(owner, "network:router") {
			return neutronFault(409, "ServicePortInUse", "Port %s cannot be deleted directly via the port API: has device owner %s.", id, owner)
		}
		c.dropPort(o)
		return nil
	case "routers":
		for _, p := range c.net.objects["ports"] {
			if p.str("device_id") == id && p.str("device_owner") == "network:router_interface" {
				return neutronFault(409, "RouterInUse", "Router %s still has ports", id)
			}
		}
	case "floatingips":
		c.freeAddress(o.str("_subnet"), o.str("floating_ip_address"))
	case "security_groups":
		if o.str("name") == "default" {
			return neutronFault(409, "SecurityGroupCannotRemoveDefault", "Insufficient rights for removing default security group.")
		}
		for _, p := range c.net.objects["ports"] {
			if slices.Contains(p.strs("security_groups"), id) {
				return neutronFault(409, "SecurityGroupInUse", "Security Group %s in use.", id)
			}
		}
		for _, ru := range c.ordered("security_group_rules") {
			if ru.str("security_group_id") == id {
				delete(c.net.objects["security_group_rules"], ru.id())
			}
		}
	}
	delete(c.net.objects[collection], id)
	return nil
}

func (c *Cloud) tagCall(r *request, o record) (response, error) {
	if r.method != "GET" && !c.owned(r.token, o) {
		return response{}, neutronFault(403, "PolicyNotAuthorized", "rule:update_tags is disallowed by policy")
	}
	tags := slices.Clone(o.strs("tags"))
	set := func(t []string) {
		sort.Strings(t)
		o["tags"] = t
		c.bump(o)
	}
	tooLong := func(t string) error {
		if len(t) > 255 {
			return neutronFault(400, "InvalidInput", "Invalid input for operation: '%s' exceeds maximum length of 255.", t)
		}
		return nil
	}
	if len(r.path) == 3 {
		switch r.method {
		case http.MethodGet:
			return response{status: 200, body: object{"tags": append([]string{}, tags...)}}, nil
		case http.MethodPut:
			var in struct {
				Tags []string `json:"tags"`
			}
			if err := json.Unmarshal(r.body, &in); err != nil {
				return response{}, neutronFault(400, "InvalidInput", "Invalid input for operation: Invalid tags body.")
			}
			seen := map[string]bool{}
			for _, t := range in.Tags {
				if err := tooLong(t); err != nil {
					return response{}, err
				}
				if seen[t] {
					return response{}, neutronFault(400, "InvalidInput", "Invalid input for operation: Duplicate items in the list: '%s'.", strings.Join(in.Tags, ", "))
				}
				seen[t] = true
			}
			if len(in.Tags) > 50 {
				return response{}, neutronFault(400, "BadRequest", "Bad tag request: The number of tags exceed the per-resource limit of 50.")
			}
			set(append([]string{}, in.Tags...))
			return response{status: 200, body: object{"tags": o["tags"]}}, nil
		case http.MethodDelete:
			set([]string{})
			return response{status: 204}, nil
		}
		return response{}, neutronFault(405, "HTTPMethodNotAllowed", "Method Not Allowed")
	}
	tag := r.path[3]
	switch r.method {
	case http.MethodGet:
		if slices.Contains(tags, tag) {
			return response{status: 204}, nil
		}
	case http.MethodPut:
		if err := tooLong(tag); err != nil {
			return response{}, err
		}
		if !slices.Contains(tags, tag) {
			set(append(tags, tag))
		}
		return response{status: 201}, nil
	case http.MethodDelete:
		if slices.Contains(tags, tag) {
			set(removeFrom(tags, tag))
			return response{status: 204}, nil
		}
	}
	return response{}, neutronFault(404, "TagNotFound", "Tag %s could not be found.", tag)
}
