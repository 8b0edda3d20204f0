package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// matchPools finds for wanted pools the existing ones that they are already, or can become.
//
//  1. the same backends (by key, whatever its number) and the same content
//  2. the same backends: members or weights change in place
//  3. the same content under another name: its name follows, so that 2 stays true
//
// What is left is new, or goes, or is converted: see convertPools.
func (c *change) matchPools() {
	c.pools, c.byWant, c.byHave = nil, map[string]*poolChange{}, map[string]*poolChange{}
	matched := map[*lb.Pool]*poolChange{}
	used := map[*lb.Pool]bool{}
	pass := func(identity func(*lb.Pool) string) {
		free := map[string][]*lb.Pool{}
		for i := range c.have.Pools {
			// Octavia refuses to change what is in ERROR, so it is replaced.
			if have := &c.have.Pools[i]; !used[have] && !c.without.enable[have] && have.ProvisioningStatus != lb.Errored {
				free[identity(have)] = append(free[identity(have)], have)
			}
		}
		for i := range c.want.Pools {
			want := &c.want.Pools[i]
			if matched[want] != nil {
				continue
			}
			for _, have := range free[identity(want)] {
				if !used[have] && canBecome(want, have) {
					matched[want] = &poolChange{want: want, have: have, key: have.Key}
					used[have] = true
					break
				}
			}
		}
	}
	pass(func(pool *lb.Pool) string { return pool.Key + " " + poolContent(pool) })
	pass(func(pool *lb.Pool) string { return baseKey(pool.Key) + " " + poolContent(pool) })
	pass(func(pool *lb.Pool) string { return pool.Key })
	pass(func(pool *lb.Pool) string { return baseKey(pool.Key) })
	pass(poolContent)

	taken := map[string]bool{}
	for i := range c.have.Pools {
		taken[c.have.Pools[i].Key] = true
	}
	for i := range c.want.Pools {
		want := &c.want.Pools[i]
		pc := matched[want]
		if pc == nil {
			pc = &poolChange{want: want, key: freeKey(want.Key, taken)}
		}
		if pc.have != nil {
			c.relabel(pc, taken)
		}
		c.track(pc)
	}
	for i := range c.have.Pools {
		if have := &c.have.Pools[i]; !used[have] {
			c.track(&poolChange{have: have, key: have.Key})
		}
	}
}

// relabel gives a pool that serves other backends than it is named after a key of those.
func (c *change) relabel(pc *poolChange, taken map[string]bool) {
	if baseKey(pc.want.Key) != baseKey(pc.have.Key) {
		pc.key, pc.relabel = freeKey(pc.want.Key, taken), true
	}
}

func (c *change) track(pc *poolChange) {
	c.pools = append(c.pools, pc)
	if pc.want != nil {
		c.byWant[pc.want.Key] = pc
	}
	if pc.have != nil {
		c.byHave[pc.have.Key] = pc
	}
}
