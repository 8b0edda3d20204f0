package scenario

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"
	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

var served = kube.Served{ListenerSets: true, BackendTLSPolicies: true, ReferenceGrants: "v1"}

// cluster is a Kubernetes API without a server. It does what the controller relies on: generations, UIDs, finalizers, status
// subresources, field indexes.
type cluster struct {
	scheme *runtime.Scheme
	// admin is what the people in the story use; controller is the same until its process dies.
	admin, controller client.Client
	dead              bool
	// patched counts the controller's writes of statuses.
	patched int
	made    int
	now     func() metav1.Time
	// published are the addresses that Gateways had, one after the other, and lastly those that each has now.
	published []string
	lastly    map[types.NamespacedName]string
}

// indexer registers the controller's field indexes with the fake.
type indexer struct{ b *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.b.WithIndex(o, field, extract)
	return nil
}

var errDead = errors.New("the process is dead")

func newCluster(ctx context.Context, c clock) (*cluster, error) {
	// The kinds of kube.Scheme that are used: the fake gets slow with each one.
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, gwv1.Install, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&gwv1.Gateway{}, &gwv1.GatewayClass{}, &gwv1.HTTPRoute{}, &gwv1.ListenerSet{},
			&v1alpha1.OpenStackBackendPolicy{}, &gwv1.BackendTLSPolicy{})
	for _, resource := range []string{"gatewayclasses", "gateways", "httproutes", "listenersets", "referencegrants"} {
		b.WithObjects(crdOf(resource, "v1.6.3"))
	}
	if err := kube.SetupIndexes(ctx, indexer{b}, controllerName, served); err != nil {
		return nil, err
	}
	k := &cluster{scheme: scheme, now: func() metav1.Time { return metav1.NewTime(c.Now()) }}
	admin := b.Build()
	k.admin = admin
	k.controller = interceptor.NewClient(admin, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if k.dead {
				return errDead
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if k.dead {
				return errDead
			}
			return c.Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if k.dead {
				return errDead
			}
			k.patched++
			err := c.SubResource(sub).Patch(ctx, o, p, opts...)
			if gw, ok := o.(*gwv1.Gateway); ok && err == nil {
				k.publish(gw)
			}
			return err
		},
	})
	return k, nil
}

// publish notes which addresses a Gateway has after a write, when they are others than before.
func (k *cluster) publish(gw *gwv1.Gateway) {
	var all []string
	for _, a := range gw.Status.Addresses {
		all = append(all, a.Value)
	}
	said := "gateway/" + gw.Namespace + "/" + gw.Name + " has " + cmp.Or(strings.Join(all, ", "), "no address")
	if k.lastly == nil {
		k.lastly = map[types.NamespacedName]string{}
	}
	key := client.ObjectKeyFromObject(gw)
	if k.lastly[key] != said {
		k.lastly[key] = said
		k.published = append(k.published, said)
	}
}

func crdOf(resource, version string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(resource + "." + gwv1.GroupName)
	crd.SetAnnotations(map[string]string{consts.BundleVersionAnnotation: version})
	return crd
}

// apply creates or replaces objects; it says what became of each.
func (k *cluster) apply(ctx context.Context, manifest []byte) (string, error) {
	var out strings.Builder
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out.String(), nil
		}
		if err != nil {
			return "", fmt.Errorf("reading a manifest: %w", err)
		}
		o, err := k.decode(doc)
		if err != nil {
			return "", err
		}
		if o == nil {
			continue
		}
		verb, err := k.put(ctx, o)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s %s\n", k.name(o), verb)
	}
}

// decode is strict: a misspelt field fails the story.
func (k *cluster) decode(doc []byte) (client.Object, error) {
	var tm metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &tm); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if tm.Kind == "" {
		return nil, nil //nolint:nilnil // a document of comments
	}
	o, err := k.scheme.New(tm.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if err := yaml.UnmarshalStrict(doc, o); err != nil {
		return nil, fmt.Errorf("decoding a %s: %w", tm.Kind, err)
	}
	object, ok := o.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", tm.Kind)
	}
	return object, nil
}

