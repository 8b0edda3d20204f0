package robustness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
)

// server is a Kubernetes API: objects with generations, UIDs, finalizers, status subresources and optimistic locking, and a log of
// all changes, which views follow. Objects in it are never changed, only replaced.
type server struct {
	kinds   []*kind
	now     func() metav1.Time
	version int
	made    int
}

// kind is all objects of one type.
type kind struct {
	name     string
	typ      reflect.Type
	objects  map[types.NamespacedName]client.Object
	log      []change
	cluster  bool
	resource bool // a custom resource: it has a generation and, if at all, a status subresource
}

// change is an entry of the log; before is nil for a creation, after for a deletion.
type change struct{ before, after client.Object }

func newServer(now func() metav1.Time) *server {
	s := &server{now: now}
	for _, k := range []struct {
		object            client.Object
		cluster, resource bool
	}{
		{&corev1.Namespace{}, true, false}, {&corev1.Node{}, true, false},
		{&gwv1.GatewayClass{}, true, true}, {&v1alpha1.OpenStackGatewayClassConfig{}, true, true},
		{&gwv1.Gateway{}, false, true}, {&gwv1.ListenerSet{}, false, true}, {&gwv1.HTTPRoute{}, false, true}, {&gwv1.ReferenceGrant{}, false, true},
		{&v1alpha1.OpenStackBackendPolicy{}, false, true}, {&gwv1.BackendTLSPolicy{}, false, true},
		{&corev1.Service{}, false, false}, {&discoveryv1.EndpointSlice{}, false, false}, {&corev1.Secret{}, false, false}, {&corev1.ConfigMap{}, false, false},
	} {
		typ := reflect.TypeOf(k.object).Elem()
		s.kinds = append(s.kinds, &kind{name: typ.Name(), typ: typ, objects: map[types.NamespacedName]client.Object{}, cluster: k.cluster, resource: k.resource})
	}
	return s
}

func (s *server) kind(o client.Object) *kind {
	typ := reflect.TypeOf(o).Elem()
	for _, k := range s.kinds {
		if k.typ == typ {
			return k
		}
	}
	panic(fmt.Sprintf("the server has no kind %s", typ))
}

func (k *kind) notFound(key types.NamespacedName) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(k.name)}, key.Name)
}

func (k *kind) fresh() client.Object { return reflect.New(k.typ).Interface().(client.Object) }

// store makes after the object of its key; nil deletes before.
func (s *server) store(k *kind, before, after client.Object) {
	s.version++
	if after == nil {
		delete(k.objects, client.ObjectKeyFromObject(before))
	} else {
		after.SetResourceVersion(strconv.Itoa(s.version))
		k.objects[client.ObjectKeyFromObject(after)] = after
	}
	k.log = append(k.log, change{before, after})
}

// apply creates an object, or replaces what its author says of it.
func (s *server) apply(o client.Object) string {
	k, key := s.kind(o), client.ObjectKeyFromObject(o)
	if key.Namespace != "" {
		s.ensureNamespace(key.Namespace)
	}
	old := k.objects[key]
	if old == nil {
		s.made++
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.made)))
		o.SetCreationTimestamp(s.now())
		if k.resource {
			o.SetGeneration(1)
		}
		s.store(k, nil, o)
		return "created"
	}
	fresh := o.DeepCopyObject().(client.Object)
	if class, ok := fresh.(*gwv1.GatewayClass); ok && class.Spec.ControllerName != old.(*gwv1.GatewayClass).Spec.ControllerName {
		return "refused: the controller of a class cannot change"
	}
	keepIdentity(fresh, old)
	keepStatus(fresh, old)
	fresh.SetFinalizers(old.GetFinalizers())
	if _, ok := fresh.(*corev1.Service); ok && len(fresh.GetAnnotations()) == 0 {
		// Whoever applies does not own the annotation that the controller writes.
		fresh.SetAnnotations(old.GetAnnotations())
	}
	if same(old, fresh) {
		return "unchanged"
	}
	if k.resource && !reflect.DeepEqual(specOf(old), specOf(fresh)) {
		fresh.SetGeneration(old.GetGeneration() + 1)
	}
	s.store(k, old, fresh)
	return "changed"
}

func (s *server) ensureNamespace(name string) {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	namespace.Labels = map[string]string{"kubernetes.io/metadata.name": name}
	if k := s.kind(namespace); k.objects[types.NamespacedName{Name: name}] == nil {
		s.apply(namespace)
	}
}

