package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// maxRules is Octavia's limit for one policy.
const maxRules = 50

// Apply does one step on a tree as Octavia does: positions shift, only the named fields of an update change, and what
// Octavia refuses is an error. Objects without an id get "new:<key>". What the tree pointed to before is not changed, so
// that a plain copy of *tree keeps the state before the step.
func Apply(tree *lb.Tree, s Step) error {
	if err := apply(tree, s); err != nil {
		return fmt.Errorf("%s %s %s: %w", s.Verb, s.Kind, s.Ref.Key, err)
	}
	return nil
}

func apply(tree *lb.Tree, s Step) error {
	switch s.Kind {
	case lb.KindFloatingIP:
		return applyFloatingIP(tree, s)
	case lb.KindSecret:
		return applySecret(tree, s)
	case lb.KindLoadBalancer:
		return applyLoadBalancer(tree, s)
	}
	if tree.Empty() {
		return fmt.Errorf("there is no load balancer")
	}
	switch s.Kind {
	case lb.KindListener:
		return applyListener(tree, s)
	case lb.KindPool:
		return applyPool(tree, s)
	case lb.KindMembers:
		return applyMembers(tree, s)
	case lb.KindMonitor:
		return applyMonitor(tree, s)
	case lb.KindPolicy:
		return applyPolicy(tree, s)
	case lb.KindRule:
		return applyRule(tree, s)
	}
	return fmt.Errorf("no step is known for this kind")
}

// SimulatedID begins the id that Apply gives to an object that was made without one. It names nothing in the cloud.
const SimulatedID = "new:"

func newID(id, key string) string {
	if id != "" {
		return id
	}
	return SimulatedID + key
}

// is says whether a reference means the object with this id and key.
func (r Ref) is(id, key string) bool {
	if r.ID != "" {
		return r.ID == id
	}
	return r.Key == key
}

func applyFloatingIP(tree *lb.Tree, s Step) error {
	switch s.Verb {
	case Create:
		made := *s.FloatingIP
		made.ID = newID(made.ID, s.Ref.Key)
		if s.Parent == (Ref{}) {
			if tree.Asked != nil {
				return fmt.Errorf("the floating IP %s exists already", tree.Asked.ID)
			}
			tree.Asked = &made
			return nil
		}
		if tree.FloatingIP != nil && tree.FloatingIP.PortID != "" {
			return fmt.Errorf("the VIP port has the floating IP %s already", tree.FloatingIP.ID)
		}
		made.PortID = tree.VIP.PortID
		tree.FloatingIP = &made
		return nil
	case Update:
		after := *s.FloatingIP
		after.ID = newID(after.ID, s.Ref.Key)
		if s.Parent == (Ref{}) && after.Supplied {
			// Detached, it has nothing to do with the load balancer any more.
			tree.FloatingIP = nil
			return nil
		}
		if there := tree.FloatingIP; there != nil && there.PortID == tree.VIP.PortID && there.PortID != "" && there.Address != after.Address {
			return fmt.Errorf("the VIP port has the floating IP %s already", there.ID)
		}
		if asked := tree.Asked; asked != nil && asked.Address == after.Address {
			after.ID, after.Supplied, tree.Asked = asked.ID, asked.Supplied, nil
		}
		after.PortID = tree.VIP.PortID
		tree.FloatingIP = &after
		return nil
	case Delete:
		if at := slices.IndexFunc(tree.Spare, func(o lb.FloatingIP) bool { return o.ID == s.Ref.ID }); at >= 0 {
			tree.Spare = slices.Delete(slices.Clone(tree.Spare), at, at+1)
			return nil
		}
		if tree.FloatingIP == nil {
			return fmt.Errorf("there is none")
		}
		if tree.FloatingIP.Supplied {
			return fmt.Errorf("it was supplied: it is only detached")
		}
		tree.FloatingIP = nil
		return nil
	}
	return unknownVerb(s)
}

func applyLoadBalancer(tree *lb.Tree, s Step) error {
	switch s.Verb {
	case Create:
		if !tree.Empty() {
			return fmt.Errorf("it exists")
		}
		return createTree(tree, s)
	case Update:
		if err := known(s, "admin_state_up", "tags", "vip_sg_ids"); err != nil {
			return err
		}
		if slices.Contains(s.Fields, "vip_sg_ids") {
			tree.VIPSecurityGroupIDs = s.Tree.VIPSecurityGroupIDs
			for i := range tree.Listeners {
				if err := clientsLimited(tree, &tree.Listeners[i]); err != nil {
					return err
				}
			}
		}
		if slices.Contains(s.Fields, "admin_state_up") {
			tree.Disabled = s.Tree.Disabled
		}
		if slices.Contains(s.Fields, "tags") {
			tree.Tags = s.Tree.Tags
		}
		return nil
	case Delete:
		if len(tree.Foreign) > 0 {
			return fmt.Errorf("a cascade would take %d foreign children with it", len(tree.Foreign))
		}
		// A floating IP survives, without its port.
		floating := tree.FloatingIP
		if floating != nil {
			free := *floating
			free.PortID = ""
			floating = &free
		}
		*tree = lb.Tree{Owner: tree.Owner, FloatingIP: floating, Asked: tree.Asked, Spare: tree.Spare, Secrets: tree.Secrets}
		return nil
	}
	return unknownVerb(s)
}

