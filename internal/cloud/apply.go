package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// Progress is how far a plan came. A plan whose Remaining is not zero is not continued: the next pass observes and plans
// again.
type Progress struct {
	Done, Remaining int
	// Pending says that the load balancer is still busy with the last step, which began at Since.
	Pending bool
	Since   time.Time
	// Superseded says that newer input ended the plan.
	Superseded bool
	// RequeueAfter is when to come back; zero when there is nothing to come back for.
	RequeueAfter time.Duration
}

// Polling: an accepted write is ACTIVE after one to several seconds, a new load balancer after minutes. The next look
// comes after a tenth of the time that has passed, so what is waited too long is a tenth at most. A look is the cheapest of Octavia's
// reads, and the first comes when the pace of the load balancer lets expect something.
const (
	firstLook    = 400 * time.Millisecond
	shortestWait = 100 * time.Millisecond
	longestWait  = 10 * time.Second
	// tooLong is a pause between two looks that a pass does not sit out: others need its worker, and the next pass looks.
	tooLong = time.Second
)

func nextLook(waited time.Duration) time.Duration {
	return min(max(waited/10, shortestWait), longestWait)
}

// Apply runs steps in order, one write at a time, until the plan is done, the slice is used, or superseded says that
// newer input has arrived. After each step that locks the load balancer it polls until Octavia has finished it and looks
// at the object that was changed: an ACTIVE load balancer can have children in ERROR, which ends the plan as Broken.
//
// have follows the cloud. After an error it may not, and must be observed again.
func (c *Client) Apply(ctx context.Context, have *lb.Tree, steps []plan.Step, slice time.Duration, superseded func() bool) (Progress, error) {
	p := Progress{Remaining: len(steps), Since: c.opts.Clock.Now()}
	known := knownErrors(have)
	deadline := c.opts.Clock.Now().Add(slice)
	bare := false // a load balancer was created without its children
	if have.ProvisioningStatus.Pending() {
		p.Pending, p.RequeueAfter = true, time.Second
		return p, nil
	}
	for i, s := range steps {
		if i > 0 && superseded != nil && superseded() {
			p.Superseded, p.RequeueAfter = true, time.Millisecond
			return p, nil
		}
		if i > 0 && !c.opts.Clock.Now().Before(deadline) {
			p.RequeueAfter = time.Millisecond
			return p, nil
		}
		if have.ProvisioningStatus == lb.Errored && s.Locks() && (s.Kind != lb.KindLoadBalancer || s.Verb != plan.Delete) {
			// Octavia takes nothing but the deletion of the whole then.
			return p, errored("load balancer", have.ID)
		}
		if err := c.Do(ctx, have, s); err != nil {
			return p, blame(err, have, steps[i:])
		}
		p.Done, p.Remaining = i+1, len(steps)-i-1
		bare = bare || s.Kind == lb.KindLoadBalancer && s.Verb == plan.Create && c.singly.Load()
		if !s.Locks() {
			continue
		}
		p.Since = c.opts.Clock.Now()
		wait, err := c.settle(ctx, have, s, deadline, known)
		if err != nil {
			return p, err
		}
		if wait > 0 {
			p.Pending, p.RequeueAfter = true, wait
			return p, nil
		}
	}
	if len(steps) > 0 && len(known) > len(have.Foreign) && !have.Empty() {
		// Something was in ERROR before: the plan may have repaired it, or not.
		if err := c.checkChildren(ctx, have, foreignIDs(have)); err != nil {
			return p, err
		}
		allActive(have)
	}
	if bare {
		p.RequeueAfter = time.Millisecond
	}
	return p, nil
}

// knownErrors are the children whose ERROR is no news: those that were observed in it, and those of others.
func knownErrors(have *lb.Tree) map[string]bool {
	known := foreignIDs(have)
	for _, m := range childMetas(*have) {
		if m.ProvisioningStatus == lb.Errored {
			known[m.ID] = true
		}
	}
	return known
}

func foreignIDs(have *lb.Tree) map[string]bool {
	ids := map[string]bool{}
	for _, f := range have.Foreign {
		ids[f.ID] = true
	}
	return ids
}

