package cloud

import (
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// record changes the tree as the step changed the cloud, as far as later steps of the same plan depend on it: ids and
// keys. Contents are those of the step.
func record(t *lb.Tree, s plan.Step) error {
	if s.Locks() && s.Kind != lb.KindLoadBalancer {
		t.ProvisioningStatus = lb.PendingUpdate
	}
	isRef := func(m lb.Meta) bool {
		return s.Ref.ID != "" && m.ID == s.Ref.ID || s.Ref.ID == "" && m.Key == s.Ref.Key
	}
	switch s.Kind {
	case lb.KindLoadBalancer:
		switch s.Verb {
		case plan.Create:
			fip := t.FloatingIP
			*t = *s.Tree
			t.FloatingIP = fip
		case plan.Delete:
			*t = lb.Tree{Owner: t.Owner, ProjectID: t.ProjectID, FloatingIP: t.FloatingIP}
		default:
			t.ProvisioningStatus = lb.PendingUpdate
		}
	case lb.KindFloatingIP:
		t.FloatingIP = s.FloatingIP
		if s.Verb == plan.Delete {
			t.FloatingIP = nil
		}
	case lb.KindListener:
		t.Listeners = slices.DeleteFunc(t.Listeners, func(l lb.Listener) bool { return s.Verb == plan.Delete && isRef(l.Meta) })
		if s.Verb == plan.Create {
			t.Listeners = append(t.Listeners, *s.ListenerTo)
		}
	case lb.KindPool:
		t.Pools = slices.DeleteFunc(t.Pools, func(p lb.Pool) bool { return s.Verb == plan.Delete && isRef(p.Meta) })
		if s.Verb == plan.Create {
			t.Pools = append(t.Pools, *s.Pool)
		}
	case lb.KindPolicy:
		for i := range t.Listeners {
			l := &t.Listeners[i]
			if s.Verb == plan.Create && (l.ID == s.Parent.ID || s.Parent.ID == "" && l.Key == s.Parent.Key) {
				l.Policies = slices.Insert(l.Policies, min(max(s.Position-1, 0), len(l.Policies)), *s.Policy)
			}
			l.Policies = slices.DeleteFunc(l.Policies, func(p lb.Policy) bool { return s.Verb == plan.Delete && isRef(p.Meta) })
		}
	}
	return nil
}
