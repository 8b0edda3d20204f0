package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// FactsRequest is what a class selects and asks for. VIPSubnet or VIPNetwork is required.
type FactsRequest struct {
	VIPSubnet            lb.Selector   `json:"vipSubnet,omitzero"`
	VIPNetwork           lb.Selector   `json:"vipNetwork,omitzero"`
	AdditionalVIPSubnets []lb.Selector `json:"additionalVIPSubnets,omitempty"`
	MemberSubnet         lb.Selector   `json:"memberSubnet,omitzero"`
	FloatingNetwork      lb.Selector   `json:"floatingNetwork,omitzero"`
	VIPSecurityGroups    []lb.Selector `json:"vipSecurityGroups,omitempty"`
	Flavor               lb.Selector   `json:"flavor,omitzero"`
	AvailabilityZone     string        `json:"availabilityZone,omitempty"`
	// AllowedCIDRs are checked against the families of the VIPs.
	AllowedCIDRs []string `json:"allowedCIDRs,omitempty"`
	// TLSVersions and TLSCiphers say that the class sets them.
	TLSVersions bool `json:"tlsVersions,omitempty"`
	TLSCiphers  bool `json:"tlsCiphers,omitempty"`
}

// key identifies the request among those that are remembered.
func (r FactsRequest) key() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("a class cannot be written down: %w", err)
	}
	return string(b), nil
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

// Facts are what is known without any selection.
func (c Capabilities) Facts() lb.Facts {
	return lb.Facts{ProjectID: c.ProjectID, KeyManager: c.Barbican, Provider: amphora, OctaviaMinor: c.minor}
}

// amphora is the provider that is used, in so many words. Clouds have aliases of it ("octavia", "amphorav2"), and what they stand for is the
// operator's to change.
const amphora = "amphora"

// minVersion is the first API version with tags, which ownership rests on.
const minMajor, minMinor = 2, 5

// The minor versions of API 2 that brought what a class can ask for.
const (
	minorFlavors           = 6
	minorAllowedCIDRs      = 12
	minorZones             = 14
	minorCiphers           = 15
	minorVersions          = 17
	minorAdditionalVIPs    = 26
	minorVIPSecurityGroups = 29
)

type factsCache struct {
	mu           sync.Mutex
	capabilities *Capabilities
	capableUntil time.Time
	facts        map[string]cachedFacts
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
	out, err := c.probe(ctx)
	if err != nil {
		return Capabilities{}, err
	}
	c.facts.mu.Lock()
	defer c.facts.mu.Unlock()
	c.facts.capabilities, c.facts.capableUntil = &out, now.Add(c.opts.FactsFor)
	return out, nil
}

// Check is Preflight for who wants to know whether the credentials are accepted: when Keystone has refused them, the cloud is asked again whatever was
// known before.
func (c *Client) Check(ctx context.Context) error {
	c.session(ctx)
	if c.CredentialError() != nil {
		_, err := c.probe(ctx)
		return err
	}
	_, err := c.Preflight(ctx)
	return err
}

// probe asks for what Preflight says.
func (c *Client) probe(ctx context.Context) (Capabilities, error) {
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
	if !slices.Contains(out.Providers, amphora) {
		return unsupported("the provider %q is not enabled under this name, and no alias is used for it; enabled are: %s", amphora, strings.Join(out.Providers, ", "))
	}
	return out, nil
}

func parseVersion(id string) (v [2]int) {
	major, minor, _ := strings.Cut(strings.TrimPrefix(id, "v"), ".")
	v[0], _ = strconv.Atoi(major)
	v[1], _ = strconv.Atoi(minor)
	return v
}

// Facts resolves the selectors of a class and checks what else it asks for. What cannot be had is a UserFault that names the field and says what to
// do. The answer is believed for Options.FactsFor: one call for each selector, and those of Preflight.
func (c *Client) Facts(ctx context.Context, r FactsRequest) (lb.Facts, error) {
	capabilities, err := c.Preflight(ctx)
	if err != nil {
		return lb.Facts{}, err
	}
	key, err := r.key()
	if err != nil {
		return lb.Facts{}, err
	}
	now := c.opts.Clock.Now()
	c.facts.mu.Lock()
	known, ok := c.facts.facts[key]
	c.facts.mu.Unlock()
	if ok && now.Before(known.until) {
		return c.facts.withProhibited(known.facts, now), nil
	}
	facts := capabilities.Facts()
	if err := c.resolve(ctx, r, &facts); err != nil {
		return lb.Facts{}, err
	}
	c.facts.mu.Lock()
	if c.facts.facts == nil {
		c.facts.facts = map[string]cachedFacts{}
	}
	c.facts.facts[key] = cachedFacts{facts, now.Add(c.opts.FactsFor)}
	c.facts.mu.Unlock()
	return c.facts.withProhibited(facts, now), nil
}