// settle polls until the load balancer is ACTIVE (or gone, after its deletion) and then checks what the step changed. It
// returns after how long to come back when the deadline was met first, or when a new load balancer takes its time: an amphora boots for
// a minute, and many Gateways may be new at once.
func (c *Client) settle(ctx context.Context, have *lb.Tree, s plan.Step, deadline time.Time, known map[string]bool) (time.Duration, error) {
	id, clock := have.ID, c.opts.Clock
	deleting := s.Kind == lb.KindLoadBalancer && s.Verb == plan.Delete
	if deleting {
		id = s.Ref.ID
		c.pace.forget(id)
	}
	started := clock.Now()
	if creates(s) {
		c.pace.begin(id, started)
	}
	for wait := c.pace.first(id, s); ; wait = nextLook(clock.Now().Sub(started)) {
		if clock.Now().Add(wait).After(deadline) || creates(s) && wait >= tooLong {
			c.pace.leave(id, s)
			return max(wait, time.Second), nil
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return 0, classify(octavia, "wait for", "load balancer "+id, err)
		}
		now, exists, err := c.look(ctx, id)
		status := now.ProvisioningStatus
		switch {
		case err != nil:
			return 0, err
		case !exists && deleting:
			return 0, nil
		case !exists:
			return 0, &Error{Class: Stale, Reason: ReasonNotFound, Op: "wait for", Resource: "load balancer " + id, Message: "it is gone"}
		case status.Pending():
			continue
		case deleting && status == lb.Active:
			// The delete was accepted a moment ago and does not show yet, or somebody undid it.
			continue
		}
		c.pace.note(id, s, clock.Now().Sub(started))
		c.budget.metrics.locks.WithLabelValues(string(s.Verb), string(s.Kind)).Observe(clock.Now().Sub(started).Seconds())
		have.ProvisioningStatus, have.UpdatedAt = status, now.UpdatedAt
		if status == lb.Errored {
			return 0, errored("load balancer", id)
		}
		c.pace.end(id, clock.Now())
		if err := c.checkChild(ctx, have, s, known); err != nil || clock.Now().Sub(started) < unusual && len(have.Foreign) == 0 {
			return 0, err
		}
		return 0, c.checkBelow(ctx, have, s)
	}
}

func errored(kind, id string) error {
	return &Error{Class: Broken, Reason: ReasonErrored, Op: "use", Resource: kind + " " + id,
		Message: "its provisioning status is ERROR: see Octavia's logs; an operator can fail over the load balancer"}
}

// erroredChild names a child by what stays the same when it is made anew, so that its message does.
func erroredChild(loadBalancer, id, name string) error {
	return errored(fmt.Sprintf("%q of load balancer", cmp.Or(name, id)), loadBalancer)
}

// checkChild looks at the object that a step changed, with one cheap list; at all children after a create.
func (c *Client) checkChild(ctx context.Context, have *lb.Tree, s plan.Step, known map[string]bool) error {
	switch s.Kind {
	case lb.KindLoadBalancer:
		if s.Verb != plan.Create {
			return nil
		}
		return c.sameShape(ctx, have)
	case lb.KindListener, lb.KindRule:
		// Where HAProxy does not start shows in the listener.
		return c.checkStatuses(ctx, have.ID, "listener", "/listeners", "listeners", url.Values{"loadbalancer_id": {have.ID}}, known)
	case lb.KindPolicy:
		listener, err := execution{c, have, &s}.id(lb.KindListener, s.Parent)
		if err != nil {
			return err
		}
		return c.checkStatuses(ctx, have.ID, "L7 policy", "/l7policies", "l7policies", url.Values{"listener_id": {listener}}, known)
	case lb.KindMonitor:
		pool, err := execution{c, have, &s}.id(lb.KindPool, s.Parent)
		if err != nil {
			return err
		}
		return c.checkStatuses(ctx, have.ID, "health monitor", "/healthmonitors", "healthmonitors", url.Values{"pool_id": {pool}}, known)
	default:
		return c.checkStatuses(ctx, have.ID, "pool", "/pools", "pools", url.Values{"loadbalancer_id": {have.ID}}, known)
	}
}

