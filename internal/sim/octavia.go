package sim

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// Statuses of Octavia objects.
const (
	active        = "ACTIVE"
	inError       = "ERROR"
	pendingCreate = "PENDING_CREATE"
	pendingUpdate = "PENDING_UPDATE"
	pendingDelete = "PENDING_DELETE"
	deleted       = "DELETED"
	online        = "ONLINE"
	offline       = "OFFLINE"
	noMonitor     = "NO_MONITOR"
	degraded      = "DEGRADED"
	draining      = "DRAINING"
)

type octaviaState struct {
	minor     int
	lbs       map[string]*loadBalancer
	listeners map[string]*listener
	pools     map[string]*pool
	members   map[string]*member
	monitors  map[string]*monitor
	policies  map[string]*policy
	rules     map[string]*rule
	quotas    map[string]*quota
	changes   []*change // not yet due
	service   string    // the user that reads secrets
	flavors   *offers
	zones     *offers
}

func (c *Cloud) seedOctavia() {
	minor := c.lb.minor
	c.lb = octaviaState{
		minor:     minor,
		lbs:       map[string]*loadBalancer{},
		listeners: map[string]*listener{},
		pools:     map[string]*pool{},
		members:   map[string]*member{},
		monitors:  map[string]*monitor{},
		policies:  map[string]*policy{},
		rules:     map[string]*rule{},
		quotas:    map[string]*quota{},
		service:   compactID(c.newID()),
		flavors:   newFlavors(),
		zones:     newZones(),
	}
}

// stamp is a time as Octavia prints it: whole seconds, no zone.
type stamp string

func (c *Cloud) stamp() stamp { return stamp(c.clock.Now().UTC().Format("2006-01-02T15:04:05")) }

// common is what all Octavia objects have.
type common struct {
	ID                 string   `json:"id"`
	ProjectID          string   `json:"project_id"`
	ProvisioningStatus string   `json:"provisioning_status"`
	OperatingStatus    string   `json:"operating_status"`
	AdminStateUp       bool     `json:"admin_state_up"`
	Tags               []string `json:"tags"`
	CreatedAt          stamp    `json:"created_at"`
	UpdatedAt          *stamp   `json:"updated_at"`
}

func (c *common) base() *common { return c }

// entity is an Octavia object of any kind.
type entity interface {
	base() *common
	kind() string
	// remove takes the object out of the state.
	remove(*Cloud)
}

func (c *Cloud) newCommon(project string, a attrs) common {
	cm := common{ID: c.newID(), ProjectID: project, ProvisioningStatus: pendingCreate, OperatingStatus: offline,
		CreatedAt: c.stamp(), AdminStateUp: a.flag("admin_state_up"), Tags: []string{}}
	return cm
}

func (c *Cloud) touch(e entity) {
	now := c.stamp()
	e.base().UpdatedAt = &now
}

// change is an accepted write under way. Its load balancer is locked until it
// is due.
type change struct {
	lb     *loadBalancer
	op     Op
	target []entity // what the call is about
	due    time.Time
	stuck  bool
	settle []entity // become ACTIVE
	gone   []entity // disappear
	errors []string // kinds that become ERROR instead
	after  func()
}

// begin locks the load balancer and returns the answer's hold time. The caller
// has set the statuses of what it created or deletes; touched objects become
// PENDING_UPDATE here.
func (c *Cloud) begin(r *request, ch *change, op Op, touched ...entity) time.Duration {
	lb := ch.lb
	ch.op = op
	ch.target = append(append(ch.target, ch.settle...), ch.gone...)
	for _, t := range touched {
		if op.Action == "update" && t.kind() == op.Resource {
			ch.target = append(ch.target, t)
		}
	}
	if lb.ProvisioningStatus == active || lb.ProvisioningStatus == inError {
		lb.ProvisioningStatus = pendingUpdate
	}
	ch.settle = append(ch.settle, lb)
	for _, t := range touched {
		if t.base().ProvisioningStatus != pendingDelete {
			t.base().ProvisioningStatus = pendingUpdate
		}
		ch.settle = append(ch.settle, t)
	}
	for _, e := range ch.settle {
		if b := e.base(); b.ProvisioningStatus != pendingCreate {
			c.touch(e)
		}
	}
	for _, e := range ch.gone {
		e.base().ProvisioningStatus = pendingDelete
		c.touch(e)
	}
	ch.errors, ch.stuck = r.fault.Error, r.fault.Stuck
	var t Timing
	if c.opts.Latency != nil {
		op.Listeners, op.Pools = len(lb.listeners), len(lb.pools)
		for _, l := range lb.listeners {
			op.Policies += len(l.policies)
			for _, p := range l.policies {
				op.Rules += len(p.rules)
			}
		}
		for _, p := range lb.pools {
			op.Members += len(p.members)
		}
		t = c.opts.Latency(op)
	}
	ch.due = c.clock.Now().Add(t.Hold + t.Pending)
	c.lb.changes = append(c.lb.changes, ch)
	if c.forward != nil && !ch.stuck {
		// The data plane follows without anybody looking.
		c.clock.AfterFunc(t.Hold+t.Pending, c.poke)
	}
	return t.Hold
}

