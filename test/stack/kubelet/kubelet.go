package main

import (
	"context"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// kubelet runs the Pods of one node.
type kubelet struct {
	cfg     config
	client  kubernetes.Interface
	network *network
	tokens  *tokenCache
	events  record.EventRecorder

	secrets    corelisters.SecretLister
	configMaps corelisters.ConfigMapLister

	mu        sync.Mutex
	addresses *addresses
	workers   map[types.UID]*podWorker
	all       sync.WaitGroup
}

func newKubelet(cfg config, client kubernetes.Interface) *kubelet {
	a := newAddresses(cfg.podCIDR)
	return &kubelet{cfg: cfg, client: client, addresses: a, network: &network{prefix: cfg.netnsPrefix, gateway: a.gateway()},
		tokens: newTokenCache(client), workers: map[types.UID]*podWorker{}}
}

// clean removes what an earlier kubelet of this node left behind, which may
// have been killed at any point.
func (k *kubelet) clean() error {
	n, err := k.network.sweep()
	if err != nil {
		return err
	}
	if n > 0 {
		log.Printf("removed the namespaces of %d Pods of an earlier kubelet", n)
	}
	return os.RemoveAll(filepath.Join(k.cfg.stateDir, "pods"))
}

// run works until ctx ends, then ends all Pods' processes. It does not touch
// the Pods' objects then: another kubelet of this node may go on with them.
func (k *kubelet) run(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: k.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	k.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: k.cfg.nodeName})

	objects := informers.NewSharedInformerFactory(k.client, 0)
	k.secrets, k.configMaps = objects.Core().V1().Secrets().Lister(), objects.Core().V1().ConfigMaps().Lister()
	wake := func(o any) {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			k.nudge(m.GetNamespace())
		}
	}
	changes := cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, o any) { wake(o) }, DeleteFunc: wake}
	for _, inf := range []cache.SharedIndexInformer{objects.Core().V1().Secrets().Informer(), objects.Core().V1().ConfigMaps().Informer()} {
		if _, err := inf.AddEventHandler(changes); err != nil {
			log.Fatal(err) // only a stopped informer refuses
		}
	}
	objects.Start(ctx.Done())
	objects.WaitForCacheSync(ctx.Done())

	mine := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.cfg.nodeName).String()
	}))
	if _, err := mine.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { k.deliver(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(old, o any) {
			if old.(*corev1.Pod).UID != o.(*corev1.Pod).UID {
				k.gone(old.(*corev1.Pod).UID)
			}
			k.deliver(ctx, o.(*corev1.Pod))
		},
		DeleteFunc: func(o any) {
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = t.Obj
			}
			k.gone(o.(*corev1.Pod).UID)
		},
	}); err != nil {
		log.Fatal(err)
	}
	mine.Start(ctx.Done())
	<-ctx.Done()
	mine.Shutdown() // no worker is added from here on
	k.all.Wait()
	objects.Shutdown()
}

// deliver hands a Pod to its worker.
func (k *kubelet) deliver(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[pod.UID]; w != nil {
		w.set(pod)
		return
	}
	w := newPodWorker(k, pod)
	k.workers[pod.UID] = w
	k.all.Go(func() {
		w.run(ctx)
		k.mu.Lock()
		delete(k.workers, pod.UID)
		k.mu.Unlock()
		k.tokens.forget(pod.UID)
	})
}

// gone tells a worker that the API server has its Pod no more.
func (k *kubelet) gone(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[uid]; w != nil {
		w.set(nil)
	}
}

// nudge wakes the Pods of a namespace.
func (k *kubelet) nudge(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if pod := w.newest(); pod != nil && pod.Namespace == namespace {
			w.nudge()
		}
	}
}

// container finds a container for its logs.
func (k *kubelet) container(namespace, pod, name string) *container {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if p := w.newest(); p != nil && p.Namespace == namespace && p.Name == pod {
			if c := w.container(name); c != nil {
				return c
			}
		}
	}
	return nil
}

func (k *kubelet) takeAddress() (netip.Addr, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.addresses.take()
}

func (k *kubelet) releaseAddress(a netip.Addr) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addresses.release(a)
}

func (k *kubelet) secret(namespace, name string) *corev1.Secret {
	s, err := k.secrets.Secrets(namespace).Get(name)
	if err != nil {
		return nil // a lister knows no other error than "not found"
	}
	return s
}

func (k *kubelet) configMap(namespace, name string) *corev1.ConfigMap {
	m, err := k.configMaps.ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil
	}
	return m
}

// every calls f at once and then after each pause, until ctx ends.
func every(ctx context.Context, pause time.Duration, f func()) {
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
