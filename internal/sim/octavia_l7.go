package sim

import (
	"regexp"
	"slices"
	"strings"
)

type policy struct {
	common
	Name             string  `json:"name"`
	Description      string  `json:"description"`
	ListenerID       string  `json:"listener_id"`
	Action           string  `json:"action"`
	Position         int     `json:"position"`
	RedirectPoolID   *string `json:"redirect_pool_id"`
	RedirectURL      *string `json:"redirect_url"`
	RedirectPrefix   *string `json:"redirect_prefix"`
	RedirectHTTPCode *int    `json:"redirect_http_code"`

	listener *listener
	rules    []*rule
}

type rule struct {
	common
	Type        string  `json:"type"`
	CompareType string  `json:"compare_type"`
	Key         *string `json:"key"`
	Value       string  `json:"value"`
	Invert      bool    `json:"invert"`

	policy *policy
}

func (p *policy) kind() string { return "l7policy" }

// drop takes a policy and its rules away without giving their quota back,
// which is what Octavia does when their listener goes.
func (p *policy) drop(c *Cloud) {
	for _, ru := range p.rules {
		delete(c.lb.rules, ru.ID)
		ru.ProvisioningStatus = deleted
	}
	delete(c.lb.policies, p.ID)
	p.listener.policies = removeFrom(p.listener.policies, p)
	p.listener.renumber()
}

func (p *policy) remove(c *Cloud) {
	p.drop(c)
	c.quota(p.ProjectID).release("l7policy")
}

// effective tells whether the policy is in the configuration of HAProxy.
func (p *policy) effective() bool {
	return p.AdminStateUp && slices.ContainsFunc(p.rules, func(ru *rule) bool { return ru.AdminStateUp })
}

func (ru *rule) kind() string { return "rule" }

func (ru *rule) remove(c *Cloud) {
	delete(c.lb.rules, ru.ID)
	ru.policy.rules = removeFrom(ru.policy.rules, ru)
	c.quota(ru.ProjectID).release("l7rule")
}

type policyView struct {
	*policy
	TenantID string `json:"tenant_id"`
	Rules    any    `json:"rules"`
}

func (p *policy) view() any { return policyView{p, p.ProjectID, refs(unordered(p.rules))} }

func (p *policy) fullView() any {
	rules := []any{}
	for _, ru := range unordered(p.rules) {
		rules = append(rules, ru.view())
	}
	return policyView{p, p.ProjectID, rules}
}

type ruleView struct {
	*rule
	TenantID string `json:"tenant_id"`
}

func (ru *rule) view() any { return ruleView{ru, ru.ProjectID} }

func (c *Cloud) policyCall(r *request) (response, error) {
	switch {
	case r.is("GET", "l7policies"):
		if l := c.lb.listeners[r.query.Get("listener_id")]; l != nil {
			return c.list(r, "l7policies", "l7policy", viewers(l.policies))
		}
		return c.list(r, "l7policies", "l7policy", values(c.lb.policies))
	case r.is("POST", "l7policies"):
		return c.createPolicy(r)
	case len(r.path) != 2:
		return response{}, refuse(404, "The resource could not be found.")
	}
	p := c.lb.policies[r.path[1]]
	if p == nil || !r.sees(p) {
		return response{}, notFound("L7 Policy", r.path[1])
	}
	lb := p.listener.lb
	switch r.method {
	case "GET":
		return c.show(r, "l7policy", p)
	case "PUT":
		return c.updatePolicy(r, p)
	case "DELETE":
		if err := lockable(lb); err != nil {
			return response{}, err
		}
		p.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: lb, gone: []entity{p}}, Op{Resource: "l7policy", Action: "delete"}, p.listener)
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

func badPolicy(msg string) error { return refuse(400, "Invalid L7 Policy arguments: %s", msg) }