// put creates an object, or replaces all of it but for its identity and status.
func (k *cluster) put(ctx context.Context, o client.Object) (string, error) {
	old, err := k.get(ctx, k.kind(o), client.ObjectKeyFromObject(o))
	if apierrors.IsNotFound(err) {
		k.made++
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", k.made)))
		o.SetGeneration(1)
		o.SetCreationTimestamp(k.now())
		if err = k.admin.Create(ctx, o); err != nil {
			return "", fmt.Errorf("creating %s: %w", k.name(o), err)
		}
		return "created", nil
	}
	if err != nil {
		return "", err
	}
	o.SetUID(old.GetUID())
	o.SetResourceVersion(old.GetResourceVersion())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetFinalizers(old.GetFinalizers())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetGeneration(old.GetGeneration())
	before, after := content(old), content(o)
	if reflect.DeepEqual(before, after) && reflect.DeepEqual(old.GetLabels(), o.GetLabels()) && reflect.DeepEqual(old.GetAnnotations(), o.GetAnnotations()) {
		return "unchanged", nil
	}
	if !reflect.DeepEqual(before["spec"], after["spec"]) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
	if err := k.admin.Update(ctx, o); err != nil {
		return "", fmt.Errorf("updating %s: %w", k.name(o), err)
	}
	return "changed", nil
}

// content is an object without its metadata; for kinds with a status subresource without the status.
func content(o client.Object) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err)
	}
	delete(m, "metadata")
	delete(m, "kind")
	delete(m, "apiVersion")
	switch o.(type) {
	case *gwv1.Gateway, *gwv1.GatewayClass, *gwv1.HTTPRoute, *gwv1.ListenerSet, *v1alpha1.OpenStackBackendPolicy, *gwv1.BackendTLSPolicy:
		delete(m, "status")
	}
	return m
}

// edit merges a patch into an object, as kubectl patch --type=merge does.
func (k *cluster) edit(ctx context.Context, ref string, patch []byte) (string, error) {
	o, err := k.find(ctx, ref)
	if err != nil {
		return "", err
	}
	old, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("editing %s: %w", ref, err)
	}
	change, err := yaml.YAMLToJSON(patch)
	if err != nil {
		return "", fmt.Errorf("editing %s: %w", ref, err)
	}
	merged, err := jsonpatch.MergePatch(old, change)
	if err != nil {
		return "", fmt.Errorf("editing %s: %w", ref, err)
	}
	edited, err := k.decode(typed(merged, k.kind(o)))
	if err != nil {
		return "", err
	}
	verb, err := k.put(ctx, edited)
	return ref + " " + verb, err
}

// typed adds the kind to the JSON of an object that lost it.
func typed(text []byte, gvk schema.GroupVersionKind) []byte {
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return text
	}
	m["apiVersion"], m["kind"] = gvk.GroupVersion().String(), gvk.Kind
	out, err := json.Marshal(m)
	if err != nil {
		return text
	}
	return out
}

func (k *cluster) remove(ctx context.Context, ref string) (string, error) {
	o, err := k.find(ctx, ref)
	if err != nil {
		return "", err
	}
	if err := k.admin.Delete(ctx, o); err != nil {
		return "", fmt.Errorf("deleting %s: %w", ref, err)
	}
	if _, err := k.find(ctx, ref); err == nil {
		return ref + " is being deleted", nil
	}
	return ref + " deleted", nil
}

// force deletes an object that finalizers would hold.
func (k *cluster) force(ctx context.Context, ref string) (string, error) {
	o, err := k.find(ctx, ref)
	if err != nil {
		return "", err
	}
	o.SetFinalizers(nil)
	if err := k.admin.Update(ctx, o); err != nil {
		return "", fmt.Errorf("forcing %s: %w", ref, err)
	}
	if err := client.IgnoreNotFound(k.admin.Delete(ctx, o)); err != nil {
		return "", fmt.Errorf("deleting %s: %w", ref, err)
	}
	return ref + " deleted by force", nil
}

// crd replaces a CRD of Gateway API by that of another bundle, or deletes it. The objects stay.
func (k *cluster) crd(ctx context.Context, resource, version string) error {
	if err := client.IgnoreNotFound(k.admin.Delete(ctx, crdOf(resource, ""))); err != nil {
		return fmt.Errorf("deleting the CRD of %s: %w", resource, err)
	}
	if version == "none" {
		return nil
	}
	if err := k.admin.Create(ctx, crdOf(resource, version)); err != nil {
		return fmt.Errorf("creating the CRD of %s: %w", resource, err)
	}
	return nil
}

