package cloud

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// Do makes the one writing call of a step and then changes have as the cloud was changed, with the ids that it gave.
// It never repeats a call: after an error the outcome may be unknown, and only a new observation can tell.
//
// What is gone already counts as deleted. A cascade is refused while have names foreign children.
func (c *Client) Do(ctx context.Context, have *lb.Tree, s plan.Step) error {
	e := execution{c, have, &s}
	var err error
	switch s.Kind {
	case lb.KindLoadBalancer:
		err = e.loadBalancer(ctx)
	case lb.KindListener:
		err = e.listener(ctx)
	case lb.KindPool:
		err = e.pool(ctx)
	case lb.KindMembers:
		err = e.members(ctx)
	case lb.KindMonitor:
		err = e.monitor(ctx)
	case lb.KindPolicy:
		err = e.policy(ctx)
	case lb.KindRule:
		err = e.rule(ctx)
	case lb.KindFloatingIP:
		err = e.floatingIP(ctx)
	case lb.KindSecret:
		err = e.secret(ctx)
	default:
		err = planError("a step has the unknown kind %q", s.Kind)
	}
	if err != nil {
		return c.withLimit(ctx, err)
	}
	if err := plan.Apply(have, s); err != nil {
		return planError("the cloud did what the plan did not expect: %v", err)
	}
	if s.Locks() && !have.Empty() {
		have.ProvisioningStatus = lb.PendingUpdate
	}
	return nil
}

func planError(format string, args ...any) error {
	return &Error{Class: Stale, Reason: ReasonPlan, Message: fmt.Sprintf(format, args...)}
}

// execution is one step under way.
type execution struct {
	*Client
	have *lb.Tree
	step *plan.Step
}

// write sends the step's call. key names the object in the body and in the answer.
func (e execution) write(ctx context.Context, path, what, key string, body attributes, out any) error {
	r := call{service: octavia, path: path, op: string(e.step.Verb), what: what, out: out}
	if strings.Contains(path, "/"+plan.SimulatedID) {
		// Octavia would answer 404, which for a deletion means success.
		return stale(what, "its id is not known")
	}
	switch e.step.Verb {
	case plan.Create:
		r.method = http.MethodPost
	case plan.Update:
		r.method = http.MethodPut
	case plan.Delete:
		r.method = http.MethodDelete
		return gone(e.do(ctx, r))
	default:
		return planError("a step has the unknown verb %q", e.step.Verb)
	}
	r.body = attributes{key: body}
	return e.do(ctx, r)
}

// gone takes "not found" as deleted.
func gone(err error) error {
	if ReasonOf(err) == ReasonNotFound {
		return nil
	}
	return err
}

func (e execution) loadBalancer(ctx context.Context) error {
	t := e.step.Tree
	if e.step.Verb != plan.Delete && t == nil {
		return planError("a step for a load balancer has no tree")
	}
	switch e.step.Verb {
	case plan.Create:
		body, err := bareLoadBalancer(t), error(nil)
		if !e.singly.Load() {
			if body, err = fullLoadBalancer(t, e.have.Secrets); err != nil {
				return err
			}
		}
		var out struct{ LoadBalancer wireLoadBalancer }
		if err := e.write(ctx, "/loadbalancers", "load balancer "+t.Name, "loadbalancer", body, &out); err != nil {
			if class := ClassOf(err); class == UserFault || class == OperatorFault {
				e.facts.clear() // What was resolved by name may have another id by now.
			}
			if t.VIP.Address != "" && ReasonOf(err) == ReasonAddress {
				return &Error{Class: UserFault, Reason: ReasonAddress, Op: "create", Resource: "load balancer " + t.Name,
					Message: "the VIP subnet cannot give the address " + t.VIP.Address + ", which is in use: ask for another one"}
			}
			return err
		}
		made := createdLoadBalancer(t, out.LoadBalancer)
		if !e.singly.Load() {
			addCreatedChildren(made, t, out.LoadBalancer)
		}
		e.step.Tree = made
		e.step.Ref.ID = out.LoadBalancer.ID
		return nil
	case plan.Update:
		id := cmp.Or(e.step.Ref.ID, e.have.ID)
		body, err := loadBalancerAttributes(t).only(e.step.Fields)
		if err != nil {
			return err
		}
		return e.write(ctx, "/loadbalancers/"+element(id), "load balancer "+id, "loadbalancer", body, nil)
	default:
		id := cmp.Or(e.step.Ref.ID, e.have.ID)
		if n := len(e.have.Foreign); n > 0 {
			return &Error{Class: Conflict, Reason: ReasonForeign, Op: "delete", Resource: "load balancer " + id,
				Message: fmt.Sprintf("%d objects below it were not made by this controller; first is %s %s", n, e.have.Foreign[0].Kind, e.have.Foreign[0].ID)}
		}
		if id != e.have.ID || !e.have.Owner.Owns(e.have.Tags) {
			return &Error{Class: Conflict, Reason: ReasonOwnership, Op: "delete", Resource: "load balancer " + id,
				Message: "it does not carry the mark of this Gateway"}
		}
		return gone(e.do(ctx, call{service: octavia, method: http.MethodDelete, path: "/loadbalancers/" + element(id),
			query: url.Values{"cascade": {"true"}}, op: "delete", what: "load balancer " + id}))
	}
}

