package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// o is a JSON object.
type o = map[string]any

// l is a JSON list.
type l = []any

func onRealCloud() bool { return os.Getenv("GATEWAY_API_OPENSTACK_CONTRACT") == "real" }

// cloud is what a test talks to.
type cloud struct {
	t    *testing.T
	real bool
	sim  *sim.Cloud // nil on a real cloud

	provider                   *gophercloud.ProviderClient
	octavia, neutron, barbican *gophercloud.ServiceClient

	project, subnet, network, external string
}

// real clouds are connected to once.
var realCloud = sync.OnceValues(func() (*cloud, error) {
	return connect(context.Background(), clouds.WithCloudName(os.Getenv("OS_CLOUD")))
})

// begin gives a test its cloud. On the simulator each test has its own and they
// run in parallel; a real cloud is small, and shared.
func begin(t *testing.T) *cloud {
	t.Helper()
	return beginWith(t, sim.Options{})
}

func beginWith(t *testing.T, opts sim.Options) *cloud {
	t.Helper()
	var c cloud
	if onRealCloud() {
		shared, err := realCloud()
		if err != nil {
			t.Fatal(err)
		}
		c = *shared
		c.real = true
	} else {
		t.Parallel()
		s, err := sim.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		conn, err := connect(t.Context(), clouds.WithCloudName("sim"), clouds.WithCloudsYAML(bytes.NewReader(s.CloudsYAML("sim"))))
		if err != nil {
			t.Fatal(err)
		}
		c = *conn
		c.sim, c.subnet, c.network = s, s.VIPSubnetID(), s.VIPNetworkID()
	}
	c.t = t
	return &c
}

// admin is the same cloud for its administrator.
func (c *cloud) admin() *cloud {
	c.t.Helper()
	var opts []clouds.ParseOption
	if c.real {
		opts = append(opts, clouds.WithCloudName(os.Getenv("OS_CLOUD")+"-admin"))
	} else {
		opts = append(opts, clouds.WithCloudName("admin"), clouds.WithCloudsYAML(bytes.NewReader(c.sim.PasswordCloudsYAML("admin", "admin"))))
	}
	a, err := connect(context.Background(), opts...)
	if err != nil {
		if c.real {
			c.t.Skipf("no administrator for this cloud: %v", err)
		}
		c.t.Fatal(err)
	}
	a.t, a.real, a.sim = c.t, c.real, c.sim
	return a
}

func connect(ctx context.Context, opts ...clouds.ParseOption) (*cloud, error) {
	ao, eo, tc, err := clouds.Parse(opts...)
	if err != nil {
		return nil, err
	}
	ao.AllowReauth = true
	c := &cloud{}
	if c.provider, err = config.NewProviderClient(ctx, ao, config.WithTLSConfig(tc)); err != nil {
		return nil, err
	}
	if c.octavia, err = openstack.NewLoadBalancerV2(c.provider, eo); err != nil {
		return nil, err
	}
	if c.neutron, err = openstack.NewNetworkV2(c.provider, eo); err != nil {
		return nil, err
	}
	if c.barbican, err = openstack.NewKeyManagerV1(c.provider, eo); err != nil {
		return nil, err
	}
	return c, c.discover(ctx)
}

