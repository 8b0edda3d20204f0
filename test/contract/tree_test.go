package contract

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// member, rule and so on are parts of create bodies.
func rule(typ, compare, value string) o {
	return o{"type": typ, "compare_type": compare, "value": value}
}

// fullBody is a fully-populated create with everything in it once.
func fullBody() o {
	return o{"name": "contract", "description": "d", "tags": l{"b=2", "a=1"},
		"listeners": l{
			o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "tags": l{"listener"}, "timeout_client_data": 30000,
				"insert_headers": o{"X-Forwarded-For": "true"}, "allowed_cidrs": l{"0.0.0.0/0"},
				"default_pool": o{"name": "B"},
				"l7policies": l{
					o{"name": "to-A", "action": "REDIRECT_TO_POOL", "position": 1, "tags": l{"policy"},
						"redirect_pool": o{"name": "A", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "tags": l{"pool"},
							"members":       l{o{"name": "m", "address": "10.0.0.11", "protocol_port": 8080, "weight": 5, "tags": l{"member"}}},
							"healthmonitor": o{"name": "hm", "type": "TCP", "delay": 5, "timeout": 2, "max_retries": 2, "tags": l{"monitor"}}},
						"rules": l{o{"type": "PATH", "compare_type": "STARTS_WITH", "value": "/a", "tags": l{"rule"}}, rule("HOST_NAME", "EQUAL_TO", "a.example")}},
					o{"name": "to-B", "action": "REDIRECT_TO_POOL", "position": 2, "redirect_pool": o{"name": "B"}, "rules": l{rule("PATH", "EQUAL_TO", "/b")}},
					o{"name": "away", "action": "REDIRECT_TO_URL", "redirect_url": "https://example.com/x", "redirect_http_code": 301, "position": 3, "rules": l{rule("PATH", "EQUAL_TO", "/c")}},
				}},
		},
		"pools": l{o{"name": "B", "protocol": "HTTP", "lb_algorithm": "LEAST_CONNECTIONS", "members": l{o{"address": "10.0.0.12", "protocol_port": 8080}}}},
	}
}

// ids are the names and ids of a tree, for the paths in tables.
type ids map[string]string

func idsOf(lb o) ids {
	out := ids{"lb": str(lb, "id"), "none": "00000000-0000-0000-0000-000000000000"}
	for _, li := range list(lb, "listeners") {
		out[str(li, "name")] = str(li, "id")
		for _, p := range list(li, "l7policies") {
			out[str(p, "name")] = str(p, "id")
			for i, r := range list(p, "rules") {
				out[fmt.Sprintf("%s.%d", str(p, "name"), i)] = str(r, "id")
			}
		}
	}
	for _, p := range list(lb, "pools") {
		name := str(p, "name")
		out[name] = str(p, "id")
		for i, m := range list(p, "members") {
			out[fmt.Sprintf("%s.%d", name, i)] = str(m, "id")
		}
		if id := str(p, "healthmonitor", "id"); id != "" {
			out[name+".monitor"] = id
		}
	}
	return out
}

// fill replaces {name} by ids, anywhere in a value.
func (i ids) fill(v any) any {
	switch x := v.(type) {
	case string:
		for name, id := range i {
			x = strings.ReplaceAll(x, "{"+name+"}", id)
		}
		return x
	case o:
		out := o{}
		for k, e := range x {
			out[k] = i.fill(e)
		}
		return out
	case l:
		out := l{}
		for _, e := range x {
			out = append(out, i.fill(e))
		}
		return out
	}
	return v
}

func (i ids) path(s string) string { f, _ := i.fill(s).(string); return f }

