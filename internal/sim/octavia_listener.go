package sim

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

type listener struct {
	common
	Name                    string            `json:"name"`
	Description             string            `json:"description"`
	Protocol                string            `json:"protocol"`
	ProtocolPort            int               `json:"protocol_port"`
	ConnectionLimit         int               `json:"connection_limit"`
	DefaultTLSContainerRef  *string           `json:"default_tls_container_ref"`
	SNIContainerRefs        []string          `json:"sni_container_refs"`
	DefaultPoolID           *string           `json:"default_pool_id"`
	InsertHeaders           map[string]string `json:"insert_headers"`
	TimeoutClientData       int               `json:"timeout_client_data"`
	TimeoutMemberConnect    int               `json:"timeout_member_connect"`
	TimeoutMemberData       int               `json:"timeout_member_data"`
	TimeoutTCPInspect       int               `json:"timeout_tcp_inspect"`
	ClientCATLSContainerRef *string           `json:"client_ca_tls_container_ref"`
	ClientAuthentication    string            `json:"client_authentication"`
	ClientCRLContainerRef   *string           `json:"client_crl_container_ref"`
	AllowedCIDRs            []string          `json:"allowed_cidrs"`
	TLSCiphers              *string           `json:"tls_ciphers"`
	TLSVersions             []string          `json:"tls_versions"`
	ALPNProtocols           []string          `json:"alpn_protocols"`
	HSTSMaxAge              *int              `json:"hsts_max_age"`
	HSTSIncludeSubdomains   bool              `json:"hsts_include_subdomains"`
	HSTSPreload             bool              `json:"hsts_preload"`

	lb       *loadBalancer
	policies []*policy // in the order of their positions
}

func (l *listener) kind() string { return "listener" }

func (l *listener) remove(c *Cloud) {
	for _, p := range slices.Clone(l.policies) {
		p.drop(c)
	}
	delete(c.lb.listeners, l.ID)
	l.lb.listeners = removeFrom(l.lb.listeners, l)
	c.quota(l.ProjectID).release("listener")
}

type listenerView struct {
	*listener
	TenantID      string   `json:"tenant_id"`
	L7Policies    any      `json:"l7policies"`
	LoadBalancers []idOnly `json:"loadbalancers,omitempty"`
}

func (l *listener) view() any {
	return listenerView{l, l.ProjectID, refs(l.policies), []idOnly{{l.lb.ID}}}
}

func (l *listener) fullView() any {
	policies := []any{}
	for _, p := range l.policies {
		policies = append(policies, p.fullView())
	}
	return listenerView{listener: l, TenantID: l.ProjectID, L7Policies: policies}
}

// poolIDs are the default pool and those that policies with rules lead to.
func (l *listener) poolIDs() map[string]bool {
	out := map[string]bool{}
	if l.DefaultPoolID != nil {
		out[*l.DefaultPoolID] = true
	}
	for _, p := range l.policies {
		if p.RedirectPoolID != nil && p.effective() {
			out[*p.RedirectPoolID] = true
		}
	}
	return out
}

func (l *listener) pools() []*pool {
	var out []*pool
	ids := l.poolIDs()
	for _, p := range l.lb.pools {
		if ids[p.ID] {
			out = append(out, p)
		}
	}
	return out
}

// insert puts a policy at a position counted from 1; what is beyond the end is
// the end. All positions are counted anew.
func (l *listener) insert(p *policy, position int) {
	i := min(max(position-1, 0), len(l.policies))
	l.policies = slices.Insert(l.policies, i, p)
	l.renumber()
}

func (l *listener) renumber() {
	for i, p := range l.policies {
		p.Position = i + 1
	}
}

