package contract

import (
	"fmt"
	"net/url"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

func (c *cloud) within(t *testing.T) *cloud {
	sub := *c
	sub.t = t
	return &sub
}

// policies are name and position of a listener's policies, in order.
func (c *cloud) policies(listener string) string {
	c.t.Helper()
	doc := c.must(200, "GET", "/lb/l7policies?listener_id="+listener, nil)
	var out []string
	for _, p := range list(doc, "l7policies") {
		out = append(out, fmt.Sprintf("%d:%s", num(p, "position"), str(p, "name")))
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

func TestPolicies_areRenumbered(t *testing.T) {
	c := begin(t)
	lb := c.create(o{"listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "l7policies": l{
		o{"name": "a", "action": "REJECT", "rules": l{rule("PATH", "EQUAL_TO", "/a")}},
		o{"name": "b", "action": "REJECT", "rules": l{rule("PATH", "EQUAL_TO", "/b")}}}}},
		"pools": l{o{"name": "P", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}})
	i := idsOf(lb)
	id, web := i["lb"], i["web"]
	equal(t, "after the create", c.policies(web), "1:a 2:b")
	add := func(name string, position any) o {
		p := o{"name": name, "listener_id": web, "action": "REJECT"}
		if position != nil {
			p["position"] = position
		}
		return c.write(id, 201, "POST", "/lb/l7policies", o{"l7policy": p})
	}
	doc := add("far", 1000)
	equal(t, "a position beyond the end", c.policies(web), "1:a 2:b 3:far")
	equal(t, "the answer knows the real position", dig(doc, "l7policy", "position"), 3)
	add("first", 1)
	equal(t, "an insert shifts the rest", c.policies(web), "1:first 2:a 3:b 4:far")
	far := str(doc, "l7policy", "id")
	c.write(id, 200, "PUT", "/lb/l7policies/"+far, o{"l7policy": o{"position": 2}})
	equal(t, "a move up", c.policies(web), "1:first 2:far 3:a 4:b")
	c.write(id, 200, "PUT", "/lb/l7policies/"+far, o{"l7policy": o{"position": 4}})
	equal(t, "a move down", c.policies(web), "1:first 2:a 3:b 4:far")
	c.must(204, "DELETE", "/lb/l7policies/"+i["a"], nil)
	c.active(id)
	equal(t, "a delete closes the gap", c.policies(web), "1:first 2:b 3:far")

	t.Run("an update of action and target", func(t *testing.T) {
		c := c.within(t)
		doc := c.write(id, 200, "PUT", "/lb/l7policies/"+i["b"], o{"l7policy": o{"action": "REDIRECT_PREFIX", "redirect_prefix": "https://a.example", "redirect_http_code": 308}})
		equal(t, "code", dig(doc, "l7policy", "redirect_http_code"), 308)
		doc = c.write(id, 200, "PUT", "/lb/l7policies/"+i["b"], o{"l7policy": o{"redirect_prefix": "https://b.example"}})
		equal(t, "an update without a code resets it", dig(doc, "l7policy", "redirect_http_code"), 302)
		doc = c.write(id, 200, "PUT", "/lb/l7policies/"+i["b"], o{"l7policy": o{"action": "REDIRECT_TO_POOL", "redirect_pool_id": i["P"]}})
		equal(t, "to a pool", l{dig(doc, "l7policy", "redirect_prefix"), dig(doc, "l7policy", "redirect_http_code"), dig(doc, "l7policy", "redirect_pool_id")}, l{nil, nil, i["P"]})
		doc = c.write(id, 200, "PUT", "/lb/l7policies/"+i["b"], o{"l7policy": o{"action": "REJECT"}})
		equal(t, "to reject", l{dig(doc, "l7policy", "action"), dig(doc, "l7policy", "redirect_pool_id")}, l{"REJECT", nil})
		doc = c.write(id, 200, "PUT", "/lb/l7policies/"+i["b"], o{"l7policy": o{"name": "renamed"}})
		equal(t, "a name alone", l{dig(doc, "l7policy", "action"), dig(doc, "l7policy", "name")}, l{"REJECT", "renamed"})
	})
	t.Run("rules", func(t *testing.T) {
		c := c.within(t)
		path := "/lb/l7policies/" + far + "/rules"
		doc := c.must(201, "POST", path, o{"rule": rule("PATH", "REGEX", "^/x(?=y)")})
		equal(t, "provisioning", dig(doc, "rule", "provisioning_status"), "PENDING_CREATE")
		c.active(id)
		rid := str(doc, "rule", "id")
		c.write(id, 200, "PUT", path+"/"+rid, o{"rule": o{"type": "HEADER", "key": "X-A", "value": "v", "compare_type": "EQUAL_TO", "invert": true}})
		doc = c.must(200, "GET", path+"/"+rid, nil)
		equal(t, "everything of a rule can change", l{dig(doc, "rule", "type"), dig(doc, "rule", "key"), dig(doc, "rule", "value"), dig(doc, "rule", "invert")}, l{"HEADER", "X-A", "v", true})
		doc = c.must(200, "GET", "/lb/l7policies/"+far, nil)
		equal(t, "a policy shows ids of rules", list(doc, "l7policy", "rules"), l{o{"id": rid}})
		c.must(204, "DELETE", path+"/"+rid, nil)
		c.active(id)
	})
}

func TestMembers_areReplacedByKey(t *testing.T) {
	c := beginWith(t, sim.Options{Latency: sim.Pending(100 * time.Millisecond)})
	lb := c.create(o{"listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "default_pool": o{"name": "P", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}}})
	i := idsOf(lb)
	id, path := i["lb"], "/lb/pools/"+i["P"]+"/members"
	batch := func(query string, members ...any) {
		t.Helper()
		c.must(202, "PUT", path+query, o{"members": append(l{}, members...)})
		c.active(id)
	}
	read := func() map[string]o {
		t.Helper()
		out := map[string]o{}
		for _, m := range list(c.must(200, "GET", path, nil), "members") {
			out[str(m, "address")] = m
		}
		return out
	}
	batch("", o{"address": "10.0.0.11", "protocol_port": 8080, "name": "m1", "weight": 7, "tags": l{"t"}}, o{"address": "10.0.0.12", "protocol_port": 8080, "subnet_id": c.subnet})
	first := read()
	equal(t, "weight and its default", l{first["10.0.0.11"]["weight"], first["10.0.0.12"]["weight"]}, l{7, 1})
	equal(t, "without a monitor", first["10.0.0.11"]["operating_status"], "NO_MONITOR")
	equal(t, "subnet", l{first["10.0.0.11"]["subnet_id"], first["10.0.0.12"]["subnet_id"]}, l{nil, c.subnet})

	batch("", o{"address": "10.0.0.11", "protocol_port": 8080}, o{"address": "10.0.0.12", "protocol_port": 8080})
	again := read()
	equal(t, "members keep their ids", l{again["10.0.0.11"]["id"], again["10.0.0.12"]["id"]}, l{first["10.0.0.11"]["id"], first["10.0.0.12"]["id"]})
	equal(t, "what is left out: weight gets its default, name and tags and subnet stay",
		l{again["10.0.0.11"]["weight"], again["10.0.0.11"]["name"], again["10.0.0.11"]["tags"], again["10.0.0.12"]["subnet_id"]}, l{1, "m1", l{"t"}, c.subnet})

	c.must(202, "PUT", path, o{"members": l{o{"address": "10.0.0.11", "protocol_port": 8080}, o{"address": "10.0.0.12", "protocol_port": 8080}}})
	doc := c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=provisioning_status", nil)
	equal(t, "a batch that changes nothing locks all the same", list(doc, "loadbalancers")[0], o{"provisioning_status": "PENDING_UPDATE"})
	c.active(id)

	batch("?additive_only=true", o{"address": "10.0.0.13", "protocol_port": 8080})
	equal(t, "additive", len(read()), 3)
	batch("", o{"address": "10.0.0.13", "protocol_port": 8080})
	equal(t, "full replacement", len(read()), 1)
	batch("")
	equal(t, "an empty batch clears", len(read()), 0)
	status, _ := c.call("PUT", path, o{"members": l{}})
	equal(t, "an empty batch for an empty pool", status, 202)
	c.active(id)

	doc = c.write(id, 201, "POST", path, o{"member": o{"address": "10.0.0.14", "protocol_port": 80, "weight": 0, "backup": true}})
	mid := str(doc, "member", "id")
	doc = c.write(id, 200, "PUT", path+"/"+mid, o{"member": o{"weight": 9, "tags": l{"z"}}})
	equal(t, "an update", l{dig(doc, "member", "weight"), dig(doc, "member", "backup"), dig(doc, "member", "tags")}, l{9, true, l{"z"}})
	c.must(204, "DELETE", path+"/"+mid, nil)
	c.active(id)
	equal(t, "after the delete", len(read()), 0)
	c.refused(404, "~Pool "+i["lb"]+" not found", "GET", "/lb/pools/"+i["lb"]+"/members", nil)

	t.Run("a default pool can be deleted", func(t *testing.T) {
		c := c.within(t)
		c.must(204, "DELETE", "/lb/pools/"+i["P"], nil)
		c.active(id)
		doc := c.must(200, "GET", "/lb/listeners/"+i["web"], nil)
		equal(t, "default pool", dig(doc, "listener", "default_pool_id"), nil)
		c.refused(404, "Pool "+i["P"]+" not found.", "GET", "/lb/pools/"+i["P"], nil)
	})
	t.Run("a pool can become the default pool by its creation", func(t *testing.T) {
		c := c.within(t)
		doc := c.write(id, 201, "POST", "/lb/pools", o{"pool": o{"name": "Q", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "listener_id": i["web"]}})
		doc2 := c.must(200, "GET", "/lb/listeners/"+i["web"], nil)
		equal(t, "default pool", dig(doc2, "listener", "default_pool_id"), dig(doc, "pool", "id"))
	})
}

func TestUpdates_keepWhatTheyDoNotName(t *testing.T) {
	c := begin(t)
	lb := c.create(fullBody())
	i := idsOf(lb)
	id := i["lb"]
	doc := c.write(id, 200, "PUT", "/lb/listeners/"+i["web"], o{"listener": o{"timeout_client_data": nil, "timeout_member_data": 0, "insert_headers": o{"X-Forwarded-Proto": "yes"}}})
	li, _ := doc["listener"].(o)
	equal(t, "the answer is already the new state, pending", l{li["provisioning_status"], li["timeout_client_data"], li["timeout_member_data"], li["name"], li["insert_headers"]},
		l{"PENDING_UPDATE", 50000, 0, "web", o{"X-Forwarded-Proto": "yes"}})
	doc = c.write(id, 200, "PUT", "/lb/listeners/"+i["web"], o{"listener": o{"allowed_cidrs": l{"172.16.0.1/12", "10.0.0.0/24"}}})
	cidrs, _ := dig(doc, "listener", "allowed_cidrs").(l)
	equal(t, "CIDRs are normalised", strings.Contains(compact(cidrs), "172.16.0.0/12") && len(cidrs) == 2, true)
	doc = c.write(id, 200, "PUT", "/lb/listeners/"+i["web"], o{"listener": o{"allowed_cidrs": l{}, "default_pool_id": nil}})
	equal(t, "an empty list is null", l{dig(doc, "listener", "allowed_cidrs"), dig(doc, "listener", "default_pool_id")}, l{nil, nil})
	doc = c.write(id, 200, "PUT", "/lb/pools/"+i["A"], o{"pool": o{"session_persistence": o{"type": "HTTP_COOKIE"}, "tls_enabled": true}})
	equal(t, "pool", l{dig(doc, "pool", "session_persistence"), dig(doc, "pool", "tls_enabled"), dig(doc, "pool", "lb_algorithm")},
		l{o{"cookie_name": nil, "persistence_granularity": nil, "persistence_timeout": nil, "type": "HTTP_COOKIE"}, true, "ROUND_ROBIN"})
	doc = c.write(id, 200, "PUT", "/lb/pools/"+i["A"], o{"pool": o{"session_persistence": nil, "tls_enabled": false, "admin_state_up": false}})
	equal(t, "pool again", l{dig(doc, "pool", "session_persistence"), dig(doc, "pool", "admin_state_up")}, l{nil, false})
	doc = c.write(id, 200, "PUT", "/lb/healthmonitors/"+i["A.monitor"], o{"healthmonitor": o{"delay": 7, "timeout": 9}})
	equal(t, "a timeout above the delay is accepted", l{dig(doc, "healthmonitor", "delay"), dig(doc, "healthmonitor", "timeout"), dig(doc, "healthmonitor", "max_retries")}, l{7, 9, 2})
	doc = c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"name": nil, "description": "new"}})
	equal(t, "a null name is empty", l{dig(doc, "loadbalancer", "name"), dig(doc, "loadbalancer", "description"), dig(doc, "loadbalancer", "tags")}, l{"", "new", l{"a=1", "b=2"}})
	if dig(doc, "loadbalancer", "updated_at") == nil {
		t.Error("updated_at is not set")
	}
	c.must(204, "DELETE", "/lb/listeners/"+i["web"], nil)
	c.active(id)
	c.refused(404, "L7 Policy "+i["to-A"]+" not found.", "GET", "/lb/l7policies/"+i["to-A"], nil)
	doc = c.must(200, "GET", "/lb/pools/"+i["A"], nil)
	equal(t, "a deleted listener leaves its pools", l{dig(doc, "pool", "name"), dig(doc, "pool", "operating_status")}, l{"A", "OFFLINE"})
}

