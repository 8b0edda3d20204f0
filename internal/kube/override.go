package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
)

// override puts what the Gateway has differently from its class into s.Config. It returns a *ParametersError when the Gateway names something
// that cannot be used, or that the class does not leave to it.
func (r *Reader) override(ctx context.Context, s *compile.Snapshot) error {
	infrastructure := s.Gateway.Spec.Infrastructure
	if infrastructure == nil || infrastructure.ParametersRef == nil {
		return nil
	}
	fault := func(format string, args ...any) error {
		return &ParametersError{Message: fmt.Sprintf(format, args...)}
	}
	key, ok := gatewayConfigOf(s.Gateway)
	if !ok {
		return fault("spec.infrastructure.parametersRef must have group %s and kind %s", api.Domain, kindGatewayConfig)
	}
	config := &v1alpha1.OpenStackGatewayConfig{}
	found, err := r.get(ctx, key, config)
	switch {
	case err != nil:
		return fmt.Errorf("reading Gateway %s/%s: %w", s.Gateway.Namespace, s.Gateway.Name, err)
	case !found:
		return fault("spec.infrastructure.parametersRef names %s %q, which does not exist in namespace %s; create it or correct the name",
			kindGatewayConfig, key.Name, key.Namespace)
	}
	refused := Override(&s.Config.Spec, &config.Spec)
	if len(refused) > 0 {
		allowed := "allows none"
		if all := s.Config.Spec.GatewayOverrides; len(all) > 0 {
			allowed = "allows " + joined(all)
		}
		return fault("%s %q sets %s, which the GatewayClass %s does not leave to Gateways (it %s): take that out, or ask the platform team for gatewayOverrides",
			kindGatewayConfig, key.Name, joined(refused), s.Class.Name, allowed)
	}
	if config.Spec.FloatingIPMode == v1alpha1.FloatingIPAllocate && s.Config.Spec.FloatingNetwork == nil {
		return fault("%s %q asks for a floating IP, and the GatewayClass %s has no floatingNetwork", kindGatewayConfig, key.Name, s.Class.Name)
	}
	if len(config.Spec.AllowedCIDRs) > 0 && len(s.Config.Spec.VIPSecurityGroups) > 0 {
		return fault("%s %q sets allowedCIDRs, and the GatewayClass %s uses vipSecurityGroups: Octavia does not take both", kindGatewayConfig, key.Name, s.Class.Name)
	}
	return nil
}

// Override replaces in class what a Gateway sets, as far as the class allows, and returns what it does not.
func Override(class *v1alpha1.OpenStackGatewayClassConfigSpec, gateway *v1alpha1.OpenStackGatewayConfigSpec) (refused []v1alpha1.GatewayOverride) {
	for _, o := range []struct {
		field   v1alpha1.GatewayOverride
		set     bool
		replace func()
	}{
		{v1alpha1.OverrideVIPSubnet, gateway.VIPSubnet != nil, func() { class.VIPSubnet, class.VIPNetwork = gateway.VIPSubnet, nil }},
		{v1alpha1.OverrideFloatingIPMode, gateway.FloatingIPMode != "", func() { class.FloatingIPMode = gateway.FloatingIPMode }},
		{v1alpha1.OverrideFlavor, gateway.Flavor != nil, func() { class.Flavor = gateway.Flavor }},
		{v1alpha1.OverrideAvailabilityZone, gateway.AvailabilityZone != "", func() { class.AvailabilityZone = gateway.AvailabilityZone }},
		{v1alpha1.OverrideAlgorithm, gateway.Algorithm != "", func() { class.Algorithm = gateway.Algorithm }},
		{v1alpha1.OverrideConnectionLimit, gateway.ConnectionLimit != nil, func() { class.ConnectionLimit = gateway.ConnectionLimit }},
		{v1alpha1.OverrideTimeouts, gateway.Timeouts != nil, func() { class.Timeouts = gateway.Timeouts }},
		{v1alpha1.OverrideAllowedCIDRs, len(gateway.AllowedCIDRs) > 0, func() { class.AllowedCIDRs = gateway.AllowedCIDRs }},
		{v1alpha1.OverrideTLS, gateway.TLS != nil, func() { class.TLS = gateway.TLS }},
		{v1alpha1.OverrideHealthMonitor, gateway.HealthMonitor != nil, func() { class.HealthMonitor = *gateway.HealthMonitor }},
	} {
		switch {
		case !o.set:
		case !slices.Contains(class.GatewayOverrides, o.field):
			refused = append(refused, o.field)
		default:
			o.replace()
		}
	}
	return refused
}

func joined(fields []v1alpha1.GatewayOverride) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