// remove deletes an object, or marks it when finalizers hold it.
func (s *server) remove(k *kind, key types.NamespacedName) string {
	old := k.objects[key]
	switch {
	case old == nil:
		return "not there"
	case len(old.GetFinalizers()) == 0:
		s.store(k, old, nil)
		return "deleted"
	case !old.GetDeletionTimestamp().IsZero():
		return "being deleted"
	}
	fresh := old.DeepCopyObject().(client.Object)
	now := s.now()
	fresh.SetDeletionTimestamp(&now)
	if k.resource {
		fresh.SetGeneration(old.GetGeneration() + 1)
	}
	s.store(k, old, fresh)
	return "being deleted"
}

// removeNamespace deletes everything in a namespace, and then it.
func (s *server) removeNamespace(name string) {
	for _, k := range s.kinds {
		for _, key := range k.keys() {
			if key.Namespace == name {
				s.remove(k, key)
			}
		}
	}
	s.remove(s.kind(&corev1.Namespace{}), types.NamespacedName{Name: name})
}

func (k *kind) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(k.objects), compareKeys)
}

func compareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

func keepIdentity(fresh, old client.Object) {
	fresh.SetUID(old.GetUID())
	fresh.SetResourceVersion(old.GetResourceVersion())
	fresh.SetCreationTimestamp(old.GetCreationTimestamp())
	fresh.SetDeletionTimestamp(old.GetDeletionTimestamp())
	fresh.SetGeneration(old.GetGeneration())
}

// keepStatus keeps the status of kinds that have it as a subresource.
func keepStatus(fresh, old client.Object) {
	if to := reflect.ValueOf(fresh).Elem().FieldByName("Status"); to.IsValid() && subresource(fresh) {
		to.Set(reflect.ValueOf(old).Elem().FieldByName("Status"))
	}
}

func subresource(o client.Object) bool {
	switch o.(type) {
	case *gwv1.Gateway, *gwv1.GatewayClass, *gwv1.HTTPRoute, *gwv1.ListenerSet, *v1alpha1.OpenStackBackendPolicy, *gwv1.BackendTLSPolicy:
		return true
	}
	return false
}

func specOf(o client.Object) any {
	if f := reflect.ValueOf(o).Elem().FieldByName("Spec"); f.IsValid() {
		return f.Interface()
	}
	return nil
}

func same(a, b client.Object) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// patch does what a PATCH request does. It answers with the object as it is then.
func (s *server) patch(o client.Object, p client.Patch, status bool) (client.Object, error) {
	k, key := s.kind(o), client.ObjectKeyFromObject(o)
	old := k.objects[key]
	if old == nil {
		return nil, k.notFound(key)
	}
	text, err := json.Marshal(old)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", key, err)
	}
	body, err := p.Data(o)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", key, err)
	}
	switch p.Type() {
	case types.JSONPatchType:
		var decoded jsonpatch.Patch
		if decoded, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = decoded.Apply(text)
		}
	case types.MergePatchType:
		text, err = jsonpatch.MergePatch(text, body)
	default:
		err = errors.New("a patch of this type is not served")
	}
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: k.name}, key.Name, nil)
	}
	patched := k.fresh()
	if err := json.Unmarshal(text, patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if patched.GetResourceVersion() != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: strings.ToLower(k.name)}, key.Name, errors.New("the object has been modified"))
	}
	fresh := patched
	if status {
		fresh = old.DeepCopyObject().(client.Object)
		to := reflect.ValueOf(fresh).Elem().FieldByName("Status")
		to.Set(reflect.ValueOf(patched).Elem().FieldByName("Status"))
	} else {
		keepIdentity(fresh, old)
		keepStatus(fresh, old)
		if !old.GetDeletionTimestamp().IsZero() && slices.ContainsFunc(fresh.GetFinalizers(), func(f string) bool { return !slices.Contains(old.GetFinalizers(), f) }) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(k.name)}, key.Name, errors.New("no new finalizers can be added if the object is being deleted"))
		}
		if k.resource && !reflect.DeepEqual(specOf(old), specOf(fresh)) {
			fresh.SetGeneration(old.GetGeneration() + 1)
		}
	}
	if same(old, fresh) {
		return old, nil
	}
	if !fresh.GetDeletionTimestamp().IsZero() && len(fresh.GetFinalizers()) == 0 {
		s.store(k, old, nil)
		return fresh, nil
	}
	s.store(k, old, fresh)
	return fresh, nil
}
