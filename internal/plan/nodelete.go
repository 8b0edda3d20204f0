package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// WithoutDeletes is the plan without the steps that delete, and without those that need them: what takes the place of
// something that has to go first. Each is a conflict instead.
func (p Plan) WithoutDeletes() Plan {
	out := Plan{Steps: []Step{}, Conflicts: append([]Conflict(nil), p.Conflicts...)}
	ports := map[int]bool{}
	monitors := map[string]bool{}
	address := false
	for _, s := range p.Steps {
		blocked := s.Verb == Create && (s.Kind == lb.KindListener && ports[s.ListenerTo.Port] || s.Kind == lb.KindMonitor && monitors[s.Parent.Key]) ||
			s.Kind == lb.KindFloatingIP && address ||
			(s.Kind == lb.KindPolicy || s.Kind == lb.KindRule) && out.lacks(s) ||
			s.Kind == lb.KindListener && s.Verb == Update && out.lacks(s)
		switch {
		case s.Verb == Delete:
			switch s.Kind {
			case lb.KindListener:
				ports[s.ListenerTo.Port] = true
			case lb.KindMonitor:
				monitors[s.Parent.Key] = true
			case lb.KindFloatingIP:
				address = true
			}
			out.refuse(s, "it would be deleted, and deletions are switched off: "+s.Reason)
		case blocked:
			out.refuse(s, "something would have to be deleted first, and deletions are switched off")
		default:
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

func (p *Plan) refuse(s Step, reason string) {
	p.Conflicts = append(p.Conflicts, Conflict{Kind: s.Kind, Key: s.Ref.Key, ID: s.Ref.ID, Reason: reason})
}

// lacks says whether the listener that a step is about was to be created by this plan, and is not.
func (p *Plan) lacks(s Step) bool {
	listener := s.Ref
	switch s.Kind {
	case lb.KindPolicy:
		listener = s.Parent
	case lb.KindRule:
		listener = s.Listener
	}
	if listener.ID != "" {
		return false
	}
	for _, o := range p.Steps {
		if o.Kind == lb.KindListener && o.Verb == Create && o.Ref == listener {
			return false
		}
	}
	return true
}