// createdLoadBalancer is what the answer to a create says, without children.
func createdLoadBalancer(want *lb.Tree, w wireLoadBalancer) *lb.Tree {
	t := w.model(want.Owner)
	t.Key = cmp.Or(t.Key, want.Key)
	t.VIP.SubnetID = cmp.Or(t.VIP.SubnetID, want.VIP.SubnetID)
	t.ProvisioningStatus = lb.PendingCreate
	return &t
}

// addCreatedChildren adds the wanted children with the ids of the answer: those that have keys are found by them, rules by their
// content, members by their address.
func addCreatedChildren(t, want *lb.Tree, w wireLoadBalancer) {
	ids := map[string]string{}
	rules := map[string][]wireRule{}
	pools := map[string]wirePool{}
	note := func(path string, m wireMeta) string {
		path += "/" + lb.KeyFromTags(m.Tags)
		ids[path] = m.ID
		return path
	}
	for _, l := range w.Listeners {
		path := note("listener", l.wireMeta)
		for _, p := range l.Policies {
			rules[note(path, p.wireMeta)] = p.Rules
		}
	}
	for _, p := range w.Pools {
		pools[note("pool", p.wireMeta)] = p
	}
	adopt := func(path string, m *lb.Meta) string {
		path += "/" + lb.KeyTag(m.Key)
		m.ID, m.ProvisioningStatus = ids[path], lb.PendingCreate
		return path
	}
	t.Pools = slices.Clone(want.Pools)
	names := poolNames(want.Pools)
	for i := range t.Pools {
		made := pools[adopt("pool", &t.Pools[i].Meta)]
		t.Pools[i].Name = names[t.Pools[i].Key]
		adoptContent(&t.Pools[i], made)
	}
	t.Listeners = slices.Clone(want.Listeners)
	for i := range t.Listeners {
		l := &t.Listeners[i]
		path := adopt("listener", &l.Meta)
		l.Policies = slices.Clone(l.Policies)
		for j := range l.Policies {
			made := rules[adopt(path, &l.Policies[j].Meta)]
			l.Policies[j].Rules = adoptRules(l.Policies[j].Rules, made)
		}
	}
}

// adoptContent gives the monitor and the members of a pool the ids of the answer.
func adoptContent(p *lb.Pool, made wirePool) {
	if p.Monitor != nil {
		monitor := *p.Monitor
		monitor.ID = ""
		if made.Monitor != nil {
			monitor.ID = made.Monitor.ID
		}
		p.Monitor = &monitor
	}
	p.Members = slices.Clone(p.Members)
	for i := range p.Members {
		m := &p.Members[i]
		m.ID = ""
		for _, w := range made.Members {
			if w.key() == memberKey(m.Address, m.Port) {
				m.ID = w.ID
			}
		}
	}
}

