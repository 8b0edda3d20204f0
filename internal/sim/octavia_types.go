package sim

import "regexp"

// The request types of the Octavia API: which attributes each call takes.

const (
	maxTimeout  = 24 * 24 * 60 * 60 * 1000
	maxPosition = 2147483647
	maxRules    = 50
	defaultTLS  = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-SHA256:DHE-RSA-AES128-SHA256:ECDHE-RSA-AES256-SHA384:ECDHE-RSA-AES128-SHA256"
)

var (
	str255  = stringType{max: 255}
	tagList = listType{str255}
	port    = between(1, 65535)
	timeout = between(0, maxTimeout)
	retries = between(1, 10)
	noLines = stringType{max: 255, pattern: regexp.MustCompile(`^[^\r\n]*\n?$`), shown: `^[^\r\n]*$`}
	codes   = stringType{pattern: regexp.MustCompile(`^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$`), shown: `^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$`}
	domain  = stringType{min: 1, max: 255, pattern: regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$`),
		shown: `^(?=.{1,253}\.?$)(?:(?!-|[^.]+_)[A-Za-z0-9-_]{1,63}(?<!-)(?:\.|$))+$`}

	listenerProtocols = enumType{"TCP", "HTTPS", "HTTP", "TERMINATED_HTTPS", "UDP", "SCTP", "PROMETHEUS"}
	poolProtocols     = enumType{"TCP", "HTTP", "HTTPS", "PROXY", "PROXYV2", "UDP", "SCTP"}
	algorithms        = enumType{"LEAST_CONNECTIONS", "ROUND_ROBIN", "SOURCE_IP", "SOURCE_IP_PORT"}
	monitorTypes      = enumType{"HTTP", "HTTPS", "PING", "TCP", "TLS-HELLO", "UDP-CONNECT", "SCTP"}
	httpMethods       = enumType{"GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"}
	policyActions     = enumType{"REJECT", "REDIRECT_TO_URL", "REDIRECT_TO_POOL", "REDIRECT_PREFIX"}
	redirectCodes     = intEnumType{301, 302, 303, 307, 308}
	ruleTypes         = enumType{"HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE", "SSL_CONN_HAS_CERT", "SSL_VERIFY_RESULT", "SSL_DN_FIELD"}
	compareTypes      = enumType{"REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO"}
	clientAuthModes   = enumType{"NONE", "OPTIONAL", "MANDATORY"}
	persistenceTypes  = enumType{"SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE"}
)

func fields(groups ...[]field) *objectType {
	o := &objectType{}
	for _, g := range groups {
		o.fields = append(o.fields, g...)
	}
	return o
}

// withDefaults turns the update form of fields into the create form.
func withDefaults(fs []field, defaults map[string]any) []field {
	out := append([]field(nil), fs...)
	for i := range out {
		if d, ok := defaults[out[i].name]; ok {
			out[i].def = d
		}
	}
	return out
}

var (
	named     = []field{{name: "name", typ: str255}, {name: "description", typ: str255}}
	enabled   = []field{{name: "admin_state_up", typ: boolType{}}}
	enabledIf = withDefaults(enabled, map[string]any{"admin_state_up": true})
	tagged    = []field{{name: "tags", typ: tagList, since: 5}}
	ofProject = []field{{name: "project_id", typ: stringType{max: 36}}, {name: "tenant_id", typ: stringType{max: 36}}}

	lbUpdatable = []field{
		{name: "vip_qos_policy_id", typ: uuidType{}},
		{name: "vip_sg_ids", typ: listType{uuidType{}}, since: 29},
	}
	lbPUT  = fields(named, enabled, tagged, lbUpdatable)
	lbPOST = fields(named, enabledIf, tagged, ofProject, lbUpdatable, []field{
		{name: "vip_address", typ: ipType{}},
		{name: "vip_port_id", typ: uuidType{}},
		{name: "vip_subnet_id", typ: uuidType{}},
		{name: "vip_network_id", typ: uuidType{}},
		{name: "additional_vips", typ: listType{&objectType{fields: []field{
			{name: "subnet_id", typ: uuidType{}, mandatory: true},
			{name: "ip_address", typ: ipType{}}, {name: "port_id", typ: uuidType{}}}}}, since: 26},
		{name: "listeners", typ: listType{listenerNested}},
		{name: "pools", typ: listType{poolNested}},
		{name: "provider", typ: stringType{max: 64}},
		{name: "flavor_id", typ: uuidType{}, since: 6},
		{name: "availability_zone", typ: str255, since: 14},
	})

	listenerUpdatable = []field{
		{name: "connection_limit", typ: atLeast(-1)},
		{name: "default_tls_container_ref", typ: str255},
		{name: "sni_container_refs", typ: listType{str255}},
		{name: "default_pool_id", typ: uuidType{}},
		{name: "insert_headers", typ: dictType{str255}},
		{name: "timeout_client_data", typ: timeout},
		{name: "timeout_member_connect", typ: timeout},
		{name: "timeout_member_data", typ: timeout},
		{name: "timeout_tcp_inspect", typ: timeout},
		{name: "client_ca_tls_container_ref", typ: str255, since: 8},
		{name: "client_authentication", typ: clientAuthModes, since: 8},
		{name: "client_crl_container_ref", typ: str255, since: 8},
		{name: "allowed_cidrs", typ: listType{cidrType{}}, since: 12},
		{name: "tls_ciphers", typ: stringType{max: 2048}, since: 15},
		{name: "tls_versions", typ: listType{stringType{max: 32}}, since: 17},
		{name: "alpn_protocols", typ: listType{alpnType{}}, since: 20},
		{name: "hsts_max_age", typ: atLeast(0), since: 27},
		{name: "hsts_include_subdomains", typ: boolType{}, since: 27},
		{name: "hsts_preload", typ: boolType{}, since: 27},
	}
	listenerFixed = []field{
		{name: "protocol", typ: listenerProtocols, mandatory: true},
		{name: "protocol_port", typ: port, mandatory: true},
		{name: "default_pool", typ: poolNested},
		{name: "l7policies", typ: listType{policyNested}},
	}
	listenerDefaults = map[string]any{"connection_limit": -1, "client_authentication": "NONE",
		"hsts_include_subdomains": false, "hsts_preload": false}
	listenerPUT    = fields(named, enabled, tagged, listenerUpdatable)
	listenerNested = fields(named, enabledIf, tagged, withDefaults(listenerUpdatable, listenerDefaults), listenerFixed)
	listenerPOST   = fields(listenerNested.fields, ofProject, []field{{name: "loadbalancer_id", typ: uuidType{}, mandatory: true}})

	persistence = &objectType{fields: []field{
		{name: "type", typ: persistenceTypes, mandatory: true},
		{name: "cookie_name", typ: stringType{max: 255, pattern: regexp.MustCompile(`^[^\s,;\\]+$`), shown: `^[^\s,;\\]+$`}},
		{name: "persistence_timeout", typ: intType{}},
		{name: "persistence_granularity", typ: ipType{}}}}
	poolUpdatable = []field{
		{name: "lb_algorithm", typ: algorithms},
		{name: "session_persistence", typ: persistence},
		{name: "tls_container_ref", typ: str255, since: 8},
		{name: "ca_tls_container_ref", typ: str255, since: 8},
		{name: "crl_container_ref", typ: str255, since: 8},
		{name: "tls_enabled", typ: boolType{}, since: 8},
		{name: "tls_ciphers", typ: stringType{max: 2048}, since: 15},
		{name: "tls_versions", typ: listType{stringType{max: 32}}, since: 18},
		{name: "alpn_protocols", typ: listType{alpnType{}}, since: 24},
	}
	poolPUT    = fields(named, enabled, tagged, poolUpdatable)
	poolNested = fields(named, enabledIf, tagged, withDefaults(poolUpdatable, map[string]any{"tls_enabled": false}), []field{
		{name: "protocol", typ: poolProtocols},
		{name: "healthmonitor", typ: monitorNested},
		{name: "members", typ: listType{memberPOST}},
	})
	poolPOST = fields(poolNested.fields, ofProject, []field{
		{name: "listener_id", typ: uuidType{}},
		{name: "loadbalancer_id", typ: uuidType{}},
	})

	memberUpdatable = []field{
		{name: "name", typ: str255},
		{name: "weight", typ: between(0, 256)},
		{name: "backup", typ: boolType{}},
		{name: "monitor_port", typ: port},
		{name: "monitor_address", typ: ipType{}},
	}
	memberPUT  = fields(memberUpdatable, enabled, tagged)
	memberPOST = fields(withDefaults(memberUpdatable, map[string]any{"weight": 1, "backup": false}), enabledIf, tagged, ofProject, []field{
		{name: "address", typ: ipType{}, mandatory: true},
		{name: "protocol_port", typ: port, mandatory: true},
		{name: "subnet_id", typ: uuidType{}},
		{name: "request_sriov", typ: boolType{}, def: false, since: 30},
	})

	monitorUpdatable = []field{
		{name: "name", typ: str255},
		{name: "delay", typ: atLeast(0)},
		{name: "timeout", typ: atLeast(0)},
		{name: "max_retries_down", typ: retries},
		{name: "max_retries", typ: retries},
		{name: "http_method", typ: httpMethods},
		{name: "url_path", typ: urlPathType{}},
		{name: "expected_codes", typ: codes},
		{name: "http_version", typ: floatEnumType{1.0, 1.1}, since: 10},
		{name: "domain_name", typ: domain, since: 10},
	}
	monitorPUT    = fields(monitorUpdatable, enabled, tagged)
	monitorNested = fields(mandatory(withDefaults(monitorUpdatable, map[string]any{"max_retries_down": 3}), "delay", "timeout", "max_retries"),
		enabledIf, tagged, []field{{name: "type", typ: monitorTypes, mandatory: true}})
	monitorPOST = fields(monitorNested.fields, ofProject, []field{{name: "pool_id", typ: uuidType{}, mandatory: true}})

	policyUpdatable = []field{
		{name: "action", typ: policyActions},
		{name: "redirect_url", typ: urlType{}},
		{name: "redirect_prefix", typ: urlType{}},
		{name: "position", typ: between(1, maxPosition)},
		{name: "redirect_http_code", typ: redirectCodes, since: 9},
	}
	policyCreate = mandatory(withDefaults(policyUpdatable, map[string]any{"position": maxPosition}), "action")
	policyPUT    = fields(named, enabled, tagged, policyUpdatable, []field{{name: "redirect_pool_id", typ: uuidType{}}})
	policyNested = fields(named, enabledIf, tagged, policyCreate, []field{
		{name: "redirect_pool", typ: poolNested},
		{name: "rules", typ: listType{ruleNested}},
	})
	policyPOST = fields(named, enabledIf, tagged, ofProject, policyCreate, []field{
		{name: "redirect_pool_id", typ: uuidType{}},
		{name: "listener_id", typ: uuidType{}, mandatory: true},
		{name: "rules", typ: listType{ruleNested}},
	})

	rulePUT = fields(enabled, tagged, []field{
		{name: "type", typ: ruleTypes},
		{name: "compare_type", typ: compareTypes},
		{name: "key", typ: noLines},
		{name: "value", typ: noLines},
		{name: "invert", typ: boolType{}},
	})
	rulePOST = fields(mandatory(withDefaults(rulePUT.fields, map[string]any{"admin_state_up": true, "invert": false}), "type", "compare_type", "value"), ofProject)
	// The nested form checks no line breaks: they reach the configuration file.
	ruleNested = fields(replaceType(rulePOST.fields[:7], str255, "key", "value"))
)

func mandatory(fs []field, names ...string) []field {
	out := append([]field(nil), fs...)
	for i := range out {
		for _, n := range names {
			out[i].mandatory = out[i].mandatory || out[i].name == n
		}
	}
	return out
}

func replaceType(fs []field, t wtype, names ...string) []field {
	out := append([]field(nil), fs...)
	for i := range out {
		for _, n := range names {
			if out[i].name == n {
				out[i].typ = t
			}
		}
	}
	return out
}
