package controller

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// settled remembers which Gateways were found as they shall be, so that an event without effect costs no call to the
// cloud. Forgetting any of it is always
// safe.
type settled struct {
	mu       sync.Mutex
	of       map[types.NamespacedName]settledGateway
	underway map[types.NamespacedName]underway
	// failures are kept apart: they outlive a doubt.
	failures map[types.NamespacedName]failures
}

// underway is a load balancer that Octavia was at work on when a pass ended.
type underway struct {
	uid types.UID
	// have is the tree as it is when Octavia is done.
	have  *lb.Tree
	since time.Time
	read  time.Time
}

// underwayFor is how long such a tree is believed; booting an amphora takes minutes.
const underwayFor = 15 * time.Minute

type failures struct {
	kind  status.OutcomeKind
	count int
}

type settledGateway struct {
	uid   types.UID
	want  digest
	until time.Time
	// have is the tree as it was observed; it holds the addresses.
	have lb.Tree
	// read is when all of it was last read from the cloud.
	read time.Time
}

// believed is how long the content of a tree is taken from memory while the cloud says that nothing changed. A full read finds what
// that witness missed (cloud.ObserveSince), spread over Gateways like resyncs are.
const believed = time.Hour

type digest [sha256.Size]byte

// digestOf identifies the content of a wanted tree.
func digestOf(want *lb.Tree) (digest, error) {
	text, err := json.Marshal(want)
	if err != nil {
		return digest{}, fmt.Errorf("identifying the wanted tree: %w", err)
	}
	return sha256.Sum256(text), nil
}

// last returns what was known of the Gateway's tree, whatever is wanted now; nil when that should be read anew.
func (s *settled) last(key types.NamespacedName, uid types.UID, now time.Time) (have *lb.Tree, read time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.of[key]
	if !ok || g.uid != uid || now.Sub(g.read) > jitter(believed, uid) {
		return nil, time.Time{}
	}
	return &g.have, g.read
}

// wished says whether want is what the Gateway was last settled to.
func (s *settled) wished(key types.NamespacedName, uid types.UID, want digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.of[key]
	return ok && g.uid == uid && g.want == want
}

// get returns what is remembered when it is for this Gateway and this wish, and still fresh.
func (s *settled) get(key types.NamespacedName, uid types.UID, want digest, now time.Time) (settledGateway, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.of[key]
	return g, ok && g.uid == uid && g.want == want && now.Before(g.until)
}

func (s *settled) put(key types.NamespacedName, g settledGateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[types.NamespacedName]settledGateway{}
	}
	s.of[key] = g
}

func (s *settled) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
	delete(s.underway, key)
	delete(s.failures, key)
}

// keep remembers a load balancer that Octavia is at work on.
func (s *settled) keep(key types.NamespacedName, u underway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underway == nil {
		s.underway = map[types.NamespacedName]underway{}
	}
	s.underway[key] = u
}

// take returns what keep remembered and forgets it: whoever is still sure afterwards keeps it again.
func (s *settled) take(key types.NamespacedName, uid types.UID, now time.Time) (underway, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.underway[key]
	delete(s.underway, key)
	return u, ok && u.uid == uid && now.Sub(u.since) < underwayFor
}

// jitter spreads resyncs over 80 to 120 % of interval, always the same for one UID, so that a restart of the controller does not
// line them up.
func jitter(interval time.Duration, uid types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return interval*4/5 + time.Duration(int64(interval)*2/5*int64(h.Sum32()%1000)/1000)
}

// doubt forgets that a Gateway was settled, but not how often its passes failed.
func (s *settled) doubt(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}

// failed counts the passes that ended in the same kind of failure before this one, since the Gateway was last programmed.
func (s *settled) failed(key types.NamespacedName, o outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !o.backoff {
		// A pending pass between two failures is none of success: only that ends the count.
		if o.Kind == status.Programmed {
			delete(s.failures, key)
		}
		return 0
	}
	f := s.failures[key]
	if f.kind != o.Kind {
		f = failures{kind: o.Kind}
	}
	if s.failures == nil {
		s.failures = map[types.NamespacedName]failures{}
	}
	s.failures[key] = failures{kind: f.kind, count: f.count + 1}
	return f.count
}