// sanitizePolicy makes action and targets agree, as the API does.
func sanitizePolicy(a attrs) error {
	clearAll := func(names ...string) {
		for _, n := range names {
			a[n] = nil
		}
	}
	target := func() bool { return a.str("redirect_pool_id") != "" || a.set("redirect_pool") }
	switch a.str("action") {
	case "REJECT":
		clearAll("redirect_url", "redirect_pool_id")
		delete(a, "redirect_pool")
	case "REDIRECT_TO_URL":
		if a.str("redirect_url") == "" {
			return badPolicy("redirect_url must not be None")
		}
		clearAll("redirect_pool_id")
		delete(a, "redirect_pool")
	case "REDIRECT_TO_POOL":
		if !target() {
			return badPolicy("redirect_pool_id or redirect_pool must not be None")
		}
		clearAll("redirect_url")
	case "REDIRECT_PREFIX":
		if a.str("redirect_prefix") == "" {
			return badPolicy("redirect_prefix must not be None")
		}
	}
	if target() && (a.str("redirect_url") != "" || a.str("redirect_prefix") != "") {
		return badPolicy("Cannot specify redirect_pool_id and redirect_url or redirect_prefix at the same time")
	}
	if target() {
		a["action"] = "REDIRECT_TO_POOL"
		clearAll("redirect_url", "redirect_prefix", "redirect_http_code")
	}
	if a.str("redirect_url") != "" {
		a["action"] = "REDIRECT_TO_URL"
		clearAll("redirect_pool_id", "redirect_prefix")
		if !a.set("redirect_http_code") {
			a["redirect_http_code"] = 302
		}
	}
	if a.str("redirect_prefix") != "" {
		a["action"] = "REDIRECT_PREFIX"
		clearAll("redirect_pool_id", "redirect_url")
		if !a.set("redirect_http_code") {
			a["redirect_http_code"] = 302
		}
	}
	return nil
}

func (c *Cloud) createPolicy(r *request) (response, error) {
	a, err := c.parseObject(r, "l7policy_", "l7policy", policyPOST)
	if err != nil {
		return response{}, err
	}
	l := c.lb.listeners[a.str("listener_id")]
	if l == nil || !r.sees(l) {
		return response{}, notFound("Listener", a.str("listener_id"))
	}
	if err := c.checkTarget(r, l, a); err != nil {
		return response{}, err
	}
	quota := c.quota(l.ProjectID).trial()
	if !quota.take(c, "l7policy", 1) {
		return response{}, quotaMet("L7 Policy")
	}
	p, err := c.newPolicy(l, a, nil)
	if err != nil {
		return response{}, err
	}
	if err := lockable(l.lb); err != nil {
		return response{}, err
	}
	if len(p.rules) > 0 {
		return response{}, refuse(500, nestedCrash)
	}
	quota.commit()
	l.insert(p, a.num("position"))
	c.store(p)
	hold := c.begin(r, &change{lb: l.lb, settle: []entity{p}}, Op{Resource: "l7policy", Action: "create"}, l)
	return response{status: 201, body: object{"l7policy": p.view()}, hold: hold}, nil
}

func (c *Cloud) checkTarget(r *request, l *listener, a attrs) error {
	id := a.str("redirect_pool_id")
	if id == "" {
		return nil
	}
	p := c.lb.pools[id]
	if p == nil || !r.sees(p) || p.lb != l.lb {
		return notFound("Pool", id)
	}
	return checkProtocols(l.Protocol, p.Protocol)
}

// newPolicy checks and makes a policy with its rules. The pools are those that
// can be named in a fully-populated create.
func (c *Cloud) newPolicy(l *listener, a attrs, pools map[string]*pool) (*policy, error) {
	if rp := a.object("redirect_pool"); rp != nil {
		a["redirect_pool_id"] = pools[rp.str("name")].ID
		if err := checkProtocols(l.Protocol, pools[rp.str("name")].Protocol); err != nil {
			return nil, err
		}
		delete(a, "redirect_pool")
	}
	if err := sanitizePolicy(a); err != nil {
		return nil, err
	}
	for _, k := range []string{"redirect_url", "redirect_prefix"} {
		if len(a.str(k)) > 255 {
			return nil, refuse(500, `(pymysql.err.DataError) (1406, "Data too long for column '%s' at row 1")`, k)
		}
	}
	p := &policy{common: c.newCommon(l.ProjectID, a), listener: l, ListenerID: l.ID}
	rules := a.objects("rules")
	if len(rules) > maxRules {
		return nil, refuse(409, "Too many rules on L7 policy %s", p.ID)
	}
	for _, ra := range rules {
		ru, err := c.newRule(p, ra)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, ru)
	}
	if !storeTags(p, a) {
		return nil, refuse(409, "Already an entity with that specified id.")
	}
	a.without("tags", "project_id", "tenant_id", "rules", "position").into(p)
	return p, nil
}

