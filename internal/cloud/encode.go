package cloud

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// attributes is a request body by Octavia's names. A nil value is JSON null, which resets an attribute to its default;
// in a create it is left out instead.
type attributes map[string]any

// only keeps the named attributes, and fails on a name that the object does not have.
func (a attributes) only(fields []string) (attributes, error) {
	out := attributes{}
	for _, f := range fields {
		v, ok := a[f]
		if !ok {
			return nil, planError("an update names the unknown field %q", f)
		}
		out[f] = v
	}
	if len(out) == 0 {
		return nil, planError("an update names no field")
	}
	return out, nil
}

// forCreate leaves out what is at its default.
func (a attributes) forCreate() attributes {
	out := attributes{}
	for k, v := range a {
		if v != nil && (k != "admin_state_up" || v == false) {
			out[k] = v
		}
	}
	return out
}

// or returns nil for the zero value.
func or[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func orList[T any](v []T) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// tags returns the object's tags with the proof of ownership and the key that it really has. A plan may create an object
// under another key than the one it was compiled with.
func tags(owner lb.Owner, kind lb.Kind, key string, given []string) []string {
	if key == "" {
		key = lb.KeyFromTags(given)
	}
	rest := slices.DeleteFunc(slices.Clone(given), func(t string) bool { return lb.KeyFromTags([]string{t}) != "" })
	return owner.Tags(kind, key, rest...)
}

// proof is what members and rules carry: there may be hundreds of them, and all else stands on their parent.
func proof(owner lb.Owner) []string {
	out := []string{owner.Mark(), owner.ControllerTag()}
	slices.Sort(out)
	return out
}

func loadBalancerAttributes(t *lb.Tree) attributes {
	return attributes{
		"name":           t.Name,
		"description":    or(t.Description),
		"tags":           tags(t.Owner, lb.KindLoadBalancer, t.Key, t.Tags),
		"admin_state_up": !t.Disabled,
		"vip_sg_ids":     orList(t.VIPSecurityGroupIDs),
	}
}

func listenerAttributes(owner lb.Owner, l *lb.Listener, defaultPool any) attributes {
	a := attributes{
		"name":                   or(l.Name),
		"tags":                   tags(owner, lb.KindListener, l.Key, l.Tags),
		"admin_state_up":         !l.Disabled,
		"default_pool_id":        defaultPool,
		"allowed_cidrs":          orList(l.AllowedCIDRs),
		"insert_headers":         nil,
		"connection_limit":       cmp.Or(l.ConnectionLimit, defaultConnectionLimit),
		"timeout_client_data":    cmp.Or(l.TimeoutClientData, defaultTimeoutClientData),
		"timeout_member_connect": cmp.Or(l.TimeoutMemberConnect, defaultTimeoutMemberConnect),
		"timeout_member_data":    cmp.Or(l.TimeoutMemberData, defaultTimeoutMemberData),
	}
	if len(l.InsertHeaders) > 0 {
		a["insert_headers"] = l.InsertHeaders
	}
	return a
}

func policyAttributes(owner lb.Owner, p *lb.Policy, pool any, position int) attributes {
	a := attributes{
		"name":               or(p.Name),
		"tags":               tags(owner, lb.KindPolicy, p.Key, p.Tags),
		"admin_state_up":     !p.Disabled,
		"action":             p.Action,
		"position":           or(position),
		"redirect_pool_id":   nil,
		"redirect_url":       nil,
		"redirect_prefix":    nil,
		"redirect_http_code": nil,
	}
	switch p.Action {
	case lb.RedirectToPool:
		a["redirect_pool_id"] = pool
	case lb.RedirectToURL:
		a["redirect_url"], a["redirect_http_code"] = p.URL, or(p.Code)
	case lb.RedirectPrefix:
		a["redirect_prefix"], a["redirect_http_code"] = p.URL, or(p.Code)
	}
	return a
}

func ruleAttributes(owner lb.Owner, r *lb.Rule) attributes {
	return attributes{
		"tags":           proof(owner),
		"admin_state_up": !r.Disabled,
		"type":           r.Type,
		"compare_type":   r.Compare,
		"key":            or(r.Key),
		"value":          r.Value,
		"invert":         r.Invert,
	}
}

func poolAttributes(owner lb.Owner, p *lb.Pool) attributes {
	return attributes{
		"name":           or(p.Name),
		"tags":           tags(owner, lb.KindPool, p.Key, p.Tags),
		"admin_state_up": !p.Disabled,
		"lb_algorithm":   p.Algorithm,

		"session_persistence": persistence(p.Persistence),
	}
}

// poolTLSAttributes are a pool's references and settings by Octavia's names.
func poolTLSAttributes(p *lb.Pool, secrets []lb.Secret) (attributes, error) {
	a := attributes{"tls_enabled": p.TLS != nil && !p.TLS.Disabled, "ca_tls_container_ref": nil, "tls_container_ref": nil, "tls_ciphers": nil, "tls_versions": nil, "alpn_protocols": nil}
	if p.TLS == nil {
		return a, nil
	}
	for field, key := range map[string]string{"ca_tls_container_ref": p.TLS.CA, "tls_container_ref": p.TLS.Certificate} {
		if key == "" {
			continue
		}
		ref, err := refOf(key, secrets)
		if err != nil {
			return nil, err
		}
		a[field] = ref
	}
	a["tls_ciphers"], a["tls_versions"], a["alpn_protocols"] = or(p.TLS.Ciphers), orList(p.TLS.Versions), orList(p.TLS.ALPN)
	return a, nil
}

// isPoolTLSField says whether an attribute of a pool comes from poolTLSAttributes.
func isPoolTLSField(name string) bool {
	return slices.Contains([]string{"tls_enabled", "ca_tls_container_ref", "tls_container_ref", "tls_ciphers", "tls_versions", "alpn_protocols"}, name)
}

// forPoolTLSCreate leaves out what is at its default.
func forPoolTLSCreate(a attributes) attributes {
	if a["tls_enabled"] == false {
		return attributes{}
	}
	return a.forCreate()
}

// refOf is the reference by which Octavia takes a secret.
func refOf(key string, secrets []lb.Secret) (string, error) {
	for i := range secrets {
		if secrets[i].Key == key && secrets[i].Ref != "" {
			return secrets[i].Ref, nil
		}
	}
	return "", planError("the secret %q is not there", key)
}

// persistence is null for none: that is how Octavia takes it away.
func persistence(p lb.Persistence) any {
	if p == "" {
		return nil
	}
	return attributes{"type": p}
}

// memberAttributes is always the whole member: what a batch update leaves out falls back to Octavia's default.
func memberAttributes(owner lb.Owner, m lb.Member) attributes {
	return attributes{
		"name":           or(m.Name),
		"tags":           proof(owner),
		"address":        m.Address,
		"protocol_port":  m.Port,
		"subnet_id":      or(m.SubnetID),
		"weight":         m.Weight,
		"monitor_port":   or(m.MonitorPort),
		"admin_state_up": !m.Disabled,
	}.forCreate()
}

// foreignMember repeats a member that is not ours as it is.
func foreignMember(w wireMember) attributes {
	return attributes{
		"name":            or(w.Name),
		"tags":            orList(w.Tags),
		"address":         w.Address,
		"protocol_port":   w.Port,
		"subnet_id":       or(w.SubnetID),
		"weight":          w.Weight,
		"monitor_port":    or(w.MonitorPort),
		"monitor_address": or(w.MonitorAddress),
		"backup":          or(w.Backup),
		"admin_state_up":  !w.disabled(),
	}.forCreate()
}

func membersAttributes(owner lb.Owner, members []lb.Member) []attributes {
	out := make([]attributes, 0, len(members))
	for _, m := range members {
		out = append(out, memberAttributes(owner, m))
	}
	return out
}

func monitorAttributes(owner lb.Owner, poolKey string, m *lb.Monitor) attributes {
	return attributes{
		"name":             or(m.Name),
		"tags":             tags(owner, lb.KindMonitor, poolKey, m.Tags),
		"admin_state_up":   !m.Disabled,
		"delay":            m.Delay,
		"timeout":          m.Timeout,
		"max_retries":      m.MaxRetries,
		"max_retries_down": or(m.MaxRetriesDown),
		"http_method":      or(m.HTTPMethod),
		"url_path":         or(m.URLPath),
		"expected_codes":   or(m.ExpectedCodes),
	}
}

// bareLoadBalancer is the body of a create without children.
func bareLoadBalancer(t *lb.Tree) attributes {
	a := loadBalancerAttributes(t).forCreate()
	for k, v := range map[string]string{
		"provider":          t.Provider,
		"flavor_id":         t.FlavorID,
		"availability_zone": t.AvailabilityZone,
		"vip_address":       t.VIP.Address,
	} {
		if v != "" {
			a[k] = v
		}
	}
	if len(t.AdditionalVIPs) > 0 {
		more := make([]attributes, 0, len(t.AdditionalVIPs))
		for _, v := range t.AdditionalVIPs {
			more = append(more, attributes{"subnet_id": v.SubnetID, "ip_address": or(v.Address)}.forCreate())
		}
		a["additional_vips"] = more
	}
	switch {
	case t.VIP.PortID != "":
		a["vip_port_id"] = t.VIP.PortID
	case t.VIP.SubnetID != "":
		a["vip_subnet_id"] = t.VIP.SubnetID
	case t.VIP.NetworkID != "":
		a["vip_network_id"] = t.VIP.NetworkID
	}
	return a
}

// fullLoadBalancer is the body of a create with everything below. Pools are named by their names there, which must
// therefore be unique.
func fullLoadBalancer(t *lb.Tree, secrets []lb.Secret) (attributes, error) {
	a := bareLoadBalancer(t)
	names := poolNames(t.Pools)
	reference := func(key string) (any, error) {
		if key == "" {
			return nil, nil
		}
		name, ok := names[key]
		if !ok {
			return nil, planError("the tree has no pool %q", key)
		}
		return attributes{"name": name}, nil
	}
	var pools []attributes
	for i := range t.Pools {
		p := &t.Pools[i]
		pool := poolAttributes(t.Owner, p).forCreate()
		pool["name"], pool["protocol"] = names[p.Key], p.Protocol
		tls, err := poolTLSAttributes(p, secrets)
		if err != nil {
			return nil, err
		}
		maps.Copy(pool, forPoolTLSCreate(tls))
		if len(p.Members) > 0 {
			pool["members"] = membersAttributes(t.Owner, p.Members)
		}
		if p.Monitor != nil {
			monitor := monitorAttributes(t.Owner, p.Key, p.Monitor).forCreate()
			monitor["type"] = p.Monitor.Type
			pool["healthmonitor"] = monitor
		}
		pools = append(pools, pool)
	}
	var listeners []attributes
	for i := range t.Listeners {
		l := &t.Listeners[i]
		listener := listenerAttributes(t.Owner, l, nil).forCreate()
		listener["protocol"], listener["protocol_port"] = l.Protocol, l.Port
		tls, err := tlsAttributes(l, secrets)
		if err != nil {
			return nil, err
		}
		maps.Copy(listener, forTLSCreate(tls))
		pool, err := reference(l.DefaultPool)
		if err != nil {
			return nil, err
		}
		if pool != nil {
			listener["default_pool"] = pool
		}
		var policies []attributes
		for j := range l.Policies {
			p := &l.Policies[j]
			policy := policyAttributes(t.Owner, p, nil, j+1).forCreate()
			pool, err := reference(p.Pool)
			if err != nil {
				return nil, err
			}
			if pool != nil && p.Action == lb.RedirectToPool {
				policy["redirect_pool"] = pool
			}
			rules := make([]attributes, 0, len(p.Rules))
			for k := range p.Rules {
				rules = append(rules, ruleAttributes(t.Owner, &p.Rules[k]).forCreate())
			}
			if len(rules) > 0 {
				policy["rules"] = rules
			}
			policies = append(policies, policy)
		}
		if len(policies) > 0 {
			listener["l7policies"] = policies
		}
		listeners = append(listeners, listener)
	}
	if len(pools) > 0 {
		a["pools"] = pools
	}
	if len(listeners) > 0 {
		a["listeners"] = listeners
	}
	return a, nil
}

// poolNames gives each pool a name that no other one has: its own, or else its key.
func poolNames(pools []lb.Pool) map[string]string {
	count := map[string]int{}
	for _, p := range pools {
		count[p.Name]++
	}
	names := map[string]string{}
	for _, p := range pools {
		names[p.Key] = p.Name
		if p.Name == "" || count[p.Name] > 1 {
			names[p.Key] = lb.Shorten(p.Key)
		}
	}
	return names
}