func (c *Cloud) listenerCall(r *request) (response, error) {
	switch {
	case r.is("GET", "listeners"):
		if lb := c.lb.lbs[r.query.Get("loadbalancer_id")]; lb != nil {
			return c.list(r, "listeners", "listener", viewers(lb.listeners))
		}
		return c.list(r, "listeners", "listener", values(c.lb.listeners))
	case r.is("POST", "listeners"):
		return c.createListener(r)
	case len(r.path) < 2:
		return response{}, refuse(405, "Method Not Allowed")
	}
	l := c.lb.listeners[r.path[1]]
	if l == nil || !r.sees(l) {
		return response{}, notFound("Listener", r.path[1])
	}
	switch {
	case r.is("GET", "listeners", "*"):
		return c.show(r, "listener", l)
	case r.is("GET", "listeners", "*", "stats"):
		return response{status: 200, body: object{"stats": noStats()}}, nil
	case r.is("PUT", "listeners", "*"):
		return c.updateListener(r, l)
	case r.is("DELETE", "listeners", "*"):
		if err := lockable(l.lb); err != nil {
			return response{}, err
		}
		l.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: l.lb, gone: []entity{l}}, Op{Resource: "listener", Action: "delete"})
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(404, "The resource could not be found.")
}

// sees tells whether the caller may read the object.
func (r *request) sees(e entity) bool {
	return r.token.admin() || e.base().ProjectID == r.token.projectID
}

func (c *Cloud) createListener(r *request) (response, error) {
	a, err := c.parseObject(r, "listener_", "listener", listenerPOST)
	if err != nil {
		return response{}, err
	}
	lb, err := c.findLB(r, a.str("loadbalancer_id"))
	if err != nil {
		return response{}, err
	}
	quota := c.quota(lb.ProjectID).trial()
	if !quota.take(c, "listener", 1) {
		return response{}, quotaMet("Listener")
	}
	if id := a.str("default_pool_id"); id != "" {
		if err := checkDefaultPool(lb.pools, id, a.str("protocol")); err != nil {
			return response{}, err
		}
	}
	if err := lockable(lb); err != nil {
		return response{}, err
	}
	l, err := c.newListener(lb, a, lb.pools)
	if err != nil {
		return response{}, err
	}
	if a.set("default_pool") || len(a.list("l7policies")) > 0 {
		return response{}, refuse(500, nestedCrash)
	}
	quota.commit()
	lb.listeners = append(lb.listeners, l)
	c.store(l)
	hold := c.begin(r, &change{lb: lb, settle: []entity{l}}, Op{Resource: "listener", Action: "create"})
	return response{status: 201, body: object{"listener": l.view()}, hold: hold}, nil
}

func checkDefaultPool(pools []*pool, id, protocol string) error {
	for _, p := range pools {
		if p.ID == id {
			return checkProtocols(protocol, p.Protocol)
		}
	}
	return notFound("Pool", id)
}

var poolsOfListener = map[string][]string{
	"TCP":              {"HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"},
	"HTTP":             {"HTTP", "PROXY", "PROXYV2"},
	"HTTPS":            {"HTTPS", "PROXY", "PROXYV2", "TCP"},
	"TERMINATED_HTTPS": {"HTTP", "PROXY", "PROXYV2"},
	"UDP":              {"UDP"},
	"SCTP":             {"SCTP"},
}

func checkProtocols(listener, pool string) error {
	if slices.Contains(poolsOfListener[listener], pool) {
		return nil
	}
	return invalid("The pool protocol '%s' is invalid while the listener protocol is '%s'.", pool, listener)
}

func l4(protocol string) string {
	if protocol == "UDP" || protocol == "SCTP" {
		return protocol
	}
	return "TCP"
}

var (
	forwardHeaders = []string{"X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-IP", "X-Client-IP", "X-Real-IP"}
	clientHeaders  = []string{"X-SSL-Client-Verify", "X-SSL-Client-Has-Cert", "X-SSL-Client-DN", "X-SSL-Client-CN",
		"X-SSL-Issuer", "X-SSL-Client-SHA1", "X-SSL-Client-Not-Before", "X-SSL-Client-Not-After"}
)

