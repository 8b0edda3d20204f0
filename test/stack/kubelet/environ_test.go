package main

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store is a set of objects for tests.
type store struct {
	secrets    map[string]*corev1.Secret
	configMaps map[string]*corev1.ConfigMap
}

func (s store) secret(ns, name string) *corev1.Secret       { return s.secrets[ns+"/"+name] }
func (s store) configMap(ns, name string) *corev1.ConfigMap { return s.configMaps[ns+"/"+name] }

func testStore() store {
	return store{
		secrets: map[string]*corev1.Secret{"shop/cloud": {Data: map[string][]byte{"clouds.yaml": []byte("a: b"), "user": []byte("demo")}}},
		configMaps: map[string]*corev1.ConfigMap{
			"shop/settings":         {Data: map[string]string{"LEVEL": "3"}, BinaryData: map[string][]byte{"blob": {1, 2}}},
			"shop/kube-root-ca.crt": {Data: map[string]string{"ca.crt": "CA"}},
		},
	}
}

var testFacts = facts{podIP: netip.MustParseAddr("10.244.1.2"), hostIP: netip.MustParseAddr("10.88.0.11"), apiServer: netip.MustParseAddrPort("10.96.0.1:443")}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u-1", Labels: map[string]string{"app": "web", "a.test/x": "y"}},
		Spec:       corev1.PodSpec{NodeName: "node1", ServiceAccountName: "web"},
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestEnviron_resolvesEverySource(t *testing.T) {
	t.Parallel()
	yes := true
	c := &corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi"), "cpu": resource.MustParse("1500m")}},
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "S_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: &yes}},
		},
		Env: []corev1.EnvVar{
			{Name: "POD", ValueFrom: field("metadata.name")},
			{Name: "NODE", ValueFrom: field("spec.nodeName")},
			{Name: "IP", ValueFrom: field("status.podIP")},
			{Name: "HOST", ValueFrom: field("status.hostIP")},
			{Name: "X", ValueFrom: field("metadata.labels['a.test/x']")},
			{Name: "MEM", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
			{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
			{Name: "OS_USER", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cloud"}, Key: "user"}}},
			{Name: "NOT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "none", Optional: &yes}}},
			{Name: "S_LEVEL", Value: "was $(S_LEVEL), pod $(POD), $(UNKNOWN), $$(POD)"},
		},
	}
	got, err := environ(testPod(), c, testFacts, testStore())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"HOSTNAME=web-0", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "POD=web-0", "NODE=node1",
		"IP=10.244.1.2", "HOST=10.88.0.11", "X=y", "MEM=67108864", "CPU=2", "OS_USER=demo", "S_LEVEL=was 3, pod web-0, $(UNKNOWN), $(POD)"}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no %q in %q", w, got)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "NOT=") {
			t.Errorf("an optional absent key gave %q", kv)
		}
	}
}

func TestEnviron_namesWhatIsMissing(t *testing.T) {
	t.Parallel()
	ref := corev1.LocalObjectReference{Name: "absent"}
	for name, v := range map[string]*corev1.EnvVarSource{
		`secret "absent" with key "k" not found`:    {SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k"}},
		`configmap "absent" with key "k" not found`: {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "k"}},
		`field "status.phase" is not supported`:     field("status.phase"),
	} {
		_, err := environ(testPod(), &corev1.Container{Env: []corev1.EnvVar{{Name: "V", ValueFrom: v}}}, testFacts, testStore())
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "V") {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	_, err := environ(testPod(), &corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}}, testFacts, testStore())
	if err == nil {
		t.Error("envFrom of an absent Secret was taken")
	}
}

func TestExpand_followsKubernetesRules(t *testing.T) {
	t.Parallel()
	lookup := func(n string) (string, bool) { return "<" + n + ">", n == "A" }
	for in, want := range map[string]string{
		"":           "",
		"$":          "$",
		"a$":         "a$",
		"$(A)":       "<A>",
		"$(A)$(A)":   "<A><A>",
		"$(B)":       "$(B)",
		"$$(A)":      "$(A)",
		"$$$(A)":     "$<A>",
		"$(A":        "$(A",
		"$A x":       "$A x",
		"x$(A)y$(B)": "x<A>y$(B)",
	} {
		if got := expand(in, lookup); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestArgv_commandNamesThePlaceOfTheBinary(t *testing.T) {
	t.Parallel()
	env := []string{"PORT=80"}
	for _, c := range []struct {
		container  corev1.Container
		path, args string
	}{
		{corev1.Container{}, "/entrypoint", "/entrypoint"},
		{corev1.Container{Args: []string{"--port=$(PORT)"}}, "/entrypoint", "/entrypoint --port=80"},
		{corev1.Container{Command: []string{"/controller", "a"}, Args: []string{"b"}}, "/controller", "/controller a b"},
		{corev1.Container{Command: []string{"controller"}}, "/bin/controller", "controller"},
	} {
		path, args := argv(&c.container, env)
		if path != c.path || strings.Join(args, " ") != c.args {
			t.Errorf("%v %v: got %q %q", c.container.Command, c.container.Args, path, args)
		}
	}
}