// unusual is how long few updates take when all is well: Octavia asks an amphora that does not answer again and again, for half a minute by its
// defaults.
const unusual = 10 * time.Second

// checkBelow looks at what only the object itself tells: a rule or a member that could not be applied is in ERROR below parents that are
// ACTIVE. The list costs about as much as a small update, so it is asked for only on suspicion.
func (c *Client) checkBelow(ctx context.Context, have *lb.Tree, s plan.Step) error {
	switch s.Kind {
	case lb.KindRule:
		policy, err := execution{c, have, &s}.policyID(s.Listener, s.Parent)
		if err != nil {
			return err
		}
		return c.checkStatuses(ctx, have.ID, "rule", "/l7policies/"+element(policy)+"/rules", "rules", url.Values{}, foreignIDs(have))
	case lb.KindMembers:
		pool, err := execution{c, have, &s}.id(lb.KindPool, s.Ref)
		if err != nil {
			return err
		}
		return c.checkStatuses(ctx, have.ID, "member", "/pools/"+element(pool)+"/members", "members", url.Values{}, foreignIDs(have))
	default:
		return nil
	}
}

// checkChildren looks for children in ERROR: Octavia keeps the load balancer ACTIVE then. Four lists. Whoever has just
// observed the tree sees the same in it, with Errored.
func (c *Client) checkChildren(ctx context.Context, have *lb.Tree, known map[string]bool) error {
	mark, err := markFilter(have.Owner)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		kind, path string
		query      url.Values
	}{
		{"listener", "listeners", url.Values{"loadbalancer_id": {have.ID}}},
		{"pool", "pools", url.Values{"loadbalancer_id": {have.ID}}},
		{"L7 policy", "l7policies", url.Values{"tags": {mark}}},
		{"health monitor", "healthmonitors", url.Values{"tags": {mark}}},
	} {
		if err := c.checkStatuses(ctx, have.ID, l.kind, "/"+l.path, l.path, l.query, known); err != nil {
			return err
		}
	}
	return nil
}

// allActive notes that no child is PENDING or in ERROR.
func allActive(t *lb.Tree) {
	for i := range t.Listeners {
		l := &t.Listeners[i]
		l.ProvisioningStatus = lb.Active
		for j := range l.Policies {
			l.Policies[j].ProvisioningStatus = lb.Active
		}
	}
	for i := range t.Pools {
		t.Pools[i].ProvisioningStatus = lb.Active
		if m := t.Pools[i].Monitor; m != nil {
			m.ProvisioningStatus = lb.Active
		}
	}
}

// checkStatuses fails on an object in ERROR that is not known to be so.
func (c *Client) checkStatuses(ctx context.Context, loadBalancer, kind, path, key string, query url.Values, known map[string]bool) error {
	query["fields"] = []string{"id", "name", "provisioning_status"}
	found, err := list[wireMeta](ctx, c, octavia, path, key, kind+" statuses", query)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b wireMeta) int { return strings.Compare(a.ID, b.ID) })
	for _, m := range found {
		if m.ProvisioningStatus == lb.Errored && !known[m.ID] {
			return erroredChild(loadBalancer, m.ID, m.Name)
		}
	}
	return nil
}

// Errored is the Broken error for an observed tree that has an object in ERROR, nil when it has none.
func Errored(t lb.Tree) error {
	if t.ProvisioningStatus == lb.Errored {
		return errored("load balancer", t.ID)
	}
	for _, m := range childMetas(t) {
		if m.ProvisioningStatus == lb.Errored {
			return erroredChild(t.ID, m.ID, m.Name)
		}
	}
	for i := range t.Listeners {
		for j := range t.Listeners[i].Policies {
			if p := &t.Listeners[i].Policies[j]; p.Errored() {
				return erroredChild(t.ID, p.ID, p.Name)
			}
		}
	}
	for _, p := range t.Pools {
		if slices.ContainsFunc(p.Members, func(m lb.Member) bool { return m.Unapplied }) {
			return erroredChild(t.ID, p.ID, p.Name)
		}
	}
	return nil
}
