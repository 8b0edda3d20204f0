package compile_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

var update = flag.Bool("update", false, "rewrite the golden outputs")

// facts is the one document of a case that is no Kubernetes object.
type facts struct {
	Kind       string `json:"kind"`
	ClusterID  string `json:"clusterID"`
	Controller string `json:"controller"`
	// Marks shows the ownership tags, which are left out elsewhere.
	Marks bool     `json:"marks,omitempty"`
	Cloud lb.Facts `json:"cloud"`
}

// golden is what an output holds.
type golden struct {
	Tree      *lb.Tree         `json:"tree,omitempty"`
	Hold      bool             `json:"hold,omitempty"`
	Redirects answer.Table     `json:"redirects,omitempty"`
	Verdicts  []status.Verdict `json:"verdicts,omitempty"`
}

func TestGateway_matchesGoldenOutputs(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, in := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(in), ".in.yaml"), func(t *testing.T) {
			t.Parallel()
			manifest, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(manifest, []byte("# ")) {
				t.Error("the first line must be a comment that says what the case proves")
			}
			snapshot, f := parse(t, manifest)
			result := compile.Gateway(snapshot)
			if _, err = route.New(&result.Tree); err != nil {
				t.Errorf("HAProxy would not take the tree: %v", err)
			}
			out := golden{Hold: result.Hold, Redirects: result.Redirects, Verdicts: result.Verdicts}
			if !result.Tree.Empty() {
				out.Tree = &result.Tree
				nameSecrets(out.Tree)
				if !f.Marks {
					hideMarks(out.Tree)
				}
			}
			got, err := yaml.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			file := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			if *update {
				if err = os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: run with -update", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("differs from %s (run with -update and look at the diff):\n%s", file, firstDifference(string(want), string(got)))
			}
		})
	}
}

// parse reads a manifest strictly.
func parse(t testing.TB, manifest []byte) (compile.Snapshot, facts) {
	t.Helper()
	f := facts{
		ClusterID: "c1", Controller: "gateway-api-openstack.dev/controller",
		Cloud: lb.Facts{VIPSubnet: lb.Subnet{ID: "vip-subnet", NetworkID: "vip-network", CIDR: "10.0.0.0/24"}, KeyManager: true},
	}
	s := compile.Snapshot{}
	for _, document := range strings.Split(string(manifest), "\n---") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		decode := func(object any) {
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Fatalf("%s: %v", kind.Kind, err)
			}
		}
		switch kind.Kind {
		case "":
		case "Facts":
			decode(&f)
		case "GatewayClass":
			s.Class = &gwv1.GatewayClass{}
			decode(s.Class)
		case "OpenStackGatewayClassConfig":
			s.Config = &v1alpha1.OpenStackGatewayClassConfig{}
			decode(s.Config)
		case "Gateway":
			s.Gateway = &gwv1.Gateway{}
			decode(s.Gateway)
		case "HTTPRoute":
			s.HTTPRoutes = append(s.HTTPRoutes, &gwv1.HTTPRoute{})
			decode(s.HTTPRoutes[len(s.HTTPRoutes)-1])
		case "ListenerSet":
			s.ListenerSets = append(s.ListenerSets, &gwv1.ListenerSet{})
			decode(s.ListenerSets[len(s.ListenerSets)-1])
		case "ReferenceGrant":
			s.ReferenceGrants = append(s.ReferenceGrants, &gwv1beta1.ReferenceGrant{})
			decode(s.ReferenceGrants[len(s.ReferenceGrants)-1])
		case "Namespace":
			s.Namespaces = append(s.Namespaces, &corev1.Namespace{})
			decode(s.Namespaces[len(s.Namespaces)-1])
		case "Service":
			s.Services = append(s.Services, &corev1.Service{})
			decode(s.Services[len(s.Services)-1])
		case "OpenStackBackendPolicy":
			s.BackendPolicies = append(s.BackendPolicies, &v1alpha1.OpenStackBackendPolicy{})
			decode(s.BackendPolicies[len(s.BackendPolicies)-1])
		case "BackendTLSPolicy":
			s.BackendTLSPolicies = append(s.BackendTLSPolicies, &gwv1.BackendTLSPolicy{})
			decode(s.BackendTLSPolicies[len(s.BackendTLSPolicies)-1])
		case "EndpointSlice":
			s.EndpointSlices = append(s.EndpointSlices, &discoveryv1.EndpointSlice{})
			decode(s.EndpointSlices[len(s.EndpointSlices)-1])
		case "TestCertificate":
			d := certificateDocument{}
			decode(&d)
			s.Secrets = append(s.Secrets, d.secret(t))
		case "Secret":
			s.Secrets = append(s.Secrets, &corev1.Secret{})
			decode(s.Secrets[len(s.Secrets)-1])
		case "ConfigMap":
			s.ConfigMaps = append(s.ConfigMaps, &corev1.ConfigMap{})
			decode(s.ConfigMaps[len(s.ConfigMaps)-1])
		case "TestCA":
			d := certificateDocument{}
			decode(&d)
			s.ConfigMaps = append(s.ConfigMaps, d.configMap(t))
		case "Node":
			s.Nodes = append(s.Nodes, &corev1.Node{})
			decode(s.Nodes[len(s.Nodes)-1])
		default:
			t.Fatalf("unknown kind %q", kind.Kind)
		}
	}
	s.Now = certificatesMade
	s.ClusterID, s.Controller, s.Facts = f.ClusterID, f.Controller, f.Cloud
	return s, f
}

// hideMarks leaves out what is the same in all cases.
func hideMarks(tree *lb.Tree) {
	hide := func(m *lb.Meta) {
		m.Tags = nil
		if m.Name == m.Key {
			m.Name = ""
		}
	}
	hide(&tree.Meta)
	tree.Owner, tree.Description = lb.Owner{}, ""
	if tree.FloatingIP != nil {
		tree.FloatingIP.Description = ""
	}
	for i := range tree.Listeners {
		hide(&tree.Listeners[i].Meta)
		tree.Listeners[i].InsertHeaders = nil
		for j := range tree.Listeners[i].Policies {
			hide(&tree.Listeners[i].Policies[j].Meta)
		}
	}
	for i := range tree.Pools {
		hide(&tree.Pools[i].Meta)
		if m := tree.Pools[i].Monitor; m != nil {
			m.Name, m.Tags = "", nil
		}
	}
}

// firstDifference shows the lines around the first that differs.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			from := max(i-3, 0)
			return "want:\n" + strings.Join(w[min(from, len(w)):min(i+5, len(w))], "\n") +
				"\ngot:\n" + strings.Join(g[min(from, len(g)):min(i+5, len(g))], "\n")
		}
	}
	return ""
}
