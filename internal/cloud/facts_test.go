package cloud

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// make creates an object over the simulator's API as its administrator, and returns its id.
func (g *ground) make(service, path, root string, body map[string]any) string {
	g.Helper()
	answer, err := g.sim.Do(service, http.MethodPost, path, map[string]any{root: body})
	if err != nil {
		g.Fatal(err)
	}
	id, _ := answer[root].(map[string]any)["id"].(string)
	return id
}

// subnet makes a subnet, of a new network when the network is "".
func (g *ground) subnet(network, name, cidr string, tags ...string) (subnetID, networkID string) {
	g.Helper()
	if network == "" {
		network = g.make(sim.Neutron, "/networks", "network", map[string]any{"name": name, "tags": tags, "tenant_id": g.client.ProjectID()})
	}
	version := 4
	if strings.Contains(cidr, ":") {
		version = 6
	}
	id := g.make(sim.Neutron, "/subnets", "subnet", map[string]any{"name": name, "network_id": network, "cidr": cidr, "ip_version": version, "tags": tags,
		"tenant_id": g.client.ProjectID()})
	return id, network
}

// flavor makes a flavor of the amphora provider.
func (g *ground) flavor(name string, enabled bool) string {
	g.Helper()
	profile := g.make(sim.Octavia, "/flavorprofiles", "flavorprofile", map[string]any{"name": name, "provider_name": "amphora", "flavor_data": `{"loadbalancer_topology": "SINGLE"}`})
	return g.make(sim.Octavia, "/flavors", "flavor", map[string]any{"name": name, "flavor_profile_id": profile, "enabled": enabled})
}

func (g *ground) zone(name string) {
	g.Helper()
	profile := g.make(sim.Octavia, "/availabilityzoneprofiles", "availability_zone_profile",
		map[string]any{"name": name, "provider_name": "amphora", "availability_zone_data": `{"compute_zone": "nova"}`})
	g.make(sim.Octavia, "/availabilityzones", "availability_zone", map[string]any{"name": name, "availability_zone_profile_id": profile})
}

