//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/inspect"
)

// plugin runs kubectl octavia against the stack.
func (g *ground) plugin(args ...string) (code int, out string) {
	g.Helper()
	var both bytes.Buffer
	code = inspect.Run(g.Context(), append(args, "--cluster-id", clusterID), inspect.Options{In: strings.NewReader(""), Out: &both, Err: &both, Getenv: os.Getenv})
	g.Logf("kubectl octavia %s: %d\n%s", strings.Join(args, " "), code, both.String())
	return code, both.String()
}

// An audit finds nothing where nothing is wrong, and what somebody put below a load balancer of ours; a probe finds that this cloud can do what is
// asked of it. Neither changes anything.
func TestAudit_andProbeSeeTheRealCloud(t *testing.T) {
	g := newGround(t)
	const namespace = "e2e-audit"
	g.site(namespace)
	gw := gateway(namespace, "audited", listener("http", 80, ""))
	g.apply(route(namespace, "audited", gw, nil, rule(nil, backend("a0", 1))))
	g.apply(gw)
	g.programmed(gw)

	if code, out := g.plugin("audit", namespace+"/audited"); code != 0 || !strings.Contains(out, "matched") {
		t.Errorf("an audit of what is as wanted ended with %d", code)
	}
	pages, err := loadbalancers.List(g.cloud.octavia, loadbalancers.ListOpts{Name: "gw_" + clusterID + "_" + namespace + "_audited"}).AllPages(t.Context())
	g.must(err)
	found, err := loadbalancers.ExtractLoadBalancers(pages)
	g.must(err)
	if len(found) != 1 {
		t.Fatalf("there are %d load balancers of the Gateway", len(found))
	}
	theirs, err := pools.Create(t.Context(), g.cloud.octavia, pools.CreateOpts{Name: "by-hand", LoadbalancerID: found[0].ID, Protocol: pools.ProtocolHTTP, LBMethod: pools.LBMethodRoundRobin}).Extract()
	g.must(err)
	// Looked at while it is PENDING, a load balancer is not seen as a whole.
	g.eventually(time.Minute, "the audit tells of the pool", func() error {
		code, out := g.plugin("audit", namespace+"/audited")
		if code != 2 || !strings.Contains(out, "foreign-below-ours") || !strings.Contains(out, theirs.ID) {
			return fmt.Errorf("it ended with %d", code)
		}
		return nil
	})
	g.eventually(time.Minute, "the pool can be deleted", func() error { return pools.Delete(t.Context(), g.cloud.octavia, theirs.ID).ExtractErr() })

	if code, out := g.plugin("probe", "--class", className); code != 0 || !strings.Contains(out, "✓ credentials") {
		t.Errorf("a probe ended with %d", code)
	}
	g.delete(gw)
	g.nothingLeft()
}