func (c *Cloud) updatePolicy(r *request, p *policy) (response, error) {
	a, err := c.parseObject(r, "l7policy_", "l7policy", policyPUT)
	if err != nil {
		return response{}, err
	}
	if err := sanitizePolicy(a); err != nil {
		return response{}, err
	}
	if len(a) == 0 {
		return response{}, badPolicy("Invalid update options")
	}
	if err := c.checkTarget(r, p.listener, a); err != nil {
		return response{}, err
	}
	for _, k := range []string{"redirect_url", "redirect_prefix"} {
		if len(a.str(k)) > 255 {
			return response{}, refuse(500, `(pymysql.err.DataError) (1406, "Data too long for column '%s' at row 1")`, k)
		}
	}
	if err := lockable(p.listener.lb); err != nil {
		return response{}, err
	}
	next := *p
	if !storeTags(&next, a) {
		return response{}, refuse(500, duplicateTag)
	}
	if a.str("action") == "REJECT" {
		a["redirect_prefix"], a["redirect_http_code"] = nil, nil
	}
	a.without("tags", "position").into(&next)
	*p = next
	if pos := a.num("position"); pos > 0 && pos != p.Position {
		l := p.listener
		l.policies = removeFrom(l.policies, p)
		l.insert(p, pos)
	}
	hold := c.begin(r, &change{lb: p.listener.lb}, Op{Resource: "l7policy", Action: "update"}, p.listener, p)
	return response{status: 200, body: object{"l7policy": p.view()}, hold: hold}, nil
}

