package cloud

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func testTree() *lb.Tree {
	return &lb.Tree{
		Meta: lb.Meta{Key: "loadbalancer", Name: "gw_blue_infra_edge"}, Owner: testOwner, Provider: "amphora",
		FlavorID: "flavor", AvailabilityZone: "az1",
		VIP:            lb.VIP{SubnetID: "subnet", NetworkID: "network"},
		AdditionalVIPs: []lb.VIP{{SubnetID: "six"}}, VIPSecurityGroupIDs: []string{"group"},
		FloatingIP: &lb.FloatingIP{NetworkID: "public"},
		Listeners: []lb.Listener{{
			Meta: lb.Meta{Key: "http/80", Name: "http/80"}, Protocol: lb.HTTP, Port: 80,
			InsertHeaders: map[string]string{"X-Forwarded-For": "true"},
			Policies: []lb.Policy{
				{Meta: lb.Meta{Key: "a", Name: "a"}, Action: lb.RedirectToPool, Pool: "p1", Rules: []lb.Rule{
					{Type: lb.RuleHost, Compare: lb.Regex, Value: "^a$"},
					{Type: lb.RuleHeader, Compare: lb.EqualTo, Key: "X-Kind", Value: "1", Invert: true}}},
				{Meta: lb.Meta{Key: "b", Name: "b"}, Action: lb.RedirectToURL, URL: "https://b.test/", Code: 301,
					Rules: []lb.Rule{{Type: lb.RuleHost, Compare: lb.Regex, Value: "^b$"}}},
			},
		}},
		Pools: []lb.Pool{{
			Meta: lb.Meta{Key: "p1", Name: "p1"}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN",
			Members: []lb.Member{{Name: "n1", Address: "10.0.0.5", Port: 30080, Weight: 1}, {Name: "n2", Address: "10.0.0.6", Port: 30080, Weight: 2, SubnetID: "members", MonitorPort: 31900}},
			Monitor: &lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 2, MaxRetriesDown: 2},
		}},
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFullLoadBalancer_sendsEverythingAndNothingElse(t *testing.T) {
	t.Parallel()
	body, err := fullLoadBalancer(testTree(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Tags are the same five or two everywhere; here they would hide the rest.
	got := asJSON(t, withoutTags(t, body))
	const want = `{
 "additional_vips": [
  {
   "subnet_id": "six"
  }
 ],
 "availability_zone": "az1",
 "flavor_id": "flavor",
 "listeners": [
  {
   "connection_limit": -1,
   "insert_headers": {
    "X-Forwarded-For": "true"
   },
   "l7policies": [
    {
     "action": "REDIRECT_TO_POOL",
     "name": "a",
     "position": 1,
     "redirect_pool": {
      "name": "p1"
     },
     "rules": [
      {
       "compare_type": "REGEX",
       "invert": false,
       "type": "HOST_NAME",
       "value": "^a$"
      },
      {
       "compare_type": "EQUAL_TO",
       "invert": true,
       "key": "X-Kind",
       "type": "HEADER",
       "value": "1"
      }
     ]
    },
    {
     "action": "REDIRECT_TO_URL",
     "name": "b",
     "position": 2,
     "redirect_http_code": 301,
     "redirect_url": "https://b.test/",
     "rules": [
      {
       "compare_type": "REGEX",
       "invert": false,
       "type": "HOST_NAME",
       "value": "^b$"
      }
     ]
    }
   ],
   "name": "http/80",
   "protocol": "HTTP",
   "protocol_port": 80,
   "timeout_client_data": 50000,
   "timeout_member_connect": 5000,
   "timeout_member_data": 50000
  }
 ],
 "name": "gw_blue_infra_edge",
 "pools": [
  {
   "healthmonitor": {
    "delay": 5,
    "max_retries": 2,
    "max_retries_down": 2,
    "timeout": 3,
    "type": "TCP"
   },
   "lb_algorithm": "ROUND_ROBIN",
   "members": [
    {
     "address": "10.0.0.5",
     "name": "n1",
     "protocol_port": 30080,
     "weight": 1
    },
    {
     "address": "10.0.0.6",
     "monitor_port": 31900,
     "name": "n2",
     "protocol_port": 30080,
     "subnet_id": "members",
     "weight": 2
    }
   ],
   "name": "p1",
   "protocol": "HTTP"
  }
 ],
 "provider": "amphora",
 "vip_sg_ids": [
  "group"
 ],
 "vip_subnet_id": "subnet"
}
`
	if got != want {
		t.Errorf("got %s", got)
	}
}

// withoutTags checks that every object has the proof of ownership without duplicates, and takes the tags away.
func withoutTags(t *testing.T, v any) any {
	t.Helper()
	var generic any
	if err := json.Unmarshal([]byte(asJSON(t, v)), &generic); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(path, e)
			}
		case map[string]any:
			if !strings.HasSuffix(path, "redirect_pool") && !strings.HasSuffix(path, "insert_headers") && path != "/additional_vips" {
				var tags []string
				raw, _ := v["tags"].([]any)
				for _, tag := range raw {
					tags = append(tags, tag.(string))
				}
				if !testOwner.Owns(tags) || !slices.IsSorted(tags) || len(slices.Compact(slices.Clone(tags))) != len(tags) {
					t.Errorf("%s has the tags %q", path, tags)
				}
				delete(v, "tags")
			}
			for key, e := range v {
				walk(path+"/"+key, e)
			}
		}
	}
	walk("", generic)
	return generic
}