// adoptRules returns the rules with the ids of the answer.
func adoptRules(want []lb.Rule, made []wireRule) []lb.Rule {
	out := slices.Clone(want)
	used := map[string]bool{}
	for i := range out {
		out[i].ID = ""
		for _, w := range made {
			if !used[w.ID] && out[i].SameContent(w.model()) {
				out[i].ID = w.ID
				used[w.ID] = true
				break
			}
		}
	}
	return out
}

func (e execution) listener(ctx context.Context) error {
	l := e.step.ListenerTo
	if e.step.Verb == plan.Delete {
		id, err := e.id(lb.KindListener, e.step.Ref)
		if err != nil {
			return err
		}
		return e.write(ctx, "/listeners/"+element(id), "listener "+id, "", nil, nil)
	}
	if l == nil {
		return planError("a step for a listener has no listener")
	}
	pool, err := e.poolID(l.DefaultPool)
	if err != nil {
		return err
	}
	tls, err := tlsAttributes(l, e.have.Secrets)
	if err != nil && (e.step.Verb == plan.Create || slices.ContainsFunc(e.step.Fields, isTLSField)) {
		return err
	}
	all := listenerAttributes(e.have.Owner, l, pool)
	if e.step.Verb == plan.Create {
		body := all.forCreate()
		maps.Copy(body, forTLSCreate(tls))
		body["loadbalancer_id"], body["protocol"], body["protocol_port"] = e.have.ID, l.Protocol, l.Port
		var out struct{ Listener wireMeta }
		err = e.write(ctx, "/listeners", fmt.Sprintf("listener for port %d", l.Port), "listener", body, &out)
		copied := *l
		copied.ID, copied.Policies = out.Listener.ID, nil
		e.step.ListenerTo, e.step.Ref.ID = &copied, out.Listener.ID
		return err
	}
	id, err := e.id(lb.KindListener, e.step.Ref)
	if err != nil {
		return err
	}
	maps.Copy(all, tls)
	body, err := all.only(e.step.Fields)
	if err != nil {
		return err
	}
	return e.write(ctx, "/listeners/"+element(id), "listener "+id, "listener", body, nil)
}

func (e execution) pool(ctx context.Context) error {
	p := e.step.Pool
	if e.step.Verb == plan.Delete {
		id, err := e.id(lb.KindPool, e.step.Ref)
		if err != nil {
			return err
		}
		return e.write(ctx, "/pools/"+element(id), "pool "+id, "", nil, nil)
	}
	if p == nil {
		return planError("a step for a pool has no pool")
	}
	tls, err := poolTLSAttributes(p, e.have.Secrets)
	if err != nil && (e.step.Verb == plan.Create || slices.ContainsFunc(e.step.Fields, isPoolTLSField)) {
		return err
	}
	if e.step.Verb == plan.Create {
		body := poolAttributes(e.have.Owner, p).forCreate()
		maps.Copy(body, forPoolTLSCreate(tls))
		body["loadbalancer_id"], body["protocol"] = e.have.ID, p.Protocol
		var out struct{ Pool wireMeta }
		err = e.write(ctx, "/pools", "pool "+p.Name, "pool", body, &out)
		copied := *p
		copied.ID, copied.Members, copied.Monitor = out.Pool.ID, nil, nil
		e.step.Pool, e.step.Ref.ID = &copied, out.Pool.ID
		return err
	}
	id, err := e.id(lb.KindPool, e.step.Ref)
	if err != nil {
		return err
	}
	all := poolAttributes(e.have.Owner, p)
	maps.Copy(all, tls)
	body, err := all.only(e.step.Fields)
	if err != nil {
		return err
	}
	return e.write(ctx, "/pools/"+element(id), "pool "+id, "pool", body, nil)
}