func TestCreate_answersWithTheWholeTree(t *testing.T) {
	c := beginWith(t, sim.Options{Latency: sim.Pending(500 * time.Millisecond)})
	lb := c.createNow(fullBody())
	id := str(lb, "id")
	equal(t, "status", lb["provisioning_status"], "PENDING_CREATE")
	equal(t, "operating status", lb["operating_status"], "OFFLINE")
	equal(t, "tags are sorted", lb["tags"], l{"a=1", "b=2"})
	equal(t, "provider", lb["provider"], "amphora")
	equal(t, "load balancer fields", keys(lb), l{"additional_vips", "admin_state_up", "availability_zone", "created_at", "description", "flavor_id", "id",
		"listeners", "name", "operating_status", "pools", "project_id", "provider", "provisioning_status", "tags", "tenant_id", "updated_at",
		"vip_address", "vip_network_id", "vip_port_id", "vip_qos_policy_id", "vip_sg_ids", "vip_subnet_id", "vip_vnic_type"})
	equal(t, "updated_at of a new object", lb["updated_at"], nil)
	li := list(lb, "listeners")[0]
	equal(t, "listener fields", keys(li), l{"admin_state_up", "allowed_cidrs", "alpn_protocols", "client_authentication", "client_ca_tls_container_ref",
		"client_crl_container_ref", "connection_limit", "created_at", "default_pool_id", "default_tls_container_ref", "description", "hsts_include_subdomains",
		"hsts_max_age", "hsts_preload", "id", "insert_headers", "l7policies", "name", "operating_status", "project_id", "protocol", "protocol_port",
		"provisioning_status", "sni_container_refs", "tags", "tenant_id", "timeout_client_data", "timeout_member_connect", "timeout_member_data",
		"timeout_tcp_inspect", "tls_ciphers", "tls_versions", "updated_at"})
	p := list(li, "l7policies")[0]
	equal(t, "policy fields", keys(p), l{"action", "admin_state_up", "created_at", "description", "id", "listener_id", "name", "operating_status", "position",
		"project_id", "provisioning_status", "redirect_http_code", "redirect_pool_id", "redirect_prefix", "redirect_url", "rules", "tags", "tenant_id", "updated_at"})
	var path o // rules come in no order
	for _, r := range list(p, "rules") {
		if str(r, "type") == "PATH" {
			path = r
		}
	}
	equal(t, "rule fields", keys(path), l{"admin_state_up", "compare_type", "created_at", "id", "invert", "key", "operating_status", "project_id",
		"provisioning_status", "tags", "tenant_id", "type", "updated_at", "value"})
	pools := map[string]o{}
	for _, po := range list(lb, "pools") {
		pools[str(po, "name")] = po
	}
	equal(t, "pool fields, with a monitor", keys(pools["A"]), l{"admin_state_up", "alpn_protocols", "ca_tls_container_ref", "created_at", "crl_container_ref",
		"description", "healthmonitor", "id", "lb_algorithm", "listeners", "members", "name", "operating_status", "project_id", "protocol",
		"provisioning_status", "session_persistence", "tags", "tenant_id", "tls_ciphers", "tls_container_ref", "tls_enabled", "tls_versions", "updated_at"})
	equal(t, "pool fields, without", keys(pools["B"]), keys(pools["A"]))
	equal(t, "no monitor", pools["B"]["healthmonitor"], nil)
	equal(t, "member fields", keys(list(pools["A"], "members")[0]), l{"address", "admin_state_up", "backup", "created_at", "id", "monitor_address", "monitor_port", "name",
		"operating_status", "project_id", "protocol_port", "provisioning_status", "subnet_id", "tags", "tenant_id", "updated_at", "vnic_type", "weight"})
	hm, _ := pools["A"]["healthmonitor"].(o)
	equal(t, "monitor fields", keys(hm), l{"admin_state_up", "created_at", "delay", "domain_name", "expected_codes", "http_method", "http_version", "id",
		"max_retries", "max_retries_down", "name", "operating_status", "project_id", "provisioning_status", "tags", "tenant_id", "timeout", "type", "updated_at", "url_path"})
	equal(t, "tags of nested objects", l{li["tags"], p["tags"], path["tags"], pools["A"]["tags"], list(pools["A"], "members")[0]["tags"], hm["tags"]},
		l{l{"listener"}, l{"policy"}, l{"rule"}, l{"pool"}, l{"member"}, l{"monitor"}})
	equal(t, "redirect pool by name", list(li, "l7policies")[1]["redirect_pool_id"], pools["B"]["id"])
	equal(t, "default pool by name", li["default_pool_id"], pools["B"]["id"])
	equal(t, "a TCP monitor has no HTTP settings", l{hm["http_method"], hm["url_path"], hm["expected_codes"], hm["max_retries_down"]}, l{nil, nil, nil, 3})

	t.Run("refuses writes while it is pending", func(t *testing.T) {
		i := idsOf(lb)
		state := "~^Invalid state PENDING_CREATE of loadbalancer resource " + id + "$"
		immutable := "Load Balancer " + id + " is immutable and cannot be updated."
		sub := *c
		sub.t = t
		for _, tc := range []struct {
			method, path string
			body         o
			message      string
		}{
			{"PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"name": "x"}}, state},
			{"DELETE", "/lb/loadbalancers/{lb}?cascade=true", nil, state},
			{"POST", "/lb/listeners", o{"listener": o{"protocol": "HTTP", "protocol_port": 81, "loadbalancer_id": "{lb}"}}, immutable},
			{"PUT", "/lb/listeners/{web}", o{"listener": o{"name": "x"}}, immutable},
			{"DELETE", "/lb/listeners/{web}", nil, immutable},
			{"POST", "/lb/pools", o{"pool": o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": "{lb}"}}, immutable},
			{"PUT", "/lb/pools/{A}", o{"pool": o{"name": "x"}}, immutable},
			{"POST", "/lb/l7policies", o{"l7policy": o{"listener_id": "{web}", "action": "REJECT"}}, immutable},
			{"PUT", "/lb/l7policies/{to-A}", o{"l7policy": o{"name": "x"}}, immutable},
			{"DELETE", "/lb/l7policies/{to-A}", nil, immutable},
			// Members, monitors and rules look at their parent first.
			{"PUT", "/lb/pools/{A}/members", o{"members": l{}}, "Pool " + i["A"] + " is immutable and cannot be updated."},
			{"POST", "/lb/pools/{A}/members", o{"member": o{"address": "10.0.0.13", "protocol_port": 1}}, "Pool " + i["A"] + " is immutable and cannot be updated."},
			{"PUT", "/lb/healthmonitors/{A.monitor}", o{"healthmonitor": o{"delay": 6}}, "Pool " + i["A"] + " is immutable and cannot be updated."},
			{"POST", "/lb/l7policies/{to-A}/rules", o{"rule": rule("PATH", "EQUAL_TO", "/z")}, "L7Policy " + i["to-A"] + " is immutable and cannot be updated."},
		} {
			var body any
			if tc.body != nil {
				body = i.fill(tc.body)
			}
			sub.refused(409, tc.message, tc.method, i.path(tc.path), body)
		}
		sub.must(200, "GET", "/lb/loadbalancers/"+id, nil)
	})

	c.active(id)
	t.Run("is ACTIVE with all its children", func(t *testing.T) {
		i := idsOf(lb)
		sub := *c
		sub.t = t
		got := o{}
		for name, path := range map[string]string{"listener": "/lb/listeners/{web}", "pool": "/lb/pools/{A}", "l7policy": "/lb/l7policies/{to-A}",
			"healthmonitor": "/lb/healthmonitors/{A.monitor}", "member": "/lb/pools/{A}/members/{A.0}", "rule": "/lb/l7policies/{to-A}/rules/{to-A.0}"} {
			doc := sub.must(200, "GET", i.path(path), nil)
			got[name] = str(doc, name, "provisioning_status")
		}
		equal(t, "provisioning", got, o{"listener": "ACTIVE", "pool": "ACTIVE", "l7policy": "ACTIVE", "healthmonitor": "ACTIVE", "member": "ACTIVE", "rule": "ACTIVE"})
		doc := sub.must(200, "GET", "/lb/loadbalancers/"+id, nil)
		if len(keys(dig(doc, "loadbalancer", "listeners", "0").(o))) != 1 || len(list(doc, "loadbalancer", "pools")) != 2 {
			t.Errorf("a single read must show ids of children only: %s", compact(doc))
		}
		doc = sub.must(200, "GET", i.path("/lb/pools/{A}"), nil)
		equal(t, "a pool alone", l{keys(dig(doc, "pool").(o))}, l{l{"admin_state_up", "alpn_protocols", "ca_tls_container_ref", "created_at", "crl_container_ref",
			"description", "healthmonitor_id", "id", "lb_algorithm", "listeners", "loadbalancers", "members", "name", "operating_status", "project_id", "protocol",
			"provisioning_status", "session_persistence", "tags", "tenant_id", "tls_ciphers", "tls_container_ref", "tls_enabled", "tls_versions", "updated_at"}})
		equal(t, "a pool behind a policy names the listener", list(doc, "pool", "listeners"), l{o{"id": i["web"]}})
		doc = sub.must(200, "GET", "/lb/loadbalancers/"+id+"/status", nil)
		st, _ := dig(doc, "statuses", "loadbalancer").(o)
		equal(t, "status tree", keys(st), l{"id", "listeners", "name", "operating_status", "provisioning_status"})
		equal(t, "status of listeners", keys(list(st, "listeners")[0]), l{"id", "name", "operating_status", "pools", "provisioning_status"})
		var names []string
		for _, p := range list(st, "listeners", "0", "pools") {
			names = append(names, str(p, "name"))
			if str(p, "name") == "A" {
				equal(t, "status of pools", keys(p), l{"health_monitor", "id", "members", "name", "operating_status", "provisioning_status"})
				equal(t, "status of members", keys(list(p, "members")[0]), l{"address", "id", "name", "operating_status", "protocol_port", "provisioning_status"})
				equal(t, "status of monitors", keys(dig(p, "health_monitor").(o)), l{"id", "name", "operating_status", "provisioning_status", "type"})
			}
		}
		sort.Strings(names)
		equal(t, "pools in the status tree", names, l{"A", "B"})
	})
	t.Run("is deleted with its children only by a cascade", func(t *testing.T) {
		sub := *c
		sub.t = t
		sub.refused(400, "Validation failure: Cannot delete Load Balancer "+id+" - it has children", "DELETE", "/lb/loadbalancers/"+id, nil)
		sub.must(204, "DELETE", "/lb/loadbalancers/"+id+"?cascade=true", nil)
		status, doc := sub.call("GET", "/lb/loadbalancers/"+id, nil)
		if status == 200 && str(doc, "loadbalancer", "provisioning_status") != "PENDING_DELETE" {
			t.Errorf("right after the DELETE: %s", compact(doc))
		}
		if s := sub.wait(id); s != "" {
			t.Errorf("load balancer is %s", s)
		}
		sub.refused(404, "Load Balancer "+id+" not found.", "GET", "/lb/loadbalancers/"+id, nil)
		sub.refused(404, "Load Balancer "+id+" not found.", "DELETE", "/lb/loadbalancers/"+id+"?cascade=true", nil)
		sub.refused(404, "Load Balancer "+id+" not found.", "GET", "/lb/loadbalancers/"+id+"/status", nil)
		sub.refused(404, "Listener "+idsOf(lb)["web"]+" not found.", "GET", "/lb/listeners/"+idsOf(lb)["web"], nil)
	})
}
