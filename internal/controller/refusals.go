package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// refusals remembers which secrets the cloud did not take, so that all else goes on and these are tried again less and less often. Forgetting any
// of it is always safe: the cloud refuses them again. Its zero value is usable.
type refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]gatewayRefusals
}

type gatewayRefusals struct {
	uid         types.UID
	secrets     map[string]refusal
	unclaimedOf map[int][]string
	// names are the hosts of the certificates that were served last.
	names map[string][]string
}

// maxProhibitions is for the ciphers and for the versions of TLS, which Octavia refuses one after the other.
const maxProhibitions = 2

type refusal struct {
	compile.Refusal
	until    time.Time
	failures int
}

// note remembers that the cloud refused secrets of a Gateway, and what the Gateway has in the cloud at that time.
func (r *refusals) note(key types.NamespacedName, uid types.UID, secrets []string, why string, o outcome, want, have *lb.Tree, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.of[key]
	if g.uid != uid || g.secrets == nil {
		g = gatewayRefusals{uid: uid, secrets: map[string]refusal{}, names: g.names}
	}
	for _, s := range secrets {
		failures := g.secrets[s].failures
		g.secrets[s] = refusal{
			Refusal:  compile.Refusal{Why: why, Stored: have.SecretByKey(s) != nil},
			until:    now.Add(o.delay(failures)),
			failures: failures + 1,
		}
	}
	g.unclaimedOf = g.unclaimed(have, want)
	if r.of == nil {
		r.of = map[types.NamespacedName]gatewayRefusals{}
	}
	r.of[key] = g
}

// hold only says what the Gateway has in the cloud, for secrets that wait.
func (r *refusals) hold(key types.NamespacedName, uid types.UID, want, have *lb.Tree, now time.Time) {
	r.note(key, uid, nil, "", outcome{}, want, have, now)
}

// unclaimed are the secrets that the Octavia listeners refer to and that are not wanted any more, by port, the default certificate first: what refused
// ones would have replaced. Where it is known that a certificate was for other hosts than the refused ones, it is not theirs.
func (g gatewayRefusals) unclaimed(have, want *lb.Tree) map[int][]string {
	hosts := map[string]bool{}
	for key := range g.secrets {
		if s := want.SecretByKey(key); s != nil && s.Certificate != nil {
			for _, name := range s.Certificate.Names {
				hosts[name] = true
			}
		}
	}
	serving := map[int][]string{}
	for i := range have.Listeners {
		l := &have.Listeners[i]
		for _, key := range l.TLS.Secrets() {
			names := g.names[key]
			others := len(hosts) > 0 && len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return hosts[n] })
			if s := want.SecretByKey(key); !others && have.SecretByKey(key) != nil && (s == nil || s.Certificate == nil && s.ClientCA == nil) {
				serving[l.Port] = append(serving[l.Port], key)
			}
		}
	}
	return serving
}

// inForce are the refusals of a Gateway that are not to be tried again yet, with those that are held back for the moment.
func (r *refusals) inForce(key types.NamespacedName, uid types.UID, held map[string]bool, now time.Time) compile.Refusals {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.of[key]
	if g.uid != uid {
		return compile.Refusals{}
	}
	out := compile.Refusals{Secrets: map[string]compile.Refusal{}, Unclaimed: maps.Clone(g.unclaimedOf)}
	for s, one := range g.secrets {
		if now.Before(one.until) {
			out.Secrets[s] = one.Refusal
		}
	}
	for s := range held {
		out.Secrets[s] = compile.Refusal{Why: "it waits until it is known which certificate the cloud refuses", Stored: true}
	}
	return out
}

// next is the time until a refusal is tried again.
func (r *refusals) next(key types.NamespacedName, now time.Time) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of[key].secrets {
		if left := one.until.Sub(now); left > 0 && (!ok || left < wait) {
			wait, ok = left, true
		}
	}
	return wait, ok
}

// settle is for a Gateway that is as it shall be. It forgets the refusals that are over, because what was tried again was taken or is not wanted any more, and
// remembers which certificates are for which hosts.
func (r *refusals) settle(key types.NamespacedName, uid types.UID, want *lb.Tree, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string][]string{}
	for i := range want.Secrets {
		if c := want.Secrets[i].Certificate; c != nil {
			names[want.Secrets[i].Key] = c.Names
		}
	}
	g := r.of[key]
	if g.uid != uid {
		g = gatewayRefusals{uid: uid}
	}
	maps.DeleteFunc(g.secrets, func(_ string, one refusal) bool { return !now.Before(one.until) })
	for kept, of := range g.names {
		if want.SecretByKey(kept) != nil && names[kept] == nil {
			names[kept] = of
		}
	}
	g.names = names
	if r.of == nil {
		r.of = map[types.NamespacedName]gatewayRefusals{}
	}
	if r.of[key] = g; len(g.secrets) == 0 && len(names) == 0 {
		delete(r.of, key)
	}
}

func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}

// newlyRefused says whether leaving the secrets out is worth a try: what was left out already cannot be why the cloud refused a step.
func (r *GatewayReconciler) newlyRefused(p *pass, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(key string) bool {
		_, known := p.snapshot.Refusals.Secrets[key]
		return !known
	})
}

// refuse takes note of what the cloud has just refused, and says whether that leaves something to be done. When the cloud did not say which secret is bad, half
// of them waits for the other half, and so on: those that are taken are above suspicion then.
func (r *GatewayReconciler) refuse(p *pass) (again bool) {
	secrets := p.refused
	p.refused = nil
	switch {
	case len(secrets) == 0:
		// An administrator's prohibition, or nothing.
		return p.have != nil
	case p.unsure:
		if p.held == nil {
			p.held = map[string]bool{}
		}
		if !p.have.Empty() {
			// A load balancer that is refused may leave its port behind: the first one is made without any of them.
			secrets = secrets[len(secrets)/2:]
		}
		for _, key := range secrets {
			p.held[key] = true
		}
		r.refusals.hold(p.key, p.snapshot.Gateway.UID, &p.status.Want, p.have, r.Clock.Now())
	default:
		r.refusals.note(p.key, p.snapshot.Gateway.UID, secrets, p.why, p.outcome, &p.status.Want, p.have, r.Clock.Now())
	}
	if p.outcome.Kind == status.OperatorFault && refersToSecrets(p.have) {
		// Octavia may have lost Barbican as a whole, and then nothing must be changed: the next look shows it.
		p.have = nil
	}
	p.outcome = outcome{Outcome: status.Outcome{Kind: status.Pending}}
	return true
}
