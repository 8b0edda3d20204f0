package cloud

import (
	"sync"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// pace remembers how long Octavia took for the last write of each kind to each load balancer: the next takes about as long, so
// there is no use in looking much earlier. It only ever decides when to look.
type pace struct {
	mu   sync.Mutex
	took map[string]map[work]time.Duration
}

type work struct {
	kind lb.Kind
	verb plan.Verb
}

// first is when to look at a load balancer for the first time after a write. What goes faster than the last one did is noticed late
// by this once, and sets the pace of the next.
func (p *pace) first(id string, s plan.Step) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(firstLook, p.took[id][work{s.Kind, s.Verb}]*3/4)
}

// note remembers how long a write took.
func (p *pace) note(id string, s plan.Step, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Kind == lb.KindLoadBalancer && s.Verb != plan.Update {
		return // That happens once.
	}
	if p.took == nil {
		p.took = map[string]map[work]time.Duration{}
	}
	if p.took[id] == nil {
		p.took[id] = map[work]time.Duration{}
	}
	p.took[id][work{s.Kind, s.Verb}] = took
}

func (p *pace) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.took, id)
}
