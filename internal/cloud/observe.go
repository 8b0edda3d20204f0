package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Observe reads what the cloud has for one Gateway. All or error: a tree that is returned is complete.
//
// Calls, all GET:
//
//	no load balancer    1 list, and 1 for the floating IP that may be left behind
//	it is PENDING       1 list: only the load balancer's own fields are filled, its children are not read
//	else                5 lists (load balancer, listeners, pools, policies, monitors) whatever the size, 1 or 2 for the
//	                    floating IP (2 when none of ours is on the VIP port), and 1 for the rules of each policy and
//	                    the members of each pool
//	HTTPS listeners     1 list of secrets more, unless it is PENDING
//
// Two load balancers that both prove to be this Gateway's are a Conflict, unless one was made to replace the other: see observeBoth. Children without our mark are in Foreign.
// A tree that was read completely comes with a Broken error when children are stuck: see stuckChildren.
func (c *Client) Observe(ctx context.Context, owner lb.Owner) (lb.Tree, error) {
	return c.ObserveFor(ctx, owner, nil, nil)
}

// ObserveSince is Observe with the help of what was known before; nil for nothing.
func (c *Client) ObserveSince(ctx context.Context, owner lb.Owner, known *lb.Tree) (lb.Tree, error) {
	return c.ObserveFor(ctx, owner, nil, known)
}

// ObserveFor is Observe for a purpose: want is what the tree will be compared with, nil when that is not known. Secrets are not below the load
// balancer, and most Gateways have none: they are looked for when want has any or is empty (a deletion leaves nothing behind), when
// known had any, and when a listener refers to one. So what a pass that died left behind is found while the Gateway has
// HTTPS, or else when it is deleted. When Barbican alone could not be read, everything else is returned with the error: see OfCertificates.
//
// known is what was known before, nil for nothing. When the load balancer is ACTIVE and its updated_at is
// that of known, then nothing below it has changed, and known with the floating IP of now is the answer: 2 or 3 calls for a
// tree of any size. updated_at has whole seconds: a change by others that began and ended within the second of the last one
// that we saw is not noticed, so a caller observes without known from time to time.
func (c *Client) ObserveFor(ctx context.Context, owner lb.Owner, want, known *lb.Tree) (lb.Tree, error) {
	found, err := c.loadBalancers(ctx, owner)
	if err != nil {
		return lb.Tree{}, err
	}
	switch len(found) {
	case 0:
		left := lb.Tree{Owner: owner, ProjectID: c.ProjectID()}
		if err = c.observeAddresses(ctx, &left, want); err == nil && c.mayHaveSecrets(ctx, want, known, nil) {
			left.Secrets, err = c.ownSecrets(ctx, owner)
		}
		if err != nil && !OfCertificates(err) {
			return lb.Tree{}, err
		}
		return left, err
	case 1:
	default:
		if made, old, ok := successor(found); ok {
			return c.observeBoth(ctx, owner, made, old, want)
		}
		ids := make([]string, len(found))
		for i, w := range found {
			ids[i] = w.ID
		}
		slices.Sort(ids)
		return lb.Tree{}, &Error{Class: Conflict, Reason: ReasonOwnership, Op: "observe", Resource: "load balancer",
			Message: fmt.Sprintf("%d load balancers carry the mark of this Gateway: %s; delete all but one", len(ids), strings.Join(ids, ", "))}
	}
	tree := found[0].model(owner)
	if tree.ProvisioningStatus.Pending() {
		return tree, nil
	}
	if unchanged(&tree, known) {
		// A copy of the top: what known holds of the floating IP stays known's.
		tree = *known
		if err = c.observeAddresses(ctx, &tree, want); err == nil && c.mayHaveSecrets(ctx, want, known, &tree) {
			var secrets []lb.Secret
			secrets, err = c.ownSecrets(ctx, owner)
			renameSecrets(&tree, secrets)
		}
		return tree, err
	}
	if err := c.observeChildren(ctx, &tree, want); err != nil {
		if OfCertificates(err) {
			return tree, err
		}
		return lb.Tree{}, err
	}
	return tree, c.stuckChildren(tree, found[0].UpdatedAt)
}

