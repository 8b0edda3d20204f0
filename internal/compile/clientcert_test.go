package compile_test

import (
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

const clientCertificates = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge, uid: uid-1, generation: 1}
spec:
  gatewayClassName: openstack
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
kind: TestCertificate
metadata: {namespace: infra, name: good}
names: ["client.test"]
---
apiVersion: v1
kind: Secret
metadata: {namespace: infra, name: malformed}
type: kubernetes.io/tls
data: {tls.crt: bm90aGluZw==, tls.key: bm90aGluZw==}
---
kind: TestCertificate
metadata: {namespace: other, name: good}
names: ["client.test"]
---
kind: TestCertificate
metadata: {namespace: friend, name: good}
names: ["client.test"]
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {namespace: friend, name: gateways}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret}]
`

// The certificate for backends is shown to nobody, but a reference that cannot be used is told, and the Gateway works on.
func TestGateway_judgesTheClientCertificate(t *testing.T) {
	t.Parallel()
	ref := func(namespace, name string) *gwv1.SecretObjectReference {
		r := &gwv1.SecretObjectReference{Name: gwv1.ObjectName(name)}
		if namespace != "" {
			r.Namespace = new(gwv1.Namespace(namespace))
		}
		return r
	}
	kind, group := ref("", "good"), ref("", "good")
	kind.Kind, group.Group = new(gwv1.Kind("WrongKind")), new(gwv1.Group("wrong.test"))
	for name, test := range map[string]struct {
		ref  *gwv1.SecretObjectReference
		want string
	}{
		"none":                   {nil, ""},
		"good":                   {ref("", "good"), "True/ResolvedRefs"},
		"missing":                {ref("", "gone"), "False/InvalidClientCertificateRef"},
		"malformed":              {ref("", "malformed"), "False/InvalidClientCertificateRef"},
		"another kind":           {kind, "False/InvalidClientCertificateRef"},
		"another group":          {group, "False/InvalidClientCertificateRef"},
		"elsewhere":              {ref("other", "good"), "False/RefNotPermitted"},
		"elsewhere with a grant": {ref("friend", "good"), "True/ResolvedRefs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snapshot, _ := parse(t, []byte(clientCertificates))
			snapshot.Gateway.Spec.TLS = &gwv1.GatewayTLSConfig{Backend: &gwv1.GatewayBackendTLS{ClientCertificateRef: test.ref}}
			got, accepted := "", ""
			for _, v := range compile.Gateway(snapshot).Verdicts {
				if v.Object.Kind != status.KindGateway || v.Listener != "" {
					continue
				}
				for _, c := range v.Conditions {
					switch gwv1.GatewayConditionType(c.Type) {
					case gwv1.GatewayConditionResolvedRefs:
						got = string(c.Status) + "/" + c.Reason
					case gwv1.GatewayConditionAccepted:
						accepted = string(c.Status)
					}
				}
			}
			if got != test.want || accepted != "True" {
				t.Errorf("ResolvedRefs=%s and Accepted=%s, want %s and True", got, accepted, test.want)
			}
		})
	}
}
