package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// policyTarget is a Service, or one port of it.
type policyTarget struct {
	service name
	// port is 0 for the whole Service.
	port int32
}

func (t policyTarget) String() string {
	if t.port == 0 {
		return "Service " + t.service.String()
	}
	return fmt.Sprintf("port %d of Service %s", t.port, t.service)
}

// attachedPolicy is what all policies for Services have in common: to whom they belong, and where they are used.
type attachedPolicy struct {
	kind   status.Kind
	object metav1.Object
	// refs are the targetRefs.
	refs []gwv1.LocalPolicyTargetReferenceWithSectionName
	// used are the targets for which it is the policy; lost those that an older one has; missing those that do not exist.
	used, lost, missing []string
	// full says that its status has no room for this Gateway.
	full bool
}

func (p *attachedPolicy) id() string { return p.object.GetNamespace() + "/" + p.object.GetName() }

func (p *attachedPolicy) label() string { return fmt.Sprintf("%s %s", p.kind, p.id()) }

// services are those that the policy names.
func (p *attachedPolicy) services() []name {
	var list []name
	for _, ref := range p.refs {
		list = append(list, name{p.object.GetNamespace(), string(ref.Name)})
	}
	return list
}

// compareAge puts the policy first that wins a conflict: the oldest, then by name.
func compareAge(a, b *attachedPolicy) int {
	return cmp.Or(
		a.object.GetCreationTimestamp().Compare(b.object.GetCreationTimestamp().Time),
		strings.Compare(a.id(), b.id()),
	)
}

// attachPolicies finds the targets of policies, which are sorted by age: each target belongs to the first, by its place among them. port
// finds the port that a section of a Service is. Services that no route here uses are not looked at.
func (in *input) attachPolicies(sorted []*attachedPolicy, used map[name]bool, port func(*corev1.Service, string) (int32, bool)) map[policyTarget]int {
	winners := map[policyTarget]int{}
	for i, p := range sorted {
		for _, ref := range p.refs {
			target := policyTarget{service: name{p.object.GetNamespace(), string(ref.Name)}}
			if !used[target.service] {
				continue
			}
			service := in.services[target.service]
			if service == nil || service.DeletionTimestamp != nil {
				p.missing = append(p.missing, target.String()+" does not exist")
				continue
			}
			if ref.SectionName != nil {
				number, ok := port(service, string(*ref.SectionName))
				if !ok {
					p.missing = append(p.missing, fmt.Sprintf("Service %s has no port %s", target.service, *ref.SectionName))
					continue
				}
				target.port = number
			}
			if winner, taken := winners[target]; taken && winner != i {
				p.lost = append(p.lost, fmt.Sprintf("%s is older and has %s", sorted[winner].label(), target))
				continue
			}
			winners[target] = i
			p.used = append(p.used, target.String())
		}
	}
	return winners
}

// portNamed is a port by its name.
func portNamed(service *corev1.Service, section string) (int32, bool) {
	for _, p := range service.Spec.Ports {
		if p.Name == section {
			return p.Port, true
		}
	}
	return 0, false
}

// portCalled is a port by its name, or else its number.
func portCalled(service *corev1.Service, section string) (int32, bool) {
	if number, ok := portNamed(service, section); ok {
		return number, true
	}
	for _, p := range service.Spec.Ports {
		if fmt.Sprint(p.Port) == section {
			return p.Port, true
		}
	}
	return 0, false
}

// fullFor says whether a status has entries of 16 others, so that it can have none for the Gateway. Such a policy cannot be used.
func (in *input) fullFor(s gwv1.PolicyStatus, namespace string) bool {
	const most = 16
	return len(s.Ancestors) >= most && !slices.ContainsFunc(s.Ancestors, func(a gwv1.PolicyAncestorStatus) bool {
		of, ok := in.ownerOf(a.AncestorRef, namespace, owners{ungenerated(in.object()): nil})
		return ok && of.Kind == status.KindGateway && string(a.ControllerName) == in.Controller
	})
}

// policies are the policies for Services.
type policies struct {
	in *input
	// backend are the OpenStackBackendPolicies, by age like tls; byTarget has their places.
	backend  []*backendPolicy
	byTarget map[policyTarget]int
	// tls are the BackendTLSPolicies.
	tls         []*tlsPolicy
	tlsByTarget map[policyTarget]int
}

