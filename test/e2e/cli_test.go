//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/inspect"
)

// runOctavia runs kubectl octavia as a person with the stack's kubeconfig and clouds.yaml does.
func (g *ground) runOctavia(args ...string) (code int, out, complaints string) {
	var o, e bytes.Buffer
	code = inspect.Run(g.Context(), args, inspect.Options{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// octavia wants an exit code.
func (g *ground) octavia(want int, args ...string) string {
	g.Helper()
	code, out, complaints := g.runOctavia(args...)
	if code != want {
		g.Fatalf("kubectl octavia %s ends with %d, want %d:\n%s%s", strings.Join(args, " "), code, want, out, complaints)
	}
	return out
}

func (g *ground) octaviaJSON(into any, args ...string) {
	g.Helper()
	g.must(json.Unmarshal([]byte(g.octavia(0, append(args, "-o", "json")...)), into))
}

// kubectl octavia on a live Gateway: what it says is what the cloud has and what requests meet, and it changes nothing.
func TestCLI_tellsWhatIsThere(t *testing.T) {
	g := newGround(t)
	infra := g.namespace("e2e-cli", map[string]string{"e2e": "yes"})
	g.echo(infra, "web", 2)
	g.echo(infra, "canary", 1)
	gw := gateway(infra, "cli", listener("http", 80, ""))
	prefix := gwv1.PathMatchPathPrefix
	shop := route(infra, "shop", gw, []gwv1.Hostname{"shop.cli.test"},
		rule([]gwv1.HTTPRouteMatch{path(prefix, "/", "x-canary", "yes")}, backend("canary", 1)),
		rule(nil, backend("web", 1)))
	g.apply(shop)
	g.apply(gw)
	public := g.programmed(gw)
	g.expect(g.outside, "http://"+public+"/", "shop.cli.test", "web")
	key := infra + "/cli"

	var trees []inspect.GatewayTree
	g.eventually(time.Minute, "all members are ONLINE", func() error {
		code, out, complaints := g.runOctavia("tree", key, "-o", "json")
		if code != 0 {
			return fmt.Errorf("exit code %d: %s%s", code, out, complaints)
		}
		trees = nil
		if err := json.Unmarshal([]byte(out), &trees); err != nil {
			return err
		}
		for _, p := range trees[0].Pools {
			for _, m := range p.Members {
				if m.OperatingStatus != "ONLINE" || m.Node == "" {
					return fmt.Errorf("member %+v of %s", m, p.Key)
				}
			}
		}
		return nil
	})
	tree := trees[0]
	if tree.Status != "Programmed" || tree.Wanted || tree.Steps != 0 || tree.LoadBalancer.FloatingIP != public || len(tree.Listeners) != 1 || len(tree.Listeners[0].Policies) != 2 || len(tree.Pools) != 2 {
		t.Errorf("tree: %+v", tree)
	}
	t.Logf("tree:\n%s", g.octavia(0, "tree", key))
	if bad := g.octavia(0, "endpoints", key, "--unhealthy"); !strings.Contains(bad, "No members.") {
		t.Errorf("endpoints --unhealthy: %s", bad)
	}
	var endpoints []inspect.Endpoint
	g.octaviaJSON(&endpoints, "endpoints", key)
	members := 0
	for _, p := range tree.Pools {
		members += len(p.Members)
	}
	if len(endpoints) != members || members == 0 {
		t.Errorf("%d endpoints, %d members", len(endpoints), members)
	}

	for _, c := range []struct{ header, want string }{{"x-canary: yes", "canary"}, {"x-canary: no", "web"}} {
		var told []inspect.Explanation
		g.octaviaJSON(&told, "explain", "GET", "http://shop.cli.test/", "-H", c.header, "--gateway", key)
		name, value, _ := strings.Cut(c.header, ": ")
		g.expect(g.outside, "http://"+public+"/", "shop.cli.test", c.want, name, value)
		if len(told) != 1 || told[0].Pool != infra+"/"+c.want+":80" {
			t.Errorf("with %s the answer is told to be %+v; it is %s", c.header, told, c.want)
		}
	}
	if text := g.octavia(0, "explain", "route", infra+"/shop"); !strings.Contains(text, "Accepted=True") {
		t.Errorf("explain route:\n%s", text)
	}

	// Nothing to do now; one policy and its rules with a manifest that is not applied.
	if text := g.octavia(0, "plan", "--detailed-exitcode", key); !strings.Contains(text, "No change in the cloud") {
		t.Errorf("plan: %s", text)
	}
	file := filepath.Join(t.TempDir(), "more.yaml")
	g.must(os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: %s, name: more}
spec:
  parentRefs: [{name: cli}]
  hostnames: [more.cli.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`, infra), 0o600))
	calls := g.calls()
	planned := g.octavia(2, "plan", "-f", file, "--detailed-exitcode", key)
	t.Logf("plan -f:\n%s", planned)
	if !strings.Contains(planned, "+ l7policy "+infra+"/more/0/0") || !strings.Contains(planned, "0 to delete") {
		t.Errorf("plan -f:\n%s", planned)
	}
	if err := g.kube.Get(g.Context(), client.ObjectKey{Namespace: infra, Name: "more"}, &gwv1.HTTPRoute{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("plan applied the route: %v", err)
	}

	picture := g.page(key)
	if len(picture.Gateways) != 1 || picture.Gateways[0].Status != "Programmed" || len(picture.Gateways[0].Pools) != 2 || len(picture.Gateways[0].Pending) != 0 || picture.Failed != "" {
		t.Errorf("the page shows %+v", picture)
	}
	if made := g.calls().since(calls); made.writes("load-balancer")+made.writes("network") != 0 {
		t.Errorf("looking made the controller write: %s", made)
	}
	if again := g.octavia(0, "plan", "--detailed-exitcode", key); !strings.Contains(again, "No change in the cloud") {
		t.Errorf("after looking: %s", again)
	}
	g.delete(shop, gw)
}

// page serves the page of kubectl octavia ui for a moment and reads its data.
func (g *ground) page(key string) inspect.Picture {
	g.Helper()
	ctx, stop := context.WithCancel(g.Context())
	defer stop()
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- inspect.Run(ctx, []string{"ui", key, "--port", "0"}, inspect.Options{Out: write, Err: write})
		_ = write.Close()
	}()
	lines := bufio.NewReader(read)
	url, err := lines.ReadString('\n')
	g.must(err)
	url = strings.TrimSpace(url)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	ask := func(address string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		g.must(err)
		res, err := http.DefaultClient.Do(req)
		g.must(err)
		if res.StatusCode != http.StatusOK {
			g.Fatalf("%s answers %s to %q", address, res.Status, url)
		}
		return res
	}
	_ = ask(url).Body.Close()
	res := ask(url + "picture.json")
	defer func() { _ = res.Body.Close() }()
	var out inspect.Picture
	g.must(json.NewDecoder(res.Body).Decode(&out))
	stop()
	if code := <-ended; code != 0 {
		g.Errorf("an interrupted ui ends with %d", code)
	}
	return out
}