func TestTags_filterAndBreak(t *testing.T) {
	c := begin(t)
	lb := c.create(o{"name": "contract-1", "tags": l{"contract=1", "n=1", "com,ma"}, "listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "tags": l{"contract=1", "x"}}},
		"pools": l{o{"name": "P", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "tags": l{"contract=1", "p"}}}})
	id := str(lb, "id")
	found := func(kind, query string) string {
		t.Helper()
		doc := c.must(200, "GET", "/lb/"+kind+"?"+query, nil)
		var names []string
		for _, e := range list(doc, kind) {
			names = append(names, str(e, "name"))
		}
		return strings.Join(names, " ")
	}
	for _, tc := range []struct{ kind, query, want string }{
		{"loadbalancers", "tags=contract%3D1", "contract-1"},
		{"loadbalancers", "tags=contract%3D1,n%3D1", "contract-1"},
		{"loadbalancers", "tags=contract%3D1&tags=n%3D1", "contract-1"},
		{"loadbalancers", "tags=contract%3D1,n%3D2", ""},
		{"loadbalancers", "tags-any=contract%3D1,n%3D2", "contract-1"},
		{"loadbalancers", "tags=contract%3D1&not-tags=n%3D1", ""},
		{"loadbalancers", "tags=contract%3D1&not-tags=n%3D2", "contract-1"},
		{"loadbalancers", "tags=contract%3D1&not-tags-any=n%3D1,n%3D2", ""},
		{"loadbalancers", "tags=com,ma", ""}, // a comma separates, so such a tag is never found
		{"listeners", "tags=contract%3D1", "web"},
		{"pools", "tags=contract%3D1,p", "P"},
		{"l7policies", "tags=contract%3D1", ""},
		{"healthmonitors", "tags=contract%3D1", ""},
	} {
		if got := found(tc.kind, tc.query); got != tc.want {
			t.Errorf("%s?%s: %q, want %q", tc.kind, tc.query, got, tc.want)
		}
	}
	many := l{}
	for n := range 300 {
		many = append(many, fmt.Sprintf("t%03d", n))
	}
	doc := c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"tags": many}})
	equal(t, "300 tags", dig(doc, "loadbalancer", "tags"), many)
	doc = c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"tags": l{"", "é", "a/b c"}}})
	equal(t, "odd tags", len(dig(doc, "loadbalancer", "tags").(l)), 3)
	doc = c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"tags": l{}}})
	equal(t, "no tags", dig(doc, "loadbalancer", "tags"), l{})

	status, _ := c.call("PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"tags": l{"a", "a"}}})
	equal(t, "a repeated tag in an update", status, 500)
	equal(t, "which leaves the load balancer", c.wait(id), "ACTIVE")
	// The API has told the worker before it failed. The worker waits a minute
	// for the load balancer to become PENDING_UPDATE, then does the update that
	// is none and sets it ACTIVE. That ends the lock of the next update early;
	// and when the load balancer was deleted meanwhile, it comes back in ERROR.
	// So one more update here gives the worker what it waits for.
	c.write(id, 200, "PUT", "/lb/loadbalancers/"+id, o{"loadbalancer": o{"description": "after the failure"}})
	if c.real {
		time.Sleep(10 * time.Second)
	}
}