func checkInsertHeaders(headers map[string]any, protocol string) error {
	if protocol != "HTTP" && protocol != "TERMINATED_HTTPS" {
		return invalidOption("insert-headers", "a "+protocol+" protocol listener.")
	}
	var names, ssl []string
	known := true
	for h := range headers {
		names = append(names, h)
		if slices.Contains(clientHeaders, h) {
			ssl = append(ssl, h)
		} else if !slices.Contains(forwardHeaders, h) {
			known = false
		}
	}
	sort.Strings(names)
	if !known {
		return invalidOption(pyRepr(names), "insert_headers")
	}
	if protocol != "TERMINATED_HTTPS" && len(ssl) > 0 {
		sort.Strings(ssl)
		return invalidOption(pyRepr(ssl), protocol+" protocol listener.")
	}
	return nil
}

func checkCIDRs(lb *loadBalancer, cidrs []string) error {
	if len(cidrs) > 0 && len(lb.VipSGIDs) > 0 {
		return invalid("Allowed CIDRs are not allowed when using custom VIP Security Groups.")
	}
	vips := []string{lb.VipAddress}
	for _, v := range lb.AdditionalVips {
		vips = append(vips, v.IPAddress)
	}
	for _, cidr := range cidrs {
		if !slices.ContainsFunc(vips, func(v string) bool { return isIPv6(v) == isIPv6(cidr) }) {
			return invalid("CIDR %s IP version incompatible with all VIPs %s IP version.", cidr, pyRepr(vips))
		}
	}
	return nil
}

