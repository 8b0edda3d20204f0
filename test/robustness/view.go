package robustness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// view is what one process of the controller knows of a server: a cache for each kind that follows the server's log, each at its own
// pace, with the field indexes and the transforms of the real one.
type view struct {
	server  *server
	caches  map[*kind]*cache
	indexes map[string]client.IndexerFunc
	// notify learns of each change when it has arrived.
	notify func(before, after client.Object)
}

type cache struct {
	objects   map[types.NamespacedName]client.Object
	at        int
	transform func(any) (any, error)
	// Nothing arrives for so many calls, and until then at most.
	held  int
	until time.Time
}

// IndexField makes a view a client.FieldIndexer.
func (v *view) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	v.indexes[v.server.kind(o).name+"/"+field] = extract
	return nil
}

func newView(s *server, controller string) (*view, error) {
	v := &view{server: s, caches: map[*kind]*cache{}, indexes: map[string]client.IndexerFunc{}, notify: func(client.Object, client.Object) {}}
	options := kube.CacheOptions()
	for _, k := range s.kinds {
		c := &cache{objects: map[types.NamespacedName]client.Object{}, transform: options.DefaultTransform}
		for o, by := range options.ByObject {
			if reflect.TypeOf(o).Elem() == k.typ && by.Transform != nil {
				c.transform = by.Transform
			}
		}
		v.caches[k] = c
	}
	if err := kube.SetupIndexes(context.Background(), v, controller, served); err != nil {
		return nil, err
	}
	return v, nil
}

var served = kube.Served{ListenerSets: true, BackendTLSPolicies: true, ReferenceGrants: "v1"}

// list is how a cache begins: everything there is, as creations.
func (v *view) list() {
	for _, k := range v.server.kinds {
		c := v.caches[k]
		c.at, c.objects = len(k.log), map[types.NamespacedName]client.Object{}
		for key, o := range k.objects {
			c.objects[key] = c.copied(o)
		}
	}
	for _, k := range v.server.kinds {
		for _, key := range k.keys() {
			v.notify(nil, v.caches[k].objects[key])
		}
	}
}

func (c *cache) copied(o client.Object) client.Object {
	out, err := c.transform(o.DeepCopyObject())
	if err != nil {
		panic(err)
	}
	return out.(client.Object)
}