func TestFullLoadBalancer_givesPoolsUniqueNames(t *testing.T) {
	t.Parallel()
	tree := testTree()
	tree.Pools = []lb.Pool{{Meta: lb.Meta{Key: "one", Name: "same"}}, {Meta: lb.Meta{Key: "two", Name: "same"}},
		{Meta: lb.Meta{Key: strings.Repeat("k", 300)}}, {Meta: lb.Meta{Key: "p1", Name: "own"}}}
	names := poolNames(tree.Pools)
	if names["one"] != "one" || names["two"] != "two" || names["p1"] != "own" || len(names[strings.Repeat("k", 300)]) != lb.MaxLength {
		t.Errorf("got %v", names)
	}
}

func TestFullLoadBalancer_refusesAPoolThatIsNotThere(t *testing.T) {
	t.Parallel()
	tree := testTree()
	tree.Listeners[0].DefaultPool = "gone"
	if _, err := fullLoadBalancer(tree, nil); ReasonOf(err) != ReasonPlan {
		t.Errorf("got %v", err)
	}
}

func TestTags_haveTheKeyThatTheObjectReallyHas(t *testing.T) {
	t.Parallel()
	compiled := testOwner.Tags(lb.KindPolicy, "a", lb.RouteTag("shop", "cart"))
	got := tags(testOwner, lb.KindPolicy, "a~2", compiled)
	if lb.KeyFromTags(got) != "a~2" || !testOwner.Owns(got) || !slices.Contains(got, "route=shop/cart") || len(got) != len(compiled) {
		t.Errorf("got %q", got)
	}
}

func TestOnly_sendsWhatAnUpdateNames(t *testing.T) {
	t.Parallel()
	l := &testTree().Listeners[0]
	l.InsertHeaders = nil
	got, err := listenerAttributes(testOwner, l, nil).only([]string{"default_pool_id", "insert_headers"})
	if err != nil || asJSON(t, got) != "{\n \"default_pool_id\": null,\n \"insert_headers\": null\n}\n" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, fields := range [][]string{nil, {"protocol_port"}} {
		if _, err := listenerAttributes(testOwner, l, nil).only(fields); ReasonOf(err) != ReasonPlan {
			t.Errorf("%q: %v", fields, err)
		}
	}
}

func TestKeysByID_marksWhatIsThereTwice(t *testing.T) {
	t.Parallel()
	object := func(id, key string, owner lb.Owner) wirePool {
		return wirePool{wireMeta: wireMeta{ID: id, Tags: owner.Tags(lb.KindPool, key)}}
	}
	other := testOwner
	other.UID = "another"
	keyless := object("4", "", testOwner)
	keyless.Tags = proof(testOwner)
	got := keysByID(testOwner, []wirePool{object("2", "a", testOwner), object("1", "a", testOwner),
		object("3", "b", testOwner), keyless, object("5", "a", other)})
	want := map[string]string{"1": "a", "2": "stray/2", "3": "b", "4": "stray/4"}
	if asJSON(t, got) != asJSON(t, want) {
		t.Errorf("got %v", got)
	}
}

func TestListenerModel_hasOneNormalForm(t *testing.T) {
	t.Parallel()
	var w wireListener
	const reported = `{"id": "L", "name": "n", "tags": ["b", "a"], "admin_state_up": true, "protocol": "HTTP", "protocol_port": 80,
		"default_pool_id": null, "allowed_cidrs": ["10.1.0.0/16", "10.0.0.0/16"], "insert_headers": {}, "connection_limit": -1,
		"timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 60000,
		"default_tls_container_ref": null, "sni_container_refs": [], "l7policies": [{"id": "P"}]}`
	if err := json.Unmarshal([]byte(reported), &w); err != nil {
		t.Fatal(err)
	}
	l := w.model()
	if l.ConnectionLimit != 0 || l.TimeoutClientData != 0 || l.TimeoutMemberConnect != 0 || l.TimeoutMemberData != 60000 ||
		l.InsertHeaders != nil || l.TLS != nil || l.AllowedCIDRs[0] != "10.0.0.0/16" || l.Tags[0] != "a" || l.Disabled {
		t.Errorf("got %+v", l)
	}
}

func TestNextLook_waitsATenthOfTheTimePassed(t *testing.T) {
	t.Parallel()
	var waited time.Duration
	looks := 0
	for waited < 3*time.Minute {
		waited += nextLook(waited)
		looks++
	}
	if looks > 70 {
		t.Errorf("%d looks in three minutes", looks)
	}
	if nextLook(0) != shortestWait || nextLook(time.Hour) != longestWait {
		t.Error("bounds")
	}
}
