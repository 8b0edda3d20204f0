package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// listener is one listener of the Gateway.
type listener struct {
	owner    status.Object
	name     gwv1.SectionName
	hostname hostname
	port     gwv1.PortNumber
	protocol gwv1.ProtocolType
	allowed  *gwv1.AllowedRoutes
	// kinds are the supported ones among those that it allows.
	kinds []gwv1.RouteGroupKind
	// accepted, conflicted and resolved are its conditions; notProgrammed says why it is not served, "" when it is.
	accepted      status.Condition
	conflicted    status.Condition
	resolved      status.Condition
	notProgrammed string
	reason        gwv1.ListenerConditionReason
	// tls is what an HTTPS listener says; certificates and options are what was made of it.
	tls          *gwv1.ListenerTLSConfig
	certificates []*certificate
	options      tlsOptions
	// cloudRefusal says which of the certificates the cloud does not take, "" when it takes all; programmed is the condition about it.
	cloudRefusal string
	programmed   status.Condition
	// overlapping is its OverlappingTLSConfig condition, if it has one.
	overlapping status.Condition
	attached    int32
}

// label is how messages and keys call the listener.
func (l *listener) label() string {
	if l.owner.Kind == status.KindListenerSet {
		return fmt.Sprintf("%s/%s/%s", l.owner.Namespace, l.owner.Name, l.name)
	}
	return string(l.name)
}

func (l *listener) served() bool { return l.notProgrammed == "" }

// valid says whether nothing is wrong with the listener itself. One whose certificate the cloud does not take is not served, and valid.
func (l *listener) valid() bool { return l.served() || l.cloudRefusal != "" && l.programmed.Type != "" }

func (l *listener) scheme() string {
	if l.protocol == gwv1.HTTPSProtocolType {
		return "https"
	}
	return "http"
}

// listeners reads the Gateway's own listeners.
func (in *input) listeners() []*listener {
	var all []*listener
	for _, spec := range in.Gateway.Spec.Listeners {
		all = append(all, newListener(in.object(), spec))
	}
	return all
}

func newListener(owner status.Object, spec gwv1.Listener) *listener {
	l := &listener{
		owner: owner, name: spec.Name, port: spec.Port, protocol: spec.Protocol, allowed: spec.AllowedRoutes, tls: spec.TLS,
		reason:   gwv1.ListenerReasonInvalid,
		accepted: status.ListenerAccepted(), conflicted: status.ListenerNoConflicts(), resolved: status.ListenerResolvedRefs(),
	}
	switch spec.Protocol {
	case gwv1.HTTPProtocolType, gwv1.HTTPSProtocolType:
	default:
		l.refuse(status.ListenerUnsupportedProtocol(spec.Protocol))
		return l
	}
	l.kinds = l.allowedKinds()
	if l.port < 1 || l.port > 65535 {
		l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("port %d is not between 1 and 65535", l.port)))
		return l
	}
	if spec.Hostname != nil && *spec.Hostname != "" {
		parsed, ok := parseHostname(string(*spec.Hostname))
		switch {
		case !ok:
			l.refuse(status.ListenerUnsupportedValue("the hostname is not valid"))
		case !hostFits(parsed):
			l.refuse(status.ListenerUnsupportedValue(fmt.Sprintf("the hostname is too long: Octavia takes %d characters after escaping", maxValue)))
		}
		l.hostname = parsed
	}
	return l
}

func (l *listener) refuse(accepted status.Condition) {
	l.accepted = accepted
	l.notProgrammed = "the listener is not accepted: see its Accepted condition"
}

// allowedKinds are the supported kinds that the listener allows. Unsupported ones are told in its conditions.
func (l *listener) allowedKinds() []gwv1.RouteGroupKind {
	supported := []gwv1.RouteGroupKind{{Group: groupPointer(gwv1.GroupName), Kind: "HTTPRoute"}}
	if l.allowed == nil || len(l.allowed.Kinds) == 0 {
		return supported
	}
	var invalid []string
	var kinds []gwv1.RouteGroupKind
	for _, k := range l.allowed.Kinds {
		group := gwv1.Group(gwv1.GroupName)
		if k.Group != nil {
			group = *k.Group
		}
		switch {
		case group != gwv1.GroupName || k.Kind != "HTTPRoute":
			invalid = append(invalid, strings.Trim(fmt.Sprintf("%s.%s", k.Kind, group), "."))
		case len(kinds) == 0:
			kinds = supported
		}
	}
	if len(invalid) > 0 {
		slices.Sort(invalid)
		l.resolved = status.ListenerInvalidRouteKinds(slices.Compact(invalid))
	}
	return kinds
}

func groupPointer(g gwv1.Group) *gwv1.Group { return &g }

