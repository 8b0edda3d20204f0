package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// podWorker owns one Pod from when it is seen until it is gone. All its steps
// run on one goroutine; others only hand it the newest object and wake it.
type podWorker struct {
	k    *kubelet
	id   string // short, for names of devices
	dir  string
	wake chan struct{}

	mu   sync.Mutex
	pod  *corev1.Pod // the newest; nil when the API server has none any more
	main []*container

	// Used by the worker's goroutine only.
	facts     facts
	netnsPath string
	connected bool
	started   metav1.Time
	inits     []*container
	running   []*container // all whose goroutine runs or ran
	payloads  map[string]*payload
	failure   *startFailure
}

// retryPause is the pause after a start that did not succeed; a change of the
// Pod, of a Secret or of a ConfigMap ends it early.
const retryPause = 2 * time.Second

// refreshPause is how often volumes are looked at without a reason: tokens
// age.
const refreshPause = 30 * time.Second

func newPodWorker(k *kubelet, pod *corev1.Pod) *podWorker {
	return &podWorker{k: k, id: strings.ReplaceAll(string(pod.UID), "-", "")[:10], dir: filepath.Join(k.cfg.stateDir, "pods", string(pod.UID)),
		wake: make(chan struct{}, 1), pod: pod, payloads: map[string]*payload{}, started: metav1.Now()}
}

// set hands over the newest object; nil when it is gone.
func (w *podWorker) set(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	w.nudge()
}

func (w *podWorker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *podWorker) newest() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// run does the work until the Pod is gone or ctx ends.
func (w *podWorker) run(ctx context.Context) {
	for {
		pod := w.newest()
		if pod == nil || pod.DeletionTimestamp != nil || ctx.Err() != nil {
			w.finish(ctx)
			return
		}
		pause := refreshPause
		if ended(pod) {
			// Its processes ended under this or an earlier kubelet; its address is
			// free for others, its logs stay until it is deleted.
			w.disconnect()
		} else if failure := w.advance(ctx, pod); failure != nil {
			pause = retryPause
			w.fail(pod, *failure)
		} else {
			w.failure = nil
		}
		if err := w.publish(ctx, pod); err != nil && ctx.Err() == nil {
			log.Printf("pod %s/%s: writing the status: %v", pod.Namespace, pod.Name, err)
			pause = retryPause
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(pause):
		}
	}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (w *podWorker) fail(pod *corev1.Pod, f startFailure) {
	if w.failure == nil || *w.failure != f {
		w.k.events.Event(pod, corev1.EventTypeWarning, "Failed", f.message)
		log.Printf("pod %s/%s: %s: %s", pod.Namespace, pod.Name, f.reason, f.message)
	}
	w.failure = &f
}

// advance brings the Pod one step closer to running; each step is idempotent.
func (w *podWorker) advance(ctx context.Context, pod *corev1.Pod) *startFailure {
	if len(w.main) == 0 {
		if err := unsupported(pod); err != nil {
			return &startFailure{"CreateContainerConfigError", err.Error()}
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if _, err := w.k.cfg.images.binary(list[i].Image); err != nil {
					return &startFailure{"ErrImagePull", err.Error()}
				}
			}
		}
	}
	if err := w.connect(pod); err != nil {
		return &startFailure{"FailedCreatePodSandBox", err.Error()}
	}
	if err := w.writeVolumes(ctx, pod); err != nil {
		if len(w.running) > 0 {
			// A running Pod keeps the files that it has.
			log.Printf("pod %s/%s: refreshing volumes: %v", pod.Namespace, pod.Name, err)
			return nil
		}
		return &startFailure{"ContainerCreating", err.Error()}
	}
	for i := range pod.Spec.InitContainers {
		if i == len(w.inits) {
			policy := pod.Spec.RestartPolicy
			if policy == corev1.RestartPolicyAlways {
				policy = corev1.RestartPolicyOnFailure
			}
			//nolint:contextcheck // a container lives until stop, also when the kubelet is told to end
			w.inits = append(w.inits, w.launch(pod, &pod.Spec.InitContainers[i], policy, nil))
		}
		if t := w.inits[i].status().State.Terminated; t == nil || t.ExitCode != 0 {
			return nil // not yet, or never
		}
	}
	for i := len(w.main); i < len(pod.Spec.Containers); i++ {
		//nolint:contextcheck // as above
		c := w.launch(pod, &pod.Spec.Containers[i], pod.Spec.RestartPolicy, pod.Status.ContainerStatuses)
		w.mu.Lock()
		w.main = append(w.main, c)
		w.mu.Unlock()
	}
	return nil
}