// successor tells of two load balancers which one was made to replace the other.
func successor(found []wireLoadBalancer) (made, old wireLoadBalancer, ok bool) {
	if len(found) != 2 {
		return made, old, false
	}
	a, b := found[0], found[1]
	switch first, second := lb.ReplacesFromTags(a.Tags) == b.ID, lb.ReplacesFromTags(b.Tags) == a.ID; {
	case first && !second:
		return a, b, true
	case second && !first:
		return b, a, true
	}
	return made, old, false
}

// observeBoth reads a load balancer and the one that it replaces. Both are read whole each time, since the operating statuses, which no updated_at tells
// about, say when the one can do what the other does.
func (c *Client) observeBoth(ctx context.Context, owner lb.Owner, made, replaced wireLoadBalancer, want *lb.Tree) (lb.Tree, error) {
	tree, old := made.model(owner), replaced.model(owner)
	for _, t := range []*lb.Tree{&tree, &old} {
		if t.ProvisioningStatus.Pending() {
			if err := c.observeAddresses(ctx, t, want); err != nil {
				return lb.Tree{}, err
			}
			continue
		}
		if err := c.observeChildren(ctx, t, want); err != nil {
			return lb.Tree{}, err
		}
	}
	if tree.FloatingIP == nil && old.FloatingIP != nil {
		tree.FloatingIP = old.FloatingIP
	}
	if tree.Asked != nil && tree.FloatingIP != nil && tree.Asked.ID == tree.FloatingIP.ID {
		tree.Asked = nil
	}
	if len(tree.Secrets) == 0 {
		tree.Secrets = old.Secrets
	}
	tree.Old = &old
	return tree, c.stuckChildren(tree, made.UpdatedAt)
}

func unchanged(now, known *lb.Tree) bool {
	return known != nil && now.ID == known.ID && now.ProvisioningStatus == lb.Active && known.ProvisioningStatus == lb.Active &&
		now.UpdatedAt != "" && now.UpdatedAt == known.UpdatedAt
}

// loadBalancers finds the load balancers that are completely proven to be the owner's, without deleted ones.
func (c *Client) loadBalancers(ctx context.Context, owner lb.Owner) ([]wireLoadBalancer, error) {
	mark, err := markFilter(owner)
	if err != nil {
		return nil, err
	}
	project := c.session(ctx).projectID
	found, err := list[wireLoadBalancer](ctx, c, octavia, "/loadbalancers", "loadbalancers", "load balancers",
		url.Values{"tags-any": {strings.Join(append(owner.OtherMarks(), mark), ",")}, "project_id": {project}, "fields": loadBalancerFields})
	if err != nil {
		return nil, err
	}
	for _, w := range found {
		if owner.OwnsInOtherFormat(w.Tags) && w.ProjectID == project && w.ProvisioningStatus != lb.Deleted {
			return nil, &Error{Class: Conflict, Reason: ReasonOwnership, Op: "observe", Resource: "load balancer " + w.ID,
				Message: "it carries the mark of this Gateway in another format, so another version of this controller made it: " +
					"run that version, or delete the load balancer; until then no other one is made"}
		}
	}
	return slices.DeleteFunc(found, func(w wireLoadBalancer) bool {
		return !owner.Owns(w.Tags) || w.ProjectID != project || w.ProvisioningStatus == lb.Deleted
	}), nil
}

// markFilter is the mark as a value of Octavia's tags filter, where a comma separates tags.
func markFilter(owner lb.Owner) (string, error) {
	mark := owner.Mark()
	if strings.Contains(mark, ",") || owner.UID == "" || owner.ClusterID == "" {
		// Looking with such a mark would find nothing, or too much.
		return "", &Error{Class: OperatorFault, Reason: ReasonOwnership, Op: "observe", Resource: "load balancer",
			Message: "the cluster id must not be empty or contain a comma"}
	}
	return mark, nil
}

// children are the lists that show the shape of a tree.
type children struct {
	listeners []wireListener
	pools     []wirePool
	policies  []wirePolicy
	monitors  []wireMonitor
}