func TestLists_pageFilterAndSort(t *testing.T) {
	c := begin(t)
	var pools l
	for _, n := range []string{"e", "d", "c", "b", "a"} {
		pools = append(pools, o{"name": "page-" + n, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"})
	}
	lb := c.create(o{"name": "contract-page", "pools": pools, "listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80}}})
	id := str(lb, "id")
	names := func(doc o) string {
		var out []string
		for _, e := range list(doc, "pools") {
			out = append(out, strings.TrimPrefix(str(e, "name"), "page-"))
		}
		return strings.Join(out, "")
	}
	base := "/lb/pools?loadbalancer_id=" + id
	equal(t, "sorted by name", names(c.must(200, "GET", base+"&sort=name:asc", nil)), "abcde")
	equal(t, "sorted down", names(c.must(200, "GET", base+"&sort=name:desc", nil)), "edcba")
	equal(t, "sort_key and sort_dir", names(c.must(200, "GET", base+"&sort_key=name&sort_dir=desc", nil)), "edcba")
	doc := c.must(200, "GET", base+"&sort=name:asc&limit=2", nil)
	equal(t, "first page", names(doc), "ab")
	links := list(doc, "pools_links")
	if len(links) != 1 || str(links[0], "rel") != "next" {
		t.Fatalf("links %s", compact(links))
	}
	next, err := url.Parse(str(links[0], "href"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a next link loses the filters", l{next.Query().Get("loadbalancer_id"), next.Query().Get("limit"), next.Query().Get("sort"), next.Query().Get("marker") != ""}, l{"", "2", "name:asc", true})
	doc = c.must(200, "GET", base+"&sort=name:asc&limit=2&marker="+next.Query().Get("marker"), nil)
	equal(t, "second page, with the filter added again", names(doc), "cd")
	equal(t, "links of a page in the middle", len(list(doc, "pools_links")), 2)
	doc = c.must(200, "GET", base+"&limit=5", nil)
	equal(t, "a full last page still has a next link", len(list(doc, "pools_links")), 1)
	doc = c.must(200, "GET", base+"&limit=6", nil)
	equal(t, "a page that is not full has none", compact(doc["pools_links"]), "[]")

	for _, tc := range []struct{ query, want string }{
		{"name=page-a", "a"}, {"name=PAGE-A", "a"}, {"name=nope", ""}, {"protocol=HTTP&name=page-b", "b"}, {"admin_state_up=false", ""},
		{"admin_state_up=true&name=page-c", "c"}, {"id=" + idsOf(lb)["page-d"], "d"},
		{"description=&name=page-e", ""}, // what was never set is null
	} {
		equal(t, tc.query, names(c.must(200, "GET", base+"&"+tc.query, nil)), tc.want)
	}
	doc = c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=provisioning_status&fields=id", nil)
	equal(t, "fields", keys(list(doc, "loadbalancers")[0]), l{"id", "provisioning_status"})
	doc = c.must(200, "GET", "/lb/loadbalancers/"+id+"?fields=name", nil)
	equal(t, "fields of one", dig(doc, "loadbalancer"), o{"name": "contract-page"})
	doc = c.must(200, "GET", "/lb/loadbalancers?vip_address="+str(lb, "vip_address")+"&name=contract-page", nil)
	equal(t, "by VIP", len(list(doc, "loadbalancers")), 1)
	doc = c.must(200, "GET", "/lb/loadbalancers?vip_port_id="+str(lb, "vip_port_id"), nil)
	equal(t, "by VIP port", len(list(doc, "loadbalancers")), 1)
	doc = c.must(200, "GET", "/lb/listeners?loadbalancer_id="+id+"&protocol_port=80", nil)
	equal(t, "by a number", len(list(doc, "listeners")), 1)
	doc = c.must(200, "GET", "/lb/healthmonitors?pool_id="+idsOf(lb)["page-a"], nil)
	equal(t, "monitors by pool", len(list(doc, "healthmonitors")), 0)
	doc = c.must(200, "GET", "/lb/listeners?loadbalancer_id="+id, nil)
	equal(t, "a listener in a list", keys(list(doc, "listeners")[0]), l{"admin_state_up", "allowed_cidrs", "alpn_protocols", "client_authentication", "client_ca_tls_container_ref",
		"client_crl_container_ref", "connection_limit", "created_at", "default_pool_id", "default_tls_container_ref", "description", "hsts_include_subdomains",
		"hsts_max_age", "hsts_preload", "id", "insert_headers", "l7policies", "loadbalancers", "name", "operating_status", "project_id", "protocol", "protocol_port",
		"provisioning_status", "sni_container_refs", "tags", "tenant_id", "timeout_client_data", "timeout_member_connect", "timeout_member_data",
		"timeout_tcp_inspect", "tls_ciphers", "tls_versions", "updated_at"})
	if _, err := time.Parse("2006-01-02T15:04:05", str(lb, "created_at")); err != nil {
		t.Error(err)
	}
}

func TestQuotas_areCountedAndLeak(t *testing.T) {
	c := begin(t)
	admin := c.admin()
	lb := c.create(o{"listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80}}})
	i := idsOf(lb)
	id := i["lb"]
	path := "/lb/quotas/" + c.project
	c.refused(403, "Policy does not allow this request to be performed.", "PUT", path, o{"quota": o{"pool": 1}})
	// Neighbours on a shared cloud use quota too, so limits are set from what
	// is there, and only for the time of one call.
	limited := func(quota o, f func()) {
		t.Helper()
		admin.must(202, "PUT", path, o{"quota": quota})
		defer admin.must(202, "DELETE", path, nil)
		f()
	}
	limited(o{"load_balancer": 0}, func() {
		c.refused(403, "Quota has been met for resources: Load Balancer", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": c.subnet, "name": "never"}})
	})
	limited(o{"listener": 0, "pool": 0, "l7policy": 0}, func() {
		c.refused(403, "Quota has been met for resources: Listener", "POST", "/lb/listeners", o{"listener": o{"protocol": "HTTP", "protocol_port": 81, "loadbalancer_id": id}})
		c.refused(403, "Quota has been met for resources: Pool", "POST", "/lb/pools", o{"pool": o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": id}})
		c.refused(403, "Quota has been met for resources: L7 Policy", "POST", "/lb/l7policies", o{"l7policy": o{"listener_id": i["web"], "action": "REJECT"}})
	})
	equal(t, "the refusals left the load balancer", c.wait(id), "ACTIVE")
	doc := c.must(200, "GET", path, nil)
	equal(t, "quota fields", keys(dig(doc, "quota").(o)), l{"health_monitor", "l7policy", "l7rule", "listener", "load_balancer", "member", "pool"})
	doc = c.must(200, "GET", path+"/default", nil)
	equal(t, "default", dig(doc, "quota", "l7policy"), -1)
}

func TestDiscovery_listsVersionsAndProviders(t *testing.T) {
	c := begin(t)
	root := strings.TrimSuffix(c.octavia.ResourceBaseURL(), "v2.0/")
	_, doc, err := c.try(t.Context(), "GET", root, nil, "X-Auth-Token", "")
	if err != nil {
		t.Fatal(err)
	}
	versions := list(doc, "versions")
	if len(versions) < 27 || str(versions[0], "id") != "v2.0" || str(versions[len(versions)-1], "status") != "CURRENT" {
		t.Errorf("versions %s", compact(doc))
	}
	equal(t, "version fields", keys(versions[0]), l{"id", "links", "status", "updated"})
	doc = c.must(200, "GET", "/lb/providers", nil)
	var names []string
	for _, p := range list(doc, "providers") {
		names = append(names, str(p, "name"))
	}
	if !strings.Contains(strings.Join(names, " "), "amphora") {
		t.Errorf("providers %v", names)
	}
	doc = c.must(200, "GET", "/lb/flavors", nil)
	equal(t, "flavors", keys(doc), l{"flavors", "flavors_links"})
	doc = c.must(200, "GET", "/lb/availabilityzones", nil)
	equal(t, "zones", keys(doc), l{"availability_zones", "availability_zones_links"})
}