// connect gives the Pod its address and namespace.
func (w *podWorker) connect(pod *corev1.Pod) error {
	if w.connected {
		return nil
	}
	w.facts = facts{hostIP: w.k.cfg.nodeIP, podIP: w.k.cfg.nodeIP, apiServer: w.k.cfg.apiServer}
	if !pod.Spec.HostNetwork {
		addr, err := w.k.takeAddress()
		if err != nil {
			return err
		}
		if w.netnsPath, err = w.k.network.connect(w.id, addr); err != nil {
			w.k.releaseAddress(addr)
			return err
		}
		w.facts.podIP = addr
	}
	w.connected = true
	return nil
}

// disconnect takes the Pod's address and namespace back.
func (w *podWorker) disconnect() {
	if !w.connected {
		return
	}
	w.connected = false
	if w.netnsPath == "" {
		return
	}
	if err := w.k.network.disconnect(w.id); err != nil {
		log.Printf("pod %s: %v", w.id, err)
	}
	w.k.releaseAddress(w.facts.podIP)
}

func (w *podWorker) volumeDir(name string) string { return filepath.Join(w.dir, "volumes", name) }

// writeVolumes brings the files of all volumes up to date.
func (w *podWorker) writeVolumes(ctx context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		p := w.payloads[v.Name]
		if p == nil {
			p = &payload{dir: w.volumeDir(v.Name), owner: podOwner(pod)}
			if !holdsObjects(v) {
				if err := makeScratch(p.dir, p.owner.group); err != nil {
					return err
				}
			}
			w.payloads[v.Name] = p
		}
		if !holdsObjects(v) {
			continue
		}
		want, err := render(ctx, pod, v, w.facts, w.k, w.k.tokens.get)
		if err != nil {
			return err
		}
		if _, err := p.write(want); err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return nil
}

// podOwner is who the files of volumes belong to.
func podOwner(pod *corev1.Pod) owner {
	o := owner{group: -1}
	if len(pod.Spec.Containers) > 0 {
		o.uid, _, _ = user(pod, &pod.Spec.Containers[0])
	}
	if sc := pod.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		o.group = int(*sc.FSGroup)
	}
	return o
}

