package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestKeystone_refusesBadCredentials(t *testing.T) {
	c := begin(t)
	auth := strings.TrimSuffix(c.provider.IdentityEndpoint, "/")
	if !strings.HasSuffix(auth, "/v3") {
		auth += "/v3"
	}
	const denied = "The request you have made requires authentication."
	for _, identity := range []o{
		{"methods": l{"password"}, "password": o{"user": o{"name": "nobody", "domain": o{"id": "default"}, "password": "x"}}},
		{"methods": l{"application_credential"}, "application_credential": o{"id": "00000000000000000000000000000000", "secret": "x"}},
		{"methods": l{"token"}, "token": o{"id": "nonsense"}},
	} {
		status, doc := c.call("POST", auth+"/auth/tokens", o{"auth": o{"identity": identity}})
		if m := identity["methods"].(l)[0]; status != 401 && (m == "password" || status != 404) {
			t.Errorf("%v: %d %s", m, status, compact(doc))
		} else if status == 401 && m == "password" {
			equal(t, "message", str(doc, "error", "message"), denied)
		}
	}
	for _, path := range []string{"/lb/loadbalancers", "/network/networks", "/keys/secrets"} {
		status, doc := c.call("GET", path, nil, "X-Auth-Token", "nonsense")
		equal(t, path+" with a bad token", status, http.StatusUnauthorized)
		if path == "/lb/loadbalancers" && str(doc, "error", "message") != denied {
			t.Errorf("%s: %s", path, compact(doc))
		}
		status, _ = c.call("GET", path, nil, "X-Auth-Token", "")
		equal(t, path+" without a token", status, http.StatusUnauthorized)
	}
	doc := c.must(200, "GET", auth+"/auth/tokens", nil, "X-Subject-Token", c.provider.Token())
	tok, _ := doc["token"].(o)
	types := map[string]bool{}
	for _, s := range list(tok, "catalog") {
		types[str(s, "type")] = true
	}
	for _, want := range []string{"identity", "network", "load-balancer", "key-manager"} {
		if !types[want] {
			t.Errorf("no %s in the catalog", want)
		}
	}
	equal(t, "project", str(tok, "project", "id"), c.project)
	if e, err := time.Parse("2006-01-02T15:04:05.000000Z", str(tok, "expires_at")); err != nil || time.Until(e) <= 0 {
		t.Errorf("expiry %v %v", e, err)
	}
	if str(tok, "methods", "0") == "application_credential" {
		equal(t, "application credential", str(tok, "application_credential", "id") != "", true)
	}
}