// backendPolicy is an OpenStackBackendPolicy.
type backendPolicy struct {
	attachedPolicy
	algorithm   string
	persistence lb.Persistence
	monitor     *lb.Monitor
	// tls is nil when the policy asks for none, and when problem says why it cannot be had.
	tls     *backendTLS
	problem string
	// warnings are about what is used all the same, and about rules where a setting is not.
	warnings []string
}

var algorithms = map[v1alpha1.Algorithm]string{
	v1alpha1.AlgorithmRoundRobin:       "ROUND_ROBIN",
	v1alpha1.AlgorithmLeastConnections: "LEAST_CONNECTIONS",
	v1alpha1.AlgorithmSourceIP:         "SOURCE_IP",
}

// newPolicies reads the policies for the Services that routes here may use.
func newPolicies(in *input) *policies {
	p := &policies{in: in}
	used := in.routedServices()
	for _, o := range in.BackendPolicies {
		if o != nil && o.DeletionTimestamp == nil {
			p.backend = append(p.backend, p.newBackendPolicy(o))
		}
	}
	slices.SortFunc(p.backend, func(a, b *backendPolicy) int { return compareAge(&a.attachedPolicy, &b.attachedPolicy) })
	attached := make([]*attachedPolicy, len(p.backend))
	for i, one := range p.backend {
		attached[i] = &one.attachedPolicy
	}
	p.byTarget = in.attachPolicies(attached, used, portCalled)
	p.newTLSPolicies(used)
	return p
}

func (p *policies) newBackendPolicy(o *v1alpha1.OpenStackBackendPolicy) *backendPolicy {
	one := &backendPolicy{attachedPolicy: attachedPolicy{kind: status.KindBackendPolicy, object: o, refs: o.Spec.TargetRefs}}
	if one.full = p.in.fullFor(o.Status, o.Namespace); one.full {
		if o.Spec.TLS != nil {
			one.problem = "there is no room in the status"
		}
		return one
	}
	one.algorithm = algorithms[o.Spec.Algorithm]
	if s := o.Spec.SessionPersistence; s != nil {
		one.persistence = lb.HTTPCookie
		if s.Type == v1alpha1.SessionPersistenceSourceIP {
			one.persistence = lb.SourceIP
		}
	}
	if o.Spec.HealthMonitor != nil {
		m := monitorOf(*o.Spec.HealthMonitor)
		one.monitor = &m
	}
	if o.Spec.TLS != nil {
		var err error
		if one.tls, err = p.backendTLS(o.Namespace, o.Spec.TLS); err != nil {
			one.problem = err.Error()
		} else if w := one.tls.warning(p.in.Now); w != "" {
			one.warnings = append(one.warnings, w)
		}
	}
	return one
}

// routedServices are the Services that routes name and may use, whether they exist or not.
func (in *input) routedServices() map[name]bool {
	used := map[name]bool{}
	for _, r := range in.HTTPRoutes {
		if r == nil || r.DeletionTimestamp != nil {
			continue
		}
		for i := range r.Spec.Rules {
			for _, ref := range r.Spec.Rules[i].BackendRefs {
				if service, ok := serviceOf(r.Namespace, ref.BackendObjectReference); ok && in.granted(routeToService(r.Namespace, service.namespace, service.name)) {
					used[service] = true
				}
			}
		}
	}
	return used
}

// of is the policy for a port of a Service; nil when there is none.
func (p *policies) of(service name, port int32) *backendPolicy {
	for _, target := range []policyTarget{{service, port}, {service, 0}} {
		if i, ok := p.byTarget[target]; ok {
			return p.backend[i]
		}
	}
	return nil
}

// poolSettings is what a pool has once for all its backends.
type poolSettings struct {
	algorithm   string
	persistence lb.Persistence
	// monitor is nil for that of the class.
	monitor *lb.Monitor
	tls     *backendTLS
}

// id tells settings apart.
func (s poolSettings) id() string {
	text := fmt.Sprintf("%s %s", s.algorithm, s.persistence)
	if s.monitor != nil {
		text += fmt.Sprintf(" %+v", *s.monitor)
	}
	if s.tls != nil {
		text += fmt.Sprintf(" %+v", s.tls.pool)
	}
	return text
}

