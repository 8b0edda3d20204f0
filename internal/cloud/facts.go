package cloud

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// FactsRequest is what a class selects. Only VIPSubnet is required.
type FactsRequest struct {
	VIPSubnet       lb.Selector
	MemberSubnet    lb.Selector
	FloatingNetwork lb.Selector
}

// Capabilities is what the cloud can do, as far as we need it.
type Capabilities struct {
	ProjectID string
	// Version is the newest Octavia API version, such as "v2.30".
	Version string
	// minor is that of version 2.x; all if there is a later major one.
	minor int
	// Providers are the enabled Octavia providers.
	Providers []string
	// Barbican says whether the catalog has a key manager, without which there are no HTTPS listeners.
	Barbican bool
}

// amphoraFamily are the names under which the Amphora provider is known.
var amphoraFamily = []string{"amphora", "octavia", "amphorav2"}

// minVersion is the first API version with tags, which ownership rests on.
const minMajor, minMinor = 2, 5

type factsCache struct {
	mu           sync.Mutex
	capabilities *Capabilities
	capableUntil time.Time
	facts        map[FactsRequest]cachedFacts
	// prohibited is what the administrator does not allow, as refusals have said.
	prohibited prohibited
}

// prohibited is believed for prohibitedFor after the last refusal: an administrator may change their mind.
type prohibited struct {
	ciphers []string
	version string
	until   time.Time
}

const prohibitedFor = time.Hour

// prohibit remembers what a refusal said.
func (f *factsCache) prohibit(ciphers []string, version string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgive(now)
	f.prohibited.until = now.Add(prohibitedFor)
	f.prohibited.version = max(f.prohibited.version, version)
	all := slices.Concat(f.prohibited.ciphers, ciphers)
	slices.Sort(all)
	f.prohibited.ciphers = slices.Compact(all)
}

// forgive forgets what was remembered for long enough.
func (f *factsCache) forgive(now time.Time) {
	if !now.Before(f.prohibited.until) {
		f.prohibited = prohibited{}
	}
}

// withProhibited adds to facts what is prohibited now.
func (f *factsCache) withProhibited(facts lb.Facts, now time.Time) lb.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgive(now)
	facts.ProhibitedCiphers, facts.MinimumTLSVersion = f.prohibited.ciphers, f.prohibited.version
	return facts
}

type cachedFacts struct {
	facts lb.Facts
	until time.Time
}

func (f *factsCache) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.facts, f.capabilities = nil, nil
}

// Preflight says what the cloud can do, or why it cannot serve a GatewayClass at all. The answer is believed for
// Options.FactsFor. Two calls.
func (c *Client) Preflight(ctx context.Context) (Capabilities, error) {
	now := c.opts.Clock.Now()
	c.facts.mu.Lock()
	if known := c.facts.capabilities; known != nil && now.Before(c.facts.capableUntil) {
		c.facts.mu.Unlock()
		return *known, nil
	}
	c.facts.mu.Unlock()

	s := c.session(ctx)
	out := Capabilities{ProjectID: s.projectID, Barbican: s.base[barbican] != ""}
	var root struct {
		Versions []struct{ ID string }
	}
	if err := c.send(ctx, s, rootURL(s.base[octavia])+"/", call{service: octavia, method: http.MethodGet, out: &root,
		op: "list", what: "the versions of Octavia"}); err != nil {
		return Capabilities{}, err
	}
	newest := [2]int{}
	for _, v := range root.Versions {
		if parsed := parseVersion(v.ID); slices.Compare(parsed[:], newest[:]) > 0 {
			newest, out.Version = parsed, v.ID
		}
	}
	if out.minor = newest[1]; newest[0] > minMajor {
		out.minor = 0
	}
	unsupported := func(format string, args ...any) (Capabilities, error) {
		return Capabilities{}, &Error{Class: OperatorFault, Reason: ReasonUnsupported, Op: "use", Resource: "Octavia",
			Message: fmt.Sprintf(format, args...)}
	}
	if slices.Compare(newest[:], []int{minMajor, minMinor}) < 0 {
		return unsupported("API version %d.%d or later is needed, for tags; this cloud has %q", minMajor, minMinor, out.Version)
	}
	providers, err := list[struct{ Name string }](ctx, c, octavia, "/providers", "providers", "the providers of Octavia", nil)
	if err != nil {
		return Capabilities{}, err
	}
	for _, p := range providers {
		out.Providers = append(out.Providers, p.Name)
	}
	slices.Sort(out.Providers)
	if !slices.ContainsFunc(out.Providers, func(p string) bool { return slices.Contains(amphoraFamily, p) }) {
		return unsupported("the amphora provider is not enabled; enabled are: %s", strings.Join(out.Providers, ", "))
	}
	c.facts.mu.Lock()
	defer c.facts.mu.Unlock()
	c.facts.capabilities, c.facts.capableUntil = &out, now.Add(c.opts.FactsFor)
	return out, nil
}

