//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
)

// TestMain puts objects beside ours that the OpenStack cloud controller manager and octavia-ingress-controller would make for Services and Ingresses of
// the names that the tests use, and compares them, field by field, before and after all tests.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv("OS_CLIENT_CONFIG_FILE") == "" {
			return m.Run() // The tests say what is missing.
		}
		ctx := context.Background()
		n, err := newNeighbours(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "putting load balancers of others beside ours:", err)
			return 1
		}
		defer n.remove(ctx)
		before, err := n.look(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "looking at what is beside ours:", err)
			return 1
		}
		code := m.Run()
		after, err := n.look(ctx)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "looking at what is beside ours:", err)
			code = 1
		case after != before:
			fmt.Fprintf(os.Stderr, "--- FAIL: what is beside ours changed:\nbefore %s\nafter  %s\n", before, after)
			code = 1
		default:
			fmt.Printf("--- what is beside ours is the same to the byte: %d bytes of %d objects\n", len(after), strings.Count(after, "\n")+1)
		}
		return code
	}())
}

// neighbours are objects of other controllers.
type neighbours struct {
	cloudClients
	// made are collection and id, in the order of their creation.
	made [][2]string
}

func newNeighbours(ctx context.Context) (n *neighbours, err error) {
	c, err := clientsOf(ctx, os.Getenv("OS_CLIENT_CONFIG_FILE"), os.Getenv("OS_CLOUD"))
	if err != nil {
		return nil, err
	}
	n = &neighbours{cloudClients: c}
	defer func() {
		if err != nil {
			n.remove(ctx)
		}
	}()
	listener := func(name string, tags ...string) map[string]any {
		return map[string]any{"name": "listener_" + name, "protocol": "HTTP", "protocol_port": 80, "tags": tags,
			"default_pool": map[string]any{"name": "pool_" + name, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "tags": tags}}
	}
	for _, o := range []map[string]any{
		{"name": "kube_service_e2e_e2e-infra_edge", "description": "Kubernetes external service e2e-infra/edge from cluster e2e", "tags": []string{"kube_service_e2e_e2e-infra_edge"},
			"listeners": []any{listener("0_kube_service_e2e_e2e-infra_edge", "kube_service_e2e_e2e-infra_edge")}},
		{"name": "kube_ingress_e2e_e2e-infra_edge", "description": "Kubernetes Ingress edge in namespace e2e-infra from cluster e2e",
			"listeners": []any{listener("kube_ingress_e2e_e2e-infra_edge", "octavia.ingress.kubernetes.io", "e2e-infra_edge")}},
	} {
		o["vip_subnet_id"] = os.Getenv("GAO_DEMO_SUBNET_ID")
		if err := n.make(ctx, n.octavia, "lbaas/loadbalancers", "loadbalancer", o); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"lb-sg-0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0-e2e-infra-edge", "kube_ingress_e2e_e2e-infra_edge"} {
		err := n.make(ctx, n.neutron, "security-groups", "security_group", map[string]any{"name": name, "description": "Security Group for e2e-infra/edge in cluster e2e"})
		if err != nil {
			return nil, err
		}
	}
	err = n.make(ctx, n.neutron, "floatingips", "floatingip", map[string]any{"floating_network_id": os.Getenv("GAO_PUBLIC_NETWORK_ID"),
		"description": "Floating IP for Kubernetes external service e2e-infra/edge from cluster e2e"})
	if err != nil {
		return nil, err
	}
	// The first heartbeats of the amphorae change the statuses, each at its own time.
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
		text, err := n.look(ctx)
		if err == nil && !strings.Contains(text, `"PENDING_`) && !strings.Contains(text, `"operating_status":"OFFLINE"`) {
			return n, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("not all of it is ONLINE: %s, %w", text, err)
		}
	}
}

func (n *neighbours) make(ctx context.Context, c *gophercloud.ServiceClient, collection, singular string, o map[string]any) error {
	var out map[string]struct{ ID string }
	_, err := c.Post(ctx, c.ServiceURL(strings.Split(collection, "/")...), map[string]any{singular: o}, &out,
		&gophercloud.RequestOpts{OkCodes: []int{200, 201, 202}})
	if err != nil {
		return fmt.Errorf("making %v: %w", o["name"], err)
	}
	n.made = append(n.made, [2]string{collection, out[singular].ID})
	return nil
}

// look reads all of it, children too.
func (n *neighbours) look(ctx context.Context) (string, error) {
	var all []string
	for _, o := range n.made {
		if o[0] == "lbaas/loadbalancers" {
			text, err := everythingOf(ctx, n.octavia, o[1])
			if err != nil {
				return "", err
			}
			all = append(all, text)
			continue
		}
		var out map[string]any
		if _, err := n.neutron.Get(ctx, n.neutron.ServiceURL(o[0], o[1]), &out, nil); err != nil {
			return "", fmt.Errorf("reading %s %s: %w", o[0], o[1], err)
		}
		text, err := json.Marshal(out)
		if err != nil {
			return "", err
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "\n"), nil
}

func (n *neighbours) remove(ctx context.Context) {
	for _, o := range slices.Backward(n.made) {
		c, query := n.neutron, ""
		if o[0] == "lbaas/loadbalancers" {
			c, query = n.octavia, "?cascade=true"
		}
		if _, err := c.Delete(ctx, c.ServiceURL(append(strings.Split(o[0], "/"), o[1])...)+query, nil); err != nil {
			fmt.Fprintln(os.Stderr, "removing", o, err)
		}
	}
}

func clientsOf(ctx context.Context, file, name string) (c cloudClients, err error) {
	auth, endpoint, tlsConfig, err := clouds.Parse(clouds.WithLocations(file), clouds.WithCloudName(name))
	if err != nil {
		return c, err
	}
	// A run may take longer than a token is valid.
	auth.AllowReauth = true
	provider, err := config.NewProviderClient(ctx, auth, config.WithTLSConfig(tlsConfig))
	if err != nil {
		return c, err
	}
	var errs [4]error
	c.octavia, errs[0] = openstack.NewLoadBalancerV2(provider, endpoint)
	c.neutron, errs[1] = openstack.NewNetworkV2(provider, endpoint)
	c.barbican, errs[2] = openstack.NewKeyManagerV1(provider, endpoint)
	c.keystone, errs[3] = openstack.NewIdentityV3(provider, endpoint)
	return c, errors.Join(errs[:]...)
}

// everythingOf is a load balancer with all its listeners and pools as the API shows them.
func everythingOf(ctx context.Context, octavia *gophercloud.ServiceClient, id string) (string, error) {
	read := func(elements ...string) (map[string]any, error) {
		var out map[string]any
		_, err := octavia.Get(ctx, octavia.ServiceURL(append([]string{"lbaas"}, elements...)...), &out, nil)
		return out, err
	}
	top, err := read("loadbalancers", id)
	if err != nil {
		return "", err
	}
	documents := []map[string]any{top}
	lb, _ := top["loadbalancer"].(map[string]any)
	for kind, singular := range map[string]string{"listeners": "listener", "pools": "pool"} {
		refs, _ := lb[kind].([]any)
		for _, ref := range refs {
			child, _ := ref.(map[string]any)["id"].(string)
			document, err := read(kind, child)
			if err != nil {
				return "", err
			}
			documents = append(documents, map[string]any{singular: document})
		}
	}
	text := make([]string, 0, len(documents))
	for _, d := range documents {
		b, err := json.Marshal(d)
		if err != nil {
			return "", err
		}
		text = append(text, string(b))
	}
	slices.Sort(text)
	return strings.Join(text, "\n"), nil
}