func createTree(tree *lb.Tree, s Step) error {
	before := *tree
	*tree = *s.Tree
	tree.FloatingIP, tree.Asked, tree.Spare, tree.Secrets = before.FloatingIP, before.Asked, before.Spare, before.Secrets
	tree.ID = newID(tree.ID, s.Ref.Key)
	if tree.VIP.PortID == "" {
		tree.VIP.PortID = "new:vip"
	}
	tree.Pools = slices.Clone(tree.Pools)
	for i := range tree.Pools {
		pool := &tree.Pools[i]
		if err := poolSecretsExist(tree, pool); err != nil {
			return err
		}
		pool.ID = newID(pool.ID, pool.Key)
		pool.Members = withMemberIDs(pool.Members)
		if pool.Monitor != nil {
			monitor := *pool.Monitor
			monitor.ID = newID(monitor.ID, pool.Key)
			pool.Monitor = &monitor
		}
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	for i := range tree.Listeners {
		l := &tree.Listeners[i]
		if err := secretsExist(tree, l); err != nil {
			return err
		}
		l.ID = newID(l.ID, l.Key)
		l.Policies = slices.Clone(l.Policies)
		for j := range l.Policies {
			policy := &l.Policies[j]
			policy.ID = newID(policy.ID, l.Key+"/"+policy.Key)
			policy.Rules = slices.Clone(policy.Rules)
			for k := range policy.Rules {
				policy.Rules[k].ID = newID(policy.Rules[k].ID, ruleText(policy.Rules[k]))
			}
		}
	}
	return nil
}

func applyListener(tree *lb.Tree, s Step) error {
	at := slices.IndexFunc(tree.Listeners, func(l lb.Listener) bool { return s.Ref.is(l.ID, l.Key) })
	if s.Verb == Create {
		return createListener(tree, s, at)
	}
	if at < 0 {
		return notFound(s.Ref)
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	if s.Verb == Delete {
		tree.Listeners = slices.Delete(tree.Listeners, at, at+1)
		return nil
	}
	if l := &tree.Listeners[at]; l.ProvisioningStatus == lb.Errored {
		// A write is what ends that, when Octavia can apply it.
		l.ProvisioningStatus = lb.Active
	}
	return updateFields(s, listenerSetters, &tree.Listeners[at], s.ListenerTo, func(l *lb.Listener) error {
		if err := secretsExist(tree, l); err != nil {
			return err
		}
		if err := clientsLimited(tree, l); err != nil {
			return err
		}
		return poolExists(tree, l.DefaultPool)
	})
}

func createListener(tree *lb.Tree, s Step, at int) error {
	if at >= 0 {
		return fmt.Errorf("it exists")
	}
	made := *s.ListenerTo
	if len(made.Policies) > 0 {
		return fmt.Errorf("policies nest only below a new load balancer")
	}
	for _, l := range tree.Listeners {
		if l.Port == made.Port {
			return fmt.Errorf("port %d is taken by listener %s", made.Port, l.Key)
		}
	}
	for _, f := range tree.Foreign {
		if f.Kind == lb.KindListener && f.Port == made.Port {
			return fmt.Errorf("port %d is taken by the foreign listener %s", made.Port, f.ID)
		}
	}
	if err := poolExists(tree, made.DefaultPool); err != nil {
		return err
	}
	if err := secretsExist(tree, &made); err != nil {
		return err
	}
	if err := clientsLimited(tree, &made); err != nil {
		return err
	}
	made.ID, made.Key = newID(made.ID, s.Ref.Key), s.Ref.Key
	tree.Listeners = append(slices.Clone(tree.Listeners), made)
	slices.SortStableFunc(tree.Listeners, func(a, b lb.Listener) int { return a.Port - b.Port })
	return nil
}

// clientsLimited refuses two ways at once to say who may connect.
func clientsLimited(tree *lb.Tree, l *lb.Listener) error {
	if len(tree.VIPSecurityGroupIDs) > 0 && len(l.AllowedCIDRs) > 0 {
		return fmt.Errorf("allowed_cidrs are not taken while the VIP has security groups of its own")
	}
	return nil
}

func poolExists(tree *lb.Tree, key string) error {
	if key != "" && tree.PoolByKey(key) == nil {
		return fmt.Errorf("the pool %s does not exist", key)
	}
	return nil
}

func applyPool(tree *lb.Tree, s Step) error {
	at := poolIndex(tree, s.Ref)
	if s.Verb == Create {
		made := *s.Pool
		switch {
		case at >= 0:
			return fmt.Errorf("it exists")
		case len(made.Members) > 0 || made.Monitor != nil:
			return fmt.Errorf("members and monitors nest only below a new load balancer")
		}
		if err := poolSecretsExist(tree, &made); err != nil {
			return err
		}
		made.ID, made.Key = newID(made.ID, s.Ref.Key), s.Ref.Key
		for poolIndex(tree, Ref{ID: made.ID}) >= 0 {
			// A pool that was called by another key once has that id.
			made.ID += "'"
		}
		tree.Pools = append(slices.Clone(tree.Pools), made)
		sortPools(tree)
		return nil
	}
	if at < 0 {
		return notFound(s.Ref)
	}
	tree.Pools = slices.Clone(tree.Pools)
	pool := &tree.Pools[at]
	if s.Verb == Update {
		old := pool.Key
		if err := updateFields(s, poolSetters, pool, s.Pool, func(p *lb.Pool) error { return poolSecretsExist(tree, p) }); err != nil {
			return err
		}
		renamePool(tree, old, pool.Key)
		return nil
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	for i := range tree.Listeners {
		l := &tree.Listeners[i]
		for _, policy := range l.Policies {
			if policy.Action == lb.RedirectToPool && policy.Pool == pool.Key {
				return fmt.Errorf("the pool is used by policy %s of listener %s", policy.Key, l.Key)
			}
		}
		if l.DefaultPool == pool.Key {
			l.DefaultPool = ""
		}
	}
	tree.Pools = slices.Delete(tree.Pools, at, at+1)
	return nil
}

// renamePool follows a pool that got another key: its tags are its key.
func renamePool(tree *lb.Tree, old, key string) {
	if old == key {
		return
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	for i := range tree.Listeners {
		l := &tree.Listeners[i]
		if l.DefaultPool == old {
			l.DefaultPool = key
		}
		l.Policies = slices.Clone(l.Policies)
		for j := range l.Policies {
			if l.Policies[j].Pool == old {
				l.Policies[j].Pool = key
			}
		}
	}
	sortPools(tree)
}

func sortPools(tree *lb.Tree) {
	slices.SortStableFunc(tree.Pools, func(a, b lb.Pool) int { return strings.Compare(a.Key, b.Key) })
}

func poolIndex(tree *lb.Tree, r Ref) int {
	return slices.IndexFunc(tree.Pools, func(pool lb.Pool) bool { return r.is(pool.ID, pool.Key) })
}

func applyMembers(tree *lb.Tree, s Step) error {
	at := poolIndex(tree, s.Ref)
	if at < 0 {
		return notFound(s.Ref)
	}
	if s.Verb != Update {
		return unknownVerb(s)
	}
	before := map[memberID]lb.Member{}
	for _, m := range tree.Pools[at].Members {
		before[idOf(m)] = m
	}
	seen := map[memberID]bool{}
	members := slices.Clone(s.Members)
	for i, m := range members {
		if seen[idOf(m)] {
			return fmt.Errorf("the member %s:%d is there twice", m.Address, m.Port)
		}
		seen[idOf(m)] = true
		if old, found := before[idOf(m)]; found {
			if old.SubnetID != m.SubnetID {
				return fmt.Errorf("the subnet of member %s:%d cannot change", m.Address, m.Port)
			}
			members[i].ID = old.ID
		}
	}
	tree.Pools = slices.Clone(tree.Pools)
	tree.Pools[at].Members = withMemberIDs(members)
	return nil
}

func withMemberIDs(members []lb.Member) []lb.Member {
	members = slices.Clone(members)
	for i, m := range members {
		members[i].ID = newID(m.ID, fmt.Sprintf("%s:%d", m.Address, m.Port))
	}
	return members
}

func applyMonitor(tree *lb.Tree, s Step) error {
	at := poolIndex(tree, s.Parent)
	if at < 0 {
		return notFound(s.Parent)
	}
	tree.Pools = slices.Clone(tree.Pools)
	pool := &tree.Pools[at]
	if s.Verb == Create {
		if pool.Monitor != nil {
			return fmt.Errorf("the pool has one already")
		}
		made := *s.Monitor
		made.ID = newID(made.ID, s.Ref.Key)
		pool.Monitor = &made
		return nil
	}
	if pool.Monitor == nil || s.Ref.ID != "" && s.Ref.ID != pool.Monitor.ID {
		return notFound(s.Ref)
	}
	if s.Verb == Delete {
		pool.Monitor = nil
		return nil
	}
	after := *pool.Monitor
	pool.Monitor = &after
	return updateFields(s, monitorSetters, pool.Monitor, s.Monitor, nil)
}

func applyPolicy(tree *lb.Tree, s Step) error {
	at := slices.IndexFunc(tree.Listeners, func(l lb.Listener) bool { return s.Parent.is(l.ID, l.Key) })
	if at < 0 {
		return notFound(s.Parent)
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	l := &tree.Listeners[at]
	l.Policies = slices.Clone(l.Policies)
	from := policyIndex(l, s.Ref)
	if s.Verb == Create {
		made := *s.Policy
		switch {
		case from >= 0:
			return fmt.Errorf("it exists")
		case len(made.Rules) > 0:
			return fmt.Errorf("rules nest only below a new load balancer")
		}
		if err := policyValid(tree, &made); err != nil {
			return err
		}
		made.ID, made.Key = newID(made.ID, l.Key+"/"+s.Ref.Key), s.Ref.Key
		var err error
		l.Policies, err = insertPolicy(l.Policies, s.Position, made)
		return err
	}
	if from < 0 {
		return notFound(s.Ref)
	}
	if s.Verb == Delete {
		l.Policies = slices.Delete(l.Policies, from, from+1)
		return nil
	}
	if err := updateFields(s, policySetters, &l.Policies[from], s.Policy, func(policy *lb.Policy) error {
		return policyValid(tree, policy)
	}); err != nil {
		return err
	}
	if !slices.Contains(s.Fields, "position") {
		return nil
	}
	moved := l.Policies[from]
	var err error
	l.Policies, err = insertPolicy(slices.Delete(l.Policies, from, from+1), s.Position, moved)
	return err
}

// insertPolicy inserts at a 1-based position; one beyond the end is the end.
func insertPolicy(policies []lb.Policy, position int, policy lb.Policy) ([]lb.Policy, error) {
	if position < 1 {
		return nil, fmt.Errorf("position %d: positions start at 1", position)
	}
	return slices.Insert(policies, min(position-1, len(policies)), policy), nil
}

func policyIndex(l *lb.Listener, r Ref) int {
	return slices.IndexFunc(l.Policies, func(policy lb.Policy) bool { return r.is(policy.ID, policy.Key) })
}

func policyValid(tree *lb.Tree, policy *lb.Policy) error {
	if policy.Action != lb.RedirectToPool {
		return nil
	}
	if policy.Pool == "" {
		return fmt.Errorf("%s needs a pool", policy.Action)
	}
	return poolExists(tree, policy.Pool)
}

func applyRule(tree *lb.Tree, s Step) error {
	at := slices.IndexFunc(tree.Listeners, func(l lb.Listener) bool { return s.Listener.is(l.ID, l.Key) })
	if at < 0 {
		return notFound(s.Listener)
	}
	tree.Listeners = slices.Clone(tree.Listeners)
	l := &tree.Listeners[at]
	l.Policies = slices.Clone(l.Policies)
	i := policyIndex(l, s.Parent)
	if i < 0 {
		return notFound(s.Parent)
	}
	policy := &l.Policies[i]
	policy.Rules = slices.Clone(policy.Rules)
	if s.Verb == Create {
		if len(policy.Rules) >= maxRules {
			return fmt.Errorf("a policy has at most %d rules", maxRules)
		}
		made := *s.Rule
		made.ID = newID(made.ID, s.Ref.Key)
		for slices.ContainsFunc(policy.Rules, func(r lb.Rule) bool { return r.ID == made.ID }) {
			// A rule that was like this one once has that id.
			made.ID += "'"
		}
		policy.Rules = append(policy.Rules, made)
		return nil
	}
	j := slices.IndexFunc(policy.Rules, func(r lb.Rule) bool { return s.Ref.is(r.ID, ruleText(r)) })
	if j < 0 {
		return notFound(s.Ref)
	}
	if s.Verb == Delete {
		policy.Rules = slices.Delete(policy.Rules, j, j+1)
		return nil
	}
	return updateFields(s, ruleSetters, &policy.Rules[j], s.Rule, nil)
}

func notFound(r Ref) error { return fmt.Errorf("%s %s does not exist", r.Key, r.ID) }

func unknownVerb(s Step) error { return fmt.Errorf("no such step is known: %s %s", s.Verb, s.Kind) }
