package contract

import (
	"encoding/base64"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/keymanager/v1/acls"
	"github.com/gophercloud/gophercloud/v2/openstack/keymanager/v1/containers"
	"github.com/gophercloud/gophercloud/v2/openstack/keymanager/v1/secrets"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/apiversions"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/l7policies"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/monitors"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/providers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

// TestGophercloud_understandsTheAnswers goes once through everything with the
// types of the client library.
func TestGophercloud_understandsTheAnswers(t *testing.T) {
	c := begin(t)
	ctx := t.Context()
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	weight, monitorPort := 3, 9000
	lb, err := loadbalancers.Create(ctx, c.octavia, loadbalancers.CreateOpts{Name: "contract-typed", VipSubnetID: c.subnet, Tags: []string{"contract=typed"},
		Listeners: []listeners.CreateOpts{{Name: "web", Protocol: listeners.ProtocolHTTP, ProtocolPort: 80, Tags: []string{"l"}, InsertHeaders: map[string]string{"X-Forwarded-For": "true"},
			L7Policies: []l7policies.CreateOpts{{Name: "away", Action: l7policies.ActionRedirectPrefix, RedirectPrefix: "https://a.example", RedirectHttpCode: 308,
				Rules: []l7policies.CreateRuleOpts{{RuleType: l7policies.TypePath, CompareType: l7policies.CompareTypeRegex, Value: "^/x(/|$)"}}}},
			DefaultPool: &pools.CreateOpts{Name: "P", Protocol: pools.ProtocolHTTP, LBMethod: pools.LBMethodRoundRobin,
				Members: []pools.CreateMemberOpts{{Address: "10.0.0.11", ProtocolPort: 8080, Weight: &weight, MonitorPort: &monitorPort}},
				Monitor: monitors.CreateOpts{Type: monitors.TypeTCP, Delay: 5, Timeout: 3, MaxRetries: 2}}}}}).Extract()
	check("create", err)
	t.Cleanup(func() { c.remove(lb.ID) })
	c.active(lb.ID)
	lb, err = loadbalancers.Get(ctx, c.octavia, lb.ID).Extract()
	check("get", err)
	if lb.ProvisioningStatus != "ACTIVE" || lb.VipAddress == "" || lb.VipNetworkID != c.network || lb.CreatedAt.IsZero() || lb.UpdatedAt.IsZero() || len(lb.Listeners) != 1 || len(lb.Pools) != 1 {
		t.Errorf("%+v", lb)
	}
	pages, err := loadbalancers.List(c.octavia, loadbalancers.ListOpts{Tags: []string{"contract=typed"}}).AllPages(ctx)
	check("list", err)
	all, err := loadbalancers.ExtractLoadBalancers(pages)
	check("list", err)
	equal(t, "by tag", len(all), 1)
	st, err := loadbalancers.GetStatuses(ctx, c.octavia, lb.ID).Extract()
	check("statuses", err)
	if len(st.Loadbalancer.Listeners) != 1 || st.Loadbalancer.Listeners[0].Pools[0].Members[0].Address != "10.0.0.11" {
		t.Errorf("%+v", st.Loadbalancer)
	}

	li, err := listeners.Get(ctx, c.octavia, lb.Listeners[0].ID).Extract()
	check("listener", err)
	if li.Protocol != "HTTP" || li.DefaultPoolID != lb.Pools[0].ID || len(li.L7Policies) != 1 || li.InsertHeaders["X-Forwarded-For"] != "true" || li.TimeoutClientData != 50000 {
		t.Errorf("%+v", li)
	}
	headers := map[string]string{"X-Forwarded-Proto": "true"}
	_, err = listeners.Update(ctx, c.octavia, li.ID, listeners.UpdateOpts{InsertHeaders: &headers}).Extract()
	check("update listener", err)
	c.active(lb.ID)
	pol, err := l7policies.Get(ctx, c.octavia, li.L7Policies[0].ID).Extract()
	check("policy", err)
	if pol.RedirectPrefix != "https://a.example" || pol.RedirectHttpCode != 308 || pol.Position != 1 || len(pol.Rules) != 1 {
		t.Errorf("%+v", pol)
	}
	rule, err := l7policies.GetRule(ctx, c.octavia, pol.ID, pol.Rules[0].ID).Extract()
	check("rule", err)
	equal(t, "rule", rule.Value, "^/x(/|$)")
	po, err := pools.Get(ctx, c.octavia, lb.Pools[0].ID).Extract()
	check("pool", err)
	if po.MonitorID == "" || len(po.Members) != 1 || po.LBMethod != "ROUND_ROBIN" || po.Loadbalancers[0].ID != lb.ID {
		t.Errorf("%+v", po)
	}
	mon, err := monitors.Get(ctx, c.octavia, po.MonitorID).Extract()
	check("monitor", err)
	if mon.Type != "TCP" || mon.MaxRetriesDown != 3 || mon.Pools[0].ID != po.ID {
		t.Errorf("%+v", mon)
	}
	zero, name := 0, "n"
	check("batch", pools.BatchUpdateMembers(ctx, c.octavia, po.ID, []pools.BatchUpdateMemberOpts{{Address: "10.0.0.12", ProtocolPort: 80, Weight: &zero, Name: &name}}).ExtractErr())
	c.active(lb.ID)
	mp, err := pools.ListMembers(c.octavia, po.ID, pools.ListMembersOpts{}).AllPages(ctx)
	check("members", err)
	ms, err := pools.ExtractMembers(mp)
	check("members", err)
	if len(ms) != 1 || ms[0].Address != "10.0.0.12" || ms[0].Weight != 0 || ms[0].Name != "n" {
		t.Errorf("%+v", ms)
	}
	_, err = listeners.Create(ctx, c.octavia, listeners.CreateOpts{Name: "again", Protocol: "HTTP", ProtocolPort: 80, LoadbalancerID: lb.ID}).Extract()
	if !gophercloud.ResponseCodeIs(err, 409) {
		t.Errorf("a used port: %v", err)
	}

	port, err := ports.Get(ctx, c.neutron, lb.VipPortID).Extract()
	check("port", err)
	equal(t, "port", l{port.DeviceOwner, port.DeviceID, port.FixedIPs[0].IPAddress}, l{"Octavia", "lb-" + lb.ID, lb.VipAddress})
	fip, err := floatingips.Create(ctx, c.neutron, floatingips.CreateOpts{FloatingNetworkID: c.external, PortID: lb.VipPortID, Description: "d"}).Extract()
	check("floating IP", err)
	t.Cleanup(func() { c.call("DELETE", "/network/floatingips/"+fip.ID, nil) })
	equal(t, "floating IP", l{fip.FixedIP, fip.Description, fip.FloatingNetworkID}, l{lb.VipAddress, "d", c.external})
	description := "e"
	fip, err = floatingips.Update(ctx, c.neutron, fip.ID, floatingips.UpdateOpts{Description: &description, PortID: new(string)}).Extract()
	check("detach", err)
	equal(t, "detached", l{fip.PortID, fip.Description}, l{"", "e"})
	sub, err := subnets.Get(ctx, c.neutron, c.subnet).Extract()
	check("subnet", err)
	net, err := networks.Get(ctx, c.neutron, sub.NetworkID).Extract()
	check("network", err)
	equal(t, "network", net.ID, c.network)
	rp, err := routers.List(c.neutron, routers.ListOpts{}).AllPages(ctx)
	check("routers", err)
	rs, err := routers.ExtractRouters(rp)
	check("routers", err)
	if len(rs) == 0 || rs[0].GatewayInfo.NetworkID != c.external {
		t.Errorf("%+v", rs)
	}

	s, err := secrets.Create(ctx, c.barbican, secrets.CreateOpts{Name: "contract-typed", Payload: base64.StdEncoding.EncodeToString([]byte{1, 2}),
		PayloadContentType: "application/octet-stream", PayloadContentEncoding: "base64", SecretType: secrets.OpaqueSecret}).Extract()
	check("secret", err)
	id := s.SecretRef[len(s.SecretRef)-36:]
	t.Cleanup(func() { c.call("DELETE", "/keys/secrets/"+id, nil) })
	sp, err := secrets.List(c.barbican, secrets.ListOpts{Name: "contract-typed"}).AllPages(ctx)
	check("secrets", err)
	ss, err := secrets.ExtractSecrets(sp)
	check("secrets", err)
	if len(ss) != 1 || ss[0].Status != "ACTIVE" || ss[0].Created.IsZero() {
		t.Errorf("%+v", ss)
	}
	payload, err := secrets.GetPayload(ctx, c.barbican, id, secrets.GetPayloadOpts{PayloadContentType: "application/octet-stream"}).Extract()
	if err != nil || string(payload) != "\x01\x02" {
		t.Errorf("payload %q %v", payload, err)
	}
	_, err = secrets.CreateMetadata(ctx, c.barbican, id, secrets.MetadataOpts{"k": "v"}).Extract()
	check("metadata", err)
	md, err := secrets.GetMetadata(ctx, c.barbican, id).Extract()
	if err != nil || md["k"] != "v" {
		t.Errorf("metadata %v %v", md, err)
	}
	users, access := []string{"someone"}, true
	_, err = acls.SetSecretACL(ctx, c.barbican, id, acls.SetOpts{{Type: "read", Users: &users, ProjectAccess: &access}}).Extract()
	check("set ACL", err)
	acl, err := acls.GetSecretACL(ctx, c.barbican, id).Extract()
	if err != nil || len((*acl)["read"].Users) != 1 || !(*acl)["read"].ProjectAccess {
		t.Errorf("ACL %+v %v", acl, err)
	}
	check("delete ACL", acls.DeleteSecretACL(ctx, c.barbican, id).ExtractErr())
	k, err := containers.Create(ctx, c.barbican, containers.CreateOpts{Name: "contract-typed", Type: containers.GenericContainer, SecretRefs: []containers.SecretRef{{Name: "a", SecretRef: s.SecretRef}}}).Extract()
	check("container", err)
	kid := k.ContainerRef[len(k.ContainerRef)-36:]
	t.Cleanup(func() { c.call("DELETE", "/keys/containers/"+kid, nil) })
	consumer := containers.CreateConsumerOpts{Name: "n", URL: "http://u"}
	k, err = containers.CreateConsumer(ctx, c.barbican, kid, consumer).Extract()
	if err != nil || len(k.Consumers) != 1 {
		t.Errorf("consumer %+v %v", k, err)
	}
	_, err = containers.DeleteConsumer(ctx, c.barbican, kid, containers.DeleteConsumerOpts(consumer)).Extract()
	check("delete consumer", err)

	vp, err := apiversions.List(c.octavia).AllPages(ctx)
	check("versions", err)
	if vs, err := apiversions.ExtractAPIVersions(vp); err != nil || len(vs) < 27 {
		t.Errorf("versions %v %v", vs, err)
	}
	pp, err := providers.List(c.octavia, providers.ListOpts{}).AllPages(ctx)
	check("providers", err)
	if ps, err := providers.ExtractProviders(pp); err != nil || len(ps) == 0 {
		t.Errorf("providers %v %v", ps, err)
	}
	check("delete", loadbalancers.Delete(ctx, c.octavia, lb.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr())
	equal(t, "gone", c.wait(lb.ID), "")
}
