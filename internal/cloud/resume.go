package cloud

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Resume waits within the slice for Octavia to finish the last step of an Apply that ended Pending, with have as that Apply left it.
// It saves the reads of a new observation, which cost about a second for each policy: one GET while the load balancer is PENDING,
// and then four lists, which must show exactly the children of have, all ACTIVE. Anything else is Stale: observe again.
//
// since is when that step began: what is waited for long is looked at seldom.
func (c *Client) Resume(ctx context.Context, have *lb.Tree, since time.Time, slice time.Duration) (Progress, error) {
	clock := c.opts.Clock
	deadline := clock.Now().Add(slice)
	for {
		now, exists, err := c.look(ctx, have.ID)
		status := now.ProvisioningStatus
		switch {
		case err != nil:
			return Progress{}, err
		case !exists:
			return Progress{}, stale("load balancer "+have.ID, "it is gone")
		case status == lb.Errored:
			return Progress{}, errored("load balancer", have.ID)
		case !status.Pending():
			have.ProvisioningStatus, have.UpdatedAt = status, now.UpdatedAt
			c.pace.end(have.ID, clock.Now())
			if err := c.sameShape(ctx, have); err != nil {
				return Progress{}, err
			}
			if s, ok := c.pace.resumed(have.ID); ok && clock.Now().Sub(since) >= unusual {
				return Progress{}, c.checkBelow(ctx, have, s)
			}
			return Progress{}, nil
		}
		wait := nextLook(clock.Now().Sub(since))
		if wait >= tooLong || clock.Now().Add(wait).After(deadline) {
			return Progress{Pending: true, Since: since, RequeueAfter: max(wait, time.Second)}, nil
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return Progress{}, classify(octavia, "wait for", "load balancer "+have.ID, err)
		}
	}
}

// sameShape compares the children by id, and what is below them as far as the same lists tell it, and requires them to be ACTIVE. What others
// have put below ours since it was made is nothing that we know, although updated_at says nothing of it any more.
func (c *Client) sameShape(ctx context.Context, have *lb.Tree) error {
	shape, err := c.observeShape(ctx, have.Owner, have.ID)
	if err != nil {
		return err
	}
	var found []wireMeta
	for _, o := range shape.listeners {
		found = append(found, o.meta())
	}
	for _, o := range shape.pools {
		found = append(found, o.meta())
	}
	// Policies and monitors are listed for all load balancers of the Gateway. There is one more only while it is replaced: anything else that shows
	// up there is of another process that made one too.
	for _, o := range shape.policies {
		below := have.Replaces == "" || slices.ContainsFunc(shape.listeners, func(l wireListener) bool { return l.ID == o.ListenerID })
		if below && have.Owner.Owns(o.Tags) {
			found = append(found, o.meta())
		}
	}
	for _, o := range shape.monitors {
		below := have.Replaces == "" || slices.ContainsFunc(shape.pools, func(p wirePool) bool { return p.HealthMonitorID == o.ID })
		if below && have.Owner.Owns(o.Tags) {
			found = append(found, o.meta())
		}
	}
	if name := grown(have, shape); name != "" {
		return stale("load balancer "+have.ID, fmt.Sprintf("something is below %q that was not made with it", name))
	}
	var want, got []string
	for _, m := range childMetas(*have) {
		want = append(want, m.ID)
	}
	for _, m := range found {
		switch m.ProvisioningStatus {
		case lb.Active:
		case lb.Errored:
			return erroredChild(have.ID, m.ID, m.Name)
		default:
			return stale("load balancer "+have.ID, "a child is not ACTIVE")
		}
		got = append(got, m.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return stale("load balancer "+have.ID, "it does not have the children that were made")
	}
	allActive(have)
	return nil
}

// grown names a child of ours that has another number of rules, members, monitors or policies below it than have knows of; "" for none.
func grown(have *lb.Tree, shape children) string {
	policies := map[string]int{}
	rules := map[string]int{}
	members := map[string]int{}
	monitors := map[string]string{}
	for _, l := range have.Listeners {
		policies[l.ID] = len(l.Policies)
		for _, p := range l.Policies {
			rules[p.ID] = len(p.Rules)
		}
	}
	for _, p := range have.Pools {
		members[p.ID] = len(p.Members)
		if p.Monitor != nil {
			monitors[p.ID] = p.Monitor.ID
		}
	}
	for _, w := range shape.listeners {
		if n, ok := policies[w.ID]; ok && n != len(w.Policies) {
			return w.Name
		}
	}
	for _, w := range shape.policies {
		if n, ok := rules[w.ID]; ok && n != len(w.Rules) {
			return w.Name
		}
	}
	for _, w := range shape.pools {
		if n, ok := members[w.ID]; ok && (n != len(w.Members) || monitors[w.ID] != w.HealthMonitorID) {
			return w.Name
		}
	}
	return ""
}

func stale(resource, message string) error {
	return &Error{Class: Stale, Reason: ReasonNotFound, Op: "wait for", Resource: resource, Message: message}
}
