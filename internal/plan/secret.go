package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Secrets cannot change, and a listener breaks without those that it refers to. So new ones come before everything else, and old ones go
// after everything else: after the listener has let go of them, or the load balancer is gone.

// createSecrets stores what is not there yet.
func (p *planner) createSecrets() {
	for i := range p.want.Secrets {
		want := &p.want.Secrets[i]
		if p.have.SecretByKey(want.Key) == nil {
			p.add(Step{Verb: Create, Kind: lb.KindSecret, Ref: Ref{Key: want.Key}, Secret: want, Reason: "it is not in Barbican yet"})
		}
	}
}

// deleteSecrets removes what is not wanted any more, such as a certificate that was replaced, and what a pass that died left behind.
func (p *planner) deleteSecrets() {
	held := p.heldSecrets()
	for i := range p.have.Secrets {
		have := &p.have.Secrets[i]
		if !held[have.Key] && (p.want.Empty() || p.want.SecretByKey(have.Key) == nil) {
			p.add(Step{Verb: Delete, Kind: lb.KindSecret, Ref: Ref{ID: have.ID, Key: have.Key}, Reason: "nothing refers to it any more"})
		}
	}
}

// heldSecrets are those that listeners and pools still refer to after the steps so far: one can have to stay.
func (p *planner) heldSecrets() map[string]bool {
	held := map[string]bool{}
	for i := range p.have.Listeners {
		have := &p.have.Listeners[i]
		tls := have.TLS
		for _, s := range p.steps {
			switch {
			case s.Verb == Delete && s.Kind == lb.KindLoadBalancer, s.Kind == lb.KindListener && s.Verb == Delete && s.Ref.is(have.ID, have.Key):
				tls = nil
			case s.Kind == lb.KindListener && s.Verb == Update && s.Ref.is(have.ID, have.Key):
				after := *have
				after.TLS = tls
				if updateFields(s, listenerSetters, &after, s.ListenerTo, nil) == nil {
					tls = after.TLS
				}
			}
		}
		for _, key := range tls.Secrets() {
			held[key] = true
		}
	}
	for i := range p.have.Pools {
		have := &p.have.Pools[i]
		after := *have
		for _, s := range p.steps {
			switch {
			case s.Verb == Delete && s.Kind == lb.KindLoadBalancer, s.Kind == lb.KindPool && s.Verb == Delete && s.Ref.is(have.ID, have.Key):
				after.TLS = nil
			case s.Kind == lb.KindPool && s.Verb == Update && s.Ref.is(have.ID, have.Key):
				if updateFields(s, poolSetters, &after, s.Pool, nil) != nil {
					after.TLS = have.TLS
				}
			}
		}
		for _, key := range after.TLS.Secrets() {
			held[key] = true
		}
	}
	return held
}

func applySecret(tree *lb.Tree, s Step) error {
	at := slices.IndexFunc(tree.Secrets, func(o lb.Secret) bool { return s.Ref.is(o.ID, o.Key) })
	switch s.Verb {
	case Create:
		if tree.SecretByKey(s.Ref.Key) != nil {
			return fmt.Errorf("it exists")
		}
		// The payload stays with the cloud.
		made := lb.Secret{ID: newID(s.Secret.ID, s.Ref.Key), Key: s.Ref.Key, Name: s.Secret.Name, Ref: s.Secret.Ref}
		tree.Secrets = append(slices.Clone(tree.Secrets), made)
		slices.SortStableFunc(tree.Secrets, func(a, b lb.Secret) int { return strings.Compare(a.Key, b.Key) })
		return nil
	case Delete:
		if at < 0 {
			return notFound(s.Ref)
		}
		for i := range tree.Listeners {
			if slices.Contains(tree.Listeners[i].TLS.Secrets(), tree.Secrets[at].Key) {
				return fmt.Errorf("listener %s refers to it", tree.Listeners[i].Key)
			}
		}
		for i := range tree.Pools {
			if slices.Contains(tree.Pools[i].TLS.Secrets(), tree.Secrets[at].Key) {
				return fmt.Errorf("pool %s refers to it", tree.Pools[i].Key)
			}
		}
		tree.Secrets = slices.Delete(slices.Clone(tree.Secrets), at, at+1)
		return nil
	}
	return unknownVerb(s)
}

// secretsExist says whether everything that a listener refers to is there.
func secretsExist(tree *lb.Tree, l *lb.Listener) error {
	for _, key := range l.TLS.Secrets() {
		if tree.SecretByKey(key) == nil {
			return fmt.Errorf("the secret %s of listener %s does not exist", key, l.Key)
		}
	}
	return nil
}

// poolSecretsExist says whether everything that a pool refers to is there.
func poolSecretsExist(tree *lb.Tree, p *lb.Pool) error {
	for _, key := range p.TLS.Secrets() {
		if tree.SecretByKey(key) == nil {
			return fmt.Errorf("the secret %s of pool %s does not exist", key, p.Key)
		}
	}
	return nil
}

// WithoutCertificates is want for a cloud that refuses its certificates: HTTPS listeners that exist keep the certificates that they have,
// those that do not exist are left out, and all the rest goes on. Pools with TLS keep what they have too, and new ones get no members:
// their requests are not sent in plain text instead. The secrets stay as they are, so that the next attempt does not store
// them again.
func WithoutCertificates(want, have *lb.Tree) *lb.Tree {
	out := *want
	out.Listeners, out.Secrets = nil, have.Secrets
	for _, l := range want.Listeners {
		if l.TLS == nil {
			out.Listeners = append(out.Listeners, l)
			continue
		}
		for i := range have.Listeners {
			if h := &have.Listeners[i]; h.TLS != nil && h.Port == l.Port {
				l.TLS = h.TLS
				out.Listeners = append(out.Listeners, l)
			}
		}
	}
	out.Pools = usedPools(&out)
	for i := range out.Pools {
		pool := &out.Pools[i]
		if len(pool.TLS.Secrets()) == 0 {
			continue
		}
		switch there := have.PoolByKey(pool.Key); {
		case there == nil:
			pool.TLS, pool.Members, pool.Monitor = nil, nil, nil
		case there.TLS == nil:
			// Spoken to in plain text up to now, by wish: nothing changes until all of it can.
			pool.TLS, pool.Members, pool.Monitor = nil, there.Members, there.Monitor
		default:
			pool.TLS = there.TLS
		}
	}
	return &out
}

// usedPools are the pools that the listeners of a tree use.
func usedPools(t *lb.Tree) []lb.Pool {
	used := usersOf(t)
	return slices.DeleteFunc(slices.Clone(t.Pools), func(p lb.Pool) bool { return used[p.Key] == users{} })
}
