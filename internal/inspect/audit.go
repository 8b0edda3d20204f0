package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// Audit is what a comparison of Kubernetes with the cloud came to.
type Audit struct {
	ClusterID  string `json:"clusterID"`
	Controller string `json:"controllerName"`
	ProjectID  string `json:"projectID,omitempty"`
	// Gateways that were compared.
	Gateways int `json:"gateways"`
	// Counts of findings by state.
	Counts   map[State]int `json:"counts"`
	Findings []Finding     `json:"findings"`
	// Unseen is what could not be compared.
	Unseen []UnseenPart `json:"unseen,omitempty"`
	// Others counts objects with marks of other clusters or controllers. They are not ours to judge.
	Others int `json:"others"`
}

// State is what an object is, compared with what is wanted.
type State string

// The states.
const (
	// Matched: it is there as it is wanted.
	Matched State = "matched"
	// Missing: it is wanted and not there.
	Missing State = "missing"
	// Drifted: it is there and not as it is wanted.
	Drifted State = "drifted"
	// Orphan: it is ours and nobody wants it.
	Orphan State = "orphan"
	// Conflicting: whose it is, or what shall be, is in doubt.
	Conflicting State = "conflict"
	// ForeignBelowOurs: somebody else made it below our load balancer.
	ForeignBelowOurs State = "foreign-below-ours"
)

var states = []State{Matched, Missing, Drifted, Orphan, Conflicting, ForeignBelowOurs}

