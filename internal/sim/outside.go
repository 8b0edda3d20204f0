package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The methods of this file change the cloud behind the client's back: they take
// no lock of a load balancer, need no token and are not recorded as calls.

// Do performs a request as somebody else with the rights of the administrator
// and of the project would: what is pending is over at once, before and after,
// except for what a fault left stuck. path is below the service's version, as
// in Call.Path. It returns the decoded answer.
func (c *Cloud) Do(service, method, path string, body any) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeForwarder()
	path, query, _ := strings.Cut(path, "?")
	r := &request{service: service, method: method, path: segments(path), query: parseQuery(query), header: map[string][]string{}, fault: &Fault{},
		base:  c.url,
		token: &token{user: adminName, userID: c.ks.adminUserID, projectID: c.ks.projectID, project: projectName}}
	if body != nil {
		b, err := marshal(body)
		if err != nil {
			return nil, err
		}
		r.body = b
	}
	for _, ch := range c.lb.changes {
		if !ch.stuck {
			ch.due = c.clock.Now()
		}
	}
	c.settle()
	for i := range c.svcs {
		if c.svcs[i].name != service {
			continue
		}
		if c.forward != nil {
			c.forward.changed = true
		}
		resp, err := c.svcs[i].handle(c, r)
		if err != nil {
			return nil, err
		}
		for _, ch := range c.lb.changes {
			if !ch.stuck {
				ch.due = c.clock.Now()
			}
		}
		c.settle()
		if resp.body == nil {
			return nil, nil
		}
		b, err := marshal(resp.body)
		if err != nil {
			return nil, err
		}
		var out map[string]any
		return out, json.Unmarshal(b, &out)
	}
	return nil, fmt.Errorf("no service %q", service)
}

// SetStatus forces the statuses of an Octavia object of any kind; an empty one
// stays as it is.
func (c *Cloud) SetStatus(id, provisioning, operating string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	e := c.entity(id)
	if e == nil {
		panic(fmt.Sprintf("sim: no Octavia object %s", id))
	}
	if provisioning != "" {
		e.base().ProvisioningStatus = provisioning
	}
	if operating != "" {
		e.base().OperatingStatus = operating
	}
}

// SetMemberHealth makes the monitor of a member's pool see it as ONLINE or
// ERROR.
func (c *Cloud) SetMemberHealth(id, operating string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeForwarder()
	c.settle()
	m := c.lb.members[id]
	if m == nil {
		panic(fmt.Sprintf("sim: no member %s", id))
	}
	m.health = operating
	if operating == online {
		m.health = ""
	}
	c.refreshOperating(m.pool.lb)
	c.dirty(m.pool.lb)
}

// Unstick ends the operations that a fault left pending for ever; the load
// balancer gets the given status, as an operator would repair it.
func (c *Cloud) Unstick(lbID, provisioning string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeForwarder()
	for _, ch := range c.lb.changes {
		if ch.lb.ID == lbID && ch.stuck {
			ch.stuck, ch.due = false, c.clock.Now()
			if provisioning == inError {
				ch.errors = append(ch.errors, "loadbalancer")
			}
		}
	}
	c.settle()
}

// Vanish removes a load balancer with all that hangs below, at once and without
// a trace, as if an operator had purged it. Floating IPs stay.
func (c *Cloud) Vanish(lbID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeForwarder()
	lb := c.lb.lbs[lbID]
	if lb == nil {
		return
	}
	c.lb.changes = slices.DeleteFunc(c.lb.changes, func(ch *change) bool { return ch.lb == lb })
	lb.remove(c)
	lb.ProvisioningStatus = deleted
	c.dirty(lb)
}

func (c *Cloud) entity(id string) entity {
	if e, ok := c.lb.lbs[id]; ok {
		return e
	}
	if e, ok := c.lb.listeners[id]; ok {
		return e
	}
	if e, ok := c.lb.pools[id]; ok {
		return e
	}
	if e, ok := c.lb.members[id]; ok {
		return e
	}
	if e, ok := c.lb.monitors[id]; ok {
		return e
	}
	if e, ok := c.lb.policies[id]; ok {
		return e
	}
	if e, ok := c.lb.rules[id]; ok {
		return e
	}
	return nil
}