// observeShape makes four calls. Lists are filtered again here: a filter that a cloud does not know is ignored there.
func (c *Client) observeShape(ctx context.Context, owner lb.Owner, id string) (children, error) {
	mark, err := markFilter(owner)
	if err != nil {
		return children{}, err
	}
	var out children
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opts.Parallel)
	g.Go(func() (err error) {
		out.listeners, err = list[wireListener](ctx, c, octavia, "/listeners", "listeners", "listeners", url.Values{"loadbalancer_id": {id}})
		return err
	})
	g.Go(func() (err error) {
		out.pools, err = list[wirePool](ctx, c, octavia, "/pools", "pools", "pools", url.Values{"loadbalancer_id": {id}})
		return err
	})
	// Policies and monitors have no filter by load balancer. Those of others show up as ids in listeners and pools.
	g.Go(func() (err error) {
		out.policies, err = list[wirePolicy](ctx, c, octavia, "/l7policies", "l7policies", "L7 policies", url.Values{"tags": {mark}})
		return err
	})
	g.Go(func() (err error) {
		out.monitors, err = list[wireMonitor](ctx, c, octavia, "/healthmonitors", "healthmonitors", "health monitors", url.Values{"tags": {mark}})
		return err
	})
	if err := g.Wait(); err != nil {
		return children{}, err
	}
	out.listeners = slices.DeleteFunc(out.listeners, func(w wireListener) bool { return !hasRef(w.LoadBalancers, id) })
	out.pools = slices.DeleteFunc(out.pools, func(w wirePool) bool { return !hasRef(w.LoadBalancers, id) })
	return out, nil
}

