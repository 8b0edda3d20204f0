package sim

import (
	"encoding/json"
	"sort"
)

// Snapshot is a deep copy of all objects, by service and collection and then by
// id. Nested reads (members, rules) are collections of their own.
type Snapshot map[string]map[string]map[string]any

// Snapshot dumps the whole state. What is due happens first.
func (c *Cloud) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	out := Snapshot{}
	put := func(collection, id string, v any) {
		if out[collection] == nil {
			out[collection] = map[string]map[string]any{}
		}
		out[collection][id] = asMap(v)
	}
	for id, e := range c.lb.lbs {
		put("loadbalancers", id, e.view())
	}
	for id, e := range c.lb.listeners {
		put("listeners", id, e.view())
	}
	for id, e := range c.lb.pools {
		put("pools", id, e.view())
	}
	for id, e := range c.lb.members {
		put("members", id, e.view())
		out["members"][id]["pool_id"] = e.pool.ID
	}
	for id, e := range c.lb.monitors {
		put("healthmonitors", id, e.view())
	}
	for id, e := range c.lb.policies {
		put("l7policies", id, e.view())
	}
	for id, e := range c.lb.rules {
		put("rules", id, e.view())
		out["rules"][id]["l7policy_id"] = e.policy.ID
	}
	for id, f := range c.lb.flavors.made {
		put("flavors", id, c.lb.flavors.view(f))
	}
	for id, f := range c.lb.flavors.madeProfiles {
		put("flavorprofiles", id, c.lb.flavors.viewProfile(f))
	}
	for collection, objects := range c.net.objects {
		for id, o := range objects {
			put(collection, id, c.neutronView(collection, o))
		}
	}
	for id, s := range c.keys.secrets {
		v := c.secretView(s)
		v["metadata"], v["acl"] = s.metadata, s.acl
		v["payload_length"] = len(s.payload)
		put("secrets", id, v)
	}
	for id, k := range c.keys.containers {
		put("containers", id, c.containerView(k))
	}
	return out
}

// Counts is the number of objects in each collection; an absent collection is
// empty.
func (s Snapshot) Counts() map[string]int {
	out := map[string]int{}
	for k, v := range s {
		if len(v) > 0 {
			out[k] = len(v)
		}
	}
	return out
}

// JSON is the snapshot as indented JSON, with sorted keys: equal states are
// equal bytes.
func (s Snapshot) JSON() []byte {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err)
	}
	return b
}

// Only is the part of the snapshot that keep chooses.
func (s Snapshot) Only(keep func(collection string, o map[string]any) bool) Snapshot {
	out := Snapshot{}
	for collection, objects := range s {
		for id, o := range objects {
			if keep(collection, o) {
				if out[collection] == nil {
					out[collection] = map[string]map[string]any{}
				}
				out[collection][id] = o
			}
		}
	}
	return out
}

// Leaks names what is in s and was not in before: "collection name id".
func (s Snapshot) Leaks(before Snapshot) []string {
	var out []string
	for collection, objects := range s {
		for id, o := range objects {
			if _, ok := before[collection][id]; !ok {
				name, _ := o["name"].(string)
				out = append(out, collection+" "+name+" "+id)
			}
		}
	}
	sort.Strings(out)
	return out
}