// arrives is when the next event does, when nobody makes a call before.
func (v *view) arrives(now time.Time) (at time.Time, ok bool) {
	for _, k := range v.server.kinds {
		c := v.caches[k]
		if c.at == len(k.log) {
			continue
		}
		due := now
		if c.held > 0 && c.until.After(now) {
			due = c.until
		}
		if !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// catchUp lets arrive what is not held. Call it once for each step of the world.
func (v *view) catchUp(now time.Time) {
	for _, k := range v.server.kinds {
		c := v.caches[k]
		if c.at == len(k.log) {
			continue
		}
		if c.held > 0 && c.until.After(now) {
			c.held--
			continue
		}
		v.deliver(k, c)
	}
}

// deliver brings a cache up to date.
func (v *view) deliver(k *kind, c *cache) {
	for c.at < len(k.log) {
		ch := k.log[c.at]
		c.at++
		var key types.NamespacedName
		var before, after client.Object
		if ch.after != nil {
			key, after = client.ObjectKeyFromObject(ch.after), c.copied(ch.after)
		} else {
			key = client.ObjectKeyFromObject(ch.before)
		}
		before = c.objects[key]
		if after == nil {
			delete(c.objects, key)
		} else {
			c.objects[key] = after
		}
		if before != nil || after != nil {
			v.notify(before, after)
		}
	}
}

// relist loses the events that are under way, as a broken watch does: what is there after it is compared with what was known.
func (v *view) relist(k *kind) {
	c := v.caches[k]
	c.at, c.held = len(k.log), 0
	for _, key := range k.keys() {
		now, before := k.objects[key], c.objects[key]
		if before == nil || before.GetResourceVersion() != now.GetResourceVersion() {
			c.objects[key] = c.copied(now)
			v.notify(before, c.objects[key])
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), compareKeys) {
		if before := c.objects[key]; k.objects[key] == nil {
			delete(c.objects, key)
			v.notify(before, nil)
		}
	}
}

// tampered names an object in the cache that is not what arrived.
func (v *view) tampered() error {
	for _, k := range v.server.kinds {
		c := v.caches[k]
		for key, o := range c.objects {
			now := k.objects[key]
			if now != nil && now.GetResourceVersion() == o.GetResourceVersion() && !same(c.copied(now), o) {
				return fmt.Errorf("%s %s was changed in the cache", k.name, key)
			}
		}
	}
	return nil
}

// access is a client.Client of one process: it reads from its caches, except Secrets and ConfigMaps, and writes to the server. step is
// asked before everything that goes over the network; its error is that of the call, and after says that the call is done all the same.
type access struct {
	client.Client
	view *view
	step func(verb string, o client.Object) (after bool, err error)
}

// live reads from the server.
type live struct{ *access }

func (a *access) Get(_ context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	k := a.view.server.kind(into)
	if k.name == "Secret" || k.name == "ConfigMap" {
		return a.fetch(k, key, into)
	}
	var o client.GetOptions
	o.ApplyOptions(opts)
	found := a.view.caches[k].objects[key]
	if found != nil && (o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy) {
		found = found.DeepCopyObject().(client.Object)
	}
	return fill(k, found, key, into)
}

func (a *access) fetch(k *kind, key client.ObjectKey, into client.Object) error {
	if _, err := a.step("get", into); err != nil {
		return err
	}
	found := k.objects[key]
	if found != nil {
		found = found.DeepCopyObject().(client.Object)
	}
	return fill(k, found, key, into)
}

func fill(k *kind, found client.Object, key types.NamespacedName, into client.Object) error {
	if found == nil {
		return k.notFound(key)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

func (a *access) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	typ := items.Type().Elem()
	for _, k := range a.view.server.kinds {
		if k.typ == typ {
			return a.list(k, items, o)
		}
	}
	return fmt.Errorf("no kind has the list %T", into)
}

func (a *access) list(k *kind, items reflect.Value, o client.ListOptions) error {
	matches := func(client.Object) bool { return true }
	if o.FieldSelector != nil {
		requirements := o.FieldSelector.Requirements()
		if len(requirements) != 1 {
			return errors.New("lists go by one field")
		}
		extract := a.view.indexes[k.name+"/"+requirements[0].Field]
		if extract == nil {
			return fmt.Errorf("%s has no index %s", k.name, requirements[0].Field)
		}
		matches = func(o client.Object) bool {
			for _, value := range extract(o) {
				if value == requirements[0].Value {
					return true
				}
			}
			return false
		}
	}
	out := reflect.MakeSlice(items.Type(), 0, 4)
	objects := a.view.caches[k].objects
	for _, key := range slices.SortedFunc(maps.Keys(objects), compareKeys) {
		if object := objects[key]; (o.Namespace == "" || key.Namespace == o.Namespace) && matches(object) {
			out = reflect.Append(out, reflect.ValueOf(object).Elem())
		}
	}
	items.Set(out)
	return nil
}

func (a *access) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return a.write("patch", o, p, false)
}

func (a *access) write(verb string, o client.Object, p client.Patch, status bool) error {
	after, err := a.step(verb, o)
	if err != nil && !after {
		return err
	}
	now, refused := a.view.server.patch(o, p, status)
	if err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(now.DeepCopyObject()).Elem())
	return nil
}

func (a *access) Status() client.SubResourceWriter { return statusWriter{access: a} }

type statusWriter struct {
	client.SubResourceWriter
	access *access
}

func (s statusWriter) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.access.write("patch status", o, p, true)
}

func (l live) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if crd, ok := into.(*metav1.PartialObjectMetadata); ok {
		if _, err := l.step("get", into); err != nil {
			return err
		}
		if !strings.HasSuffix(key.Name, "."+gwv1.GroupName) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
		}
		crd.Name = key.Name
		crd.Annotations = map[string]string{consts.BundleVersionAnnotation: "v1.6.3"}
		return nil
	}
	return l.fetch(l.view.server.kind(into), key, into)
}

func (l live) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return errors.New("nothing is listed live")
}
