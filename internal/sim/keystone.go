package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Names and the password of the seeded users.
const (
	projectName = "demo"
	userName    = "demo"
	adminName   = "admin"
	password    = "secret"
)

const notAuthenticated = "The request you have made requires authentication."

type keystoneState struct {
	projectID, userID           string
	adminProjectID, adminUserID string
	appCredID, appCredSecret    string
	tokens                      map[string]*token
	// issued are the ids of all tokens that there ever were.
	issued []string
	// unlisted are the service types that the catalog does not have.
	unlisted map[string]bool
}

type token struct {
	id              string
	user, userID    string
	project         string
	projectID       string
	issued, expires time.Time
	roles, methods  []string
	appCred         bool
}

func (t *token) admin() bool { return t.user == adminName }

// ProjectID is the seeded project.
func (c *Cloud) ProjectID() string { return c.ks.projectID }

// RevokeTokens makes every token that was issued so far invalid.
func (c *Cloud) RevokeTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.ks.tokens)
}

// Confidential are the tokens that were issued, and what the bodies of requests
// to Keystone and Barbican had of passwords and payloads: nothing of them may
// ever be written down.
func (c *Cloud) Confidential() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callsMu.Lock()
	defer c.callsMu.Unlock()
	return slices.Concat(c.ks.issued, c.confidential)
}

// confide keeps what a request has under the names of secrets.
func (c *Cloud) confide(body []byte) {
	var document any
	if json.Unmarshal(body, &document) != nil {
		return
	}
	var found []string
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if text, ok := inner.(string); ok && slices.Contains([]string{"payload", "password", "secret"}, name) && text != "" {
					found = append(found, text)
				}
				look(inner)
			}
		case []any:
			for _, inner := range v {
				look(inner)
			}
		}
	}
	look(document)
	c.callsMu.Lock()
	defer c.callsMu.Unlock()
	c.confidential = append(c.confidential, found...)
}

// Unlist makes the catalog one without these service types, and with all
// others. Tokens that were issued already still show what they showed.
func (c *Cloud) Unlist(types ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ks.unlisted = map[string]bool{}
	for _, t := range types {
		c.ks.unlisted[t] = true
	}
}

// RotateCredential makes a new application credential secret and revokes the
// tokens of the old one; CloudsYAML then shows the new one.
func (c *Cloud) RotateCredential() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ks.appCredID, c.ks.appCredSecret = c.newID(), c.newID()
	for id, t := range c.ks.tokens {
		if t.appCred {
			delete(c.ks.tokens, id)
		}
	}
}

func (c *Cloud) seedKeystone() {
	c.ks = keystoneState{
		projectID: compactID(c.newID()), userID: compactID(c.newID()),
		adminProjectID: compactID(c.newID()), adminUserID: compactID(c.newID()),
		appCredID: compactID(c.newID()), appCredSecret: c.newID(),
		tokens: map[string]*token{},
	}
}

// compactID is the form of ids in Keystone, without dashes.
func compactID(id string) string {
	out := make([]byte, 0, 32)
	for i := range len(id) {
		if id[i] != '-' {
			out = append(out, id[i])
		}
	}
	return string(out)
}

func (c *Cloud) validToken(id string) *token {
	t := c.ks.tokens[id]
	if t == nil || !c.clock.Now().Before(t.expires) {
		return nil
	}
	return t
}

func (c *Cloud) revoke(id string) { delete(c.ks.tokens, id) }

func keystoneError(e *apiError) any {
	return object{"error": object{"code": e.status, "title": http.StatusText(e.status), "message": e.message}}
}

type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password struct {
				User struct {
					ID       string `json:"id"`
					Name     string `json:"name"`
					Password string `json:"password"`
				} `json:"user"`
			} `json:"password"`
			ApplicationCredential struct {
				ID     string `json:"id"`
				Name   string `json:"name"`
				Secret string `json:"secret"`
			} `json:"application_credential"`
			Token struct {
				ID string `json:"id"`
			} `json:"token"`
		} `json:"identity"`
		Scope json.RawMessage `json:"scope"`
	} `json:"auth"`
}

