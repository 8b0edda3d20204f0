package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// Plan is what there is to do, as a value.
type Plan struct {
	Steps []Step `json:"steps"`
	// Conflicts is what cannot be done; the steps leave it alone.
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict is a wish that no step fulfils.
type Conflict struct {
	Kind lb.Kind `json:"kind"`
	// Key is the wanted object.
	Key string `json:"key"`
	// ID is what stands in the way, if it is an object.
	ID string `json:"id,omitempty"`
	// Address says that it is about an address that the Gateway asks for and cannot have.
	Address bool `json:"address,omitempty"`
	// Reason says what stands in the way and what to do about it.
	Reason string `json:"reason"`
}

// Empty says whether there is nothing to do and nothing in the way.
func (p Plan) Empty() bool { return len(p.Steps) == 0 && len(p.Conflicts) == 0 }

// Diff is the steps of New.
func Diff(want, have *lb.Tree) []Step { return New(want, have).Steps }

// New plans the way from have to want. have is a complete observation, with keys that are unique among the siblings of
// a kind. Neither tree is changed, but the steps share memory with them.
func New(want, have *lb.Tree) Plan {
	return newPlanner(want, have).plan()
}

// plan picks what kind of change it is.
func (p *planner) plan() Plan {
	switch {
	case p.want.Empty():
		p.remove()
	case p.have.Empty():
		p.build()
	default:
		p.change()
	}
	return Plan{Steps: p.steps, Conflicts: p.conflicts}
}

// planner collects a plan. Its parts are one file each.
type planner struct {
	want, have *lb.Tree
	steps      []Step
	conflicts  []Conflict
	// used are the pools of have whose users could not be deleted, by key.
	used map[string]bool
	// pairs is how many events may be compared in pairs.
	pairs int
}

func newPlanner(want, have *lb.Tree) *planner {
	if want == nil {
		want = &lb.Tree{}
	}
	if have == nil {
		have = &lb.Tree{}
	}
	return &planner{want: want, have: have, steps: []Step{}, used: map[string]bool{}, pairs: defaultPairs}
}

func (p *planner) add(s Step) { p.steps = append(p.steps, s) }

func (p *planner) conflict(c Conflict) { p.conflicts = append(p.conflicts, c) }

// stay notes a pool that is still used.
func (p *planner) stay(pool string) { p.used[pool] = true }
