package plan

import (
	"fmt"
	"slices"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Deleting an object takes with it what is below, also what is not ours. An observation does not say below which of our
// objects a foreign one is, so that it protects all of the kind.

// spare says whether an object has to stay because it may hold foreign ones of these kinds, and reports it.
func (p *planner) spare(kind lb.Kind, ref Ref, below ...lb.Kind) bool {
	i := slices.IndexFunc(p.have.Foreign, func(f lb.Foreign) bool { return slices.Contains(below, f.Kind) })
	if i < 0 {
		return false
	}
	f := p.have.Foreign[i]
	p.conflict(Conflict{Kind: kind, Key: ref.Key, ID: f.ID, Reason: fmt.Sprintf(
		"it is no longer wanted but not deleted, because that might delete the %s %s, which is not ours: delete that by hand", f.Kind, f.ID)})
	return true
}

func (p *planner) foreignMonitor(pool string) *lb.Foreign {
	for i := range p.have.Foreign {
		if f := &p.have.Foreign[i]; f.Kind == lb.KindMonitor && f.Pool == pool {
			return f
		}
	}
	return nil
}

func (p *planner) foreignOn(port int) *lb.Foreign {
	for i := range p.have.Foreign {
		if f := &p.have.Foreign[i]; f.Kind == lb.KindListener && f.Port == port {
			return f
		}
	}
	return nil
}