// members replaces the whole member set in one PUT. Members that are not ours stay as they are: they are read and sent
// along, which costs a read only where there are any.
func (e execution) members(ctx context.Context) error {
	id, err := e.id(lb.KindPool, e.step.Ref)
	if err != nil {
		return err
	}
	body := membersAttributes(e.have.Owner, e.step.Members)
	if e.hasForeign(lb.KindMember) {
		there, err := e.Client.members(ctx, id)
		if err != nil {
			return err
		}
		ours := map[string]bool{}
		for _, m := range e.step.Members {
			ours[memberKey(m.Address, m.Port)] = true
		}
		for _, w := range there {
			if e.have.Owner.Owns(w.Tags) {
				continue
			}
			if ours[w.key()] {
				return &Error{Class: Conflict, Reason: ReasonForeign, Op: "update", Resource: "the members of pool " + id,
					Message: "a member with a wanted address and port was not made by this controller: " + w.ID}
			}
			body = append(body, foreignMember(w))
		}
	}
	return e.do(ctx, call{service: octavia, method: http.MethodPut, path: "/pools/" + element(id) + "/members",
		body: map[string]any{"members": body}, op: "update", what: "the members of pool " + id})
}

func (e execution) hasForeign(kind lb.Kind) bool {
	for _, f := range e.have.Foreign {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

func (e execution) monitor(ctx context.Context) error {
	m, parent := e.step.Monitor, e.step.Parent
	pool := e.findPool(parent)
	id := e.step.Ref.ID
	if id == "" && pool != nil && pool.Monitor != nil {
		id = pool.Monitor.ID
	}
	if e.step.Verb == plan.Delete {
		return e.write(ctx, "/healthmonitors/"+element(id), "health monitor "+id, "", nil, nil)
	}
	if m == nil {
		return planError("a step for a health monitor has no monitor")
	}
	key := parent.Key
	if pool != nil {
		key = pool.Key
	}
	all := monitorAttributes(e.have.Owner, key, m)
	if e.step.Verb == plan.Create {
		poolID, err := e.id(lb.KindPool, parent)
		if err != nil {
			return err
		}
		body := all.forCreate()
		body["pool_id"], body["type"] = poolID, m.Type
		var out struct{ HealthMonitor wireMeta }
		err = e.write(ctx, "/healthmonitors", "the health monitor of pool "+poolID, "healthmonitor", body, &out)
		copied := *m
		copied.ID = out.HealthMonitor.ID
		e.step.Monitor, e.step.Ref.ID = &copied, out.HealthMonitor.ID
		return err
	}
	body, err := all.only(e.step.Fields)
	if err != nil {
		return err
	}
	return e.write(ctx, "/healthmonitors/"+element(id), "health monitor "+id, "healthmonitor", body, nil)
}

func (e execution) policy(ctx context.Context) error {
	p := e.step.Policy
	if e.step.Verb == plan.Delete {
		id, err := e.policyID(e.step.Parent, e.step.Ref)
		if err != nil {
			return err
		}
		return e.write(ctx, "/l7policies/"+element(id), "L7 policy "+id, "", nil, nil)
	}
	if p == nil {
		return planError("a step for an L7 policy has no policy")
	}
	pool, err := e.poolID(p.Pool)
	if err != nil {
		return err
	}
	position, err := e.position(ctx)
	if err != nil {
		return err
	}
	all := policyAttributes(e.have.Owner, p, pool, position)
	if e.step.Verb == plan.Create {
		var listenerID string
		if listenerID, err = e.id(lb.KindListener, e.step.Parent); err != nil {
			return err
		}
		body := all.forCreate()
		body["listener_id"] = listenerID
		var out struct{ L7Policy wireMeta }
		err = e.write(ctx, "/l7policies", "L7 policy "+p.Name, "l7policy", body, &out)
		copied := *p
		copied.ID, copied.Rules = out.L7Policy.ID, nil
		e.step.Policy, e.step.Ref.ID = &copied, out.L7Policy.ID
		return err
	}
	id, err := e.policyID(e.step.Parent, e.step.Ref)
	if err != nil {
		return err
	}
	body, err := all.only(e.step.Fields)
	if err != nil {
		return err
	}
	return e.write(ctx, "/l7policies/"+element(id), "L7 policy "+id, "l7policy", body, nil)
}

// position is the step's position as Octavia counts it. The plan counts only our policies; where a listener has others
// too, they are read and the position is that of the policy of ours that shall come next.
func (e execution) position(ctx context.Context) (int, error) {
	wanted := e.step.Position
	if wanted == 0 || !e.hasForeign(lb.KindPolicy) {
		return wanted, nil
	}
	listenerID, err := e.id(lb.KindListener, e.step.Parent)
	if err != nil {
		return 0, err
	}
	there, err := list[wirePolicy](ctx, e.Client, octavia, "/l7policies", "l7policies", "L7 policies",
		url.Values{"listener_id": {listenerID}, "fields": {"id", "position", "tags"}})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(there, func(a, b wirePolicy) int { return a.Position - b.Position })
	if e.step.Verb == plan.Update {
		// An update takes the policy out first, so that it counts neither as ours nor as a place.
		self, err := e.policyID(e.step.Parent, e.step.Ref)
		if err != nil {
			return 0, err
		}
		there = slices.DeleteFunc(there, func(w wirePolicy) bool { return w.ID == self })
	}
	before := 0
	for i, w := range there {
		if e.have.Owner.Owns(w.Tags) {
			if before++; before == wanted {
				return i + 1, nil
			}
		}
	}
	return len(there) + 1, nil
}

func (e execution) rule(ctx context.Context) error {
	policyID, err := e.policyID(e.step.Listener, e.step.Parent)
	if err != nil {
		return err
	}
	path := "/l7policies/" + element(policyID) + "/rules"
	r, id := e.step.Rule, e.step.Ref.ID
	if e.step.Verb == plan.Delete {
		return e.write(ctx, path+"/"+element(id), "rule "+id, "", nil, nil)
	}
	if r == nil {
		return planError("a step for a rule has no rule")
	}
	all := ruleAttributes(e.have.Owner, r)
	if e.step.Verb == plan.Create {
		var out struct{ Rule wireMeta }
		err = e.write(ctx, path, "a rule of L7 policy "+policyID, "rule", all.forCreate(), &out)
		copied := *r
		copied.ID = out.Rule.ID
		e.step.Rule, e.step.Ref.ID = &copied, out.Rule.ID
		return err
	}
	body, err := all.only(e.step.Fields)
	if err != nil {
		return err
	}
	return e.write(ctx, path+"/"+element(id), "rule "+id, "rule", body, nil)
}

// id resolves a reference to a listener or a pool.
func (e execution) id(kind lb.Kind, ref plan.Ref) (string, error) {
	id := ref.ID
	switch kind {
	case lb.KindListener:
		if l := e.have.ListenerByKey(ref.Key); id == "" && l != nil {
			id = l.ID
		}
	case lb.KindPool:
		if p := e.have.PoolByKey(ref.Key); id == "" && p != nil {
			id = p.ID
		}
	}
	if id == "" {
		return "", planError("%s %q is not there", kind, ref.Key)
	}
	return id, nil
}

func (e execution) findPool(ref plan.Ref) *lb.Pool {
	for i := range e.have.Pools {
		if p := &e.have.Pools[i]; ref.ID != "" && p.ID == ref.ID || ref.ID == "" && p.Key == ref.Key {
			return p
		}
	}
	return nil
}

// poolID is the value of a reference to a pool: nil for none.
func (e execution) poolID(key string) (any, error) {
	if key == "" {
		return nil, nil
	}
	return e.id(lb.KindPool, plan.Ref{Key: key})
}

func (e execution) policyID(listener, policy plan.Ref) (string, error) {
	if policy.ID != "" {
		return policy.ID, nil
	}
	for _, l := range e.have.Listeners {
		if listener.ID != "" && l.ID != listener.ID || listener.ID == "" && listener.Key != "" && l.Key != listener.Key {
			continue
		}
		for _, p := range l.Policies {
			if p.Key == policy.Key && p.ID != "" {
				return p.ID, nil
			}
		}
	}
	return "", planError("L7 policy %q is not there", policy.Key)
}
