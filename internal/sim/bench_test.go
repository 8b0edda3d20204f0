package sim_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// BenchmarkCloud_aThousandGateways is the size that the project must stand:
// 1,000 load balancers with 10 policies of two rules and 100 members each.
func BenchmarkCloud_aThousandGateways(b *testing.B) {
	var policies, members []tree
	for i := range 10 {
		policies = append(policies, policyTree("REDIRECT_TO_POOL", tree{"redirect_pool": tree{"name": "p"}},
			ruleTree("HOST_NAME", "REGEX", `^a\.example(:[0-9]*)?$`), ruleTree("PATH", "REGEX", fmt.Sprintf("^/p%d(/|$)", i))))
	}
	for i := range 100 {
		members = append(members, tree{"address": fmt.Sprintf("10.1.1.%d", i), "protocol_port": 30080})
	}
	for b.Loop() {
		c, err := sim.New(sim.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 1000 {
			body := tree{"name": fmt.Sprint("gw", i), "vip_subnet_id": c.VIPSubnetID(), "tags": []string{"cluster=x", fmt.Sprint("gw=", i)}, "pools": []tree{poolTree("p", members...)},
				"listeners": []tree{{"protocol": "HTTP", "protocol_port": 80, "l7policies": policies}}}
			if _, err := c.Do(sim.Octavia, "POST", "/loadbalancers", tree{"loadbalancer": body}); err != nil {
				b.Fatal(err)
			}
		}
		for i := range 100 {
			if _, err := c.Do(sim.Octavia, "GET", fmt.Sprint("/loadbalancers?tags=gw%3D", i), nil); err != nil {
				b.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB")
		c.Close()
	}
}
