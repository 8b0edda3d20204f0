package compile

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

func TestGateway_saysWhichAddressCannotBeHad(t *testing.T) {
	t.Parallel()
	const accepted, usable = "Accepted=False/UnsupportedAddress", "Programmed=False/AddressNotUsable"
	for name, c := range map[string]struct {
		addresses string
		floating  string
		says      string
		about     string
	}{
		"hostname":                           {addresses: "Hostname:edge.example.com", says: accepted, about: "spec.addresses[0]"},
		"a type of somebody else":            {addresses: ",example.com/pool:blue", says: accepted, about: "spec.addresses[1]"},
		"a type beats an unusable address":   {addresses: "192.0.2.1,Hostname:x", says: accepted, about: "spec.addresses[1]"},
		"a hostile type":                     {addresses: "a/\x1b[31m" + strings.Repeat("x", 200) + ":v", says: accepted, about: `\x1b[31m`},
		"no IP address":                      {addresses: "10.0.0.256", says: usable, about: `"10.0.0.256"`},
		"a zone":                             {addresses: "fe80::1%eth0", says: usable, about: "no IP address"},
		"outside, without floating IPs":      {addresses: "203.0.113.9", says: usable, about: "no floating IPs"},
		"two in the VIP subnet":              {addresses: "10.0.0.8,10.0.0.9", says: usable, about: "spec.addresses[1]"},
		"two floating IPs":                   {addresses: "203.0.113.9,203.0.113.10", floating: "public", says: usable, about: "one floating IP"},
		"an IPv6 floating IP":                {addresses: "2001:db8::9", floating: "public", says: usable, about: "IPv4"},
		"mapped IPv4 in the VIP subnet":      {addresses: "::ffff:10.0.0.9"},
		"any":                                {addresses: ",", floating: "public"},
		"one of each":                        {addresses: "203.0.113.9,10.0.0.9", floating: "public"},
		"a floating IP, whose network knows": {addresses: "198.51.100.1", floating: "public"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "u"},
				Spec: gwv1.GatewaySpec{Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}}}
			for _, a := range strings.Split(c.addresses, ",") {
				address := gwv1.GatewaySpecAddress{Value: a}
				if kind, value, typed := strings.Cut(a, ":"); typed && !strings.HasPrefix(value, ":") && !strings.HasPrefix(a, "2001") && !strings.HasPrefix(a, "fe80") {
					address.Type, address.Value = new(gwv1.AddressType(kind)), value
				}
				gateway.Spec.Addresses = append(gateway.Spec.Addresses, address)
			}
			result := Gateway(Snapshot{Gateway: gateway, Facts: lb.Facts{
				VIPSubnet: lb.Subnet{ID: "s", NetworkID: "n", CIDR: "10.0.0.0/24"}, FloatingNetworkID: c.floating,
			}})
			var said, message string
			for _, v := range result.Verdicts {
				for _, k := range v.Conditions {
					if v.Object.Kind == status.KindGateway && v.Listener == "" && k.Status == metav1.ConditionFalse {
						said, message = k.Type+"="+string(k.Status)+"/"+k.Reason, k.Message
					}
				}
			}
			if said != c.says || !strings.Contains(message, c.about) || result.Hold != (c.says != "") {
				t.Errorf("%s: %s, hold %v", said, message, result.Hold)
			}
			if strings.ContainsRune(message, 0x1b) || len(message) > 400 {
				t.Errorf("the message has what a user wrote as it is: %q", message)
			}
		})
	}
}