// markConflicts finds listeners that want one port for different protocols, or one port and hostname. Gateway API forbids to pick a
// winner among the listeners of one object; among several objects, earlier ones in owners win.
func markConflicts(owners ...[]*listener) {
	placed := map[gwv1.PortNumber][]*listener{}
	for _, own := range owners {
		here := map[gwv1.PortNumber][]*listener{}
		for _, l := range own {
			if transport(l.protocol) == "tcp" {
				here[l.port] = append(here[l.port], l)
			}
		}
		for port, same := range here {
			beaten := func(by []*listener) func(*listener) bool {
				return func(l *listener) bool { return l.conflictsWith(by) }
			}
			left := slices.DeleteFunc(same, beaten(placed[port]))
			winners := slices.DeleteFunc(slices.Clone(left), beaten(left))
			placed[port] = append(placed[port], winners...)
		}
	}
}

// conflictsWith marks l when it conflicts with one of the others.
func (l *listener) conflictsWith(others []*listener) bool {
	var protocol, host []string
	for _, o := range others {
		switch {
		case o == l:
		case family(o.protocol) != family(l.protocol):
			protocol = append(protocol, o.nameFor(l))
		case o.hostname == l.hostname:
			host = append(host, o.nameFor(l))
		}
	}
	switch {
	case len(protocol) > 0:
		l.conflict(status.ListenerProtocolConflict(l.port, slices.Compact(protocol)), gwv1.ListenerReasonProtocolConflict)
	case len(host) > 0:
		l.conflict(status.ListenerHostnameConflict(l.port, slices.Compact(host)), gwv1.ListenerReasonHostnameConflict)
	default:
		return false
	}
	return true
}

// nameFor is how a message on another listener calls l. The author of one ListenerSet does not learn about others.
func (l *listener) nameFor(other *listener) string {
	switch {
	case l.owner == other.owner:
		return "listener " + string(l.name)
	case l.owner.Kind == status.KindGateway:
		return "the Gateway"
	}
	return "another ListenerSet"
}

func (l *listener) conflict(conflicted status.Condition, reason gwv1.ListenerConditionReason) {
	l.conflicted = conflicted
	l.accepted = status.ListenerNotAcceptedConflict(reason, l.port)
	l.notProgrammed, l.reason = "the listener conflicts with another one: see its Conflicted condition", reason
}

// transport is the layer-4 protocol in which a listener takes its port; "" when it is not known.
func transport(p gwv1.ProtocolType) string {
	switch p {
	case gwv1.HTTPProtocolType, gwv1.HTTPSProtocolType, gwv1.TLSProtocolType, gwv1.TCPProtocolType:
		return "tcp"
	case gwv1.UDPProtocolType:
		return "udp"
	}
	return ""
}

// family is what listeners of one port must agree on.
func family(p gwv1.ProtocolType) gwv1.ProtocolType {
	if p == gwv1.TLSProtocolType {
		return gwv1.HTTPSProtocolType
	}
	return p
}

// verdict is the listener's status.
func (l *listener) verdict() status.Verdict {
	v := status.Verdict{
		Object: l.owner, Listener: l.name, SupportedKinds: l.kinds, AttachedRoutes: l.attached,
		Conditions: []status.Condition{l.accepted, l.conflicted, l.resolved},
	}
	if l.overlapping.Type != "" {
		v.Conditions = append(v.Conditions, l.overlapping)
	}
	switch {
	case l.programmed.Type != "":
		v.Conditions = append(v.Conditions, l.programmed)
	case !l.served():
		v.Conditions = append(v.Conditions, status.ListenerNotProgrammed(l.reason, l.notProgrammed))
	}
	return v
}

// frontend is one port of the load balancer: one Octavia listener for all Gateway listeners on it.
type frontend struct {
	port      gwv1.PortNumber
	protocol  lb.Protocol
	listeners []*listener
}

// frontends groups the served listeners by port.
func frontends(all []*listener) []*frontend {
	byPort := map[gwv1.PortNumber]*frontend{}
	var list []*frontend
	for _, l := range all {
		if !l.served() {
			continue
		}
		f := byPort[l.port]
		if f == nil {
			f = &frontend{port: l.port, protocol: lb.HTTP}
			if l.protocol == gwv1.HTTPSProtocolType {
				f.protocol = lb.TerminatedHTTPS
			}
			byPort[l.port] = f
			list = append(list, f)
		}
		f.listeners = append(f.listeners, l)
	}
	slices.SortFunc(list, func(a, b *frontend) int { return cmp.Compare(a.port, b.port) })
	return list
}

// key is the key of the Octavia listener.
func (f *frontend) key() string {
	if f.protocol == lb.TerminatedHTTPS {
		return fmt.Sprintf("https-%d", f.port)
	}
	return fmt.Sprintf("http-%d", f.port)
}
