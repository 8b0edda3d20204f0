package contract

import (
	"strings"
	"testing"
)

// refusal is a call that no cloud accepts. Ids of the fixture stand in braces.
type refusal struct {
	quirk        string
	method, path string
	body         any
	status       int
	message      string
}

func long(n int) string { return strings.Repeat("x", n) }

// TestOctavia_refusesWithTheseWords runs every refusal against one load
// balancer, which it must leave ACTIVE.
func TestOctavia_refusesWithTheseWords(t *testing.T) {
	c := begin(t)
	body := fullBody()
	body["listeners"] = append(body["listeners"].(l), o{"name": "tcp", "protocol": "TCP", "protocol_port": 81})
	lb := c.create(body)
	i := idsOf(lb)
	if doc := c.must(200, "GET", i.path("/lb/loadbalancers/{lb}"), nil); len(list(doc, "loadbalancer", "listeners")) != 2 {
		t.Fatal(compact(doc))
	}
	listener := func(more o) o {
		out := o{"protocol": "HTTP", "protocol_port": 90, "loadbalancer_id": "{lb}"}
		for k, v := range more {
			out[k] = v
		}
		return o{"listener": out}
	}
	pool := func(more o) o {
		out := o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": "{lb}"}
		for k, v := range more {
			out[k] = v
		}
		return o{"pool": out}
	}
	policy := func(more o) o {
		out := o{"listener_id": "{web}", "action": "REJECT"}
		for k, v := range more {
			out[k] = v
		}
		return o{"l7policy": out}
	}
	monitor := func(more o) o {
		out := o{"pool_id": "{B}", "type": "HTTP", "delay": 5, "timeout": 2, "max_retries": 2}
		for k, v := range more {
			out[k] = v
		}
		return o{"healthmonitor": out}
	}
	member := func(more o) o {
		out := o{"address": "10.0.0.50", "protocol_port": 80}
		for k, v := range more {
			out[k] = v
		}
		return o{"member": out}
	}
	whole := func(more o) o {
		out := o{"name": "never", "vip_subnet_id": c.subnet}
		for k, v := range more {
			out[k] = v
		}
		return o{"loadbalancer": out}
	}
	input := func(name, value, why string) string {
		return "Invalid input for field/attribute " + name + ". Value: '" + value + "'. " + why
	}
	const tooLong = "Value should have a maximum character requirement of 255"
	const rules = "/lb/l7policies/{to-A}/rules"
	for _, tc := range []refusal{
		// Shapes.
		{"unknown attribute of a load balancer", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"foo": 1}}, 400, "Unknown attribute for argument load_balancer.loadbalancer: foo"},
		{"two unknown attributes", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"foo": 1, "bar": 1}}, 400, "~^Unknown attributes for argument load_balancer.loadbalancer: (foo, bar|bar, foo)$"},
		{"unknown attribute deep in a create", "POST", "/lb/loadbalancers", whole(o{"pools": l{o{"name": "p", "foo": 1}}}), 400, "Unknown attribute for argument load_balancer.loadbalancer.pools: foo"},
		{"not JSON", "PUT", "/lb/loadbalancers/{lb}", "{", 400, "Request is not in valid JSON format"},
		{"name too long", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"name": long(256)}}, 400, input("name", long(256), tooLong)},
		{"description too long", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"description": long(256)}}, 400, input("description", long(256), tooLong)},
		{"tag too long", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"tags": l{long(256)}}}, 400, input("tags", "['"+long(256)+"']", tooLong)},
		{"not a boolean", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"admin_state_up": "maybe"}}, 400, "~Value not an unambiguous boolean: maybe$"},
		{"VIP is immutable", "PUT", "/lb/loadbalancers/{lb}", o{"loadbalancer": o{"vip_address": "10.0.0.77"}}, 400, "Unknown attribute for argument load_balancer.loadbalancer: vip_address"},

		// Load balancers.
		{"no VIP", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"name": "never"}}, 400, "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."},
		{"no such VIP subnet", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": "{none}"}}, 400, "Subnet {none} not found."},
		{"no such VIP network", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_network_id": "{none}"}}, 400, "Network {none} not found."},
		{"no such VIP port", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_port_id": "{none}"}}, 400, "Port {none} not found."},
		{"not a UUID", "POST", "/lb/loadbalancers", o{"loadbalancer": o{"vip_subnet_id": "x"}}, 400, input("vip_subnet_id", "x", "Value should be UUID format")},
		{"no such flavor", "POST", "/lb/loadbalancers", whole(o{"flavor_id": "8a1d6b0e-5a55-4b0c-9d9a-1f6f5d1f3a00"}), 400, "Validation failure: Invalid flavor_id."},
		{"the flavor that stands for deleted ones", "POST", "/lb/loadbalancers", whole(o{"flavor_id": "{none}"}), 400, "The selected flavor is not allowed in this deployment: {none}"},
		{"no such zone", "POST", "/lb/loadbalancers", whole(o{"availability_zone": "nowhere"}), 400, "Validation failure: Invalid availability zone."},
		{"no such provider", "POST", "/lb/loadbalancers", whole(o{"provider": "nobody"}), 400, "Provider 'nobody' is not enabled."},

		// Nesting works nowhere else.
		{"listener with a default pool", "POST", "/lb/listeners", listener(o{"default_pool": o{"name": "np", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}), 500, "'dict' object has no attribute '_sa_instance_state'"},
		{"listener with policies", "POST", "/lb/listeners", listener(o{"l7policies": l{o{"action": "REJECT", "rules": l{rule("PATH", "EQUAL_TO", "/c")}}}}), 500, "'dict' object has no attribute '_sa_instance_state'"},
		{"pool with members", "POST", "/lb/pools", pool(o{"members": l{o{"address": "10.0.0.13", "protocol_port": 8080}}}), 500, "'dict' object has no attribute '_sa_instance_state'"},
		{"pool with a monitor", "POST", "/lb/pools", pool(o{"healthmonitor": o{"type": "TCP", "delay": 5, "timeout": 2, "max_retries": 2}}), 500, "'dict' object has no attribute '_sa_instance_state'"},
		{"policy with rules", "POST", "/lb/l7policies", policy(o{"rules": l{rule("PATH", "EQUAL_TO", "/z")}}), 500, "'dict' object has no attribute '_sa_instance_state'"},
		{"policy with a redirect pool", "POST", "/lb/l7policies", policy(o{"redirect_pool": o{"name": "rp"}}), 400, "Unknown attribute for argument l7policy_.l7policy: redirect_pool"},

		// Listeners.
		{"port in use", "POST", "/lb/listeners", listener(o{"protocol_port": 80}), 409, "Another Listener on this Load Balancer is already using protocol HTTP and protocol_port 80"},
		{"port in use by another protocol on TCP", "POST", "/lb/listeners", listener(o{"protocol_port": 81}), 409, "Another Listener on this Load Balancer is already using protocol TCP and protocol_port 81"},
		{"a repeated tag pretends that the port is used", "POST", "/lb/listeners", listener(o{"tags": l{"a", "a"}}), 409, "Another Listener on this Load Balancer is already using protocol HTTP and protocol_port 90"},
		{"port 0", "POST", "/lb/listeners", listener(o{"protocol_port": 0}), 400, input("protocol_port", "0", "Value should be greater or equal to 1")},
		{"port 65536", "POST", "/lb/listeners", listener(o{"protocol_port": 65536}), 400, input("protocol_port", "65536", "Value should be lower or equal to 65535")},
		{"no protocol", "POST", "/lb/listeners", o{"listener": o{"protocol_port": 90, "loadbalancer_id": "{lb}"}}, 400, input("protocol", "None", "Mandatory field missing.")},
		{"no such protocol", "POST", "/lb/listeners", listener(o{"protocol": "GOPHER"}), 400, "~^Invalid input for field/attribute protocol. Value: 'GOPHER'. Value should be one of: "},
		{"no such load balancer", "POST", "/lb/listeners", listener(o{"loadbalancer_id": "{none}"}), 404, "Load Balancer {none} not found."},
		{"no such default pool", "POST", "/lb/listeners", listener(o{"default_pool_id": "{none}"}), 404, "Pool {none} not found."},
		{"a pool that does not fit", "POST", "/lb/pools", o{"pool": o{"protocol": "HTTPS", "lb_algorithm": "ROUND_ROBIN", "listener_id": "{web}"}}, 400, "Validation failure: The pool protocol 'HTTPS' is invalid while the listener protocol is 'HTTP'."},
		{"a second default pool", "POST", "/lb/pools", o{"pool": o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "listener_id": "{web}"}}, 409, "This listener already has a default pool"},
		{"unknown header to insert", "PUT", "/lb/listeners/{web}", o{"listener": o{"insert_headers": o{"X-Foo": "true"}}}, 400, "['X-Foo'] is not a valid option for insert_headers"},
		{"TLS header on HTTP", "PUT", "/lb/listeners/{web}", o{"listener": o{"insert_headers": o{"X-SSL-Client-CN": "true"}}}, 400, "['X-SSL-Client-CN'] is not a valid option for HTTP protocol listener."},
		{"header on TCP", "PUT", "/lb/listeners/{tcp}", o{"listener": o{"insert_headers": o{"X-Forwarded-For": "true"}}}, 400, "insert-headers is not a valid option for a TCP protocol listener."},
		{"timeout too long", "PUT", "/lb/listeners/{web}", o{"listener": o{"timeout_client_data": 2073600001}}, 400, input("timeout_client_data", "2073600001", "Value should be lower or equal to 2073600000")},
		{"CIDR of the other family", "PUT", "/lb/listeners/{web}", o{"listener": o{"allowed_cidrs": l{"2001:db8::/32"}}}, 400, "~^Validation failure: CIDR 2001:db8::/32 IP version incompatible with all VIPs \\['[0-9.]+'\\] IP version.$"},
		{"not a CIDR", "PUT", "/lb/listeners/{web}", o{"listener": o{"allowed_cidrs": l{"x"}}}, 400, input("allowed_cidrs", "['x']", "Value should be IPv4 or IPv6 CIDR format")},
		{"protocol is immutable", "PUT", "/lb/listeners/{web}", o{"listener": o{"protocol": "TCP"}}, 400, "Unknown attribute for argument listener_.listener: protocol"},
		{"port is immutable", "PUT", "/lb/listeners/{web}", o{"listener": o{"protocol_port": 99}}, 400, "Unknown attribute for argument listener_.listener: protocol_port"},
		{"HSTS on HTTP", "PUT", "/lb/listeners/{web}", o{"listener": o{"hsts_max_age": 5}}, 400, "Validation failure: The HSTS feature can only be used for listeners using the TERMINATED_HTTPS protocol."},
		{"a certificate on HTTP", "PUT", "/lb/listeners/{web}", o{"listener": o{"default_tls_container_ref": "http://x/v1/secrets/{none}"}}, 400, "Validation failure: Certificate container references are not allowed on HTTP protocol listeners."},
		{"TLS without a certificate", "POST", "/lb/listeners", listener(o{"protocol": "TERMINATED_HTTPS"}), 400, "Validation failure: An SNI or default certificate container reference must be provided for TERMINATED_HTTPS protocol listeners."},
		{"connection limit", "PUT", "/lb/listeners/{web}", o{"listener": o{"connection_limit": -2}}, 400, input("connection_limit", "-2", "Value should be greater or equal to -1")},
		{"client authentication without a CA", "POST", "/lb/listeners", listener(o{"client_authentication": "MANDATORY"}), 400, "Validation failure: Client authentication setting MANDATORY requires a client CA container reference."},

		// Pools and members.
		{"no such algorithm", "PUT", "/lb/pools/{A}", o{"pool": o{"lb_algorithm": "DICE"}}, 400, "~^Invalid input for field/attribute lb_algorithm. Value: 'DICE'. Value should be one of: "},
		{"pool protocol is immutable", "PUT", "/lb/pools/{A}", o{"pool": o{"protocol": "TCP"}}, 400, "Unknown attribute for argument pool_.pool: protocol"},
		{"pool for nobody", "POST", "/lb/pools", o{"pool": o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}, 400, "Validation failure: Must provide at least one of: loadbalancer_id, listener_id"},
		{"pool in use by a policy", "DELETE", "/lb/pools/{A}", nil, 409, "Pool {A} is in use by L7 policy {to-A}"},
		{"a cookie name for the wrong persistence", "PUT", "/lb/pools/{A}", o{"pool": o{"session_persistence": o{"type": "HTTP_COOKIE", "cookie_name": "x"}}}, 400, `Validation failure: Field "cookie_name" can only be specified with session persistence of type "APP_COOKIE".`},
		{"member exists", "POST", "/lb/pools/{A}/members", member(o{"address": "10.0.0.11", "protocol_port": 8080}), 409, "Another member on this pool is already using ip 10.0.0.11 on protocol_port 8080"},
		{"weight 257", "POST", "/lb/pools/{A}/members", member(o{"weight": 257}), 400, input("weight", "257", "Value should be lower or equal to 256")},
		{"member address is immutable", "PUT", "/lb/pools/{A}/members/{A.0}", o{"member": o{"address": "10.0.0.99"}}, 400, "Unknown attribute for argument member_.member: address"},
		{"not an address", "POST", "/lb/pools/{A}/members", member(o{"address": "example.org"}), 400, input("address", "example.org", "Value should be IPv4 or IPv6 format")},
		{"no such member subnet", "POST", "/lb/pools/{A}/members", member(o{"subnet_id": "{none}"}), 400, "Subnet {none} not found."},
		{"no such member", "GET", "/lb/pools/{A}/members/{none}", nil, 404, "Member {none} not found."},
		{"a member of another pool", "GET", "/lb/pools/{B}/members/{A.0}", nil, 404, "Member {A.0} not found."},
		{"an existing member twice in a batch", "PUT", "/lb/pools/{A}/members", o{"members": l{o{"address": "10.0.0.11", "protocol_port": 8080}, o{"address": "10.0.0.11", "protocol_port": 8080}}}, 400, "Validation failure: Member must be updated only once in the same request."},
		{"a new member twice in a batch", "PUT", "/lb/pools/{A}/members", o{"members": l{o{"address": "10.0.0.55", "protocol_port": 8080}, o{"address": "10.0.0.55", "protocol_port": 8080}}}, 409, "Another member on this pool is already using ip 10.0.0.55 on protocol_port 8080"},

		// Monitors.
		{"a second monitor", "POST", "/lb/healthmonitors", monitor(o{"pool_id": "{A}"}), 409, "This pool already has a health monitor"},
		{"11 retries", "POST", "/lb/healthmonitors", monitor(o{"max_retries": 11}), 400, input("max_retries", "11", "Value should be lower or equal to 10")},
		{"0 retries", "POST", "/lb/healthmonitors", monitor(o{"max_retries": 0}), 400, input("max_retries", "0", "Value should be greater or equal to 1")},
		{"a path for TCP", "POST", "/lb/healthmonitors", monitor(o{"type": "TCP", "url_path": "/x"}), 400, "url_path is not a valid option for health monitors of type TCP"},
		{"a relative path", "POST", "/lb/healthmonitors", monitor(o{"url_path": "x"}), 400, input("url_path", "x", "Value must be a valid URL Path string")},
		{"a domain name without a version", "POST", "/lb/healthmonitors", monitor(o{"domain_name": "a.example"}), 400, "Validation failure: 'http_version' must be specified when 'domain_name' is provided."},
		{"a domain name with HTTP 1.0", "POST", "/lb/healthmonitors", monitor(o{"domain_name": "a.example", "http_version": 1.0}), 400, "http_version 1.0 is not a valid option for health monitors HTTP 1.1 domain name health check"},
		{"bad codes", "POST", "/lb/healthmonitors", monitor(o{"expected_codes": "2xx"}), 400, input("expected_codes", "2xx", `Value should match the pattern ^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$`)},
		{"monitor type is immutable", "PUT", "/lb/healthmonitors/{A.monitor}", o{"healthmonitor": o{"type": "HTTP"}}, 400, "Unknown attribute for argument health_monitor_.healthmonitor: type"},
		{"monitor for no pool", "POST", "/lb/healthmonitors", monitor(o{"pool_id": "{none}"}), 404, "Pool {none} not found."},
		{"a UDP monitor", "POST", "/lb/healthmonitors", monitor(o{"type": "UDP-CONNECT"}), 400, "Validation failure: The UDP-CONNECT type is only supported for pools of type UDP/SCTP."},

		// Policies.
		{"position 0", "POST", "/lb/l7policies", policy(o{"position": 0}), 400, input("position", "0", "Value should be greater or equal to 1")},
		{"redirect code 300", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_URL", "redirect_url": "http://a/", "redirect_http_code": 300}), 400, "~^Invalid input for field/attribute redirect_http_code. Value: '300'. Value should be one of: "},
		{"a relative URL", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_URL", "redirect_url": "/rel"}), 400, input("redirect_url", "/rel", "Value must be a valid URL string")},
		{"an FTP URL", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_URL", "redirect_url": "ftp://a/"}), 400, input("redirect_url", "ftp://a/", "Value must be a valid URL string")},
		{"a URL that is too long", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_URL", "redirect_url": "http://a/" + long(250)}), 500, "~."},
		{"no URL", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_URL"}), 400, "Invalid L7 Policy arguments: redirect_url must not be None"},
		{"no prefix", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_PREFIX"}), 400, "Invalid L7 Policy arguments: redirect_prefix must not be None"},
		{"no pool", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_POOL"}), 400, "Invalid L7 Policy arguments: redirect_pool_id or redirect_pool must not be None"},
		{"no such pool", "POST", "/lb/l7policies", policy(o{"action": "REDIRECT_TO_POOL", "redirect_pool_id": "{none}"}), 404, "Pool {none} not found."},
		{"no such listener", "POST", "/lb/l7policies", policy(o{"listener_id": "{none}"}), 404, "Listener {none} not found."},
		{"no such action", "POST", "/lb/l7policies", policy(o{"action": "JUMP"}), 400, "~^Invalid input for field/attribute action. Value: 'JUMP'. Value should be one of: "},
		{"no such policy", "GET", "/lb/l7policies/{none}", nil, 404, "L7 Policy {none} not found."},

		// Rules.
		{"a space in a literal", "POST", rules, o{"rule": rule("PATH", "EQUAL_TO", "/a b")}, 400, "Error parsing L7Rule: Invalid characters in comparison value"},
		{"an empty value", "POST", rules, o{"rule": rule("PATH", "EQUAL_TO", "")}, 400, "Error parsing L7Rule: Invalid L7 Rule: L7 rule type requires a value"},
		{"value too long", "POST", rules, o{"rule": rule("PATH", "EQUAL_TO", long(256))}, 400, input("value", long(256), tooLong)},
		{"a bad regular expression", "POST", rules, o{"rule": rule("PATH", "REGEX", "(")}, 400, "Error parsing L7Rule: Unable to parse regular expression: missing ), unterminated subpattern at position 0"},
		{"a regular expression that only PCRE knows", "POST", rules, o{"rule": rule("PATH", "REGEX", `a\Kb`)}, 400, `~^Error parsing L7Rule: Unable to parse regular expression: bad escape \\K`},
		{"a header without a key", "POST", rules, o{"rule": rule("HEADER", "EQUAL_TO", "b")}, 400, "Error parsing L7Rule: Invalid L7 Rule: L7 rule type requires a key"},
		{"a header key with a space", "POST", rules, o{"rule": o{"type": "HEADER", "compare_type": "EQUAL_TO", "key": "X A", "value": "b"}}, 400, "Error parsing L7Rule: Invalid characters in key"},
		{"a pseudo header", "POST", rules, o{"rule": o{"type": "HEADER", "compare_type": "EQUAL_TO", "key": ":method", "value": "GET"}}, 400, "Error parsing L7Rule: Invalid characters in key"},
		{"a newline", "POST", rules, o{"rule": rule("PATH", "REGEX", "a\nb")}, 400, input("value", "a\nb", `Value should match the pattern ^[^\r\n]*$`)},
		{"a file type that starts with", "POST", rules, o{"rule": rule("FILE_TYPE", "STARTS_WITH", "x")}, 400, "Error parsing L7Rule: Invalid L7 Rule: invalid comparison type for rule type"},
		{"no such rule", "GET", rules + "/{none}", nil, 404, "L7 Rule {none} not found."},
		{"a rule made bad by an update", "PUT", rules + "/{to-A.1}", o{"rule": o{"value": "a b"}}, 400, "Error parsing L7Rule: Invalid characters in comparison value"},

		// Lists.
		{"unknown filter", "GET", "/lb/loadbalancers?foo=bar", nil, 400, "One or more arguments are either duplicate or invalid"},
		{"a pool has no listener filter", "GET", "/lb/pools?listener_id={web}", nil, 400, "One or more arguments are either duplicate or invalid"},
		{"bad marker", "GET", "/lb/loadbalancers?marker={none}", nil, 400, "Supplied pagination marker '{none}' is not valid."},
		{"bad limit", "GET", "/lb/loadbalancers?limit=x", nil, 400, "Supplied pagination limit 'x' is not valid."},
		{"bad sort key", "GET", "/lb/loadbalancers?sort=foo", nil, 400, "Supplied sort key 'foo' is not valid."},
		{"bad sort direction", "GET", "/lb/loadbalancers?sort=name:up", nil, 400, "Supplied sort direction 'up' is not valid."},
	} {
		var body any
		if tc.body != nil {
			body = i.fill(tc.body)
		}
		t.Run(tc.quirk, func(t *testing.T) {
			sub := *c
			sub.t = t
			sub.refused(tc.status, i.path(tc.message), tc.method, i.path(tc.path), body)
		})
	}
	if s := c.wait(i["lb"]); s != "ACTIVE" {
		t.Errorf("the load balancer is %s after all that", s)
	}
	doc := c.must(200, "GET", "/lb/loadbalancers?name=never", nil)
	if n := len(list(doc, "loadbalancers")); n != 0 {
		t.Errorf("%d load balancers were left by refused creates", n)
	}
}

// TestCreate_refusedLeavesItsPort covers the creates that are refused only when
// the VIP port exists already: the port stays, named after a load balancer that
// never was.
func TestCreate_refusedLeavesItsPort(t *testing.T) {
	c := begin(t)
	// A network of its own makes sure which ports are of this test.
	doc := c.must(201, "POST", "/network/networks", o{"network": o{"name": "contract"}})
	network := str(doc, "network", "id")
	ports := func() []o {
		return list(c.must(200, "GET", "/network/ports?network_id="+network, nil), "ports")
	}
	t.Cleanup(func() {
		for _, p := range ports() {
			c.must(204, "DELETE", "/network/ports/"+str(p, "id"), nil)
		}
		c.must(204, "DELETE", "/network/networks/"+network, nil)
	})
	doc = c.must(201, "POST", "/network/subnets", o{"subnet": o{"network_id": network, "ip_version": 4, "cidr": "192.0.2.0/24", "enable_dhcp": false}})
	subnet := str(doc, "subnet", "id")
	whole := func(more o) o {
		out := o{"name": "never", "vip_subnet_id": subnet}
		for k, v := range more {
			out[k] = v
		}
		return o{"loadbalancer": out}
	}
	refusals := []refusal{
		{"pools of a create need names", "", "", whole(o{"listeners": l{o{"protocol": "HTTP", "protocol_port": 80, "default_pool": o{"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}}}), 400, "Validation failure: Pools must be named when creating a fully populated loadbalancer."},
		{"pools of a create need different names", "", "", whole(o{"pools": l{o{"name": "p", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}, o{"name": "p", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}}), 400, "Validation failure: Pool names must be unique when creating a fully populated loadbalancer."},
		{"a reference to no pool", "", "", whole(o{"listeners": l{o{"protocol": "HTTP", "protocol_port": 80, "default_pool": o{"name": "nope"}}}}), 400, "Validation failure: Pool 'nope' was referenced but no full definition was found."},
		{"a pool without a protocol", "", "", whole(o{"pools": l{o{"name": "p", "lb_algorithm": "ROUND_ROBIN"}}}), 400, "Validation failure: Pool definition for 'p' missing required attribute: protocol"},
		{"a bad rule deep in a create", "", "", whole(o{"listeners": l{o{"protocol": "HTTP", "protocol_port": 80, "l7policies": l{o{"action": "REJECT", "rules": l{rule("PATH", "EQUAL_TO", "/a b")}}}}}}), 400, "Error parsing L7Rule: Invalid characters in comparison value"},
		{"a bad regular expression deep in a create", "", "", whole(o{"listeners": l{o{"protocol": "HTTP", "protocol_port": 80, "l7policies": l{o{"action": "REJECT", "rules": l{rule("PATH", "REGEX", "(")}}}}}}), 400, "Error parsing L7Rule: Unable to parse regular expression: missing ), unterminated subpattern at position 0"},
		{"the same member twice in a create", "", "", whole(o{"pools": l{o{"name": "p", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "members": l{o{"address": "10.0.0.9", "protocol_port": 1}, o{"address": "10.0.0.9", "protocol_port": 1}}}}}), 409, "Another member on this pool is already using ip 10.0.0.9 on protocol_port 1"},
		{"the same port twice in a create", "", "", whole(o{"listeners": l{o{"protocol": "HTTP", "protocol_port": 80}, o{"protocol": "TCP", "protocol_port": 80}}}), 409, "Another Listener on this Load Balancer is already using protocol HTTP and protocol_port 80"},
	}
	for n, tc := range refusals {
		t.Run(tc.quirk, func(t *testing.T) {
			sub := c.within(t)
			sub.refused(tc.status, tc.message, "POST", "/lb/loadbalancers", tc.body)
			left := ports()
			equal(t, "ports that were left", len(left), n+1)
			for _, p := range left {
				if str(p, "device_owner") != "Octavia" {
					t.Errorf("device owner %q", str(p, "device_owner"))
				}
				sub.must(404, "GET", "/lb/loadbalancers/"+strings.TrimPrefix(str(p, "device_id"), "lb-"), nil)
			}
		})
	}
	t.Run("a repeated tag is noticed before", func(t *testing.T) {
		sub := c.within(t)
		sub.refused(409, "Already an entity with that specified id.", "POST", "/lb/loadbalancers", whole(o{"tags": l{"a", "a"}}))
		equal(t, "ports that were left", len(ports()), len(refusals))
	})
}