func TestFacts_namesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	good := g.request()
	_, other := g.subnet("", "other", "10.9.0.0/24", "lb", "green")
	g.subnet(other, "twin", "10.9.1.0/24", "lb")
	g.subnet(other, "twin", "10.9.2.0/24", "lb")
	six, _ := g.subnet(g.facts.VIPSubnet.NetworkID, "six", "2001:db8::/64")
	empty := g.make(sim.Neutron, "/networks", "network", map[string]any{"name": "empty", "tenant_id": g.client.ProjectID()})
	g.flavor("small", true)
	g.flavor("retired", false)
	g.zone("az1")
	for name, c := range map[string]struct {
		change func(*FactsRequest)
		says   string
	}{
		"none":                    {func(r *FactsRequest) { r.VIPSubnet = lb.Selector{} }, "spec.vipSubnet: it must be set"},
		"both":                    {func(r *FactsRequest) { r.VIPSubnet.Name = "x" }, "spec.vipSubnet: set exactly one"},
		"unknown name":            {func(r *FactsRequest) { r.MemberSubnet = lb.Selector{Name: "nowhere"} }, `spec.memberSubnet: nothing that the project sees has the name "nowhere"`},
		"name in another case":    {func(r *FactsRequest) { r.Flavor = lb.Selector{Name: "SMALL"} }, `spec.flavor: nothing that the project sees has the name "SMALL"`},
		"unknown id":              {func(r *FactsRequest) { r.VIPSubnet = lb.Selector{ID: "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"} }, "spec.vipSubnet: nothing that the project sees has the id"},
		"unknown tags":            {func(r *FactsRequest) { r.VIPSubnet = lb.Selector{Tags: []string{"lb", "blue"}} }, `has the tags ["lb" "blue"]`},
		"two of a name":           {func(r *FactsRequest) { r.MemberSubnet = lb.Selector{Name: "twin"} }, `spec.memberSubnet: 2 have the name "twin": select by id`},
		"three with tags":         {func(r *FactsRequest) { r.MemberSubnet = lb.Selector{Tags: []string{"lb"}} }, `spec.memberSubnet: 3 have the tags ["lb"]: select by id`},
		"several to discover":     {func(r *FactsRequest) { r.MemberSubnet = lb.Selector{Only: true} }, "spec.memberSubnet: discovery finds 6: set id, name or tags"},
		"several networks":        {func(r *FactsRequest) { r.VIPSubnet, r.VIPNetwork = lb.Selector{}, lb.Selector{Only: true} }, "spec.vipNetwork: discovery finds 4"},
		"no subnet":               {func(r *FactsRequest) { r.VIPSubnet, r.VIPNetwork = lb.Selector{}, lb.Selector{ID: empty} }, "spec.vipNetwork: the network has no subnet"},
		"not external":            {func(r *FactsRequest) { r.FloatingNetwork = lb.Selector{ID: g.facts.VIPSubnet.NetworkID} }, "spec.floatingNetwork: the network is not external"},
		"group":                   {func(r *FactsRequest) { r.VIPSecurityGroups = []lb.Selector{{Name: "default"}, {Name: "web"}} }, `spec.vipSecurityGroups[1]: nothing that the project sees has the name "web"`},
		"flavor":                  {func(r *FactsRequest) { r.Flavor = lb.Selector{Name: "big"} }, `spec.flavor: nothing that the project sees has the name "big"`},
		"disabled flavor":         {func(r *FactsRequest) { r.Flavor = lb.Selector{Name: "retired"} }, "spec.flavor: the flavor is disabled"},
		"zone":                    {func(r *FactsRequest) { r.AvailabilityZone = "nova" }, `spec.availabilityZone: Octavia has no availability zone "nova"; it has: az1`},
		"VIP of another network":  {func(r *FactsRequest) { r.AdditionalVIPSubnets = []lb.Selector{{Name: "other"}} }, "spec.additionalVIPSubnets[0]: the subnet is of another network"},
		"VIP subnet twice":        {func(r *FactsRequest) { r.AdditionalVIPSubnets = []lb.Selector{{ID: six}, {Name: "six"}} }, "spec.additionalVIPSubnets[1]: there is a VIP in this subnet already"},
		"clients without a VIP":   {func(r *FactsRequest) { r.AllowedCIDRs = []string{"192.0.2.0/24", "2001:db8::/32"} }, "spec.allowedCIDRs[1]: no VIP has an address of this family"},
		"clients of no other VIP": {func(r *FactsRequest) { r.VIPSubnet, r.AllowedCIDRs = lb.Selector{ID: six}, []string{"192.0.2.0/24"} }, "spec.allowedCIDRs[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			_, err := g.client.Facts(t.Context(), r)
			if ClassOf(err) != UserFault || ReasonOf(err) != ReasonSelector || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestFacts_resolvesEveryWayToSelect(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{})
	subnet, network := g.subnet("", "blue", "10.9.0.0/24", "lb", "blue")
	second, _ := g.subnet(network, "second", "2001:db8::/64", "lb")
	groups := []string{
		g.make(sim.Neutron, "/security-groups", "security_group", map[string]any{"name": "web", "tags": []string{"vip"}, "tenant_id": g.client.ProjectID()}),
		g.make(sim.Neutron, "/security-groups", "security_group", map[string]any{"name": "more", "tenant_id": g.client.ProjectID()}),
	}
	flavor := g.flavor("small", true)
	g.zone("az1")
	facts, err := g.client.Facts(t.Context(), FactsRequest{
		VIPSubnet:            lb.Selector{Tags: []string{"blue", "lb"}},
		AdditionalVIPSubnets: []lb.Selector{{Name: "second"}},
		MemberSubnet:         lb.Selector{ID: g.sim.MemberSubnetID()},
		FloatingNetwork:      lb.Selector{Only: true},
		VIPSecurityGroups:    []lb.Selector{{Name: "more"}, {Tags: []string{"vip"}}, {ID: groups[0]}},
		Flavor:               lb.Selector{Name: "small"},
		AvailabilityZone:     "az1",
		AllowedCIDRs:         []string{"192.0.2.0/24", "2001:db8::/32"},
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(groups)
	want := lb.Facts{
		ProjectID: g.client.ProjectID(), Provider: "amphora", KeyManager: true, OctaviaMinor: 30,
		VIPSubnet:            lb.Subnet{ID: subnet, NetworkID: network, CIDR: "10.9.0.0/24"},
		AdditionalVIPSubnets: []lb.Subnet{{ID: second, NetworkID: network, CIDR: "2001:db8::/64"}},
		MemberSubnetID:       g.sim.MemberSubnetID(), FloatingNetworkID: g.sim.PublicNetworkID(), FlavorID: flavor, VIPSecurityGroupIDs: groups,
	}
	if a, b := fmt.Sprintf("%+v", facts), fmt.Sprintf("%+v", want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	// The subnet that Octavia prefers says which family the members are reached in.
	if facts, err = g.client.Facts(t.Context(), FactsRequest{VIPNetwork: lb.Selector{Name: "blue"}}); err != nil {
		t.Fatal(err)
	}
	if facts.VIPSubnet != (lb.Subnet{NetworkID: network, CIDR: "10.9.0.0/24"}) {
		t.Errorf("of the network alone: %+v", facts.VIPSubnet)
	}
}

func TestFacts_needTheVersionThatAFieldNeeds(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{MaxAPIVersion: "v2.5"}, Options{})
	for field, change := range map[string]func(*FactsRequest){
		"spec.flavor: it needs Octavia API 2.6":                func(r *FactsRequest) { r.Flavor = lb.Selector{Name: "x"} },
		"spec.allowedCIDRs: it needs Octavia API 2.12":         func(r *FactsRequest) { r.AllowedCIDRs = []string{"192.0.2.0/24"} },
		"spec.availabilityZone: it needs Octavia API 2.14":     func(r *FactsRequest) { r.AvailabilityZone = "x" },
		"spec.tls.ciphers: it needs Octavia API 2.15":          func(r *FactsRequest) { r.TLSCiphers = true },
		"spec.tls.versions: it needs Octavia API 2.17":         func(r *FactsRequest) { r.TLSVersions = true },
		"spec.additionalVIPSubnets: it needs Octavia API 2.26": func(r *FactsRequest) { r.AdditionalVIPSubnets = []lb.Selector{{Name: "x"}} },
		"spec.vipSecurityGroups: it needs Octavia API 2.29":    func(r *FactsRequest) { r.VIPSecurityGroups = []lb.Selector{{Name: "x"}} },
	} {
		r := g.request()
		change(&r)
		_, err := g.client.Facts(t.Context(), r)
		if ReasonOf(err) != ReasonSelector || !strings.Contains(fmt.Sprint(err), field+", and this cloud has 2.5: leave it out") {
			t.Errorf("got %v, want %q", err, field)
		}
	}
}

func TestFacts_countTheirCalls(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{}, Options{FactsFor: time.Minute})
	g.flavor("small", true)
	for name, c := range map[string]struct {
		request FactsRequest
		calls   int
	}{
		"a subnet":        {FactsRequest{VIPSubnet: lb.Selector{Name: "vips-subnet"}}, 1},
		"a network":       {FactsRequest{VIPNetwork: lb.Selector{Name: "vips"}}, 2},
		"the only subnet": {FactsRequest{VIPSubnet: lb.Selector{ID: g.sim.VIPSubnetID()}, FloatingNetwork: lb.Selector{Only: true}}, 2},
		"a flavor":        {FactsRequest{VIPSubnet: lb.Selector{ID: g.sim.VIPSubnetID()}, Flavor: lb.Selector{Name: "small"}}, 2},
	} {
		g.sim.ResetCalls()
		if _, err := g.client.Facts(t.Context(), c.request); err != nil {
			t.Fatal(err)
		}
		if n := len(g.sim.Calls()); n != c.calls {
			t.Errorf("%s: %d calls:\n%s", name, n, g.sim.CallSummary())
		}
	}
}

// An alias of the provider is not used: what it stands for is the operator's to change.
func TestPreflight_refusesACloudThatCannotServe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options sim.Options
		says    string
	}{
		"without tags":      {sim.Options{MaxAPIVersion: "v2.4"}, `API version 2.5 or later is needed, for tags; this cloud has "v2.4"`},
		"an alias only":     {sim.Options{Providers: []string{"octavia", "ovn"}}, `the provider "amphora" is not enabled under this name, and no alias is used for it; enabled are: octavia, ovn`},
		"another provider":  {sim.Options{Providers: []string{"ovn"}}, "enabled are: ovn"},
		"everything needed": {sim.Options{MaxAPIVersion: "v2.5", Providers: []string{"amphora"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := sim.New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			file := filepath.Join(t.TempDir(), "clouds.yaml")
			if err := os.WriteFile(file, s.CloudsYAML("test"), 0o600); err != nil {
				t.Fatal(err)
			}
			client, err := New(t.Context(), Options{CloudsFile: file, Cloud: "test"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Preflight(t.Context())
			if c.says == "" && err != nil || c.says != "" && (ReasonOf(err) != ReasonUnsupported || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
