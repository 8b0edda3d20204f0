package cloud

import (
	"sync"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// pace remembers how long Octavia took for the last write of each kind to each load balancer: the next takes about as long, so
// there is no use in looking much earlier. It only ever decides when to look, and at what.
type pace struct {
	mu   sync.Mutex
	took map[string]map[work]time.Duration
	// left are the steps that Octavia was still at when an Apply ended.
	left map[string]plan.Step
	// began is when load balancers were made that are not done yet, created the shortest time that one took.
	began   map[string]time.Time
	created time.Duration
}

type work struct {
	kind lb.Kind
	verb plan.Verb
}

// latestFirstLook is for what took long for another reason: an amphora that did not answer, or a process that was frozen for an hour.
const latestFirstLook = time.Minute

// first is when to look at a load balancer for the first time after a write. What goes faster than the last one did is noticed late
// by this once, and sets the pace of the next.
func (p *pace) first(id string, s plan.Step) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if creates(s) {
		// A new one has no past, but others were made in this cloud: half of what the quickest took is too early for any.
		return min(max(firstLook, p.created/2), latestFirstLook)
	}
	return min(max(firstLook, p.took[id][work{s.Kind, s.Verb}]*3/4), latestFirstLook)
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
	delete(p.began, id)
	delete(p.left, id)
}

// leave remembers the step that Octavia is at when an Apply ends.
func (p *pace) leave(id string, s plan.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = map[string]plan.Step{}
	}
	p.left[id] = s
}

// resumed returns what leave remembered, and forgets it.
func (p *pace) resumed(id string) (plan.Step, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.left[id]
	delete(p.left, id)
	return s, ok
}

func creates(s plan.Step) bool { return s.Kind == lb.KindLoadBalancer && s.Verb == plan.Create }

// begin remembers that a load balancer is being made.
func (p *pace) begin(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began == nil {
		p.began = map[string]time.Time{}
	}
	p.began[id] = now
}

// end remembers how long that took; without a begin there is nothing to remember.
func (p *pace) end(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, ok := p.began[id]
	delete(p.began, id)
	if took := now.Sub(began); ok && (p.created == 0 || took < p.created) {
		p.created = took
	}
}
