package kube

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// classConfig is a configuration with a spec as users write it.
func classConfig(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: OpenStackGatewayClassConfig\nmetadata: {generateName: class-}\nspec: " + spec
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func clientFor(t *testing.T, c *rest.Config) client.Client {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.New(c, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestClassConfig_isRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	c := clientFor(t, cluster(t))
	for name, test := range map[string]struct{ spec, want string }{
		"minimal":                       {"{vipSubnet: {name: vips}}", ""},
		"no VIP":                        {"{}", "set exactly one of vipSubnet and vipNetwork"},
		"two VIPs":                      {"{vipSubnet: {name: a}, vipNetwork: {name: b}}", "set exactly one of vipSubnet and vipNetwork"},
		"empty selector":                {"{vipSubnet: {}}", "set exactly one of id, name, tags and discovery"},
		"two ways to select":            {"{vipSubnet: {name: a, tags: [b]}}", "set exactly one of id, name, tags and discovery"},
		"id":                            {"{vipSubnet: {id: 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0}}", ""},
		"no id":                         {"{vipSubnet: {id: vips}}", "spec.vipSubnet.id"},
		"tags":                          {"{vipNetwork: {tags: [one, two]}}", ""},
		"tag with a comma":              {"{vipNetwork: {tags: ['one,two']}}", "spec.vipNetwork.tags[0]"},
		"discovery":                     {"{vipNetwork: {discovery: Only}, floatingNetwork: {discovery: Only}}", ""},
		"other discovery":               {"{vipNetwork: {discovery: Any}}", "Only"},
		"floating IPs from nowhere":     {"{vipSubnet: {name: a}, floatingIPMode: Allocate}", "floatingIPMode Allocate needs floatingNetwork"},
		"floating network for some":     {"{vipSubnet: {name: a}, floatingNetwork: {name: b}, floatingIPMode: None}", ""},
		"two flavors":                   {"{vipSubnet: {name: a}, flavor: {name: b, id: 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0}}", "set exactly one of id and name"},
		"unknown algorithm":             {"{vipSubnet: {name: a}, algorithm: ROUND_ROBIN}", "RoundRobin"},
		"connection limit":              {"{vipSubnet: {name: a}, connectionLimit: 0}", "spec.connectionLimit"},
		"timeouts":                      {"{vipSubnet: {name: a}, timeouts: {clientData: 1m30s, memberConnect: 500ms, memberData: 576h}}", ""},
		"timeout of zero":               {"{vipSubnet: {name: a}, timeouts: {clientData: 0s}}", "must be between 1ms and 576h"},
		"timeout too long":              {"{vipSubnet: {name: a}, timeouts: {memberData: 577h}}", "must be between 1ms and 576h"},
		"timeout without unit":          {"{vipSubnet: {name: a}, timeouts: {memberConnect: '5'}}", "spec.timeouts.memberConnect"},
		"no headers":                    {"{vipSubnet: {name: a}, insertHeaders: []}", ""},
		"unknown header":                {"{vipSubnet: {name: a}, insertHeaders: [Forwarded]}", "X-Forwarded-For"},
		"responder without its headers": {"{vipSubnet: {name: a}, insertHeaders: [X-Forwarded-For], responder: {service: {namespace: a, name: b}}}", "with a responder, insertHeaders needs"},
		"responder with its headers":    {"{vipSubnet: {name: a}, responder: {service: {namespace: a, name: b}}}", ""},
		"allowed CIDRs":                 {"{vipSubnet: {name: a}, allowedCIDRs: [192.0.2.0/24, '2001:db8::/64']}", ""},
		"address instead of a CIDR":     {"{vipSubnet: {name: a}, allowedCIDRs: [192.0.2.1]}", "spec.allowedCIDRs[0]"},
		"CIDRs and security groups":     {"{vipSubnet: {name: a}, allowedCIDRs: [192.0.2.0/24], vipSecurityGroups: [{name: b}]}", "set only one of allowedCIDRs and vipSecurityGroups"},
		"TLS":                           {"{vipSubnet: {name: a}, tls: {versions: [TLSv1.2], ciphers: [ECDHE-RSA-AES256-GCM-SHA384]}}", ""},
		"cipher string":                 {"{vipSubnet: {name: a}, tls: {ciphers: ['HIGH:!aNULL']}}", "spec.tls.ciphers[0]"},
		"tags for the load balancer":    {"{vipSubnet: {name: a}, extraTags: ['cost centre=42']}", ""},
		"tag that claims ownership":     {"{vipSubnet: {name: a}, extraTags: ['key=loadbalancer']}", "a tag must not look like one of the controller's own"},
		"Referenced without groups":     {"{vipSubnet: {name: a}, backendSecurity: {mode: Referenced}}", "securityGroups are for mode Referenced"},
		"Unmanaged with groups":         {"{vipSubnet: {name: a}, backendSecurity: {securityGroups: [{name: b}]}}", "securityGroups are for mode Referenced"},
		"Managed without sources":       {"{vipSubnet: {name: a}, backendSecurity: {mode: Managed}}", "sources are for mode Managed"},
		"Managed":                       {"{vipSubnet: {name: a}, backendSecurity: {mode: Managed, sources: [10.0.0.0/24]}}", ""},
		"old TLS":                       {"{vipSubnet: {name: a}, tls: {versions: [TLSv1.1, TLSv1.2]}}", "Unsupported value: \"TLSv1.1\""},
		"ciphers without effect":        {"{vipSubnet: {name: a}, tls: {versions: [TLSv1.3], ciphers: [ECDHE-RSA-AES256-GCM-SHA384]}}", "ciphers are those of TLSv1.2, which versions leaves out"},
		"ciphers that HTTP/2 forbids":   {"{vipSubnet: {name: a}, tls: {ciphers: [AES128-SHA]}}", "HTTP/2 needs one of the suites"},
		"unknown cipher":                {"{vipSubnet: {name: a}, tls: {ciphers: [ECDHE-RSA-AES256-GCM-SHA384, RC4-MD5]}}", "RC4-MD5"},
		"additional VIPs of a network":  {"{vipNetwork: {name: a}, additionalVIPSubnets: [{name: b}]}", "additionalVIPSubnets needs vipSubnet"},
		"additional VIPs":               {"{vipSubnet: {name: a}, additionalVIPSubnets: [{name: b}]}", ""},
		"node selector":                 {"{vipSubnet: {name: a}, nodeSelector: {matchLabels: {role: edge}}}", ""},
	} {
		err := c.Create(t.Context(), classConfig(t, test.spec), client.DryRunAll)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want a refusal with %q", name, err, test.want)
		}
	}
}

func TestClassConfig_insertsHeadersUnlessItIsToldNotTo(t *testing.T) {
	t.Parallel()
	c := clientFor(t, cluster(t))
	for spec, want := range map[string][]v1alpha1.InsertedHeader{
		"{vipSubnet: {name: a}}":                    {v1alpha1.InsertForwardedFor, v1alpha1.InsertForwardedPort, v1alpha1.InsertForwardedProto},
		"{vipSubnet: {name: a}, insertHeaders: []}": {},
	} {
		o := classConfig(t, spec)
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got := &v1alpha1.OpenStackGatewayClassConfig{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		if got.Spec.InsertHeaders == nil || !slices.Equal(got.Spec.InsertHeaders, want) {
			t.Errorf("%s: inserts %#v, want %v", spec, got.Spec.InsertHeaders, want)
		}
		if err := c.Delete(t.Context(), got); err != nil {
			t.Error(err)
		}
	}
}