func (c *Client) observeChildren(ctx context.Context, t, want *lb.Tree) error {
	shape, err := c.observeShape(ctx, t.Owner, t.ID)
	if err != nil {
		return err
	}
	policies := map[string]wirePolicy{}
	for _, w := range shape.policies {
		if t.Owner.Owns(w.Tags) {
			policies[w.ID] = w
		}
	}
	monitors := map[string]wireMonitor{}
	for _, w := range shape.monitors {
		if t.Owner.Owns(w.Tags) {
			monitors[w.ID] = w
		}
	}

	poolKeys := keysByID(t.Owner, shape.pools)
	for _, w := range shape.pools {
		if !t.Owner.Owns(w.Tags) {
			t.Foreign = append(t.Foreign, lb.Foreign{Kind: lb.KindPool, ID: w.ID, Name: w.Name})
			continue
		}
		pool := w.model()
		pool.Key = poolKeys[w.ID]
		if m, ok := monitors[w.HealthMonitorID]; ok {
			pool.Monitor = m.model()
		} else if w.HealthMonitorID != "" {
			t.Foreign = append(t.Foreign, lb.Foreign{Kind: lb.KindMonitor, ID: w.HealthMonitorID, Pool: pool.Key})
		}
		t.Pools = append(t.Pools, pool)
	}
	slices.SortFunc(t.Pools, func(a, b lb.Pool) int { return cmp.Compare(a.Key, b.Key) })

	poolKey := func(id string) string {
		if key, ok := poolKeys[id]; ok || id == "" {
			return key
		}
		return strayKey(id) // A pool that is not ours: never equal to a wanted key.
	}
	listenerKeys := keysByID(t.Owner, shape.listeners)
	for _, w := range shape.listeners {
		if !t.Owner.Owns(w.Tags) {
			t.Foreign = append(t.Foreign, lb.Foreign{Kind: lb.KindListener, ID: w.ID, Name: w.Name, Port: w.Port})
			continue
		}
		listener := w.model()
		listener.Key = listenerKeys[w.ID]
		listener.DefaultPool = poolKey(w.DefaultPoolID)
		ids := map[string]bool{}
		for _, ref := range w.Policies {
			ids[ref.ID] = true
			if _, ok := policies[ref.ID]; !ok {
				t.Foreign = append(t.Foreign, lb.Foreign{Kind: lb.KindPolicy, ID: ref.ID})
			}
		}
		var mine []wirePolicy
		for _, p := range policies {
			if p.ListenerID == w.ID {
				mine = append(mine, p)
			}
		}
		slices.SortFunc(mine, func(a, b wirePolicy) int {
			return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
		})
		keys := keysByID(t.Owner, mine)
		for _, p := range mine {
			policy := p.model()
			policy.Key = keys[p.ID]
			policy.Pool = poolKey(p.RedirectPoolID)
			listener.Policies = append(listener.Policies, policy)
		}
		t.Listeners = append(t.Listeners, listener)
	}
	slices.SortFunc(t.Listeners, compareListeners)

	err = c.observeContent(ctx, t, want)
	if err != nil && !OfCertificates(err) {
		return err
	}
	slices.SortFunc(t.Foreign, func(a, b lb.Foreign) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return err
}

// observeContent reads what no list shows, one call each: the rules of policies, the members of pools. The floating IP
// is read beside them.
func (c *Client) observeContent(ctx context.Context, t, want *lb.Tree) error {
	// Every goroutine writes to its own place; foreign objects are collected afterwards.
	var places []*[]lb.Foreign
	place := func() *[]lb.Foreign {
		f := new([]lb.Foreign)
		places = append(places, f)
		return f
	}
	withSecrets := c.mayHaveSecrets(ctx, want, nil, t) // before anybody changes t
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opts.Parallel)
	for i := range t.Listeners {
		for j := range t.Listeners[i].Policies {
			policy, foreign := &t.Listeners[i].Policies[j], place()
			g.Go(func() error {
				rules, err := list[wireRule](ctx, c, octavia, "/l7policies/"+element(policy.ID)+"/rules", "rules",
					"the rules of L7 policy "+policy.ID, nil)
				for _, w := range rules {
					if !t.Owner.Owns(w.Tags) {
						*foreign = append(*foreign, lb.Foreign{Kind: lb.KindRule, ID: w.ID})
						continue
					}
					policy.Rules = append(policy.Rules, w.model())
				}
				slices.SortFunc(policy.Rules, compareRules)
				return err
			})
		}
	}
	for i := range t.Pools {
		pool, foreign := &t.Pools[i], place()
		g.Go(func() error {
			members, err := c.members(ctx, pool.ID)
			for _, w := range members {
				if !t.Owner.Owns(w.Tags) {
					*foreign = append(*foreign, lb.Foreign{Kind: lb.KindMember, ID: w.ID, Name: w.Name})
					continue
				}
				pool.Members = append(pool.Members, w.model())
			}
			slices.SortFunc(pool.Members, compareMembers)
			return err
		})
	}
	g.Go(func() error { return c.observeAddresses(ctx, t, want) })
	var secretsErr error
	if withSecrets {
		g.Go(func() error {
			// Not an error of the group: the rest is of use without it.
			t.Secrets, secretsErr = c.ownSecrets(ctx, t.Owner)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	nameSecrets(t)
	for _, f := range places {
		t.Foreign = append(t.Foreign, *f...)
	}
	return secretsErr
}

func (c *Client) members(ctx context.Context, poolID string) ([]wireMember, error) {
	return list[wireMember](ctx, c, octavia, "/pools/"+element(poolID)+"/members", "members", "the members of pool "+poolID, nil)
}

// keysByID gives each object of ours its key. A second object with the same key (a create that was repeated after its
// answer was lost) and one without a key get a key that no wanted object has, so that the plan removes them. Of equal
// keys the smallest id keeps it, so that every observation says the same.
func keysByID[T hasMeta](owner lb.Owner, objects []T) map[string]string {
	metas := make([]wireMeta, 0, len(objects))
	for _, o := range objects {
		if m := o.meta(); owner.Owns(m.Tags) {
			metas = append(metas, m)
		}
	}
	slices.SortFunc(metas, func(a, b wireMeta) int { return cmp.Compare(a.ID, b.ID) })
	keys, taken := map[string]string{}, map[string]bool{}
	for _, m := range metas {
		key := lb.KeyFromTags(m.Tags)
		if key == "" || taken[key] {
			key = strayKey(m.ID)
		}
		taken[key] = true
		keys[m.ID] = key
	}
	return keys
}

func strayKey(id string) string { return "stray/" + id }

// Status is the cheap look at a load balancer that polling rests on: Octavia answers the list form about twenty times
// faster than the plain GET. exists is false when it is gone.
func (c *Client) Status(ctx context.Context, id string) (status lb.ProvisioningStatus, exists bool, err error) {
	w, exists, err := c.look(ctx, id)
	return w.ProvisioningStatus, exists, err
}

// look reads the status and updated_at of a load balancer.
func (c *Client) look(ctx context.Context, id string) (w wireLoadBalancer, exists bool, err error) {
	found, err := list[wireLoadBalancer](ctx, c, octavia, "/loadbalancers", "loadbalancers", "load balancer "+id,
		url.Values{"id": {id}, "fields": {"provisioning_status", "updated_at"}})
	if err != nil || len(found) == 0 || found[0].ProvisioningStatus == lb.Deleted {
		return wireLoadBalancer{}, false, err
	}
	return found[0], true, nil
}

// stuckAfter is how long a child may still be PENDING below a load balancer that is ACTIVE.
const stuckAfter = time.Minute

// stuckChildren recognises the broken fully-populated create of Octavia 11.0.0: the load balancer is ACTIVE, listeners
// are missing, and the other children stay PENDING_CREATE for ever, immutable and not deletable. Only a cascade
// delete of the load balancer helps; the next one is then created bare, and its children one by one.
func (c *Client) stuckChildren(t lb.Tree, updatedAt string) error {
	if t.ProvisioningStatus != lb.Active {
		return nil
	}
	for _, m := range childMetas(t) {
		if m.ProvisioningStatus != lb.PendingCreate {
			continue
		}
		if since(updatedAt, c.opts.Clock.Now()) < stuckAfter {
			return &Error{Class: Wait, Op: "observe", Resource: "load balancer " + t.ID, Message: "its children are not ACTIVE yet"}
		}
		c.singly.Store(true)
		return &Error{Class: Broken, Reason: ReasonStuck, Op: "observe", Resource: "load balancer " + t.ID,
			Message: "its children never became ACTIVE: this Octavia breaks fully-populated creates (11.0.0 does); " +
				"it must be deleted and created again, which is then done object by object"}
	}
	return nil
}

// pendingTooLong is longer than Octavia needs until it gives up by itself, with its default timeouts.
const pendingTooLong = 20 * time.Minute

// Stuck is the error for a load balancer that has been PENDING for so long that nobody works on it any more, nil otherwise. A worker that
// dies leaves it so for ever, and everybody else is locked out.
func Stuck(t lb.Tree, now time.Time) error {
	if t.Empty() || !t.ProvisioningStatus.Pending() || pendingFor(t, now) < pendingTooLong {
		return nil
	}
	return &Error{Class: Wait, Reason: ReasonStuck, Op: "wait for", Resource: "load balancer " + t.ID,
		Message: fmt.Sprintf("it has been %s for more than %.0f minutes, so an Octavia worker may have died at work: nothing can change or delete it until "+
			"an operator of the cloud sets its provisioning status to ERROR or ACTIVE", t.ProvisioningStatus, pendingTooLong.Minutes())}
}

// NextLook is after how long to look at a PENDING load balancer again that somebody else, or a process before this one, is at work on: a tenth of the
// time that has passed, like our own polling.
func NextLook(t lb.Tree, now time.Time) time.Duration {
	return nextLook(pendingFor(t, now))
}

// pendingFor is how long Octavia has not touched the record of a load balancer; zero when that is not known.
func pendingFor(t lb.Tree, now time.Time) time.Duration {
	return since(cmp.Or(t.UpdatedAt, t.CreatedAt), now)
}

// since is how long one of Octavia's times is ago; zero for one that cannot be read.
func since(octavias string, now time.Time) time.Duration {
	at, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(octavias, "Z"))
	if err != nil {
		return 0
	}
	return now.Sub(at)
}

// childMetas are the listeners, policies, pools and monitors of a tree.
func childMetas(t lb.Tree) []lb.Meta {
	var out []lb.Meta
	for _, l := range t.Listeners {
		out = append(out, l.Meta)
		for _, p := range l.Policies {
			out = append(out, p.Meta)
		}
	}
	for _, p := range t.Pools {
		out = append(out, p.Meta)
		if m := p.Monitor; m != nil {
			out = append(out, lb.Meta{ID: m.ID, Name: m.Name, ProvisioningStatus: m.ProvisioningStatus})
		}
	}
	return out
}

// observeAddresses finds the floating IPs that concern a tree: the one on the VIP port, whoever allocated it, else one of ours, such as
// one whose create lost its answer; further ones of ours that are free; and the one with the address that want asks for.
func (c *Client) observeAddresses(ctx context.Context, t, want *lb.Tree) error {
	t.FloatingIP, t.Asked, t.Spare = nil, nil, nil
	own, err := c.ownFloatingIPs(ctx, t.Owner)
	if err != nil {
		return err
	}
	portID := t.VIP.PortID
	attached := slices.IndexFunc(own, func(w wireFloatingIP) bool { return portID != "" && w.PortID == portID })
	if attached < 0 && portID != "" {
		found, err := c.floatingIPs(ctx, url.Values{"port_id": {portID}})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(found, func(w wireFloatingIP) bool { return w.PortID == portID }); i >= 0 {
			t.FloatingIP = found[i].model(t.Owner)
		}
	}
	asked := ""
	if want != nil && want.FloatingIP != nil {
		asked = want.FloatingIP.Address
	}
	// Ours come before one that somebody else put on the port, unless that is the one that is asked for.
	if len(own) > 0 && (t.FloatingIP == nil || t.FloatingIP.Address != asked) {
		main := max(attached, 0)
		if attached < 0 {
			main = max(slices.IndexFunc(own, func(w wireFloatingIP) bool { return w.Address == asked }), 0)
		}
		t.FloatingIP = own[main].model(t.Owner)
		own = slices.Delete(own, main, main+1)
	}
	for _, w := range own {
		switch {
		case w.Address == asked:
			t.Asked = w.model(t.Owner)
		case w.PortID == "":
			t.Spare = append(t.Spare, *w.model(t.Owner))
		}
	}
	if asked == "" || t.Asked != nil || t.FloatingIP != nil && t.FloatingIP.Address == asked {
		return nil
	}
	found, err := c.floatingIPs(ctx, url.Values{"floating_ip_address": {asked}})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(found, func(w wireFloatingIP) bool { return w.Address == asked }); i >= 0 {
		t.Asked = found[i].model(t.Owner)
	}
	return nil
}

// ownFloatingIPs finds by description: Neutron compares it exactly.
func (c *Client) ownFloatingIPs(ctx context.Context, owner lb.Owner) ([]wireFloatingIP, error) {
	found, err := c.floatingIPs(ctx, url.Values{"description": {owner.Description()}})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(w wireFloatingIP) bool { return !owner.OwnsDescription(w.Description) })
	slices.SortFunc(found, func(a, b wireFloatingIP) int {
		// One in use comes before one that is free.
		return cmp.Or(cmp.Compare(b.PortID, a.PortID), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

func (c *Client) floatingIPs(ctx context.Context, query url.Values) ([]wireFloatingIP, error) {
	project := c.session(ctx).projectID
	query.Set("project_id", project)
	query["fields"] = []string{"id", "floating_network_id", "floating_ip_address", "port_id", "description", "project_id"}
	found, err := list[wireFloatingIP](ctx, c, neutron, "/floatingips", "floatingips", "floating IPs", query)
	return slices.DeleteFunc(found, func(w wireFloatingIP) bool { return w.ProjectID != project }), err
}

// vipPort reads the port and makes sure that it is what a floating IP of a load balancer may be put on.
func (c *Client) vipPort(ctx context.Context, vip lb.VIP) error {
	var out struct{ Port wirePort }
	err := c.do(ctx, call{service: neutron, method: http.MethodGet, path: "/ports/" + element(vip.PortID),
		query: url.Values{"fields": {"id", "network_id", "device_owner"}}, out: &out, op: "read", what: "VIP port " + vip.PortID})
	if err != nil {
		return err
	}
	if out.Port.DeviceOwner != "Octavia" || vip.NetworkID != "" && out.Port.NetworkID != vip.NetworkID {
		return &Error{Class: Conflict, Reason: ReasonOwnership, Op: "read", Resource: "VIP port " + vip.PortID,
			Message: "it is not a port that Octavia made on the VIP network: no floating IP is put on it"}
	}
	return nil
}
