package inspect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// manifests reads objects from files, from the files of directories, and from standard input for "-". Kinds that no Gateway depends on are
// left out.
func (t *tool) manifests(paths []string, namespace string) ([]client.Object, error) {
	scheme, err := kube.Scheme()
	if err != nil {
		return nil, err
	}
	var out []client.Object
	read := func(name string, from io.Reader) error {
		objects, err := decode(scheme, from, namespace)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, objects...)
		return nil
	}
	for _, path := range paths {
		if path == "-" {
			if err := read("standard input", t.In); err != nil {
				return nil, err
			}
			continue
		}
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("reading manifests: %w", err)
			}
			if err := read(name, bytes.NewReader(text)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// filesOf are a file, or the manifests of a directory.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var out []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	return out, nil
}

func decode(scheme *runtime.Scheme, from io.Reader, namespace string) ([]client.Object, error) {
	var out []client.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(from))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var head struct {
			metav1.TypeMeta `json:",inline"`
			Items           []json.RawMessage `json:"items"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return nil, err
		}
		if head.Kind == "List" {
			for _, item := range head.Items {
				more, err := decode(scheme, bytes.NewReader(item), namespace)
				if err != nil {
					return nil, err
				}
				out = append(out, more...)
			}
			continue
		}
		o, err := decodeOne(scheme, doc, head.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		if o.GetNamespace() == "" && namespaced(o) {
			o.SetNamespace(namespace)
		}
		out = append(out, o)
	}
}

// decodeOne decodes one object strictly: a misspelt field is a mistake that the API server would tell too. Nil is a kind that does not matter.
func decodeOne(scheme *runtime.Scheme, doc []byte, gvk schema.GroupVersionKind) (client.Object, error) {
	if gvk.Group == gwv1.GroupName && gvk.Version == "v1beta1" {
		// The same fields under an older name.
		gvk.Version = "v1"
	}
	matters := gvk.Group == gwv1.GroupName || gvk.Group == api.Domain || gvk.Group == "discovery.k8s.io" ||
		gvk.Group == "" && slices.Contains([]string{"Service", "Node", "Namespace", "Secret", "ConfigMap"}, gvk.Kind)
	if !matters || !scheme.Recognizes(gvk) {
		return nil, nil //nolint:nilnil // nothing to read
	}
	fresh, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	o, ok := fresh.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", gvk.Kind)
	}
	if err := yaml.UnmarshalStrict(doc, o); err != nil {
		return nil, fmt.Errorf("%s: %w", gvk.Kind, err)
	}
	if o.GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name is missing", gvk.Kind)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

func namespaced(o client.Object) bool {
	switch o.(type) {
	case *gwv1.GatewayClass, *v1alpha1.OpenStackGatewayClassConfig, *corev1.Namespace, *corev1.Node:
		return false
	}
	return true
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applied is what an object becomes when a manifest is applied to it, by the three-way merge of kubectl apply.
func applied(live, manifest client.Object) (client.Object, error) {
	gvk := manifest.GetObjectKind().GroupVersionKind()
	live = live.DeepCopyObject().(client.Object)
	original := []byte(live.GetAnnotations()[lastApplied])
	modified, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	if modified, err = withoutEmpty(modified); err != nil {
		return nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(gvk)
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	fresh := live.DeepCopyObject().(client.Object)
	var merged []byte
	if gvk.Group == "" || gvk.Group == "discovery.k8s.io" {
		meta, err := strategicpatch.NewPatchMetaFromStruct(fresh)
		if err != nil {
			return nil, err
		}
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
		if err != nil {
			return nil, err
		}
		if merged, err = strategicpatch.StrategicMergePatch(current, patch, fresh); err != nil {
			return nil, err
		}
	} else {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
		if err != nil {
			return nil, err
		}
		if merged, err = mergePatch(current, patch); err != nil {
			return nil, err
		}
	}
	out, err := newLike(live)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(merged, out); err != nil {
		return nil, err
	}
	return out, nil
}

// withoutEmpty leaves out what the Go types add to a manifest: null timestamps and empty statuses.
func withoutEmpty(doc []byte) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(doc, &m); err != nil {
		return nil, err
	}
	delete(m, "status")
	if meta, ok := m["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return json.Marshal(m)
}

// names of objects for people.
func named(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetNamespace() == "" {
		return kind + " " + o.GetName()
	}
	return kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}