func parseVersion(id string) (v [2]int) {
	major, minor, _ := strings.Cut(strings.TrimPrefix(id, "v"), ".")
	v[0], _ = strconv.Atoi(major)
	v[1], _ = strconv.Atoi(minor)
	return v
}

// Facts resolves the selectors of a class. A selector that names nothing, or several things, is a UserFault that says
// which. The answer is believed for Options.FactsFor: up to three calls, and those of Preflight.
func (c *Client) Facts(ctx context.Context, r FactsRequest) (lb.Facts, error) {
	capabilities, err := c.Preflight(ctx)
	if err != nil {
		return lb.Facts{}, err
	}
	now := c.opts.Clock.Now()
	c.facts.mu.Lock()
	known, ok := c.facts.facts[r]
	c.facts.mu.Unlock()
	if ok && now.Before(known.until) {
		return c.facts.withProhibited(known.facts, now), nil
	}

	facts := lb.Facts{ProjectID: capabilities.ProjectID, KeyManager: capabilities.Barbican, OctaviaMinor: capabilities.minor}
	if r.VIPSubnet == (lb.Selector{}) {
		return lb.Facts{}, selectorFault("VIP subnet", "it must be selected by id or name")
	}
	vip, err := c.subnet(ctx, "VIP subnet", r.VIPSubnet)
	if err != nil {
		return lb.Facts{}, err
	}
	facts.VIPSubnet = lb.Subnet{ID: vip.ID, NetworkID: vip.NetworkID, CIDR: vip.CIDR}
	if r.MemberSubnet != (lb.Selector{}) {
		member, err := c.subnet(ctx, "member subnet", r.MemberSubnet)
		if err != nil {
			return lb.Facts{}, err
		}
		facts.MemberSubnetID = member.ID
	}
	if r.FloatingNetwork != (lb.Selector{}) {
		network, err := one[wireNetwork](ctx, c, "/networks", "networks", "floating network", r.FloatingNetwork,
			url.Values{"fields": {"id", "name", "router:external"}})
		if err != nil {
			return lb.Facts{}, err
		}
		if !network.External {
			return lb.Facts{}, selectorFault("floating network", "the network is not external (router:external)")
		}
		facts.FloatingNetworkID = network.ID
	}
	c.facts.mu.Lock()
	if c.facts.facts == nil {
		c.facts.facts = map[FactsRequest]cachedFacts{}
	}
	c.facts.facts[r] = cachedFacts{facts, now.Add(c.opts.FactsFor)}
	c.facts.mu.Unlock()
	return c.facts.withProhibited(facts, now), nil
}

func (c *Client) subnet(ctx context.Context, what string, sel lb.Selector) (wireSubnet, error) {
	return one[wireSubnet](ctx, c, "/subnets", "subnets", what, sel,
		url.Values{"fields": {"id", "name", "network_id", "cidr"}})
}

// one resolves a selector to exactly one object that the credentials can see.
func one[T interface{ identity() (id, name string) }](ctx context.Context, c *Client, path, key, what string, sel lb.Selector, query url.Values) (T, error) {
	var zero T
	if sel.ID != "" && sel.Name != "" {
		return zero, selectorFault(what, "select by id or by name, not both")
	}
	by := fmt.Sprintf("id %q", sel.ID)
	if sel.ID != "" {
		query.Set("id", sel.ID)
	} else {
		by = fmt.Sprintf("name %q", sel.Name)
		query.Set("name", sel.Name)
	}
	found, err := list[T](ctx, c, neutron, path, key, "the "+what, query)
	if err != nil {
		return zero, err
	}
	found = slices.DeleteFunc(found, func(o T) bool {
		id, name := o.identity()
		return sel.ID != "" && id != sel.ID || sel.Name != "" && name != sel.Name
	})
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return zero, selectorFault(what, "nothing visible to the project has the "+by)
	}
	return zero, selectorFault(what, fmt.Sprintf("%d have the %s: select by id", len(found), by))
}

func selectorFault(what, message string) error {
	return &Error{Class: UserFault, Reason: ReasonSelector, Op: "resolve", Resource: "the " + what, Message: message}
}
