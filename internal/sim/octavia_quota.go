package sim

import "fmt"

// quota is what a project may have and what Octavia believes it has. The two
// can drift apart: Octavia forgets to give policies and rules back.
type quota struct {
	limit map[string]int // absent: unlimited
	used  map[string]int
}

var quotaKinds = []string{"loadbalancer", "listener", "pool", "member", "healthmonitor", "l7policy", "l7rule"}

func (c *Cloud) quota(project string) *quota {
	q := c.lb.quotas[project]
	if q == nil {
		q = &quota{limit: map[string]int{}, used: map[string]int{}}
		c.lb.quotas[project] = q
	}
	return q
}

func (q *quota) release(kind string) {
	if q.used[kind] > 0 {
		q.used[kind]--
	}
}

// trialQuota collects what a call takes until the call succeeds.
type trialQuota struct {
	q    *quota
	used map[string]int
}

func (q *quota) trial() *trialQuota {
	t := &trialQuota{q: q, used: map[string]int{}}
	for k, v := range q.used {
		t.used[k] = v
	}
	return t
}

// take counts n more objects, or says no.
func (t *trialQuota) take(c *Cloud, kind string, n int) bool {
	used := t.used[kind]
	if used == 0 {
		// Octavia counts the objects themselves while its counter is zero.
		used = c.count(kind, t.q)
	}
	if limit, ok := t.q.limit[kind]; ok && limit >= 0 && used+n > limit {
		return false
	}
	t.used[kind] = used + n
	return true
}

func (t *trialQuota) refund(kind string, n int) {
	if n > 0 {
		t.used[kind] -= n
	}
}

func (t *trialQuota) add(kind string, n int) { t.used[kind] += n }

func (t *trialQuota) commit() { t.q.used = t.used }

func (c *Cloud) count(kind string, q *quota) int {
	n := 0
	tally := func(e entity) {
		if c.lb.quotas[e.base().ProjectID] == q {
			n++
		}
	}
	switch kind {
	case "loadbalancer":
		for _, e := range c.lb.lbs {
			tally(e)
		}
	case "listener":
		for _, e := range c.lb.listeners {
			tally(e)
		}
	case "pool":
		for _, e := range c.lb.pools {
			tally(e)
		}
	case "member":
		for _, e := range c.lb.members {
			tally(e)
		}
	case "healthmonitor":
		for _, e := range c.lb.monitors {
			tally(e)
		}
	case "l7policy":
		for _, e := range c.lb.policies {
			tally(e)
		}
	case "l7rule":
		for _, e := range c.lb.rules {
			tally(e)
		}
	}
	return n
}

// SetQuota limits a kind of Octavia object (loadbalancer, listener, pool,
// member, healthmonitor, l7policy, l7rule) or of Neutron object (floatingip,
// port, security_group) in the seeded project. -1 is no limit.
func (c *Cloud) SetQuota(kind string, limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range quotaKinds {
		if k == kind {
			c.quota(c.ks.projectID).limit[kind] = limit
			return
		}
	}
	if !c.net.setQuota(kind, limit) {
		panic(fmt.Sprintf("sim: no quota for %q", kind))
	}
}

func (c *Cloud) quotaCall(r *request) (response, error) {
	if len(r.path) < 2 {
		return response{status: 200, body: object{"quotas": []any{}, "quotas_links": []any{}}}, nil
	}
	project := r.path[1]
	if !r.token.admin() && project != r.token.projectID {
		return response{}, refuse(403, "Policy does not allow this request to be performed.")
	}
	q := c.quota(project)
	switch {
	case r.is("GET", "quotas", "*"):
		return response{status: 200, body: object{"quota": q.view()}}, nil
	case r.is("GET", "quotas", "*", "default"):
		return response{status: 200, body: object{"quota": (&quota{}).view()}}, nil
	case !r.token.admin():
		return response{}, refuse(403, "Policy does not allow this request to be performed.")
	case r.is("PUT", "quotas", "*"):
		var fs []field
		for _, k := range append([]string{"load_balancer", "health_monitor"}, quotaKinds...) {
			fs = append(fs, field{name: k, typ: between(-1, 2000000000)})
		}
		a, err := c.parseObject(r, "quotas", "quota", &objectType{fields: fs})
		if err != nil {
			return response{}, err
		}
		for old, kind := range map[string]string{"load_balancer": "loadbalancer", "health_monitor": "healthmonitor"} {
			if a.set(old) {
				a[kind] = a[old]
				delete(a, old)
			}
		}
		for kind := range a {
			q.limit[kind] = a.num(kind)
		}
		return response{status: 202, body: object{"quota": q.view()}}, nil
	case r.is("DELETE", "quotas", "*"):
		clear(q.limit)
		return response{status: 202}, nil
	}
	return response{}, refuse(404, "The resource could not be found.")
}

func (q *quota) view() object {
	out := object{}
	for _, k := range quotaKinds {
		name := k
		switch k { // reads know the old names only
		case "loadbalancer":
			name = "load_balancer"
		case "healthmonitor":
			name = "health_monitor"
		}
		out[name] = -1
		if n, ok := q.limit[k]; ok {
			out[name] = n
		}
	}
	return out
}
