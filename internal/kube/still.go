package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Still is Kubernetes at one moment, for tools that look once: a Reader over it gives the snapshots that the controller compiles, without
// watches. Each kind is listed once, when it is first asked for; Secrets and ConfigMaps are read one by one, like the controller does.
// Put lays objects over what was read, as if they had been applied. What comes out may be shared and must not be changed.
type Still struct {
	live    client.Reader
	scheme  *runtime.Scheme
	indexes []index
	// slim is what the controller's caches keep of an object: compile must see the same here.
	slim cache.Options

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*stillKind
}

// stillKind holds the objects of one kind. A nil object is one that does not exist.
type stillKind struct {
	objects map[types.NamespacedName]client.Object
	// whole are the objects of which the caches drop what Whole shows.
	whole map[types.NamespacedName]client.Object
	// order is that of the list, with what Put added at the end.
	order []types.NamespacedName
	// listed says that what is not in objects does not exist.
	listed bool
	byKey  map[string]map[string][]types.NamespacedName
}

// listPage is how many objects one call asks the API server for.
const listPage = 500

// NewStill looks at an API server. A nil live is a cluster in which nothing exists but what Put adds.
func NewStill(live client.Reader, controller string, served Served) (*Still, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	return &Still{live: live, scheme: scheme, indexes: indexes(controller, served), slim: CacheOptions(), kinds: map[schema.GroupVersionKind]*stillKind{}}, nil
}

// Put makes an object exist as it is, in the place of one of the same name.
func (s *Still) Put(o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		return fmt.Errorf("adding an object: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(gvk, o)
}

// Whole is an object as the API server has it, where Get shows what the controller's caches keep of it; nil when it does not exist or its kind was
// not read yet.
func (s *Still) Whole(o client.Object) client.Object {
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil {
		return k.whole[client.ObjectKeyFromObject(o)]
	}
	return nil
}

// put keeps what the caches of the controller would keep, and the whole besides.
func (s *Still) put(gvk schema.GroupVersionKind, o client.Object) error {
	transform := s.slim.DefaultTransform
	for of, by := range s.slim.ByObject {
		if by.Transform != nil && reflect.TypeOf(of) == reflect.TypeOf(o) {
			transform = by.Transform
		}
	}
	slim, err := transform(o.DeepCopyObject())
	if err != nil {
		return fmt.Errorf("adding an object: %w", err)
	}
	kept, ok := slim.(client.Object)
	if !ok {
		return fmt.Errorf("adding an object: %T is none", slim)
	}
	key := client.ObjectKeyFromObject(o)
	k := s.kind(gvk)
	if k.objects[key] == nil {
		k.order = append(k.order, key)
	}
	k.objects[key], k.whole[key], k.byKey = kept, o, nil
	return nil
}

func (s *Still) kind(gvk schema.GroupVersionKind) *stillKind {
	k := s.kinds[gvk]
	if k == nil {
		k = &stillKind{objects: map[types.NamespacedName]client.Object{}, whole: map[types.NamespacedName]client.Object{}}
		s.kinds[gvk] = k
	}
	return k
}

// Get reads an object into out.
func (s *Still) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, s.scheme)
	if err != nil {
		return fmt.Errorf("reading %T: %w", out, err)
	}
	if partial(out) {
		return s.one(ctx, gvk, key, out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kind(gvk)
	found, known := k.objects[key]
	switch {
	case known, k.listed:
	case oneByOne(out):
		fresh := out.DeepCopyObject().(client.Object)
		err := s.one(ctx, gvk, key, fresh)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			if err := s.put(gvk, fresh); err != nil {
				return err
			}
			found = k.objects[key]
		} else {
			k.objects[key] = nil
		}
	default:
		if err := s.list(ctx, gvk); err != nil {
			return err
		}
		found = k.objects[key]
	}
	if found == nil {
		return s.notFound(gvk, key)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (s *Still) notFound(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return apierrors.NewNotFound(plural.GroupResource(), key.Name)
}

// one reads an object from the API server.
func (s *Still) one(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey, out client.Object) error {
	if s.live == nil {
		return s.notFound(gvk, key)
	}
	return s.live.Get(ctx, key, out)
}

// oneByOne says whether a kind is never listed: the content of Secrets and ConfigMaps that nobody names is nobody's business.
func oneByOne(o client.Object) bool {
	switch o.(type) {
	case *corev1.Secret, *corev1.ConfigMap:
		return true
	}
	return false
}

// partial says whether an object is not of a type of the scheme: it is not kept.
func partial(o runtime.Object) bool {
	return strings.HasPrefix(reflect.TypeOf(o).Elem().Name(), "PartialObjectMetadata") || reflect.TypeOf(o).Elem().Name() == "Unstructured"
}

// list reads all objects of a kind. What Put added stays as it is.
func (s *Still) list(ctx context.Context, gvk schema.GroupVersionKind) error {
	k := s.kind(gvk)
	if k.listed || s.live == nil {
		k.listed = true
		return nil
	}
	next := ""
	for {
		fresh, err := s.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		page, ok := fresh.(client.ObjectList)
		if !ok {
			return fmt.Errorf("listing %s: %T is no list", gvk.Kind, fresh)
		}
		if err := s.live.List(ctx, page, client.Limit(listPage), client.Continue(next)); err != nil {
			return err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok {
				return errors.New("an item is no object")
			}
			if key := client.ObjectKeyFromObject(o); k.objects[key] == nil {
				return s.put(gvk, o)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		if next = page.GetContinue(); next == "" {
			k.listed = true
			return nil
		}
	}
}

// List reads the objects that a namespace, a label selector and at most one of our indexes choose.
func (s *Still) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(out, s.scheme)
	if err != nil {
		return fmt.Errorf("listing %T: %w", out, err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var o client.ListOptions
	o.ApplyOptions(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.list(ctx, gvk); err != nil {
		return err
	}
	k := s.kind(gvk)
	keys := k.order
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		requirements := o.FieldSelector.Requirements()
		if len(requirements) != 1 {
			return fmt.Errorf("listing %s: a list is by one field", gvk.Kind)
		}
		if keys, err = s.indexed(k, gvk, requirements[0].Field, requirements[0].Value); err != nil {
			return err
		}
	}
	var items []runtime.Object
	for _, key := range keys {
		object := k.objects[key]
		if o.Namespace != "" && object.GetNamespace() != o.Namespace {
			continue
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		items = append(items, object)
	}
	if err := meta.SetList(out, items); err != nil {
		return fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	return nil
}

// indexed are the keys of the objects that an index has under a value.
func (s *Still) indexed(k *stillKind, gvk schema.GroupVersionKind, field, value string) ([]types.NamespacedName, error) {
	if known, ok := k.byKey[field]; ok {
		return known[value], nil
	}
	for _, ix := range s.indexes {
		of, err := apiutil.GVKForObject(ix.object, s.scheme)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		if of != gvk || ix.field != field {
			continue
		}
		built := map[string][]types.NamespacedName{}
		for _, key := range k.order {
			for _, v := range ix.extract(k.objects[key]) {
				built[v] = append(built[v], key)
			}
		}
		if k.byKey == nil {
			k.byKey = map[string]map[string][]types.NamespacedName{}
		}
		k.byKey[field] = built
		return built[value], nil
	}
	return nil, fmt.Errorf("listing %s: there is no index %s", gvk.Kind, field)
}