// discover finds the networks to work in: a subnet of the project behind a
// router, and the external network of that router.
func (c *cloud) discover(ctx context.Context) error {
	status, doc, err := c.try(ctx, "GET", "/network/ports?device_owner=network:router_interface", nil)
	if err != nil || status != 200 {
		return fmt.Errorf("list router interfaces: %d %w", status, err)
	}
	type choice struct{ name, subnet, network, project, external string }
	var found []choice
	for _, p := range list(doc, "ports") {
		for _, ip := range list(p, "fixed_ips") {
			_, s, err := c.try(ctx, "GET", "/network/subnets/"+str(ip, "subnet_id"), nil)
			if err != nil {
				return err
			}
			_, r, err := c.try(ctx, "GET", "/network/routers/"+str(p, "device_id"), nil)
			if err != nil {
				return err
			}
			gw, _ := dig(r, "router", "external_gateway_info").(o)
			found = append(found, choice{str(dig(s, "subnet"), "name"), str(ip, "subnet_id"), str(p, "network_id"), str(p, "project_id"), str(gw, "network_id")})
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("no subnet behind a router in this project")
	}
	sort.Slice(found, func(i, j int) bool { return found[i].name < found[j].name })
	f := found[0]
	if want := os.Getenv("GATEWAY_API_OPENSTACK_CONTRACT_SUBNET"); want != "" && onRealCloud() {
		for _, x := range found {
			if x.subnet == want {
				f = x
			}
		}
	}
	c.subnet, c.network, c.project, c.external = f.subnet, f.network, f.project, f.external
	return nil
}

// url resolves the paths that tests use: /lb/... is Octavia below /v2.0/lbaas,
// /network/... is Neutron, /keys/... is Barbican.
func (c *cloud) url(path string) string {
	switch {
	case strings.HasPrefix(path, "/lb/"):
		return c.octavia.ResourceBaseURL() + "lbaas/" + path[len("/lb/"):]
	case strings.HasPrefix(path, "/network/"):
		return c.neutron.ResourceBaseURL() + path[len("/network/"):]
	case strings.HasPrefix(path, "/keys/"):
		return c.barbican.ResourceBaseURL() + path[len("/keys/"):]
	}
	return path // absolute
}

// try makes a call with a raw body and returns status and decoded answer,
// whatever the status is.
func (c *cloud) try(ctx context.Context, method, path string, body any, headers ...string) (int, o, error) {
	status, raw, err := c.raw(ctx, method, path, body, headers...)
	if err != nil {
		return status, nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return status, nil, nil
	}
	if !json.Valid(raw) {
		return status, o{"not json": string(raw)}, nil
	}
	var doc o
	err = json.Unmarshal(raw, &doc)
	return status, doc, err
}

func (c *cloud) raw(ctx context.Context, method, path string, body any, headers ...string) (int, []byte, error) {
	var payload []byte
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		payload = []byte(b)
	case []byte:
		payload = b
	default:
		var err error
		if payload, err = json.Marshal(b); err != nil {
			return 0, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url(path), bytes.NewReader(payload))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Auth-Token", c.provider.Token())
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, raw, err
}

// call makes a call that must reach the cloud.
func (c *cloud) call(method, path string, body any, headers ...string) (int, o) {
	c.t.Helper()
	status, doc, err := c.try(context.Background(), method, path, body, headers...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, doc
}

// must makes a call that must have this status.
func (c *cloud) must(want int, method, path string, body any, headers ...string) o {
	c.t.Helper()
	status, doc := c.call(method, path, body, headers...)
	if status != want {
		c.t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, compact(body), status, want, compact(doc))
	}
	return doc
}

// refused makes a call that must be refused with this message. A message that
// starts with a tilde is a regular expression. It goes on when it is not so.
func (c *cloud) refused(want int, message, method, path string, body any, headers ...string) {
	c.t.Helper()
	status, doc := c.call(method, path, body, headers...)
	got := faultOf(doc)
	ok := got == message
	if re, isRegex := strings.CutPrefix(message, "~"); isRegex {
		ok = regexp.MustCompile(re).MatchString(got)
	}
	if status != want || !ok {
		c.t.Errorf("%s %s %s:\n got %d %q\nwant %d %q", method, path, compact(body), status, got, want, message)
	}
}

// faultOf is the message of an error of any of the services.
func faultOf(doc o) string {
	for _, path := range [][]string{{"faultstring"}, {"NeutronError", "message"}, {"error", "message"}, {"description"}, {"not json"}} {
		if s, ok := dig(doc, path...).(string); ok {
			return s
		}
	}
	return compact(doc)
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 600 {
		return string(b[:600]) + "..."
	}
	return string(b)
}

// dig walks into objects and, by number, lists.
func dig(v any, path ...string) any {
	for _, p := range path {
		switch x := v.(type) {
		case o:
			v = x[p]
		case l:
			var i int
			if _, err := fmt.Sscanf(p, "%d", &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func str(v any, path ...string) string { s, _ := dig(v, path...).(string); return s }

func num(v any, path ...string) int { f, _ := dig(v, path...).(float64); return int(f) }

func list(v any, path ...string) []o {
	var out []o
	items, _ := dig(v, path...).(l)
	for _, i := range items {
		if m, ok := i.(o); ok {
			out = append(out, m)
		}
	}
	return out
}

func keys(m o) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// wait returns the provisioning status of a load balancer once it is not
// pending any more; "" means that it is gone.
func (c *cloud) wait(id string) string {
	c.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		doc := c.must(200, "GET", "/lb/loadbalancers?id="+id+"&fields=provisioning_status", nil)
		found := list(doc, "loadbalancers")
		if len(found) == 0 {
			return ""
		}
		if s := str(found[0], "provisioning_status"); !strings.HasPrefix(s, "PENDING") {
			return s
		}
		if c.real {
			time.Sleep(300 * time.Millisecond)
		} else {
			time.Sleep(5 * time.Millisecond)
		}
	}
	c.t.Fatalf("load balancer %s is still pending", id)
	return ""
}

// active waits until the load balancer can be written again.
func (c *cloud) active(id string) {
	c.t.Helper()
	if s := c.wait(id); s != "ACTIVE" {
		c.t.Fatalf("load balancer %s is %q", id, s)
	}
}

// write makes a call that locks a load balancer, and waits until it is over.
func (c *cloud) write(lb string, want int, method, path string, body any) o {
	c.t.Helper()
	doc := c.must(want, method, path, body)
	c.active(lb)
	return doc
}

// create makes a load balancer, which the end of the test deletes, and waits
// for it. The VIP subnet is filled in.
func (c *cloud) create(body o) o {
	c.t.Helper()
	lb := c.createNow(body)
	c.active(str(lb, "id"))
	return lb
}

// createNow is create without waiting.
func (c *cloud) createNow(body o) o {
	c.t.Helper()
	if body["vip_subnet_id"] == nil && body["vip_port_id"] == nil && body["vip_network_id"] == nil {
		body["vip_subnet_id"] = c.subnet
	}
	if body["name"] == nil {
		body["name"] = "contract"
	}
	doc := c.must(201, "POST", "/lb/loadbalancers", o{"loadbalancer": body})
	id := str(doc, "loadbalancer", "id")
	c.t.Cleanup(func() { c.remove(id) })
	lb, _ := doc["loadbalancer"].(o)
	return lb
}

func (c *cloud) remove(id string) {
	c.t.Helper()
	if c.wait(id) == "" {
		return
	}
	c.must(204, "DELETE", "/lb/loadbalancers/"+id+"?cascade=true", nil)
	if s := c.wait(id); s != "" {
		c.t.Errorf("load balancer %s is %s after its deletion", id, s)
	}
}

// equal compares JSON values.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := compactAll(got), compactAll(want)
	if g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func compactAll(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