// makeScratch makes the directory of an emptyDir.
func makeScratch(dir string, group int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chown(dir, 0, group); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// launch starts the goroutine of one container. Restarts are counted on from
// what an earlier kubelet wrote.
func (w *podWorker) launch(pod *corev1.Pod, spec *corev1.Container, policy corev1.RestartPolicy, before []corev1.ContainerStatus) *container {
	c := newContainer(spec, policy)
	for _, b := range before {
		if b.Name == spec.Name && b.ContainerID != "" {
			c.restarts = b.RestartCount + 1
			c.last.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "KubeletRestarted", Message: "the process ended with the kubelet that had started it"}
		}
	}
	c.ip = w.facts.podIP
	c.grace = time.Duration(deref(pod.Spec.TerminationGracePeriodSeconds)) * time.Second
	c.changed = w.nudge
	c.event = func(kind, reason, message string) { w.k.events.Event(pod, kind, reason, message) }
	c.prepare = func() (*launch, error) { return w.prepare(pod, spec) }
	c.openLog = func(restart int32) (io.Writer, error) {
		if w.k.cfg.logDir == "" {
			return nil, nil
		}
		name := fmt.Sprintf("%s_%s_%s_%d.log", pod.Namespace, pod.Name, spec.Name, restart)
		return os.OpenFile(filepath.Join(w.k.cfg.logDir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	}
	w.running = append(w.running, c)
	go c.run()
	return c
}

// prepare resolves a container into what is started.
func (w *podWorker) prepare(pod *corev1.Pod, c *corev1.Container) (*launch, error) {
	binary, err := w.k.cfg.images.binary(c.Image)
	if err != nil {
		return nil, err
	}
	env, err := environ(pod, c, w.facts, w.k)
	if err != nil {
		return nil, err
	}
	l := &launch{Netns: w.netnsPath, Root: filepath.Join(w.dir, "root"), Binary: binary, Env: env, Dir: c.WorkingDir, Hostname: hostname(pod)}
	l.Path, l.Args = argv(c, env)
	if l.Mounts, err = mounts(pod, c, w.volumeDir); err != nil {
		return nil, err
	}
	l.UID, l.GID, l.Groups = user(pod, c)
	l.Files = etcFiles(pod, l.Hostname, w.k.cfg.clusterDNS, w.facts)
	if sc := c.SecurityContext; sc != nil {
		l.ReadOnlyRoot = deref(sc.ReadOnlyRootFilesystem)
		l.NoNewPrivileges = sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation
	}
	return l, os.MkdirAll(l.Root, 0o755)
}

// publish writes the Pod's status when it differs.
func (w *podWorker) publish(ctx context.Context, pod *corev1.Pod) error {
	if ended(pod) && len(w.running) == 0 {
		return nil
	}
	v := view{hostIP: w.k.cfg.nodeIP, started: w.started, failure: w.failure}
	if w.connected {
		v.podIP = w.facts.podIP
	}
	for _, c := range w.inits {
		v.inits = append(v.inits, c.status())
	}
	for _, c := range w.main {
		v.main = append(v.main, c.status())
	}
	seen, pods := pod, w.k.client.CoreV1().Pods(pod.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		want := podStatus(pod, v, metav1.Now())
		if equality.Semantic.DeepEqual(want, pod.Status) {
			return nil
		}
		next := pod.DeepCopy()
		next.Status = want
		written, err := pods.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			fresh, getErr := pods.Get(ctx, pod.Name, metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			if fresh.UID != pod.UID {
				return nil
			}
			pod = fresh
			return err
		}
		if err == nil {
			w.adopt(seen, written)
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// adopt keeps what the API server answered, unless the watch has brought
// another object meanwhile; without it the next publish would be a conflict.
func (w *podWorker) adopt(seen, written *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod == seen {
		w.pod = written
	}
}

// stopGrace is what Pods get to end when the kubelet itself is stopped.
const stopGrace = 3 * time.Second

// finish ends the Pod's processes, removes what the Pod had on this node and
// then lets the API server forget it.
func (w *podWorker) finish(ctx context.Context) {
	pod := w.newest()
	grace := stopGrace
	if pod != nil && pod.DeletionTimestamp != nil && ctx.Err() == nil {
		grace = time.Duration(deref(pod.DeletionGracePeriodSeconds)) * time.Second
	}
	if pod == nil {
		grace = 0
	}
	w.stopAll(ctx, grace)
	if pod != nil && ctx.Err() == nil {
		if err := w.publish(ctx, pod); err != nil && ctx.Err() == nil {
			log.Printf("pod %s/%s: writing the last status: %v", pod.Namespace, pod.Name, err)
		}
	}
	w.disconnect()
	if err := os.RemoveAll(w.dir); err != nil {
		log.Printf("pod %s: %v", w.id, err)
	}
	for pod = w.newest(); pod != nil && pod.DeletionTimestamp != nil && ctx.Err() == nil; pod = w.newest() {
		zero := int64(0)
		err := w.k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		log.Printf("pod %s/%s: deleting: %v", pod.Namespace, pod.Name, err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// stopAll ends all containers at once. A deletion by force, a shorter grace
// period or the end of the kubelet cuts the grace.
func (w *podWorker) stopAll(ctx context.Context, grace time.Duration) {
	if len(w.running) == 0 {
		return
	}
	limit, cut := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cut()
	var all sync.WaitGroup
	for _, c := range w.running {
		all.Go(func() { c.stop(limit) })
	}
	gone := make(chan struct{})
	go func() { all.Wait(); close(gone) }()
	began := time.Now()
	stopped := ctx.Done()
	for {
		select {
		case <-gone:
			return
		case <-stopped:
			time.AfterFunc(stopGrace, cut)
			stopped = nil
		case <-w.wake:
			pod := w.newest()
			if pod == nil {
				cut()
			} else if g := pod.DeletionGracePeriodSeconds; g != nil && time.Duration(*g)*time.Second < grace {
				grace = time.Duration(*g) * time.Second
				time.AfterFunc(time.Until(began.Add(grace)), cut)
			}
		}
	}
}

// container returns a container by name, for its logs.
func (w *podWorker) container(name string) *container {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.main {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}