// find reads the object that a reference such as httproute/shop/cart or gatewayclass/openstack names.
func (k *cluster) find(ctx context.Context, ref string) (client.Object, error) {
	parts := strings.Split(ref, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q is not kind/namespace/name or kind/name", ref)
	}
	key := types.NamespacedName{Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		key.Namespace = parts[1]
	}
	for gvk := range k.scheme.AllKnownTypes() {
		if strings.EqualFold(gvk.Kind, parts[0]) && (gvk.Version == "v1" || gvk.Version == "v1alpha1") && slices.Contains(groups, gvk.Group) {
			return k.get(ctx, gvk, key)
		}
	}
	return nil, fmt.Errorf("there is no kind %q", parts[0])
}

// groups are the API groups whose kinds a reference can name.
var groups = []string{"", "discovery.k8s.io", gwv1.GroupName, "gateway-api-openstack.dev"}

func (k *cluster) get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (client.Object, error) {
	fresh, err := k.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	o, ok := fresh.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", gvk.Kind)
	}
	return o, k.admin.Get(ctx, key, o)
}

func (k *cluster) kind(o client.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(o, k.scheme)
	if err != nil {
		panic(err)
	}
	return gvk
}

// name is the reference to an object.
func (k *cluster) name(o client.Object) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return strings.ToLower(k.kind(o).Kind) + "/" + name
}

// status prints what the status of a Gateway, a GatewayClass, an HTTPRoute or a policy says.
func (k *cluster) status(ctx context.Context, ref string) (string, error) {
	o, err := k.find(ctx, ref)
	if apierrors.IsNotFound(err) {
		return ref + " does not exist", nil
	}
	if err != nil {
		return "", err
	}
	var b strings.Builder
	conditions := func(prefix string, list []metav1.Condition) {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		for _, c := range list {
			fmt.Fprintf(&b, "%s%s=%s %s: %s", prefix, c.Type, c.Status, c.Reason, c.Message)
			if c.ObservedGeneration != o.GetGeneration() {
				fmt.Fprintf(&b, " (about generation %d of %d)", c.ObservedGeneration, o.GetGeneration())
			}
			b.WriteString("\n")
		}
	}
	ancestors := func(s gwv1.PolicyStatus) {
		for _, a := range s.Ancestors {
			fmt.Fprintf(&b, "ancestor %s\n", a.AncestorRef.Name)
			conditions("  ", a.Conditions)
		}
	}
	switch o := o.(type) {
	case *gwv1.Gateway:
		for _, a := range o.Status.Addresses {
			fmt.Fprintf(&b, "address %s\n", a.Value)
		}
		conditions("", o.Status.Conditions)
		for _, l := range o.Status.Listeners {
			fmt.Fprintf(&b, "listener %s: %d routes\n", l.Name, l.AttachedRoutes)
			conditions("  ", l.Conditions)
		}
	case *gwv1.GatewayClass:
		conditions("", o.Status.Conditions)
	case *gwv1.HTTPRoute:
		for _, p := range o.Status.Parents {
			name := string(p.ParentRef.Name)
			if p.ParentRef.SectionName != nil {
				name += "/" + string(*p.ParentRef.SectionName)
			}
			fmt.Fprintf(&b, "parent %s\n", name)
			conditions("  ", p.Conditions)
		}
	case *v1alpha1.OpenStackBackendPolicy:
		ancestors(o.Status)
	case *gwv1.BackendTLSPolicy:
		ancestors(o.Status)
	default:
		return "", fmt.Errorf("%s has no status that a story can print", ref)
	}
	if f := o.GetFinalizers(); len(f) > 0 {
		fmt.Fprintf(&b, "finalizers %s\n", strings.Join(f, ", "))
	}
	if !o.GetDeletionTimestamp().IsZero() {
		b.WriteString("is being deleted\n")
	}
	if b.Len() == 0 {
		return "nothing", nil
	}
	return b.String(), nil
}

// all lists the keys of all objects of a kind.
func (k *cluster) all(ctx context.Context, list client.ObjectList) ([]types.NamespacedName, error) {
	if err := k.admin.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	var keys []types.NamespacedName
	err := meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err != nil {
			return fmt.Errorf("listing: %w", err)
		}
		keys = append(keys, types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()})
		return nil
	})
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return keys, err
}

// manifest reads a file of testdata/manifests.
func manifest(name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "manifests", name))
	if err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	return text, nil
}