// resolve fills in what depends on the request. What needs no call is checked first.
func (c *Client) resolve(ctx context.Context, r FactsRequest, facts *lb.Facts) error {
	for _, needs := range []struct {
		field string
		asked bool
		minor int
	}{
		{"spec.flavor", !r.Flavor.None(), minorFlavors},
		{"spec.allowedCIDRs", len(r.AllowedCIDRs) > 0, minorAllowedCIDRs},
		{"spec.availabilityZone", r.AvailabilityZone != "", minorZones},
		{"spec.tls.ciphers", r.TLSCiphers, minorCiphers},
		{"spec.tls.versions", r.TLSVersions, minorVersions},
		{"spec.additionalVIPSubnets", len(r.AdditionalVIPSubnets) > 0, minorAdditionalVIPs},
		{"spec.vipSecurityGroups", len(r.VIPSecurityGroups) > 0, minorVIPSecurityGroups},
	} {
		if needs.asked && !facts.Octavia(needs.minor) {
			return selectorFault(needs.field, fmt.Sprintf("it needs Octavia API 2.%d, and this cloud has 2.%d: leave it out", needs.minor, facts.OctaviaMinor))
		}
	}
	if err := c.resolveVIPs(ctx, r, facts); err != nil {
		return err
	}
	if !r.MemberSubnet.None() {
		member, err := c.subnet(ctx, "spec.memberSubnet", r.MemberSubnet)
		if err != nil {
			return err
		}
		facts.MemberSubnetID = member.ID
	}
	if !r.FloatingNetwork.None() {
		network, err := c.network(ctx, "spec.floatingNetwork", r.FloatingNetwork, externalOnly)
		if err != nil {
			return err
		}
		if !network.External {
			return selectorFault("spec.floatingNetwork", "the network is not external (router:external): floating IPs come from an external one")
		}
		facts.FloatingNetworkID = network.ID
	}
	for i, selector := range r.VIPSecurityGroups {
		group, err := c.securityGroup(ctx, fmt.Sprintf("spec.vipSecurityGroups[%d]", i), selector)
		if err != nil {
			return err
		}
		if !slices.Contains(facts.VIPSecurityGroupIDs, group.ID) {
			facts.VIPSecurityGroupIDs = append(facts.VIPSecurityGroupIDs, group.ID)
		}
	}
	slices.Sort(facts.VIPSecurityGroupIDs)
	if !r.Flavor.None() {
		flavor, err := c.flavor(ctx, "spec.flavor", r.Flavor)
		if err != nil {
			return err
		}
		facts.FlavorID = flavor.ID
	}
	if r.AvailabilityZone != "" {
		return c.zone(ctx, "spec.availabilityZone", r.AvailabilityZone)
	}
	return nil
}

// resolveVIPs finds where the VIPs go, and checks the addresses of clients against their families.
func (c *Client) resolveVIPs(ctx context.Context, r FactsRequest, facts *lb.Facts) error {
	switch {
	case !r.VIPSubnet.None():
		vip, err := c.subnet(ctx, "spec.vipSubnet", r.VIPSubnet)
		if err != nil {
			return err
		}
		facts.VIPSubnet = vip.model()
	case !r.VIPNetwork.None():
		network, err := c.network(ctx, "spec.vipNetwork", r.VIPNetwork, internalOnly)
		if err != nil {
			return err
		}
		if facts.VIPSubnet, err = c.preferred(ctx, network); err != nil {
			return err
		}
	default:
		return selectorFault("spec.vipSubnet", "it must be set, or spec.vipNetwork")
	}
	taken := map[string]bool{facts.VIPSubnet.ID: true}
	for i, selector := range r.AdditionalVIPSubnets {
		field := fmt.Sprintf("spec.additionalVIPSubnets[%d]", i)
		subnet, err := c.subnet(ctx, field, selector)
		switch {
		case err != nil:
			return err
		case subnet.NetworkID != facts.VIPSubnet.NetworkID:
			return selectorFault(field, "the subnet is of another network than the VIP: Octavia has all VIPs of a load balancer in one")
		case taken[subnet.ID]:
			return selectorFault(field, "there is a VIP in this subnet already: Octavia has one for each subnet")
		}
		taken[subnet.ID] = true
		facts.AdditionalVIPSubnets = append(facts.AdditionalVIPSubnets, subnet.model())
	}
	slices.SortFunc(facts.AdditionalVIPSubnets, func(a, b lb.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	families := map[bool]bool{}
	for _, subnet := range append([]lb.Subnet{facts.VIPSubnet}, facts.AdditionalVIPSubnets...) {
		families[isIPv6(subnet.CIDR)] = true
	}
	for i, cidr := range r.AllowedCIDRs {
		if !families[isIPv6(cidr)] {
			return selectorFault(fmt.Sprintf("spec.allowedCIDRs[%d]", i), "no VIP has an address of this family, so Octavia refuses it: take it out")
		}
	}
	return nil
}

func isIPv6(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Addr().Is6()
}