var tlsVersions = []string{"SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// cipherCharacters are those of a cipher string in OpenSSL's form.
var cipherCharacters = regexp.MustCompile(`^[A-Za-z0-9\-+!:@=_.]+$`)

// checkCiphers checks a list of ciphers that was given.
func (c *Cloud) checkCiphers(a attrs) error {
	given := a.str("tls_ciphers")
	if given == "" {
		return nil
	}
	if !cipherCharacters.MatchString(given) {
		return invalid("Invalid characters in cipher string. Only alphanumeric, -, +, !, :, @, =, _, and . are allowed.")
	}
	var bad []string
	for _, name := range strings.Split(given, ":") {
		if slices.Contains(c.opts.ProhibitedCiphers, name) {
			bad = append(bad, name)
		}
	}
	if len(bad) > 0 {
		return invalid("The following ciphers have been prohibited by an administrator: %s", strings.Join(bad, ", "))
	}
	return nil
}

// checkTLSLists checks the lists of versions and protocols that were given.
func (c *Cloud) checkTLSLists(a attrs) error {
	if a.set("tls_versions") {
		versions := a.strs("tls_versions")
		if len(versions) == 0 {
			return invalid("Empty TLS version list. Either specify at least one TLS version or remove this parameter to use the default.")
		}
		var bad []string
		for _, v := range versions {
			if !slices.Contains(tlsVersions, v) {
				bad = append(bad, v)
			}
		}
		if len(bad) > 0 {
			return invalid("Invalid TLS versions: %s", strings.Join(bad, ", "))
		}
		least := slices.Index(tlsVersions, c.opts.MinimumTLSVersion)
		for _, v := range versions {
			if slices.Index(tlsVersions, v) < least {
				bad = append(bad, v)
			}
		}
		if len(bad) > 0 {
			return invalid("Requested TLS versions are less than the minimum: %s < %s", strings.Join(bad, ", "), c.opts.MinimumTLSVersion)
		}
	}
	if a.set("alpn_protocols") && len(a.list("alpn_protocols")) == 0 {
		return invalid("Empty ALPN protocol list. Either specify at least one ALPN protocol or remove this parameter to use the default.")
	}
	return nil
}

// newListener checks and makes a listener. It is not stored yet.
func (c *Cloud) newListener(lb *loadBalancer, a attrs, pools []*pool) (*listener, error) {
	protocol := a.str("protocol")
	if id := a.str("default_pool_id"); id != "" {
		if err := checkDefaultPool(pools, id, protocol); err != nil {
			return nil, err
		}
	}
	sni, def, ca := a.strs("sni_container_refs"), a.str("default_tls_container_ref"), a.str("client_ca_tls_container_ref")
	hasTLS := def != "" || len(sni) > 0
	tls := protocol == "TERMINATED_HTTPS" || protocol == "PROMETHEUS" && hasTLS
	if headers, _ := a["insert_headers"].(map[string]any); len(headers) > 0 {
		if err := checkInsertHeaders(headers, protocol); err != nil {
			return nil, err
		}
	}
	switch {
	case !tls && hasTLS:
		return nil, invalid("Certificate container references are not allowed on %s protocol listeners.", protocol)
	case ca != "" && !hasTLS:
		return nil, invalid("An SNI or default certificate container reference must be provided with a client CA container reference.")
	case tls && !hasTLS:
		return nil, invalid("An SNI or default certificate container reference must be provided for %s protocol listeners.", protocol)
	case a.str("client_authentication") != "NONE" && a.str("client_authentication") != "" && ca == "":
		return nil, invalid("Client authentication setting %s requires a client CA container reference.", a.str("client_authentication"))
	case a.str("client_crl_container_ref") != "" && ca == "":
		return nil, invalid("A client authentication CA reference is required to specify a client authentication revocation list.")
	}
	if err := c.checkCiphers(a); err != nil {
		return nil, err
	}
	certs := slices.Clone(sni)
	if def != "" {
		certs = append(certs, def)
	}
	if err := c.checkCertificates(certs); err != nil {
		return nil, err
	}
	if err := c.checkCA(ca); err != nil {
		return nil, err
	}
	for _, other := range lb.listeners {
		if other.ProtocolPort == a.num("protocol_port") && l4(other.Protocol) == l4(protocol) {
			return nil, duplicateListener(other.Protocol, other.ProtocolPort)
		}
	}
	if err := checkCIDRs(lb, a.strs("allowed_cidrs")); err != nil {
		return nil, err
	}
	if tls {
		if err := c.checkTLSLists(a); err != nil {
			return nil, err
		}
	}
	if (a.flag("hsts_include_subdomains") || a.flag("hsts_preload")) && !a.set("hsts_max_age") {
		return nil, invalid("HSTS configuration options hsts_include_subdomains and hsts_preload only make sense if hsts_max_age is set as well.")
	}
	if a.set("hsts_max_age") && protocol != "TERMINATED_HTTPS" {
		return nil, invalid("The HSTS feature can only be used for listeners using the TERMINATED_HTTPS protocol.")
	}
	l := &listener{common: c.newCommon(lb.ProjectID, a), lb: lb, ConnectionLimit: -1, ClientAuthentication: "NONE",
		SNIContainerRefs: []string{}, InsertHeaders: map[string]string{}, TimeoutClientData: 50000,
		TimeoutMemberConnect: 5000, TimeoutMemberData: 50000}
	if protocol == "TERMINATED_HTTPS" {
		l.setTLSDefaults()
	}
	// A repeated tag breaks a key of the database, and the API takes every
	// broken key here for a used port.
	if !storeTags(l, a) {
		return nil, duplicateListener(protocol, a.num("protocol_port"))
	}
	for _, k := range []string{"tls_ciphers", "tls_versions", "alpn_protocols", "sni_container_refs", "insert_headers"} {
		if !a.set(k) {
			delete(a, k)
		}
	}
	if len(a.list("allowed_cidrs")) == 0 {
		delete(a, "allowed_cidrs")
	}
	a.without("tags", "project_id", "tenant_id", "default_pool", "l7policies").into(l)
	return l, nil
}

func (l *listener) setTLSDefaults() {
	ciphers := defaultTLS
	l.TLSCiphers = &ciphers
	l.TLSVersions = []string{"TLSv1.2", "TLSv1.3"}
	l.ALPNProtocols = []string{"h2", "http/1.1", "http/1.0"}
}

// without is a copy that lacks some attributes.
func (a attrs) without(names ...string) attrs {
	out := attrs{}
	for k, v := range a {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

func duplicateListener(protocol string, port int) error {
	return refuse(409, "Another Listener on this Load Balancer is already using protocol %s and protocol_port %d", protocol, port)
}

func (c *Cloud) updateListener(r *request, l *listener) (response, error) {
	a, err := c.parseObject(r, "listener_", "listener", listenerPUT)
	if err != nil {
		return response{}, err
	}
	if err := c.checkListenerUpdate(l, a); err != nil {
		return response{}, err
	}
	if id := a.str("default_pool_id"); id != "" {
		if err := checkDefaultPool(l.lb.pools, id, l.Protocol); err != nil {
			return response{}, err
		}
	}
	if err := lockable(l.lb); err != nil {
		return response{}, err
	}
	next := *l
	if !storeTags(&next, a) {
		return response{}, refuse(500, duplicateTag)
	}
	// Null means the default.
	for name, def := range map[string]any{"connection_limit": -1, "timeout_client_data": 50000, "timeout_member_connect": 5000,
		"timeout_member_data": 50000, "timeout_tcp_inspect": 0, "client_authentication": "NONE", "tls_ciphers": defaultTLS,
		"tls_versions": []string{"TLSv1.2", "TLSv1.3"}, "alpn_protocols": []string{"h2", "http/1.1", "http/1.0"},
		"hsts_include_subdomains": false, "hsts_preload": false, "sni_container_refs": []string{}, "insert_headers": map[string]string{}} {
		if a.has(name) && !a.set(name) {
			a[name] = def
		}
	}
	if a.has("allowed_cidrs") && len(a.list("allowed_cidrs")) == 0 {
		a["allowed_cidrs"] = nil
	}
	if a.has("insert_headers") {
		next.InsertHeaders = nil
	}
	if a.has("default_tls_container_ref") && a.str("default_tls_container_ref") == "" {
		a["default_tls_container_ref"] = nil
	}
	a.without("tags").into(&next)
	*l = next
	hold := c.begin(r, &change{lb: l.lb}, Op{Resource: "listener", Action: "update"}, l)
	return response{status: 200, body: object{"listener": l.view()}, hold: hold}, nil
}

func (c *Cloud) checkListenerUpdate(l *listener, a attrs) error {
	sni, def := a.strs("sni_container_refs"), a.str("default_tls_container_ref")
	tls := l.Protocol == "TERMINATED_HTTPS"
	if !tls && (def != "" || len(sni) > 0) {
		return invalid("Certificate container references are not allowed on %s protocol listeners.", l.Protocol)
	}
	ca := a.str("client_ca_tls_container_ref")
	if ca == "" && l.ClientCATLSContainerRef != nil {
		ca = *l.ClientCATLSContainerRef
	}
	if auth := a.str("client_authentication"); auth != "" && auth != "NONE" && ca == "" {
		return invalid("Client authentication setting %s requires a client CA container reference.", auth)
	}
	if headers, _ := a["insert_headers"].(map[string]any); len(headers) > 0 {
		if err := checkInsertHeaders(headers, l.Protocol); err != nil {
			return err
		}
	}
	if def != "" {
		sni = append(sni, def)
	}
	if err := c.checkCertificates(sni); err != nil {
		return err
	}
	if err := c.checkCA(ca); err != nil {
		return err
	}
	if err := checkCIDRs(l.lb, a.strs("allowed_cidrs")); err != nil {
		return err
	}
	if err := c.checkCiphers(a); err != nil {
		return err
	}
	if err := c.checkTLSLists(a); err != nil {
		return err
	}
	if (a.flag("hsts_include_subdomains") || a.flag("hsts_preload")) && l.HSTSMaxAge == nil && !a.set("hsts_max_age") {
		return invalid("Cannot enable hsts_include_subdomains or hsts_preload if hsts_max_age was not set as well.")
	}
	if a.set("hsts_max_age") && !tls {
		return invalid("The HSTS feature can only be used for listeners using the TERMINATED_HTTPS protocol.")
	}
	return nil
}
