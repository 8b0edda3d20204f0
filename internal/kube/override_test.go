package kube

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

func gatewayConfig(namespace, name string, spec v1alpha1.OpenStackGatewayConfigSpec) *v1alpha1.OpenStackGatewayConfig {
	return &v1alpha1.OpenStackGatewayConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

func withParameters(gw *gwv1.Gateway, group, kind, name string) *gwv1.Gateway {
	gw.Spec.Infrastructure = &gwv1.GatewayInfrastructure{ParametersRef: &gwv1.LocalParametersReference{
		Group: gwv1.Group(group), Kind: gwv1.Kind(kind), Name: name}}
	return gw
}

func TestSnapshot_takesFromAGatewayWhatItsClassLeavesToIt(t *testing.T) {
	t.Parallel()
	cidrs := v1alpha1.OpenStackGatewayConfigSpec{AllowedCIDRs: []string{"192.0.2.0/24"}}
	for name, c := range map[string]struct {
		class       func(*v1alpha1.OpenStackGatewayClassConfigSpec)
		spec        v1alpha1.OpenStackGatewayConfigSpec
		group, kind string
		lies        string
		says        string
	}{
		"allowed": {class: func(s *v1alpha1.OpenStackGatewayClassConfigSpec) {
			s.GatewayOverrides = []v1alpha1.GatewayOverride{v1alpha1.OverrideAllowedCIDRs}
		}, spec: cidrs},
		"nothing set":     {},
		"nothing allowed": {spec: cidrs, says: `OpenStackGatewayConfig "own" sets allowedCIDRs, which the GatewayClass openstack does not leave to Gateways (it allows none)`},
		"something else allowed": {class: func(s *v1alpha1.OpenStackGatewayClassConfigSpec) {
			s.GatewayOverrides = []v1alpha1.GatewayOverride{v1alpha1.OverrideFlavor}
		}, spec: cidrs, says: "it allows flavor"},
		"another kind":    {kind: "ConfigMap", says: "must have group gateway-api-openstack.dev and kind OpenStackGatewayConfig"},
		"another group":   {group: "example.com", says: "must have group"},
		"not there":       {lies: "elsewhere", says: "does not exist in namespace infra"},
		"no floating IPs": {class: allowAll, spec: v1alpha1.OpenStackGatewayConfigSpec{FloatingIPMode: v1alpha1.FloatingIPAllocate}, says: "has no floatingNetwork"},
		"groups and ranges": {class: func(s *v1alpha1.OpenStackGatewayClassConfigSpec) {
			allowAll(s)
			s.VIPSecurityGroups = []v1alpha1.Selector{{Name: "x"}}
		}, spec: cidrs, says: "does not take both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, kind, lies := api.Domain, "OpenStackGatewayConfig", "infra"
			if c.group != "" {
				group = c.group
			}
			if c.kind != "" {
				kind = c.kind
			}
			if c.lies != "" {
				lies = c.lies
			}
			classConfig := config("cloud")
			if c.class != nil {
				c.class(&classConfig.Spec)
			}
			r := newReader(t, class("openstack", ourController), classConfig, gatewayConfig(lies, "own", c.spec),
				withParameters(gateway("infra", "edge", "openstack"), group, kind, "own"))
			s, err := r.Snapshot(t.Context(), key("infra", "edge"))
			var fault *ParametersError
			switch {
			case c.says == "" && err != nil:
				t.Fatal(err)
			case c.says == "":
				if len(s.Config.Spec.AllowedCIDRs) != len(c.spec.AllowedCIDRs) || s.Config.Spec.VIPSubnet.Name != "vips" {
					t.Errorf("got %+v", s.Config.Spec)
				}
			case !errors.As(err, &fault) || !strings.Contains(fault.Message, c.says) || fault.Class != "":
				t.Errorf("got %v", err)
			case s.Gateway == nil || s.Class == nil:
				t.Error("there is no snapshot to clean up with")
			}
		})
	}
}

func allowAll(s *v1alpha1.OpenStackGatewayClassConfigSpec) {
	s.GatewayOverrides = []v1alpha1.GatewayOverride{
		v1alpha1.OverrideVIPSubnet, v1alpha1.OverrideFloatingIPMode, v1alpha1.OverrideFlavor, v1alpha1.OverrideAvailabilityZone, v1alpha1.OverrideAlgorithm,
		v1alpha1.OverrideConnectionLimit, v1alpha1.OverrideTimeouts, v1alpha1.OverrideAllowedCIDRs, v1alpha1.OverrideTLS, v1alpha1.OverrideHealthMonitor,
	}
}

func TestOverride_replacesEveryField(t *testing.T) {
	t.Parallel()
	class := v1alpha1.OpenStackGatewayClassConfigSpec{VIPNetwork: &v1alpha1.Selector{Name: "n"}}
	own := v1alpha1.OpenStackGatewayConfigSpec{
		VIPSubnet: &v1alpha1.Selector{Name: "s"}, FloatingIPMode: v1alpha1.FloatingIPNone, Flavor: &v1alpha1.FlavorSelector{Name: "f"}, AvailabilityZone: "z",
		Algorithm: "LeastConnections", ConnectionLimit: new(int32(5)), Timeouts: &v1alpha1.Timeouts{}, AllowedCIDRs: []string{"192.0.2.0/24"},
		TLS: &v1alpha1.TLS{}, HealthMonitor: &v1alpha1.HealthMonitor{Type: v1alpha1.HealthMonitorHTTP},
	}
	if refused := Override(class.DeepCopy(), &own); len(refused) != 10 {
		t.Errorf("without permission it refuses %v", refused)
	}
	allowAll(&class)
	if refused := Override(&class, &own); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	if class.VIPNetwork != nil || class.VIPSubnet != own.VIPSubnet || class.FloatingIPMode != own.FloatingIPMode || class.Flavor != own.Flavor ||
		class.AvailabilityZone != "z" || class.Algorithm != own.Algorithm || class.ConnectionLimit != own.ConnectionLimit || class.Timeouts != own.Timeouts ||
		len(class.AllowedCIDRs) != 1 || class.TLS != own.TLS || class.HealthMonitor != *own.HealthMonitor {
		t.Errorf("got %+v", class)
	}
}

func TestWatches_mapAGatewayConfigToItsGateways(t *testing.T) {
	t.Parallel()
	r := newReader(t, class("openstack", ourController),
		withParameters(gateway("infra", "edge", "openstack"), api.Domain, "OpenStackGatewayConfig", "own"),
		withParameters(gateway("web", "edge", "openstack"), api.Domain, "OpenStackGatewayConfig", "own"), gateway("infra", "inner", "openstack"))
	got, err := r.ofGatewayConfig(t.Context(), gatewayConfig("infra", "own", v1alpha1.OpenStackGatewayConfigSpec{}))
	if err != nil || len(got) != 1 || got[0] != key("infra", "edge") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParameters_refuseASettingThatWouldBeIgnored(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[v1alpha1.BackendSecurityMode]bool{
		"": false, v1alpha1.BackendSecurityUnmanaged: false, v1alpha1.BackendSecurityReferenced: true, v1alpha1.BackendSecurityManaged: true,
	} {
		c := config("cloud")
		c.Spec.BackendSecurity = &v1alpha1.BackendSecurity{Mode: mode}
		_, err := newReader(t, c).Parameters(t.Context(), class("openstack", ourController))
		var fault *ParametersError
		if errors.As(err, &fault) != refused {
			t.Errorf("%q: got %v", mode, err)
		}
	}
}