// poke applies what is due.
func (c *Cloud) poke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.wakeForwarder()
}

// settle applies the changes that are due, oldest first.
func (c *Cloud) settle() {
	now := c.clock.Now()
	var due []*change
	c.lb.changes = slices.DeleteFunc(c.lb.changes, func(ch *change) bool {
		if ch.stuck || ch.due.After(now) {
			return false
		}
		due = append(due, ch)
		return true
	})
	sort.SliceStable(due, func(i, j int) bool { return due[i].due.Before(due[j].due) })
	for _, ch := range due {
		c.finish(ch)
	}
}

func (c *Cloud) finish(ch *change) {
	if ch.lb.ProvisioningStatus == deleted {
		return
	}
	// HAProxy refuses a broken configuration: the data plane stays as it was,
	// and what the call was about is in ERROR, while the load balancer is
	// writable again. Only a delete of the culprit helps then.
	broken := ch.op.Resource != "loadbalancer" && ch.lb.broken()
	if ch.op.Resource == "loadbalancer" && ch.op.Action == "create" && (slices.Contains(ch.errors, "loadbalancer") || ch.lb.broken()) {
		c.failCreate(ch.lb)
		return
	}
	failed := func(e entity) bool {
		return slices.Contains(ch.errors, e.kind()) || broken && slices.Contains(ch.target, e)
	}
	for _, e := range ch.settle {
		b := e.base()
		if b.ProvisioningStatus == pendingDelete {
			continue
		}
		b.ProvisioningStatus = active
		if failed(e) {
			b.ProvisioningStatus = inError
		}
		c.touch(e)
	}
	for _, e := range ch.gone {
		if failed(e) {
			e.base().ProvisioningStatus = inError
			continue
		}
		e.remove(c)
		e.base().ProvisioningStatus = deleted
	}
	if ch.after != nil {
		ch.after()
	}
	c.refreshOperating(ch.lb)
	if !broken {
		c.dirty(ch.lb)
	}
}

// failCreate is what a failed creation leaves: the load balancer and its
// listeners in ERROR, everything else PENDING_CREATE for ever. A cascade
// deletes it.
func (c *Cloud) failCreate(lb *loadBalancer) {
	lb.ProvisioningStatus, lb.OperatingStatus = inError, online
	c.touch(lb)
	for _, l := range lb.listeners {
		l.ProvisioningStatus = inError
		c.touch(l)
	}
}

// broken tells whether HAProxy would refuse the configuration: a value that
// looks like a flag which it does not know.
func (lb *loadBalancer) broken() bool {
	for _, l := range lb.listeners {
		for _, p := range l.policies {
			for _, ru := range p.rules {
				if p.AdminStateUp && ru.AdminStateUp && p.ProvisioningStatus != pendingDelete && ru.ProvisioningStatus != pendingDelete &&
					l.ProvisioningStatus != pendingDelete && flagged(ru.Type, ru.Value) == badFlag {
					return true
				}
			}
		}
	}
	return false
}

// refreshOperating sets the operating statuses of a load balancer's tree as
// the heartbeats of its amphora would.
func (c *Cloud) refreshOperating(lb *loadBalancer) {
	on := func(up bool) string {
		if up {
			return online
		}
		return offline
	}
	if lb.ProvisioningStatus != inError {
		lb.OperatingStatus = on(lb.AdminStateUp)
	}
	for _, l := range lb.listeners {
		if l.ProvisioningStatus == inError {
			l.OperatingStatus = inError
			continue
		}
		if l.ProvisioningStatus != pendingCreate {
			l.OperatingStatus = on(l.AdminStateUp)
		}
		for _, p := range l.policies {
			if p.ProvisioningStatus == active {
				p.OperatingStatus = on(p.AdminStateUp)
			}
			for _, ru := range p.rules {
				if ru.ProvisioningStatus == active {
					ru.OperatingStatus = on(ru.AdminStateUp)
				}
			}
		}
	}
	used := map[string]bool{}
	for _, l := range lb.listeners {
		for id := range l.poolIDs() {
			used[id] = true
		}
	}
	for _, p := range lb.pools {
		if p.ProvisioningStatus == pendingCreate {
			continue
		}
		rendered := p.AdminStateUp && used[p.ID]
		p.OperatingStatus = on(rendered)
		down, counted := 0, 0
		for _, m := range p.members {
			switch {
			case !m.AdminStateUp:
				m.OperatingStatus = offline
			case p.monitor == nil || !p.monitor.AdminStateUp:
				m.OperatingStatus = noMonitor
			case !rendered:
				m.OperatingStatus = offline
			case m.health != "":
				m.OperatingStatus = m.health
			case m.Weight == 0:
				m.OperatingStatus = draining
			default:
				m.OperatingStatus = online
			}
			counted++
			if m.OperatingStatus == inError {
				down++
			}
		}
		if rendered && down > 0 {
			p.OperatingStatus = degraded
			if down == counted {
				p.OperatingStatus = inError
			}
		}
		if p.monitor != nil && p.monitor.ProvisioningStatus == active {
			p.monitor.OperatingStatus = on(p.monitor.AdminStateUp)
		}
	}
}