func (c *Cloud) keystone(r *request) (response, error) {
	switch {
	case len(r.path) == 0:
		v3 := object{"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
			"links": []object{{"rel": "self", "href": r.base + "/identity/v3/"}}}
		return response{status: http.StatusMultipleChoices, body: object{"version": v3, "versions": object{"values": []object{v3}}}}, nil
	case r.is("POST", "auth", "tokens"):
		return c.issueToken(r)
	case r.is("GET", "auth", "tokens"), r.is("HEAD", "auth", "tokens"):
		t := c.validToken(r.header.Get("X-Subject-Token"))
		if c.validToken(r.header.Get("X-Auth-Token")) == nil {
			return response{}, refuse(http.StatusUnauthorized, notAuthenticated)
		}
		if t == nil {
			return response{}, refuse(http.StatusNotFound, "Could not recognize Fernet token")
		}
		return c.tokenResponse(r, t, http.StatusOK), nil
	case r.is("DELETE", "auth", "tokens"):
		c.revoke(r.header.Get("X-Subject-Token"))
		return response{status: http.StatusNoContent}, nil
	case r.is("GET", "auth", "catalog"):
		return response{status: http.StatusOK, body: object{"catalog": c.catalog(r)}}, nil
	}
	return response{}, refuse(http.StatusNotFound, "The resource could not be found.")
}

func (c *Cloud) issueToken(r *request) (response, error) {
	denied := refuse(http.StatusUnauthorized, notAuthenticated)
	var req authRequest
	if err := json.Unmarshal(r.body, &req); err != nil {
		return response{}, refuse(http.StatusBadRequest, "Expecting to find valid JSON in request body.")
	}
	now := c.clock.Now()
	t := &token{id: "gAAAA" + c.newID(), issued: now, expires: now.Add(c.opts.TokenTTL),
		user: userName, userID: c.ks.userID, project: projectName, projectID: c.ks.projectID,
		roles: []string{"member", "load-balancer_member", "creator", "reader"}}
	id := &req.Auth.Identity
	if len(id.Methods) != 1 {
		return response{}, denied
	}
	t.methods = id.Methods
	switch id.Methods[0] {
	case "application_credential":
		if id.ApplicationCredential.ID != c.ks.appCredID || id.ApplicationCredential.Secret != c.ks.appCredSecret {
			return response{}, denied
		}
		if len(req.Auth.Scope) > 0 && string(req.Auth.Scope) != "null" {
			return response{}, refuse(http.StatusUnauthorized, "Application credentials cannot request a scope.")
		}
		t.appCred = true
	case "password":
		u := id.Password.User
		admin := u.Name == adminName || u.ID == c.ks.adminUserID
		if u.Password != password || !admin && u.Name != userName && u.ID != c.ks.userID {
			return response{}, denied
		}
		if admin {
			t.user, t.userID, t.project, t.projectID = adminName, c.ks.adminUserID, adminName, c.ks.adminProjectID
			t.roles = []string{"admin", "member", "reader"}
		}
	case "token":
		old := c.validToken(id.Token.ID)
		if old == nil {
			return response{}, refuse(http.StatusNotFound, "Could not recognize Fernet token")
		}
		tid := t.id
		*t = *old
		t.id, t.issued = tid, now
	default:
		return response{}, denied
	}
	c.ks.tokens[t.id] = t
	c.ks.issued = append(c.ks.issued, t.id)
	resp := c.tokenResponse(r, t, http.StatusCreated)
	resp.header = http.Header{}
	resp.header.Set("X-Subject-Token", t.id)
	return resp, nil
}

func (c *Cloud) tokenResponse(r *request, t *token, status int) response {
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
	roles := []object{}
	for _, name := range t.roles {
		roles = append(roles, object{"id": name, "name": name})
	}
	domain := object{"id": "default", "name": "Default"}
	body := object{
		"methods": t.methods, "issued_at": stamp(t.issued), "expires_at": stamp(t.expires),
		"user":    object{"id": t.userID, "name": t.user, "domain": domain, "password_expires_at": nil},
		"project": object{"id": t.projectID, "name": t.project, "domain": domain},
		"roles":   roles, "catalog": c.catalog(r), "is_domain": false, "audit_ids": []string{t.id[5:27]},
	}
	if t.appCred {
		body["application_credential"] = object{"id": c.ks.appCredID, "name": "gateway", "restricted": true}
	}
	return response{status: status, body: object{"token": body}}
}

func (c *Cloud) catalog(r *request) []object {
	entry := func(name, typ, path string) object {
		var endpoints []object
		for _, i := range []string{"public", "internal", "admin"} {
			endpoints = append(endpoints, object{"id": compactName(name, i), "interface": i,
				"region": c.opts.Region, "region_id": c.opts.Region, "url": r.base + path})
		}
		return object{"id": compactName(name, ""), "name": name, "type": typ, "endpoints": endpoints}
	}
	all := []object{
		entry("keystone", "identity", "/identity"),
		entry("octavia", "load-balancer", "/load-balancer"),
		entry("neutron", "network", "/network"),
		entry("barbican", "key-manager", "/key-manager"),
	}
	return slices.DeleteFunc(all, func(o object) bool { return c.ks.unlisted[o["type"].(string)] })
}

func compactName(name, iface string) string { return name + "-" + iface + "-endpoint" }
