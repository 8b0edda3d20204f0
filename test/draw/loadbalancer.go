package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is a cloud as its APIs show it: collection, id, attributes. Members have a pool_id and rules an l7policy_id besides.
type State map[string]map[string]map[string]any

type object map[string]any

func (o object) str(name string) string { s, _ := o[name].(string); return s }

func (o object) num(name string) int {
	switch n := o[name].(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// refers says whether a list of {"id": ...} in o has the id.
func (o object) refers(name, id string) bool {
	list, _ := o[name].([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["id"] == id
	})
}

// all are the objects of a collection that keep chooses, in the order of what by returns.
func (s State) all(collection string, keep func(object) bool, by ...func(object) string) []object {
	var out []object
	for _, o := range s[collection] {
		if keep(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b object) int {
		for _, f := range by {
			if c := strings.Compare(f(a), f(b)); c != 0 {
				return c
			}
		}
		return strings.Compare(a.str("id"), b.str("id"))
	})
	return out
}

func text(name string) func(object) string { return func(o object) string { return o.str(name) } }
func number(name string) func(object) string {
	return func(o object) string { return fmt.Sprintf("%012d", o.num(name)) }
}

// LoadBalancers are the ids of all load balancers, in the order of their names.
func (s State) LoadBalancers() []string {
	var ids []string
	for _, o := range s.all("loadbalancers", func(object) bool { return true }, text("name")) {
		ids = append(ids, o.str("id"))
	}
	return ids
}

// LoadBalancer draws a load balancer with its addresses, its listeners with their policies in order of position, and its pools.
// What is ACTIVE and not down says nothing about it.
func (s State) LoadBalancer(id string) *Node {
	lb := object(s["loadbalancers"][id])
	if lb == nil {
		return &Node{Text: "no load balancer"}
	}
	root := &Node{Text: fmt.Sprintf("load balancer %s %s", lb.str("name"), lb.str("vip_address"))}
	for _, f := range s.all("floatingips", func(o object) bool { return o.str("port_id") != "" && o.str("port_id") == lb.str("vip_port_id") }) {
		root.Text += ", floating IP " + f.str("floating_ip_address")
	}
	root.Text += state(lb)
	for _, l := range s.all("listeners", func(o object) bool { return o.refers("loadbalancers", id) }, number("protocol_port"), text("protocol")) {
		s.listener(root, l)
	}
	for _, p := range s.all("pools", func(o object) bool { return o.refers("loadbalancers", id) }, text("name")) {
		s.pool(root, p)
	}
	return root
}

func (s State) listener(parent *Node, l object) {
	n := parent.Add(fmt.Sprintf("listener %s %s port %d%s", l.str("name"), l.str("protocol"), l.num("protocol_port"), state(l)))
	policies := s.all("l7policies", func(o object) bool { return o.str("listener_id") == l.str("id") }, number("position"))
	for _, p := range policies {
		policy := n.Add(fmt.Sprintf("%d. %s -> %s%s", p.num("position"), p.str("name"), s.target(p), state(p)))
		for _, r := range s.all("rules", func(o object) bool { return o.str("l7policy_id") == p.str("id") }, text("type"), text("key"), text("value")) {
			policy.Add(rule(r))
		}
	}
	if pool := l.str("default_pool_id"); pool != "" {
		n.Add("otherwise -> pool " + s.poolName(pool))
	}
}

func (s State) poolName(id string) string {
	if p := object(s["pools"][id]); p != nil {
		return cmp.Or(p.str("name"), id)
	}
	return id + " (missing)"
}

func (s State) target(p object) string {
	switch p.str("action") {
	case "REDIRECT_TO_POOL":
		return "pool " + s.poolName(p.str("redirect_pool_id"))
	case "REDIRECT_TO_URL":
		return fmt.Sprintf("%d %s", p.num("redirect_http_code"), p.str("redirect_url"))
	case "REDIRECT_PREFIX":
		return fmt.Sprintf("%d %s...", p.num("redirect_http_code"), p.str("redirect_prefix"))
	case "REJECT":
		return "403"
	}
	return p.str("action")
}

var (
	subjects = map[string]string{"HOST_NAME": "host", "PATH": "path", "HEADER": "header", "COOKIE": "cookie"}
	compares = map[string]string{"EQUAL_TO": "is", "STARTS_WITH": "starts with", "ENDS_WITH": "ends with", "CONTAINS": "contains", "REGEX": "matches"}
)

func rule(r object) string {
	words := []string{cmp.Or(subjects[r.str("type")], r.str("type"))}
	if key := r.str("key"); key != "" {
		words = append(words, key)
	}
	if r["invert"] == true {
		words = append(words, "not:")
	}
	words = append(words, cmp.Or(compares[r.str("compare_type")], r.str("compare_type")), r.str("value"))
	return strings.Join(words, " ") + state(r)
}

func (s State) pool(parent *Node, p object) {
	text := fmt.Sprintf("pool %s %s %s", p.str("name"), p.str("protocol"), p.str("lb_algorithm"))
	if p["tls_enabled"] == true {
		text += " over TLS"
		if p.str("ca_tls_container_ref") == "" {
			text += " without verification"
		}
	}
	for _, h := range s.all("healthmonitors", func(o object) bool { return o.refers("pools", p.str("id")) }) {
		text += fmt.Sprintf(", %s check every %d s%s", h.str("type"), h.num("delay"), state(h))
	}
	n := parent.Add(text + state(p))
	members := s.all("members", func(o object) bool { return o.str("pool_id") == p.str("id") })
	slices.SortFunc(members, func(a, b object) int {
		return cmp.Or(strings.Compare(a.str("address"), b.str("address")), cmp.Compare(a.num("protocol_port"), b.num("protocol_port")))
	})
	for _, m := range members {
		n.Add(fmt.Sprintf("%s:%d weight %d%s", m.str("address"), m.num("protocol_port"), m.num("weight"), state(m)))
	}
}

// state is what is unusual about an object.
func state(o object) string {
	var out []string
	if s := o.str("provisioning_status"); s != "ACTIVE" {
		out = append(out, s)
	}
	switch s := o.str("operating_status"); s {
	case "ERROR", "DEGRADED", "DRAINING":
		out = append(out, s)
	}
	if up, ok := o["admin_state_up"].(bool); ok && !up {
		out = append(out, "disabled")
	}
	if len(out) == 0 {
		return ""
	}
	return " [" + strings.Join(out, ", ") + "]"
}