// settings are what the backends of a rule agree on; shares are in normal form. A setting on which they do not agree is left at its
// default: nobody's backends are taken out by the check of others. TLS is the same for all by now.
func settings(where string, shares []share, own lb.Persistence) poolSettings {
	s := poolSettings{persistence: own}
	var users []*backend
	for _, one := range shares {
		if one.backend.answers == 0 && one.weight > 0 {
			users = append(users, one.backend)
		}
	}
	if len(users) == 0 {
		return s
	}
	s.tls = users[0].tls()
	s.algorithm = agreed(where, "algorithm", users, func(p *backendPolicy) string { return p.algorithm })
	if own == "" {
		s.persistence = agreed(where, "sessionPersistence", users, func(p *backendPolicy) lb.Persistence { return p.persistence })
	}
	// Monitors are compared by what they say.
	text := func(p *backendPolicy) string {
		if p.monitor == nil {
			return ""
		}
		return fmt.Sprintf("%+v", *p.monitor)
	}
	if agreed(where, "healthMonitor", users, text) != "" {
		s.monitor = users[0].policy.monitor
	}
	return s
}

// agreed is a setting of policies when all backends have the same, else the zero value, which the policies are told.
func agreed[T ~string](where, setting string, users []*backend, get func(*backendPolicy) T) T {
	of := func(b *backend) T {
		if b.policy == nil {
			return ""
		}
		return get(b.policy)
	}
	first := of(users[0])
	if !slices.ContainsFunc(users, func(b *backend) bool { return of(b) != first }) {
		return first
	}
	for _, b := range users {
		if of(b) != "" {
			b.policy.warn(fmt.Sprintf("%s is not used for %s, whose Services differ in it", setting, where))
		}
	}
	return ""
}

func (p *backendPolicy) warn(text string) {
	if !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// tls is how a backend is spoken to; nil is in plain text.
func (b *backend) tls() *backendTLS {
	if b.policy == nil {
		return nil
	}
	return b.policy.tls
}

// verdicts are what is said about the policies whose Services the attached routes use.
func (p *policies) verdicts(used map[name]bool) []status.Verdict {
	var list []status.Verdict
	for _, one := range p.backend {
		if one.concerns(used) && !one.full {
			list = append(list, one.verdict(one.condition()))
		}
	}
	for _, one := range p.tls {
		if one.concerns(used) && !one.full {
			list = append(list, one.verdict(one.conditions()...))
		}
	}
	return list
}

// concerns says whether the policy is about a Service that routes here use.
func (p *attachedPolicy) concerns(used map[name]bool) bool {
	return slices.ContainsFunc(p.services(), func(s name) bool { return used[s] })
}

func (p *attachedPolicy) verdict(conditions ...status.Condition) status.Verdict {
	return status.Verdict{
		Object:     status.Object{Kind: p.kind, Namespace: p.object.GetNamespace(), Name: p.object.GetName(), Generation: p.object.GetGeneration()},
		Conditions: conditions,
	}
}

// refused is why a policy has no target; ok is false when it has one.
func (p *attachedPolicy) refused() (why status.Condition, ok bool) {
	switch {
	case len(p.used) > 0:
		return status.Condition{}, false
	case len(p.lost) > 0:
		return status.PolicyConflicted(slices.Concat(p.lost, p.missing)), true
	default:
		return status.PolicyTargetNotFound(p.missing), true
	}
}

func (p *backendPolicy) condition() status.Condition {
	if why, ok := p.refused(); ok {
		return why
	}
	if p.problem != "" {
		return status.PolicyInvalid(fmt.Sprintf("its tls cannot be used, and nothing is sent to its Services instead of sending it in plain text: %s", p.problem))
	}
	slices.Sort(p.warnings)
	return status.PolicyAccepted(slices.Concat(p.lost, p.missing, p.warnings))
}

// usedServices are the Services that routes use which a listener takes.
func usedServices(routes []*route) map[name]bool {
	used := map[name]bool{}
	for _, r := range routes {
		if slices.ContainsFunc(r.parents, func(p *parent) bool { return len(p.attached) > 0 }) {
			maps.Copy(used, r.services)
		}
	}
	return used
}
