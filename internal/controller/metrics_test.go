package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

func TestGauges_tellTheGatewaysOfNow(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := &accounts{}
	one, two, gone := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}, types.NamespacedName{Name: "gone"}
	want := &lb.Tree{
		Meta:      lb.Meta{Name: "one"},
		Listeners: []lb.Listener{{Policies: []lb.Policy{{Rules: make([]lb.Rule, 2)}}}},
		Pools:     []lb.Pool{{Members: make([]lb.Member, 3), Monitor: &lb.Monitor{}}},
	}
	a.enter(one, status.Pending, want, start)
	a.enter(one, status.Programmed, want, start.Add(10*time.Second))
	a.enter(two, status.Broken, nil, start.Add(20*time.Second))
	a.enter(two, status.Retry, nil, start.Add(30*time.Second))
	a.enter(gone, status.Programmed, want, start)
	a.drop(gone)

	got := gauges{a, clocktesting.NewFakePassiveClock(start.Add(time.Minute))}
	err := testutil.CollectAndCompare(got, strings.NewReader(`
# HELP gateway_api_openstack_gateways Gateways of this controller, by how their last pass ended.
# TYPE gateway_api_openstack_gateways gauge
gateway_api_openstack_gateways{outcome="Broken"} 0
gateway_api_openstack_gateways{outcome="Conflict"} 0
gateway_api_openstack_gateways{outcome="OperatorFault"} 0
gateway_api_openstack_gateways{outcome="Pending"} 0
gateway_api_openstack_gateways{outcome="Programmed"} 1
gateway_api_openstack_gateways{outcome="Retry"} 1
gateway_api_openstack_gateways{outcome="UserFault"} 0
# HELP gateway_api_openstack_resources Objects that the Gateways want in the cloud, by kind: what they take of the project's quota.
# TYPE gateway_api_openstack_resources gauge
gateway_api_openstack_resources{kind="floatingip"} 0
gateway_api_openstack_resources{kind="healthmonitor"} 1
gateway_api_openstack_resources{kind="l7policy"} 1
gateway_api_openstack_resources{kind="l7rule"} 2
gateway_api_openstack_resources{kind="listener"} 1
gateway_api_openstack_resources{kind="loadbalancer"} 1
gateway_api_openstack_resources{kind="member"} 3
gateway_api_openstack_resources{kind="pool"} 1
gateway_api_openstack_resources{kind="secret"} 0
# HELP gateway_api_openstack_unprogrammed_seconds How long the Gateway that waits longest has not been as it shall be; 0 when all are.
# TYPE gateway_api_openstack_unprogrammed_seconds gauge
gateway_api_openstack_unprogrammed_seconds 40
`), "gateway_api_openstack_gateways", "gateway_api_openstack_resources", "gateway_api_openstack_unprogrammed_seconds")
	if err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(got); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

func TestRemaining_sortsCertificatesByTheTimeTheyHaveLeft(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		-time.Hour: "expired", 0: "expired", time.Hour: "7d", 7 * 24 * time.Hour: "7d", 8 * 24 * time.Hour: "30d", 31 * 24 * time.Hour: "later",
	} {
		if got := remaining(left); got != want {
			t.Errorf("%s left: %s, want %s", left, got, want)
		}
	}
}
