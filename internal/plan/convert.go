package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// convertPools gives a pool other backends in place, when each of its users, and no other, shall use the new ones: one
// call, and one for its name, where a new pool takes three, one more for each policy, and another for the deletion.
func (c *change) convertPools() {
	before, after := usersOf(c.have), usersOf(c.want)
	found := c.conversions()
	taken := map[string]bool{}
	for i := range c.have.Pools {
		taken[c.have.Pools[i].Key] = true
	}
	for _, to := range c.pools {
		taken[to.key] = true
	}
	for _, to := range c.pools {
		one := found[to]
		if one == nil || one.unfit || c.without.convert[to.want] || one.from.have.Disabled || to.want.Disabled || one.from.have.ProvisioningStatus == lb.Errored ||
			!canBecome(to.want, one.from.have) ||
			before[one.from.have.Key] != one.users || after[to.want.Key] != one.users {
			continue
		}
		delete(taken, to.key)
		to.have, to.key, to.convert = one.from.have, one.from.have.Key, true
		c.relabel(to, taken)
		c.byHave[to.have.Key] = to
		one.from.have = nil
	}
	for _, s := range c.sides {
		for _, one := range s.slots {
			if one.have != nil {
				one.from = goalOf(one.have, c.byHave)
			}
		}
	}
	var kept []*poolChange
	for _, pc := range c.pools {
		if pc.want != nil || pc.have != nil {
			kept = append(kept, pc)
		}
	}
	c.pools = kept
}

// users counts who uses a pool.
type users struct{ policies, defaults int }

// usersOf counts by key, over all listeners.
func usersOf(t *lb.Tree) map[string]users {
	all := map[string]users{}
	for i := range t.Listeners {
		l := &t.Listeners[i]
		if u := all[l.DefaultPool]; l.DefaultPool != "" {
			u.defaults++
			all[l.DefaultPool] = u
		}
		for j := range l.Policies {
			if p := &l.Policies[j]; p.Action == lb.RedirectToPool {
				u := all[p.Pool]
				u.policies++
				all[p.Pool] = u
			}
		}
	}
	return all
}

// conversion counts the users that go from one pool to another and are otherwise the same.
type conversion struct {
	from  *poolChange
	users users
	unfit bool
}

// conversions looks for new pools all of whose users come from one pool that goes.
func (c *change) conversions() map[*poolChange]*conversion {
	found := map[*poolChange]*conversion{}
	use := func(to, from *poolChange) *conversion {
		one := found[to]
		if one == nil {
			one = &conversion{from: from}
			found[to] = one
		}
		one.unfit = one.unfit || from == nil || from != one.from || from.want != nil
		return one
	}
	for _, s := range c.sides {
		if to := c.byWant[s.want.DefaultPool]; to != nil && to.have == nil {
			use(to, c.byHave[s.have.DefaultPool]).users.defaults++
		}
		for _, one := range s.slots {
			if one.have == nil || one.want == nil || one.want.Action != lb.RedirectToPool || one.have.Action != lb.RedirectToPool {
				continue
			}
			if to := c.byWant[one.want.Pool]; to != nil && to.have == nil {
				u := use(to, c.byHave[one.have.Pool])
				u.users.policies++
				u.unfit = u.unfit || len(one.edits) > 0 || one.moved || one.have.Disabled != one.want.Disabled
			}
		}
	}
	return found
}
