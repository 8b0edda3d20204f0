package cloud

import (
	"context"
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
			return Progress{}, c.sameShape(ctx, have)
		}
		wait := nextLook(clock.Now().Sub(since))
		if clock.Now().Add(wait).After(deadline) {
			return Progress{Pending: true, RequeueAfter: max(wait, time.Second)}, nil
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return Progress{}, classify(octavia, "wait for", "load balancer "+have.ID, err)
		}
	}
}

// sameShape compares the children by id and requires them to be ACTIVE.
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
	for _, o := range shape.policies {
		if have.Owner.Owns(o.Tags) {
			found = append(found, o.meta())
		}
	}
	for _, o := range shape.monitors {
		if have.Owner.Owns(o.Tags) {
			found = append(found, o.meta())
		}
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

func stale(resource, message string) error {
	return &Error{Class: Stale, Reason: ReasonNotFound, Op: "wait for", Resource: resource, Message: message}
}
