package compile

import (
	"fmt"
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// tlsPolicy is a BackendTLSPolicy. It demands that the certificate of a backend names validation.hostname, and that this name is sent.
// HAProxy, as Octavia configures it, sends and checks the name that the client sent, and none for clients that sent none: no such policy
// can be fulfilled, so its Services are not used, but for those whose owner says with an OpenStackBackendPolicy what shall be done.
type tlsPolicy struct {
	attachedPolicy
	resolved status.Condition
	// withoutCA says that no CA can be read.
	withoutCA bool
	// instead are the OpenStackBackendPolicies that are used for its targets.
	instead []string
}

func (p *policies) newTLSPolicies(used map[name]bool) {
	for _, o := range p.in.BackendTLSPolicies {
		if o == nil || o.DeletionTimestamp != nil {
			continue
		}
		one := &tlsPolicy{attachedPolicy: attachedPolicy{kind: status.KindBackendTLSPolicy, object: o, refs: servicesAmong(o.Spec.TargetRefs)}}
		one.full = p.in.fullFor(o.Status, o.Namespace)
		p.resolveCA(one, o)
		p.tls = append(p.tls, one)
	}
	slices.SortFunc(p.tls, func(a, b *tlsPolicy) int { return compareAge(&a.attachedPolicy, &b.attachedPolicy) })
	attached := make([]*attachedPolicy, len(p.tls))
	for i, one := range p.tls {
		attached[i] = &one.attachedPolicy
	}
	p.tlsByTarget = p.in.attachPolicies(attached, used, portNamed)
}

// servicesAmong are the targets that are Services: this kind of policy may have others.
func servicesAmong(refs []gwv1.LocalPolicyTargetReferenceWithSectionName) []gwv1.LocalPolicyTargetReferenceWithSectionName {
	return slices.DeleteFunc(slices.Clone(refs), func(r gwv1.LocalPolicyTargetReferenceWithSectionName) bool {
		return r.Group != "" || r.Kind != "Service"
	})
}

// resolveCA says whether the CA certificates can be read, though they are not used.
func (p *policies) resolveCA(one *tlsPolicy, o *gwv1.BackendTLSPolicy) {
	one.resolved = status.PolicyResolvedRefs()
	bad := 0
	for _, ref := range o.Spec.Validation.CACertificateRefs {
		if ref.Group != "" || ref.Kind != "ConfigMap" {
			one.resolved = status.PolicyInvalidCAKind()
			bad++
			continue
		}
		if _, err := p.in.caCertificates(o.Namespace, v1alpha1.CACertificateRef{Kind: v1alpha1.CACertificateConfigMap, Name: string(ref.Name), Key: caKey}); err != nil {
			if bad == 0 {
				one.resolved = status.PolicyInvalidCACertificateRef(err.Error())
			}
			bad++
		}
	}
	one.withoutCA = bad > 0 && bad == len(o.Spec.Validation.CACertificateRefs)
}

// tlsOf is the BackendTLSPolicy for a port of a Service; nil when there is none.
func (p *policies) tlsOf(service name, port int32) *tlsPolicy {
	for _, target := range []policyTarget{{service, port}, {service, 0}} {
		if i, ok := p.tlsByTarget[target]; ok {
			return p.tls[i]
		}
	}
	return nil
}

// apply finds the policies for a port of a Service. The problem is why the Service cannot be used: a policy asks for TLS that cannot be had.
func (p *policies) apply(service name, port int32) (*backendPolicy, problem) {
	found := p.of(service, port)
	if found != nil && found.problem != "" {
		return nil, func(where string) status.RouteBackendProblem {
			if found.full {
				return status.BackendPolicyFull(where, service.String(), found.label())
			}
			return status.BackendPolicyUnusable(where, service.String(), found.label())
		}
	}
	standard := p.tlsOf(service, port)
	switch {
	case standard == nil:
	case found == nil || found.tls == nil:
		return nil, func(where string) status.RouteBackendProblem {
			return status.BackendTLSPolicyUnsupported(where, service.String(), standard.id())
		}
	default:
		text := fmt.Sprintf("%s for port %d of Service %s", found.label(), port, service)
		if !slices.Contains(standard.instead, text) {
			standard.instead = append(standard.instead, text)
		}
	}
	return found, nil
}

func (t *tlsPolicy) conditions() []status.Condition {
	if why, ok := t.refused(); ok {
		return []status.Condition{why, t.resolved}
	}
	if t.withoutCA {
		return []status.Condition{status.PolicyNoValidCACertificate(), t.resolved}
	}
	slices.Sort(t.instead)
	return []status.Condition{status.BackendTLSPolicyInvalid(t.instead), t.resolved}
}