// Refusals that several calls share.

func notFound(resource, id string) error { return refuse(404, "%s %s not found.", resource, id) }

func immutable(resource, id string) error {
	return refuse(409, "%s %s is immutable and cannot be updated.", resource, id)
}

func invalid(format string, args ...any) error {
	return refuse(400, "Validation failure: %s", fmt.Sprintf(format, args...))
}

func invalidOption(value, option string) error {
	return refuse(400, "%s is not a valid option for %s", value, option)
}

func noSubresource(resource, id string) error { return refuse(400, "%s %s not found.", resource, id) }

func quotaMet(resource string) error {
	return refuse(403, "Quota has been met for resources: %s", resource)
}

const nestedCrash = "'dict' object has no attribute '_sa_instance_state'"

func octaviaError(e *apiError) any {
	code := "Client"
	if e.status >= 500 {
		code = "Server"
	}
	return object{"faultcode": code, "faultstring": e.message, "debuginfo": nil}
}

func (c *Cloud) octavia(r *request) (response, error) {
	if len(r.path) == 0 {
		return c.octaviaVersions(r), nil
	}
	switch r.path[0] {
	case "loadbalancers":
		return c.loadBalancerCall(r)
	case "listeners":
		return c.listenerCall(r)
	case "pools":
		if len(r.path) >= 3 && r.path[2] == "members" {
			return c.memberCall(r)
		}
		return c.poolCall(r)
	case "healthmonitors":
		return c.monitorCall(r)
	case "l7policies":
		if len(r.path) >= 3 && r.path[2] == "rules" {
			return c.ruleCall(r)
		}
		return c.policyCall(r)
	case "quotas":
		return c.quotaCall(r)
	case "providers":
		out := []object{}
		for _, name := range c.opts.Providers {
			out = append(out, object{"name": name, "description": providers[name]})
		}
		return response{status: 200, body: object{"providers": out}}, nil
	case "flavors", "flavorprofiles":
		return c.offerCall(r, c.lb.flavors)
	case "availabilityzones", "availabilityzoneprofiles":
		return c.offerCall(r, c.lb.zones)
	}
	return response{}, refuse(http.StatusNotFound, "The resource could not be found.")
}

// providers are descriptions of some.
var providers = map[string]string{"amphora": "The Octavia Amphora driver.", "octavia": "Deprecated alias of the Octavia Amphora driver."}

func (c *Cloud) octaviaVersions(r *request) response {
	updated := []string{"2016-12-11", "2018-04-20", "2018-07-31", "2018-12-18", "2018-12-19", "2019-01-21", "2019-01-25",
		"2018-01-25", "2019-02-12", "2019-03-04", "2019-03-05", "2019-06-24", "2019-09-11", "2019-09-13", "2019-11-10",
		"2020-03-10", "2020-03-15", "2020-04-29", "2020-04-29", "2020-05-12", "2020-08-02", "2020-09-03", "2020-09-04",
		"2020-09-07", "2020-10-15", "2021-10-02", "2022-08-29", "2023-05-05", "2023-11-08", "2024-10-15", "2025-02-26"}
	versions := []object{}
	for i := 0; i <= c.lb.minor && i < len(updated); i++ {
		status := "SUPPORTED"
		if i == c.lb.minor {
			status = "CURRENT"
		}
		versions = append(versions, object{"id": "v2." + itoa(i), "status": status, "updated": updated[i] + "T00:00:00Z",
			"links": []object{{"rel": "self", "href": r.base + "/load-balancer/v2"}}})
	}
	return response{status: 200, body: object{"versions": versions}}
}

// idOnly is how objects refer to others.
type idOnly struct {
	ID string `json:"id"`
}

func refs[E entity](list []E) []idOnly {
	out := make([]idOnly, 0, len(list))
	for _, e := range list {
		out = append(out, idOnly{e.base().ID})
	}
	return out
}

// unordered is how children come that have no order of their own: as the index
// of the database has them, by id.
func unordered[E entity](list []E) []E {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b E) int { return strings.Compare(a.base().ID, b.base().ID) })
	return out
}

func removeFrom[E comparable](list []E, e E) []E {
	return slices.DeleteFunc(list, func(x E) bool { return x == e })
}

// storeTags checks and stores tags. A database key makes a repeated tag fail.
func storeTags(e entity, a attrs) bool {
	if !a.has("tags") {
		return true
	}
	tags := a.strs("tags")
	sort.Strings(tags)
	if len(slices.Compact(slices.Clone(tags))) != len(tags) {
		return false
	}
	if tags == nil {
		tags = []string{}
	}
	e.base().Tags = tags
	return true
}

const duplicateTag = "(pymysql.err.IntegrityError) (1062, \"Duplicate entry for key 'PRIMARY'\")"
