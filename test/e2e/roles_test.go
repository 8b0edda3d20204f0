//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// A user with the roles that docs/openstack-credentials.md names, and no others, can do all that the controller does: HTTP, HTTPS with a certificate in Barbican, a
// floating IP, changes, and their deletion. With one role less the error names the role.
func TestRoles_leastAreEnough(t *testing.T) {
	g := newGround(t)
	g.steady()
	const namespace = "e2e-roles"
	g.namespace(namespace, map[string]string{"e2e": "yes"})
	g.echo(namespace, "web", 1)
	admin := &identity{g, openCloud(g, os.Getenv("OS_CLIENT_CONFIG_FILE"), "stack-admin").keystone}
	project := os.Getenv("GAO_PROJECT_ID")

	for _, c := range []struct {
		roles []string
		// missing is the role that the error names, "" when they are enough.
		missing string
	}{
		{[]string{"member", "creator"}, ""},
		{[]string{"member"}, "creator"},
		// Octavia asks for this one in other releases only, and never for it alone.
		{[]string{"load-balancer_member", "creator"}, "member"},
	} {
		t.Run(strings.Join(c.roles, "+"), func(t *testing.T) {
			g := g.in(t)
			client, err := cloud.New(t.Context(), cloud.Options{CloudsFile: admin.member(g, project, c.roles...), Cloud: "least"})
			g.must(err)
			err = g.everything(client, namespace)
			switch {
			case c.missing == "" && err != nil:
				t.Error(err)
			case c.missing != "" && (cloud.ReasonOf(err) != cloud.ReasonPermission || !strings.Contains(err.Error(), c.missing)):
				t.Errorf("got %v, want an error that names the role %s", err, c.missing)
			case c.missing != "":
				t.Logf("told: %v", err)
			}
		})
	}
	g.nothingLeft()
}

// everything makes a Gateway's load balancer, changes it, reads it back and deletes it, with a client of the controller's and without Kubernetes knowing.
func (g *ground) everything(c *cloud.Client, namespace string) error {
	g.Helper()
	facts, err := c.Facts(g.Context(), cloud.FactsRequest{VIPSubnet: lb.Selector{ID: g.nodeSubnet}, FloatingNetwork: lb.Selector{ID: g.publicNetwork}})
	if err != nil {
		return err
	}
	w := g.world(facts, namespace)
	w.Config.Spec.FloatingNetwork = &v1alpha1.Selector{ID: g.publicNetwork}
	w.Now = time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.must(err)
	secret := newAuthority(g, "roles", nil).leaf(g, key, "roles.test")
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "tls"}
	w.Secrets = append(w.Secrets, secret)
	secure := listener("https", 443, "roles.test")
	secure.Protocol = gwv1.HTTPSProtocolType
	secure.TLS = &gwv1.ListenerTLSConfig{Mode: new(gwv1.TLSModeTerminate), CertificateRefs: []gwv1.SecretObjectReference{{Name: "tls"}}}
	gw := gateway(namespace, "roles", listener("http", 80, ""), secure)
	gw.UID, gw.Spec.GatewayClassName = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", time.Now().UnixNano()%1e12)), steadyClass
	owner := lb.Owner{}

	reach := func(want *lb.Tree) error {
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
			have, err := c.ObserveFor(g.Context(), owner, want, nil)
			if err != nil && cloud.ClassOf(err) != cloud.Wait {
				return err
			}
			steps := plan.New(want, &have).Steps
			if err == nil && !have.ProvisioningStatus.Pending() && len(steps) == 0 {
				return nil
			}
			progress, err := c.Apply(g.Context(), &have, steps, time.Minute, nil)
			if err != nil && cloud.ClassOf(err) != cloud.Wait {
				return err
			}
			time.Sleep(min(max(progress.RequeueAfter, 200*time.Millisecond), 2*time.Second))
		}
		return errors.New("it takes more than 5 minutes")
	}
	var failed error
	for _, to := range []string{"/a", "/b"} {
		w.HTTPRoutes = nil
		r := route(namespace, "roles", gw, nil, rule([]gwv1.HTTPRouteMatch{pathMatch(to)}, backend("web", 1)))
		tree := w.compile(gw, []*gwv1.HTTPRoute{r}).Tree
		if len(tree.Listeners) != 2 || len(tree.Secrets) != 1 || tree.FloatingIP == nil {
			g.Fatalf("the tree is not what is to be tried: %+v", tree)
		}
		owner = tree.Owner
		if failed = reach(&tree); failed != nil {
			break
		}
	}
	// What was made goes in any case; the controller's own client can do what this one may not.
	left := &lb.Tree{}
	if failed != nil {
		c = g.cloudClient()
	}
	return errors.Join(failed, reach(left))
}

// identity is Keystone for its administrator.
type identity struct {
	*ground
	c *gophercloud.ServiceClient
}

// named finds an object by name; "" when there is none.
func (i *identity) named(kind, name string) string {
	i.Helper()
	found, _ := i.raw(i.c, kind+"s?name="+url.QueryEscape(name))[kind+"s"].([]any)
	if len(found) == 0 {
		return ""
	}
	id, _ := found[0].(map[string]any)["id"].(string)
	return id
}

func (i *identity) post(c *gophercloud.ServiceClient, kind string, body map[string]any, elements ...string) map[string]any {
	i.Helper()
	var out map[string]map[string]any
	_, err := c.Post(i.Context(), c.ServiceURL(elements...), map[string]any{kind: body}, &out, &gophercloud.RequestOpts{OkCodes: []int{201}})
	i.must(err)
	return out[kind]
}

// member makes a user who has these roles in a project and nothing else, and returns a clouds.yaml with an application credential of his. He goes with the
// test.
func (i *identity) member(g *ground, project string, roles ...string) string {
	i.Helper()
	secret := make([]byte, 12)
	_, err := rand.Read(secret)
	g.must(err)
	password := fmt.Sprintf("%x", secret)
	name := "e2e-" + strings.Join(roles, "-")
	if old := i.named("user", name); old != "" {
		_, err := i.c.Delete(i.Context(), i.c.ServiceURL("users", old), nil)
		g.must(err)
	}
	user, _ := i.post(i.c, "user", map[string]any{"name": name, "password": password, "domain_id": "default"}, "users")["id"].(string)
	g.Cleanup(func() {
		if _, err := i.c.Delete(i.Context(), i.c.ServiceURL("users", user), nil); err != nil {
			g.Error(err)
		}
	})
	var granted []map[string]any
	for _, role := range roles {
		id := i.named("role", role)
		_, err := i.c.Put(i.Context(), i.c.ServiceURL("projects", project, "users", user, "roles", id), nil, nil, &gophercloud.RequestOpts{OkCodes: []int{204}})
		g.must(err)
		granted = append(granted, map[string]any{"id": id})
	}
	write := func(kind string, auth ...string) string {
		file := filepath.Join(g.TempDir(), "clouds.yaml")
		text := "clouds:\n  least:\n    region_name: RegionOne\n    auth_type: " + kind + "\n    auth:\n"
		for _, line := range append(auth, "auth_url: "+os.Getenv("GAO_AUTH_URL")) {
			text += "      " + line + "\n"
		}
		g.must(os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	himself := openCloud(g, write("password", "user_id: "+user, "password: "+password, "project_id: "+project), "least").keystone
	made := i.post(himself, "application_credential", map[string]any{"name": "controller", "roles": granted}, "users", user, "application_credentials")
	return write("v3applicationcredential", fmt.Sprintf("application_credential_id: %v", made["id"]), fmt.Sprintf("application_credential_secret: %v", made["secret"]))
}
