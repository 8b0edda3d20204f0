package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// What is known of a tree is believed while updated_at of its load balancer stands still. So it must move with everything below.
func TestWitness_updatedAtMovesWithEveryChange(t *testing.T) {
	clock := sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := beginWith(t, sim.Options{Clock: clock})
	lb := c.create(o{"listeners": l{o{"name": "web", "protocol": "HTTP", "protocol_port": 80, "l7policies": l{
		o{"name": "p", "action": "REJECT", "rules": l{rule("PATH", "EQUAL_TO", "/a")}}}}},
		"pools": l{o{"name": "P", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}}})
	i := idsOf(lb)
	id := i["lb"]
	look := func() string {
		t.Helper()
		found := list(c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=updated_at", nil), "loadbalancers")
		if len(found) != 1 {
			t.Fatalf("found %v", found)
		}
		at := str(found[0], "updated_at")
		if _, err := time.Parse("2006-01-02T15:04:05", at); err != nil {
			t.Fatalf("updated_at is not in whole seconds: %v", err)
		}
		return at
	}
	// A second has to pass before a change can be told from the one before.
	second := func() {
		if c.real {
			time.Sleep(1100 * time.Millisecond)
		} else {
			clock.Advance(time.Second)
		}
	}
	moves := func(what string, change func()) {
		t.Helper()
		second()
		before := look()
		change()
		c.active(id)
		if after := look(); after <= before {
			t.Errorf("%s: updated_at stays at %s", what, after)
		}
	}
	var made o
	create := func(what, path, key string, body o) {
		t.Helper()
		moves("create of a "+what, func() { made = c.must(201, "POST", path, o{key: body}) })
	}
	update := func(what, path, key string, body o) {
		t.Helper()
		moves("update of a "+what, func() { c.must(200, "PUT", path, o{key: body}) })
	}
	remove := func(what, path string) {
		t.Helper()
		moves("delete of a "+what, func() { c.must(204, "DELETE", path, nil) })
	}
	each := func(what, path, key string, body, change o) string {
		t.Helper()
		create(what, path, key, body)
		one := path + "/" + str(made, key, "id")
		update(what, one, key, change)
		return one
	}
	policy := each("policy", "/lb/l7policies", "l7policy", o{"listener_id": i["web"], "action": "REJECT"}, o{"position": 1})
	r := each("rule", policy+"/rules", "rule", rule("PATH", "EQUAL_TO", "/b"), o{"value": "/c"})
	update("rule, to disable it", r, "rule", o{"admin_state_up": false})
	remove("rule", r)
	remove("policy", policy)
	pool := each("pool", "/lb/pools", "pool", o{"loadbalancer_id": id, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}, o{"admin_state_up": false})
	member := each("member", pool+"/members", "member", o{"address": "10.0.0.11", "protocol_port": 80}, o{"weight": 7})
	moves("batch of members", func() {
		c.must(202, "PUT", pool+"/members", o{"members": l{o{"address": "10.0.0.11", "protocol_port": 80, "weight": 8}}})
	})
	remove("member", member)
	monitor := each("monitor", "/lb/healthmonitors", "healthmonitor", o{"pool_id": strings.TrimPrefix(pool, "/lb/pools/"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}, o{"delay": 6})
	remove("monitor", monitor)
	remove("pool", pool)
	listener := each("listener", "/lb/listeners", "listener", o{"loadbalancer_id": id, "protocol": "HTTP", "protocol_port": 81}, o{"timeout_client_data": 60000})
	remove("listener", listener)
	update("load balancer", "/lb/loadbalancers/"+id, "loadbalancer", o{"description": "other"})

	before := look()
	second()
	for _, path := range []string{"/lb/loadbalancers/" + id, "/lb/loadbalancers/" + id + "/status", "/lb/listeners?loadbalancer_id=" + id,
		"/lb/pools?loadbalancer_id=" + id, "/lb/l7policies?listener_id=" + i["web"], "/lb/l7policies/" + i["p"] + "/rules"} {
		c.must(200, "GET", path, nil)
	}
	equal(t, "updated_at after reads", look(), before)
}
