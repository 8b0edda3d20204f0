package plan

import (
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// setters copies one field, by its name in Octavia's API, from the object as it shall be.
type setters[T any] map[string]func(to, from *T)

var listenerSetters = setters[lb.Listener]{
	"admin_state_up":        func(to, from *lb.Listener) { to.Disabled = from.Disabled },
	"allowed_cidrs":         func(to, from *lb.Listener) { to.AllowedCIDRs = from.AllowedCIDRs },
	"connection_limit":      func(to, from *lb.Listener) { to.ConnectionLimit = from.ConnectionLimit },
	"default_pool_id":       func(to, from *lb.Listener) { to.DefaultPool = from.DefaultPool },
	"alpn_protocols":        func(to, from *lb.Listener) { setTLS(to, from, func(to, from *lb.ListenerTLS) { to.ALPN = from.ALPN }) },
	"client_authentication": func(*lb.Listener, *lb.Listener) {},
	"client_ca_tls_container_ref": func(to, from *lb.Listener) {
		setTLS(to, from, func(to, from *lb.ListenerTLS) { to.ClientCA = from.ClientCA })
	},
	"default_tls_container_ref": func(to, from *lb.Listener) { setTLS(to, from, copyDefault) },
	"hsts_include_subdomains":   setHSTS,
	"hsts_max_age":              setHSTS,
	"hsts_preload":              setHSTS,
	"insert_headers":            func(to, from *lb.Listener) { to.InsertHeaders = from.InsertHeaders },
	"sni_container_refs":        func(to, from *lb.Listener) { setTLS(to, from, copySNI) },
	"tls_ciphers": func(to, from *lb.Listener) {
		setTLS(to, from, func(to, from *lb.ListenerTLS) { to.Ciphers = from.Ciphers })
	},
	"tls_versions": func(to, from *lb.Listener) {
		setTLS(to, from, func(to, from *lb.ListenerTLS) { to.Versions = from.Versions })
	},
	"timeout_client_data":    func(to, from *lb.Listener) { to.TimeoutClientData = from.TimeoutClientData },
	"timeout_member_connect": func(to, from *lb.Listener) { to.TimeoutMemberConnect = from.TimeoutMemberConnect },
	"timeout_member_data":    func(to, from *lb.Listener) { to.TimeoutMemberData = from.TimeoutMemberData },
}

// setHSTS is for all three fields of it: they are one value, and a plan names all or none.
func setHSTS(to, from *lb.Listener) {
	setTLS(to, from, func(to, from *lb.ListenerTLS) { to.HSTS = from.HSTS })
}

func setTLS(to, from *lb.Listener, part func(to, from *lb.ListenerTLS)) {
	var after, source lb.ListenerTLS
	if to.TLS != nil {
		after = *to.TLS
	}
	if from.TLS != nil {
		source = *from.TLS
	}
	part(&after, &source)
	to.TLS = &after
}

func copyDefault(to, from *lb.ListenerTLS) { to.Default = from.Default }
func copySNI(to, from *lb.ListenerTLS)     { to.SNI = from.SNI }

var poolSetters = setters[lb.Pool]{
	"admin_state_up": func(to, from *lb.Pool) { to.Disabled = from.Disabled },
	"lb_algorithm":   func(to, from *lb.Pool) { to.Algorithm = from.Algorithm },
	"name":           func(to, from *lb.Pool) { to.Name = from.Name },
	"tags":           func(to, from *lb.Pool) { to.Tags, to.Key = from.Tags, from.Key },

	"session_persistence": func(to, from *lb.Pool) { to.Persistence = from.Persistence },

	"alpn_protocols":       setPoolTLS(func(to, from *lb.PoolTLS) { to.ALPN = from.ALPN }),
	"ca_tls_container_ref": setPoolTLS(func(to, from *lb.PoolTLS) { to.CA = from.CA }),
	"tls_ciphers":          setPoolTLS(func(to, from *lb.PoolTLS) { to.Ciphers = from.Ciphers }),
	"tls_container_ref":    setPoolTLS(func(to, from *lb.PoolTLS) { to.Certificate = from.Certificate }),
	"tls_enabled":          setPoolTLS(func(to, from *lb.PoolTLS) { to.Disabled = from.Disabled }),
	"tls_versions":         setPoolTLS(func(to, from *lb.PoolTLS) { to.Versions = from.Versions }),
}

// setPoolTLS sets a part of a pool's TLS, which is there as soon as anything of it is.
func setPoolTLS(part func(to, from *lb.PoolTLS)) func(to, from *lb.Pool) {
	return func(to, from *lb.Pool) {
		if from.TLS == nil {
			to.TLS = nil
			return
		}
		var after lb.PoolTLS
		if to.TLS != nil {
			after = *to.TLS
		}
		part(&after, from.TLS)
		to.TLS = &after
	}
}

var monitorSetters = setters[lb.Monitor]{
	"admin_state_up":   func(to, from *lb.Monitor) { to.Disabled = from.Disabled },
	"delay":            func(to, from *lb.Monitor) { to.Delay = from.Delay },
	"expected_codes":   func(to, from *lb.Monitor) { to.ExpectedCodes = from.ExpectedCodes },
	"http_method":      func(to, from *lb.Monitor) { to.HTTPMethod = from.HTTPMethod },
	"max_retries":      func(to, from *lb.Monitor) { to.MaxRetries = from.MaxRetries },
	"max_retries_down": func(to, from *lb.Monitor) { to.MaxRetriesDown = from.MaxRetriesDown },
	"timeout":          func(to, from *lb.Monitor) { to.Timeout = from.Timeout },
	"url_path":         func(to, from *lb.Monitor) { to.URLPath = from.URLPath },
}

var policySetters = setters[lb.Policy]{
	"admin_state_up":     func(to, from *lb.Policy) { to.Disabled = from.Disabled },
	"action":             setAction,
	"position":           func(*lb.Policy, *lb.Policy) {},
	"redirect_http_code": func(to, from *lb.Policy) { to.Code = from.Code },
	"redirect_pool_id":   func(to, from *lb.Policy) { to.Pool = from.Pool },
	"redirect_prefix":    func(to, from *lb.Policy) { to.URL = from.URL },
	"redirect_url":       func(to, from *lb.Policy) { to.URL = from.URL },
}

// setAction clears what belongs to other actions, as Octavia does.
func setAction(to, from *lb.Policy) {
	to.Action, to.Pool, to.URL, to.Code = from.Action, "", "", 0
}

var ruleSetters = setters[lb.Rule]{
	"admin_state_up": func(to, from *lb.Rule) { to.Disabled = from.Disabled },
	"compare_type":   func(to, from *lb.Rule) { to.Compare = from.Compare },
	"invert":         func(to, from *lb.Rule) { to.Invert = from.Invert },
	"key":            func(to, from *lb.Rule) { to.Key = from.Key },
	"type":           func(to, from *lb.Rule) { to.Type = from.Type },
	"value":          func(to, from *lb.Rule) { to.Value = from.Value },
}

// updateFields sets exactly the fields that the step names, then checks the result. The action comes first: what it clears,
// the other fields set again.
func updateFields[T any](s Step, known setters[T], to, from *T, valid func(*T) error) error {
	if len(s.Fields) == 0 {
		return fmt.Errorf("an update needs fields")
	}
	fields := slices.Clone(s.Fields)
	if i := slices.Index(fields, "action"); i > 0 {
		fields[0], fields[i] = fields[i], fields[0]
	}
	for _, f := range fields {
		set, found := known[f]
		if !found {
			return fmt.Errorf("the field %s is not known", f)
		}
		set(to, from)
	}
	if valid == nil {
		return nil
	}
	return valid(to)
}

func known(s Step, fields ...string) error {
	for _, f := range s.Fields {
		if !slices.Contains(fields, f) {
			return fmt.Errorf("the field %s is not known", f)
		}
	}
	return nil
}
