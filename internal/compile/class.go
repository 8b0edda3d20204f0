package compile

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// standardHeaders are inserted unless the class says otherwise: without them a client could claim any address of its own.
var standardHeaders = []v1alpha1.InsertedHeader{v1alpha1.InsertForwardedFor, v1alpha1.InsertForwardedPort, v1alpha1.InsertForwardedProto}

// frontendOfClass sets what the class says about ports.
func (c *compiler) frontendOfClass(l *lb.Listener) {
	spec := v1alpha1.OpenStackGatewayClassConfigSpec{}
	if c.in.Config != nil {
		spec = c.in.Config.Spec
	}
	headers := spec.InsertHeaders
	if headers == nil {
		headers = standardHeaders
	}
	for _, h := range headers {
		if l.InsertHeaders == nil {
			l.InsertHeaders = map[string]string{}
		}
		l.InsertHeaders[string(h)] = "true"
	}
	l.AllowedCIDRs = networks(spec.AllowedCIDRs)
	if spec.ConnectionLimit != nil {
		l.ConnectionLimit = int(*spec.ConnectionLimit)
	}
	if t := spec.Timeouts; t != nil {
		l.TimeoutClientData = milliseconds(t.ClientData, lb.StandardTimeoutClientData)
		l.TimeoutMemberConnect = milliseconds(t.MemberConnect, lb.StandardTimeoutMemberConnect)
		l.TimeoutMemberData = milliseconds(t.MemberData, lb.StandardTimeoutMemberData)
	}
}

// networks is the normal form of a list of CIDRs: as Octavia writes them, sorted and distinct.
func networks(cidrs []string) []string {
	var out []string
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			out = append(out, prefix.Masked().String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// milliseconds is a timeout as the model has it: 0 for the standard one.
func milliseconds(d *gwv1.Duration, standard int) int {
	if d == nil {
		return 0
	}
	parsed, err := time.ParseDuration(string(*d))
	ms := int(parsed.Milliseconds())
	if err != nil || ms == standard {
		return 0
	}
	return min(max(ms, 1), longestTimeout)
}

// algorithm is that of the class for the members of a pool. Only taking turns keeps the weights that divide requests among backends.
func (c *compiler) algorithm(p *pool) string {
	const takeTurns = "ROUND_ROBIN"
	if c.in.Config == nil || len(p.shares) != 1 || p.shares[0].backend.answers != 0 {
		return takeTurns
	}
	return cmp.Or(algorithms[c.in.Config.Spec.Algorithm], takeTurns)
}

// tlsOfClass is what HTTPS listeners use unless they say otherwise.
func (in *input) tlsOfClass() v1alpha1.TLS {
	if in.Config == nil || in.Config.Spec.TLS == nil {
		return v1alpha1.TLS{}
	}
	return *in.Config.Spec.TLS
}

// nodeSelector is which Nodes may be members. Whoever fills the snapshot has refused a selector that cannot be read.
func (in *input) nodeSelector() labels.Selector {
	if in.Config == nil || in.Config.Spec.NodeSelector == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(in.Config.Spec.NodeSelector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