// Finding is one object of the cloud.
type Finding struct {
	State State   `json:"state"`
	Kind  lb.Kind `json:"kind"`
	// Key is what the object is in the wanted tree.
	Key     string `json:"key,omitempty"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Detail says what is not as it shall be, and what to do when the controller does not mend it.
	Detail string `json:"detail,omitempty"`
}

// UnseenPart is something that an audit could not look at.
type UnseenPart struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (t *tool) auditCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "audit [[NAMESPACE/]GATEWAY...]",
		Short: "Compare Kubernetes with Octavia, Neutron and Barbican",
		Long: "Compare what Gateways ask for with what Octavia, Neutron and Barbican have, object by object. Read-only.\n\n" +
			"Without arguments everything with the mark of this cluster is looked at, so that what belongs to no Gateway any more is found too.\n" +
			"A difference may be a change that the controller is about to make: look again after a minute.\n\n" +
			"States: " + stateHelp() + "\n" +
			"Exit codes: 0 all is matched, 1 it could not be compared, 2 something is not matched, 3 nothing is wrong but not all could be seen.",
		Example: "  kubectl octavia audit\n  kubectl octavia audit infra/edge --all\n  kubectl octavia audit -o json | jq '.findings[] | select(.state == \"orphan\")'",
		RunE: func(c *cobra.Command, args []string) error {
			audit, err := t.audit(c.Context(), args)
			if err != nil {
				return err
			}
			if err := t.print(audit, func(p *printer) { audit.text(p, all) }); err != nil {
				return err
			}
			return audit.exit()
		},
		ValidArgsFunction: t.completeGateways,
	}
	c.Flags().BoolVar(&all, "all", false, "list what is matched too")
	return c
}

func stateHelp() string {
	return "matched; missing (wanted, not there); drifted (changed by somebody); orphan (ours, and nobody wants it); conflict (in doubt whose it is); " +
		"foreign-below-ours (somebody else's, below our load balancer)."
}

func (a *Audit) exit() error {
	switch {
	case len(a.Findings) > a.Counts[Matched]:
		return &exitError{exitFindings}
	case len(a.Unseen) > 0:
		return &exitError{exitUnseen}
	}
	return nil
}

func (t *tool) audit(ctx context.Context, args []string) (*Audit, error) {
	r, _, err := t.reader(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.openstack(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := t.gatewayKeys(ctx, r, args)
	if err != nil {
		return nil, err
	}
	a := &Audit{ClusterID: r.ClusterID, Controller: r.Controller, ProjectID: c.ProjectID(), Counts: map[State]int{}, Findings: []Finding{}}
	views := make([]*view, len(keys))
	// What the snapshots share is read once, before the rest goes in parallel.
	g, looking := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, key := range keys {
		g.Go(func() (err error) {
			views[i], err = look(looking, r, c, key, t.now())
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("there is no Gateway %s", key)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	living := map[string]*view{}
	seen := map[string]bool{}
	for _, v := range views {
		if !r.Ours(v.snapshot) {
			return nil, fmt.Errorf("the class %q of Gateway %s is not one of %s", v.snapshot.Gateway.Spec.GatewayClassName, v.key, r.Controller)
		}
		living[string(v.snapshot.Gateway.UID)] = v
		a.Gateways++
		a.compare(v, seen)
	}
	if len(args) == 0 {
		a.survey(ctx, c, r, living, seen)
	}
	slices.SortStableFunc(a.Findings, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.Gateway, y.Gateway), cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)),
			strings.Compare(x.Key, y.Key), strings.Compare(x.ID, y.ID))
	})
	for _, f := range a.Findings {
		a.Counts[f.State]++
	}
	return a, nil
}

// kinds are in the order in which people look.
var kinds = []lb.Kind{lb.KindLoadBalancer, lb.KindFloatingIP, lb.KindSecret, lb.KindListener, lb.KindPolicy, lb.KindRule, lb.KindPool, lb.KindMembers, lb.KindMember, lb.KindMonitor}

func (a *Audit) unseen(what string, err error) {
	a.Unseen = append(a.Unseen, UnseenPart{what, err.Error()})
}

// objectID names an object of the cloud; rules and members are unique by id too.
func objectID(kind lb.Kind, id string) string { return string(kind) + " " + id }

// compare finds each object of one Gateway.
func (a *Audit) compare(v *view, seen map[string]bool) {
	gateway := v.key.String()
	add := func(f Finding) {
		f.Gateway = gateway
		a.Findings = append(a.Findings, f)
		if f.ID != "" {
			seen[objectID(f.Kind, f.ID)] = true
		}
	}
	if v.unseen != nil {
		if cloud.ClassOf(v.unseen) == cloud.Conflict {
			add(Finding{State: Conflicting, Kind: lb.KindLoadBalancer, Key: "loadbalancer", Detail: v.unseen.Error()})
		} else {
			a.unseen("Gateway "+gateway, v.unseen)
		}
	}
	if v.have == nil {
		return
	}
	for _, f := range v.have.Foreign {
		add(Finding{State: ForeignBelowOurs, Kind: f.Kind, ID: f.ID, Name: f.Name,
			Detail: "it does not carry the mark of this Gateway: the controller leaves it alone, and deletes no load balancer that holds it; delete or move it"})
	}
	switch {
	case v.busy():
		add(Finding{State: Matched, Kind: lb.KindLoadBalancer, Key: v.have.Key, ID: v.have.ID, Name: v.have.Name, Detail: "Octavia is at work on it"})
		a.unseen("Gateway "+gateway, fmt.Errorf("its load balancer is %s, so that what is below it was not read: look again in a minute", v.have.ProvisioningStatus))
		return
	case v.want == nil:
		a.unseen("Gateway "+gateway, fmt.Errorf("%s; what it has stays as it is, and there is nothing to compare it with", v.kept))
	}
	if v.have.Old != nil {
		for _, o := range objectsOf(v.have.Old) {
			add(Finding{State: Matched, Kind: o.kind, Key: o.key, ID: o.id, Name: o.name, Detail: "its load balancer is being replaced by " + v.have.ID})
		}
	}
	judged := judge(v)
	for _, o := range objectsOf(v.have) {
		found := Finding{State: Matched, Kind: o.kind, Key: o.key, ID: o.id, Name: o.name}
		if j, ok := judged[objectID(o.kind, o.id)]; ok {
			found.State, found.Detail = j.State, j.Detail
		}
		if found.State == Matched && o.errored {
			found.State, found.Detail = Drifted, "its provisioning status is ERROR: see docs/runbook/load-balancer-error.md"
		}
		add(found)
	}
	for _, f := range missing(v) {
		add(f)
	}
}

// judge says what steps and conflicts mean for the objects that are there, by kind and id.
func judge(v *view) map[string]Finding {
	out := map[string]Finding{}
	fields := map[string][]string{}
	for _, s := range v.todo.Steps {
		id := objectID(s.Kind, s.Ref.ID)
		switch {
		case s.Kind == lb.KindMembers:
			if pool := v.have.PoolByKey(s.Ref.Key); pool != nil {
				judgeMembers(out, pool.Members, s.Members)
			}
		case s.Verb == plan.Update:
			fields[id] = append(fields[id], s.Fields...)
			slices.Sort(fields[id])
			out[id] = Finding{State: Drifted, Detail: "not as wanted: " + strings.Join(slices.Compact(fields[id]), ", ")}
		case s.Verb == plan.Delete:
			detail := s.Reason
			if v.want.Empty() {
				detail = "its Gateway is being deleted or is not ours any more"
			}
			out[id] = Finding{State: Orphan, Detail: detail}
			for _, below := range below(v.have, s) {
				out[below] = Finding{State: Orphan, Detail: detail}
			}
		}
	}
	for _, c := range v.todo.Conflicts {
		if c.ID != "" {
			out[objectID(c.Kind, c.ID)] = Finding{State: Conflicting, Detail: c.Reason}
		}
	}
	return out
}

func memberAt(m lb.Member) string { return fmt.Sprintf("%s:%d", m.Address, m.Port) }

// judgeMembers compares the members of a pool one by one: the step replaces all.
func judgeMembers(out map[string]Finding, have, want []lb.Member) {
	wanted := map[string]lb.Member{}
	for _, m := range want {
		wanted[memberAt(m)] = m
	}
	for _, m := range have {
		w, ok := wanted[memberAt(m)]
		var differ []string
		for _, d := range []struct {
			field string
			is    bool
		}{{"weight", m.Weight != w.Weight}, {"name", m.Name != w.Name}, {"subnet_id", m.SubnetID != w.SubnetID},
			{"monitor_port", m.MonitorPort != w.MonitorPort}, {"admin_state_up", m.Disabled != w.Disabled}} {
			if d.is {
				differ = append(differ, d.field)
			}
		}
		switch {
		case !ok:
			out[objectID(lb.KindMember, m.ID)] = Finding{State: Orphan, Detail: "no backend is there any more"}
		case len(differ) > 0:
			out[objectID(lb.KindMember, m.ID)] = Finding{State: Drifted, Detail: "not as wanted: " + strings.Join(differ, ", ")}
		}
	}
}

// below are the objects that the deletion of a step takes along.
func below(have *lb.Tree, s plan.Step) []string {
	var out []string
	take := func(t *lb.Tree) {
		for _, o := range objectsOf(t) {
			out = append(out, objectID(o.kind, o.id))
		}
	}
	switch s.Kind {
	case lb.KindLoadBalancer:
		whole := *have
		whole.FloatingIP, whole.Secrets = nil, nil
		take(&whole)
	case lb.KindListener:
		if l := have.ListenerByKey(s.Ref.Key); l != nil {
			take(&lb.Tree{Listeners: []lb.Listener{*l}})
		}
	case lb.KindPolicy:
		for i := range have.Listeners {
			for _, p := range have.Listeners[i].Policies {
				if p.ID == s.Ref.ID {
					take(&lb.Tree{Listeners: []lb.Listener{{Policies: []lb.Policy{p}}}})
				}
			}
		}
	case lb.KindPool:
		if p := have.PoolByKey(s.Ref.Key); p != nil {
			take(&lb.Tree{Pools: []lb.Pool{*p}})
		}
	}
	return out
}

// object is one object of a tree.
type object struct {
	kind          lb.Kind
	key, id, name string
	errored       bool
}

// objectsOf are all objects of ours in an observed tree.
func objectsOf(t *lb.Tree) []object {
	var out []object
	add := func(kind lb.Kind, key, id, name string, status lb.ProvisioningStatus) {
		if id != "" {
			out = append(out, object{kind, key, id, name, status == lb.Errored})
		}
	}
	meta := func(kind lb.Kind, m lb.Meta) { add(kind, m.Key, m.ID, m.Name, m.ProvisioningStatus) }
	meta(lb.KindLoadBalancer, t.Meta)
	for _, l := range t.Listeners {
		meta(lb.KindListener, l.Meta)
		for _, p := range l.Policies {
			meta(lb.KindPolicy, p.Meta)
			for _, r := range p.Rules {
				add(lb.KindRule, p.Key, r.ID, ruleText(r), "")
			}
		}
	}
	for _, p := range t.Pools {
		meta(lb.KindPool, p.Meta)
		for _, m := range p.Members {
			add(lb.KindMember, p.Key, m.ID, memberAt(m), "")
		}
		if m := p.Monitor; m != nil {
			add(lb.KindMonitor, p.Key, m.ID, m.Type, m.ProvisioningStatus)
		}
	}
	if f := t.FloatingIP; f != nil && !f.Supplied {
		add(lb.KindFloatingIP, "", f.ID, f.Address, "")
	}
	for _, s := range t.Secrets {
		add(lb.KindSecret, s.Key, s.ID, "", "")
	}
	return out
}

// missing are the wanted objects that are not there.
func missing(v *view) []Finding {
	var out []Finding
	for _, s := range v.todo.Steps {
		switch {
		case s.Kind == lb.KindMembers:
			var have []lb.Member
			if pool := v.have.PoolByKey(s.Ref.Key); pool != nil {
				have = pool.Members
			}
			for _, m := range s.Members {
				if !slices.ContainsFunc(have, func(h lb.Member) bool { return memberAt(h) == memberAt(m) }) {
					out = append(out, Finding{State: Missing, Kind: lb.KindMember, Key: s.Ref.Key, Name: memberAt(m)})
				}
			}
		case s.Verb == plan.Create && s.Kind == lb.KindLoadBalancer:
			out = append(out, Finding{State: Missing, Kind: s.Kind, Key: s.Ref.Key, Name: s.Tree.Name, Detail: "with " + s.String()[strings.LastIndex(s.String(), ":")+2:]})
		case s.Verb == plan.Create && s.Kind == lb.KindRule:
			out = append(out, Finding{State: Missing, Kind: s.Kind, Key: s.Parent.Key, Name: ruleText(*s.Rule), Detail: s.Reason})
		case s.Verb == plan.Create:
			out = append(out, Finding{State: Missing, Kind: s.Kind, Key: s.Ref.Key, Detail: s.Reason})
		}
	}
	for _, c := range v.todo.Conflicts {
		if c.ID == "" || !slices.ContainsFunc(objectsOf(v.have), func(o object) bool { return o.kind == c.Kind && o.id == c.ID }) {
			out = append(out, Finding{State: Conflicting, Kind: c.Kind, Key: c.Key, ID: c.ID, Detail: c.Reason})
		}
	}
	return out
}

// survey looks at everything in the project that has a mark, for what belongs to no living Gateway.
func (a *Audit) survey(ctx context.Context, c *cloud.Client, r *kube.Reader, living map[string]*view, seen map[string]bool) {
	s := c.Survey(ctx)
	for _, u := range s.Unseen {
		a.unseen(u.What+" of the project", u.Err)
	}
	for _, o := range s.Objects {
		if seen[objectID(o.Kind, o.ID)] {
			continue
		}
		f := Finding{Kind: o.Kind, Key: o.Mark.Key, ID: o.ID, Name: o.Name, Gateway: o.Mark.Gateway}
		owner := living[o.Mark.UID]
		switch {
		case !o.Mark.Current():
			if o.Mark.ClusterID != "" && o.Mark.ClusterID != r.ClusterID {
				a.Others++
				continue
			}
			f.State, f.Detail = Conflicting, "its mark is not complete, or of another format: nobody can prove whose it is; see docs/runbook/ownership-conflict.md"
		case !o.Mark.Of(r.ClusterID, r.Controller):
			a.Others++
			continue
		case owner == nil:
			f.State, f.Detail = Orphan, "its Gateway (UID "+o.Mark.UID+") does not exist; see docs/runbook/orphan.md"
		case owner.unseen != nil || owner.busy() || owner.want == nil && owner.have == nil:
			// It may well be as it shall be: the view of its Gateway says that this was not looked at.
			continue
		default:
			f.Gateway = owner.key.String()
			f.State, f.Detail = Orphan, misplaced(o, owner)
		}
		a.Findings = append(a.Findings, f)
	}
}

// misplaced says why an object of a living Gateway is none of those that were found for it.
func misplaced(o cloud.Marked, owner *view) string {
	if o.LoadBalancer != "" && owner.have != nil && o.LoadBalancer != owner.have.ID {
		return "it carries the mark of the Gateway and lies below load balancer " + o.LoadBalancer + ", which is not the Gateway's; see docs/runbook/orphan.md"
	}
	return "it carries the mark of the Gateway, which does not use it; the controller deletes it when it next looks, else see docs/runbook/orphan.md"
}

func (a *Audit) text(p *printer, all bool) {
	rows := [][]words{head("STATE", "KIND", "GATEWAY", "OBJECT", "ID", "DETAIL")}
	for _, f := range a.Findings {
		if f.State == Matched && !all {
			continue
		}
		name := cmp.Or(f.Key, f.Name, "-")
		switch f.Kind {
		case lb.KindRule, lb.KindMember:
			name = cmp.Or(strings.TrimSpace(f.Key+" "+f.Name), "-")
		case lb.KindFloatingIP:
			name = cmp.Or(f.Name, "-")
		}
		rows = append(rows, []words{{{string(f.State), f.State.colour()}}, say("%s", f.Kind), say("%s", cmp.Or(f.Gateway, "-")), say("%s", name), say("%s", cmp.Or(f.ID, "-")), say("%s", f.Detail)})
	}
	if len(rows) > 1 {
		p.table(rows)
		p.line("")
	}
	var counts []string
	for _, s := range states {
		if n := a.Counts[s]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(counts) == 0 {
		counts = []string{"nothing of ours is there, and nothing is wanted"}
	}
	verdict := words{{"✓ ", green}}
	if len(a.Findings) > a.Counts[Matched] {
		verdict = words{{"✗ ", red}}
	} else if len(a.Unseen) > 0 {
		verdict = words{{"? ", yellow}}
	}
	p.words(verdict.and(plain, "%s compared with project %s: %s.", plural(a.Gateways, "Gateway"), a.ProjectID, strings.Join(counts, ", ")))
	if a.Others > 0 {
		p.say("  %s of other clusters or controllers in this project, not looked at.", plural(a.Others, "object"))
	}
	if len(a.Unseen) > 0 {
		p.words(words{{"Not seen:", yellow}})
		for _, u := range a.Unseen {
			p.say("  %s: %s", u.What, u.Why)
		}
	}
}

func (s State) colour() colour {
	switch s {
	case Matched:
		return green
	case Missing, Drifted:
		return yellow
	}
	return red
}

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// completeGateways offers the names of our Gateways.
func (t *tool) completeGateways(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	r, _, err := t.reader(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := r.OurGateways(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, key := range sortedKeys(all) {
		names = append(names, key.String())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
