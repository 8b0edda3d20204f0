package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// Picture is all that the page of kubectl octavia ui shows.
type Picture struct {
	Taken      time.Time        `json:"taken"`
	Cluster    string           `json:"cluster,omitempty"`
	Controller string           `json:"controller"`
	Gateways   []GatewayPicture `json:"gateways"`
	// Plans are those that were seen while the page is served, the newest first.
	Plans []SeenPlan `json:"plans"`
	// Failed is why the picture could not be taken anew; Taken says how old it is.
	Failed string `json:"failed,omitempty"`
}

// GatewayPicture is a Gateway with what is about to happen to it.
type GatewayPicture struct {
	GatewayTree
	Pending   []PendingCall   `json:"pending"`
	Conflicts []plan.Conflict `json:"conflicts,omitempty"`
	// Refused says what is not served, and why.
	Refused []string `json:"refused,omitempty"`
}

// PendingCall is a call to the cloud that the controller has to make.
type PendingCall struct {
	Verb plan.Verb `json:"verb"`
	Text string    `json:"text"`
	// Locks says that the load balancer takes no other change while Octavia is at it.
	Locks bool `json:"locks"`
}

// SeenPlan is a plan for a Gateway.
type SeenPlan struct {
	Gateway string        `json:"gateway"`
	Seen    time.Time     `json:"seen"`
	Calls   []PendingCall `json:"calls"`
	// Over is when the plan was another one, or none: the calls were made or are not wanted any more.
	Over *time.Time `json:"over,omitempty"`
}

// picture looks at all Gateways once.
func (t *tool) picture(ctx context.Context, args []string) (*Picture, error) {
	views, err := t.views(ctx, args)
	if err != nil {
		return nil, err
	}
	out := &Picture{Taken: t.now().UTC(), Cluster: t.connected.Server, Controller: t.controller, Gateways: []GatewayPicture{}, Plans: []SeenPlan{}}
	for _, v := range views {
		g := GatewayPicture{GatewayTree: t.tree(v), Pending: []PendingCall{}, Conflicts: v.todo.Conflicts, Refused: refusals(v.compiled.Verdicts)}
		for _, s := range v.todo.Steps {
			g.Pending = append(g.Pending, PendingCall{s.Verb, s.String(), s.Locks()})
		}
		out.Gateways = append(out.Gateways, g)
	}
	return out, nil
}

// history keeps the last plans.
type history struct{ plans []SeenPlan }

// historyLength is how many plans the page shows.
const historyLength = 20

// see compares a new picture with the plans that were seen before.
func (h *history) see(p *Picture) {
	for _, g := range p.Gateways {
		last := slices.IndexFunc(h.plans, func(s SeenPlan) bool { return s.Gateway == g.Gateway && s.Over == nil })
		switch {
		case g.Unseen != "":
			continue // nobody knows what is left of it
		case last >= 0 && slices.Equal(h.plans[last].Calls, g.Pending):
			continue
		case last >= 0:
			h.plans[last].Over = &p.Taken
		}
		if len(g.Pending) > 0 {
			h.plans = slices.Insert(h.plans, 0, SeenPlan{Gateway: g.Gateway, Seen: p.Taken, Calls: g.Pending})
		}
	}
	for i := range h.plans {
		gone := !slices.ContainsFunc(p.Gateways, func(g GatewayPicture) bool { return g.Gateway == h.plans[i].Gateway })
		if gone && h.plans[i].Over == nil {
			h.plans[i].Over = &p.Taken
		}
	}
	h.plans = h.plans[:min(len(h.plans), historyLength)]
	p.Plans = append([]SeenPlan{}, h.plans...)
}
