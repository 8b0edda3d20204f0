package controller

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// redirects knows which Gateways are as they shall be and which ports of a responder they use then. A port loses its meaning only
// when every Gateway is known and none uses it: until a load balancer has its new tree, it may still send requests there.
// Forgetting any of it only keeps ports longer. docs/adr/0001-responder-ports.md tells why.
type redirects struct {
	// mu is held from the decision about a port until the Service says so, so that no port is taken from who is about to use it.
	mu sync.Mutex
	of map[types.NamespacedName]redirectUse
	// begun are the Gateways for which this process may have made something.
	begun map[types.NamespacedName]bool
}

func (r *redirects) put(key types.NamespacedName, use redirectUse) {
	if r.of == nil {
		r.of = map[types.NamespacedName]redirectUse{}
	}
	r.of[key] = use
}

type redirectUse struct {
	uid     types.UID
	service types.NamespacedName
	table   answer.Table
}

// reserve makes the Service of the responder say what the tree relies on, before the tree is made. It fails with a conflict when the
// Service is not what compile saw any more.
func (r *GatewayReconciler) reserve(ctx context.Context, p *pass, compiled compile.Result) error {
	r.redirects.mu.Lock()
	defer r.redirects.mu.Unlock()
	delete(r.redirects.of, p.key)
	if r.redirects.begun == nil {
		r.redirects.begun = map[types.NamespacedName]bool{}
	}
	r.redirects.begun[p.key] = true
	service := kube.ResponderOf(p.snapshot)
	if len(compiled.Redirects) == 0 || service == nil || p.snapshot.RedirectsFixed {
		return nil
	}
	table, _ := answer.ParseTable(service.Annotations[answer.Annotation])
	maps.Copy(table, compiled.Redirects)
	return r.Writer.WriteRedirects(ctx, service, table)
}

// reserved says whether the Service says already all that the tree relies on.
func reserved(s compile.Snapshot, compiled compile.Result) bool {
	service := kube.ResponderOf(s)
	if service == nil {
		return len(compiled.Redirects) == 0
	}
	table, _ := answer.ParseTable(service.Annotations[answer.Annotation])
	for port, redirect := range compiled.Redirects {
		if known, ok := table[port]; !ok || known != redirect {
			return false
		}
	}
	return true
}

// uses remembers that the load balancer of a Gateway has its tree, and takes the meaning from ports that nobody uses.
func (r *GatewayReconciler) uses(ctx context.Context, p *pass, compiled compile.Result) {
	service := kube.ResponderOf(p.snapshot)
	r.redirects.mu.Lock()
	defer r.redirects.mu.Unlock()
	use := redirectUse{uid: p.snapshot.Gateway.UID, table: compiled.Redirects}
	if service != nil {
		use.service = client.ObjectKeyFromObject(service)
	}
	r.redirects.put(p.key, use)
	if service == nil || p.snapshot.RedirectsFixed {
		return
	}
	if err := r.collect(ctx, service); err != nil && !apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).Info("ports of the responder could not be freed", "cause", err.Error())
	}
}

// usesNothing remembers of a Gateway that is refused as a whole that it has no load balancer, if that is so. One that has keeps it, with all
// that was known of it.
func (r *GatewayReconciler) usesNothing(p *pass) {
	r.redirects.mu.Lock()
	defer r.redirects.mu.Unlock()
	if _, known := r.redirects.of[p.key]; !known && !r.redirects.begun[p.key] && !controllerutil.ContainsFinalizer(p.snapshot.Gateway, r.finalizer()) {
		r.redirects.put(p.key, redirectUse{uid: p.snapshot.Gateway.UID})
	}
}

func (r *GatewayReconciler) collect(ctx context.Context, service *corev1.Service) error {
	table, writer := answer.ParseTable(service.Annotations[answer.Annotation])
	if writer != r.Reader.Controller || len(table) == 0 {
		return nil
	}
	gateways, err := r.Reader.OurGateways(ctx)
	if err != nil {
		return err
	}
	left := answer.Table{}
	for _, gw := range gateways {
		use, ok := r.redirects.of[client.ObjectKeyFromObject(gw)]
		if !ok || use.uid != gw.UID {
			return nil
		}
		if use.service != client.ObjectKeyFromObject(service) {
			continue
		}
		for port := range use.table {
			if redirect, ok := table[port]; ok {
				left[port] = redirect
			}
		}
	}
	if len(left) == len(table) {
		return nil
	}
	return r.Writer.WriteRedirects(ctx, service, left)
}

// disuse forgets a Gateway that has nothing in the cloud any more.
func (r *GatewayReconciler) disuse(key types.NamespacedName) {
	r.redirects.mu.Lock()
	defer r.redirects.mu.Unlock()
	delete(r.redirects.of, key)
	delete(r.redirects.begun, key)
}