func (c *Cloud) ruleCall(r *request) (response, error) {
	p := c.lb.policies[r.path[1]]
	if p == nil || !r.sees(p) {
		return response{}, notFound("L7Policy", r.path[1])
	}
	lb := p.listener.lb
	switch {
	case r.is("GET", "l7policies", "*", "rules"):
		return c.list(r, "rules", "rule", viewers(p.rules))
	case r.is("POST", "l7policies", "*", "rules"):
		return c.createRule(r, p)
	case len(r.path) != 4:
		return response{}, refuse(404, "The resource could not be found.")
	}
	ru := c.lb.rules[r.path[3]]
	if ru == nil || ru.policy != p {
		return response{}, notFound("L7 Rule", r.path[3])
	}
	switch r.method {
	case "GET":
		return c.show(r, "rule", ru)
	case "PUT":
		a, err := c.parseObject(r, "l7rule_", "rule", rulePUT)
		if err != nil {
			return response{}, err
		}
		if a.has("invert") && !a.set("invert") {
			a["invert"] = false
		}
		next := *ru
		a.without("tags").into(&next)
		if a.has("value") && !a.set("value") {
			next.Value = ""
		}
		if err := checkRule(&next); err != nil {
			return response{}, err
		}
		if err := p.childLock(); err != nil {
			return response{}, err
		}
		if !storeTags(&next, a) {
			return response{}, refuse(500, duplicateTag)
		}
		*ru = next
		hold := c.begin(r, &change{lb: lb}, Op{Resource: "rule", Action: "update"}, p.listener, p, ru)
		return response{status: 200, body: object{"rule": ru.view()}, hold: hold}, nil
	case "DELETE":
		if err := p.childLock(); err != nil {
			return response{}, err
		}
		ru.ProvisioningStatus = pendingDelete
		hold := c.begin(r, &change{lb: lb, gone: []entity{ru}}, Op{Resource: "rule", Action: "delete"}, p.listener, p)
		return response{status: 204, hold: hold}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

// childLock tells whether rules of the policy can be written.
func (p *policy) childLock() error {
	if p.ProvisioningStatus != active {
		return immutable("L7Policy", p.ID)
	}
	return lockable(p.listener.lb)
}

func (c *Cloud) createRule(r *request, p *policy) (response, error) {
	a, err := c.parseObject(r, "rule_", "rule", rulePOST)
	if err != nil {
		return response{}, err
	}
	ru, err := c.newRule(p, a)
	if err != nil {
		return response{}, err
	}
	if len(p.rules) >= maxRules {
		return response{}, refuse(409, "Too many rules on L7 policy %s", p.ID)
	}
	quota := c.quota(p.ProjectID).trial()
	if !quota.take(c, "l7rule", 1) {
		return response{}, quotaMet("L7 Rule")
	}
	if err := p.childLock(); err != nil {
		return response{}, err
	}
	quota.commit()
	p.rules = append(p.rules, ru)
	c.store(ru)
	hold := c.begin(r, &change{lb: p.listener.lb, settle: []entity{ru}}, Op{Resource: "rule", Action: "create"}, p.listener, p)
	return response{status: 201, body: object{"rule": ru.view()}, hold: hold}, nil
}

func (c *Cloud) newRule(p *policy, a attrs) (*rule, error) {
	ru := &rule{common: c.newCommon(p.ProjectID, a), policy: p}
	a.without("tags", "project_id", "tenant_id").into(ru)
	if err := checkRule(ru); err != nil {
		return nil, err
	}
	if !storeTags(ru, a) {
		return nil, refuse(409, "Already an entity with that specified id.")
	}
	return ru, nil
}

var (
	headerName   = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+,\\-.^_`|~]+$")
	headerValue  = regexp.MustCompile("^[a-zA-Z0-9!\"#$%&'()*+,\\-./:;<=>?@\\[\\]^_`{|}~\\\\]+$")
	quotedValue  = regexp.MustCompile("^\"[a-zA-Z0-9 \t!\"#$%&'()*+,\\-./:;<=>?@\\[\\]^_`{|}~\\\\]*\"$")
	cookieValue  = regexp.MustCompile("^[a-zA-Z0-9!#$%&'()*+,\\-./:<=>?@\\[\\]^_`{|}~]+$")
	dnField      = regexp.MustCompile(`^([a-zA-Z][A-Za-z0-9-]*)$`)
	allDigits    = regexp.MustCompile(`^[0-9]+$`)
	errRuleStart = "Error parsing L7Rule: "
)

func badRule(msg string) error { return refuse(400, "%sInvalid L7 Rule: %s", errRuleStart, msg) }

func badString(what string) error {
	return refuse(400, "%sInvalid characters in %s", errRuleStart, what)
}

// checkRule validates a rule as a whole.
func checkRule(ru *rule) error {
	if ru.Value == "" {
		return badRule("L7 rule type requires a value")
	}
	key := ""
	if ru.Key != nil {
		key = *ru.Key
	}
	isRegex := ru.CompareType == "REGEX"
	if isRegex {
		if err := checkRegex(ru.Value); err != nil {
			return err
		}
	}
	literal := func(what string) error {
		if !isRegex && !headerValue.MatchString(ru.Value) && !quotedValue.MatchString(ru.Value) {
			return badString(what)
		}
		return nil
	}
	switch ru.Type {
	case "HEADER", "COOKIE":
		if key == "" {
			return badRule("L7 rule type requires a key")
		}
		if !headerName.MatchString(key) {
			return badString("key")
		}
		if ru.Type == "HEADER" {
			return literal("header value")
		}
		if !isRegex && !cookieValue.MatchString(ru.Value) {
			return badString("cookie value")
		}
	case "HOST_NAME", "PATH":
		return literal("comparison value")
	case "FILE_TYPE":
		if !isRegex && ru.CompareType != "EQUAL_TO" {
			return badRule("invalid comparison type for rule type")
		}
		return literal("comparison value")
	case "SSL_CONN_HAS_CERT", "SSL_VERIFY_RESULT":
		switch {
		case key != "":
			return badRule(`L7rule type ` + ru.Type + ` does not use the "key" field.`)
		case ru.Type == "SSL_CONN_HAS_CERT" && strings.ToLower(ru.Value) != "true":
			return badRule("L7rule value " + ru.Value + " is not a boolean True string.")
		case ru.Type == "SSL_VERIFY_RESULT" && !allDigits.MatchString(ru.Value):
			return badRule("L7rule type " + ru.Type + " needs a int value, which is >= 0")
		case ru.CompareType != "EQUAL_TO":
			return badRule("L7rule type " + ru.Type + " only supports the EQUAL_TO compare type.")
		}
	case "SSL_DN_FIELD":
		if key == "" {
			return badRule("L7rule type " + ru.Type + " needs to specify a key and a value.")
		}
		if !dnField.MatchString(key) {
			return badRule("Invalid L7rule distinguished name field.")
		}
	}
	return nil
}
