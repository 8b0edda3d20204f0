package controller

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// Every class of error has one policy, and none of them waits for ever: a repair in the cloud sends no event.
func TestOutcomeOf_hasAPolicyForEveryClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		kind   status.OutcomeKind
		reason string
		// first and later are the pauses after the first failure, and after many.
		first, later time.Duration
	}{
		{"busy", &cloud.Error{Class: cloud.Wait}, status.Pending, "", 2 * time.Second, 2 * time.Second},
		{"changed meanwhile", &cloud.Error{Class: cloud.Stale}, status.Pending, "", 2 * time.Second, 128 * time.Second},
		{"no answer", &cloud.Error{Class: cloud.Retry}, status.Retry, "", 5 * time.Second, 320 * time.Second},
		{"throttled for long", &cloud.Error{Class: cloud.Retry, RetryAfter: 30 * time.Minute}, status.Retry, "", 30 * time.Minute, 30 * time.Minute},
		{"not of the cloud", errors.New("secret words"), status.Retry, "", 5 * time.Second, 320 * time.Second},
		{"user", &cloud.Error{Class: cloud.UserFault}, status.UserFault, "", 2 * time.Minute, 10 * time.Minute},
		{"address", &cloud.Error{Class: cloud.UserFault, Reason: cloud.ReasonAddress}, status.UserFault, "AddressNotUsable", 20 * time.Second, 10 * time.Minute},
		{"no address left", &cloud.Error{Class: cloud.OperatorFault, Reason: cloud.ReasonAddress}, status.OperatorFault, "AddressNotAssigned", 30 * time.Second, 10 * time.Minute},
		{"selector", &cloud.Error{Class: cloud.UserFault, Reason: cloud.ReasonSelector}, status.OperatorFault, "", 2 * time.Minute, 10 * time.Minute},
		{"quota", &cloud.Error{Class: cloud.OperatorFault, Reason: cloud.ReasonQuota}, status.OperatorFault, "", 30 * time.Second, 10 * time.Minute},
		{"ownership", &cloud.Error{Class: cloud.Conflict}, status.Conflict, "", time.Minute, 10 * time.Minute},
		{"in ERROR", &cloud.Error{Class: cloud.Broken}, status.Broken, "", time.Minute, 10 * time.Minute},
	} {
		o := outcomeOf(c.err)
		if o.Kind != c.kind || o.Reason != c.reason {
			t.Errorf("%s: %s %q, want %s %q", c.name, o.Kind, o.Reason, c.kind, c.reason)
		}
		if got := o.delay(0); got != c.first {
			t.Errorf("%s: first pause %v, want %v", c.name, got, c.first)
		}
		if got := o.delay(1000); got != c.later {
			t.Errorf("%s: pause after many failures %v, want %v", c.name, got, c.later)
		}
	}
	if o := outcomeOf(errors.New("secret words")); o.Message != "The pass failed; the controller's log has the cause." {
		t.Errorf("an unknown error is told as %q", o.Message)
	}
}

// What is remembered counts only for the same Gateway, the same wish and for a while.
func TestSettled_isBelievedOnlyForWhatItWas(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "infra", Name: "edge"}
	now := time.Unix(1e9, 0)
	a, errA := digestOf(&lb.Tree{Description: "a"})
	b, errB := digestOf(&lb.Tree{Description: "b"})
	if errA != nil || errB != nil || a == b {
		t.Fatalf("digests: %v %v, equal %v", errA, errB, a == b)
	}
	var s settled
	s.put(key, settledGateway{uid: "u-1", want: a, until: now.Add(time.Minute), read: now})
	for name, c := range map[string]struct {
		uid  types.UID
		want digest
		at   time.Time
		ok   bool
	}{
		"the same":                     {"u-1", a, now, true},
		"another wish":                 {"u-1", b, now, false},
		"another Gateway of that name": {"u-2", a, now, false},
		"the resync is due":            {"u-1", a, now.Add(time.Minute), false},
	} {
		if _, ok := s.get(key, c.uid, c.want, c.at); ok != c.ok {
			t.Errorf("%s: %v, want %v", name, ok, c.ok)
		}
	}
	if have, _ := s.last(key, "u-1", now.Add(time.Minute)); have == nil {
		t.Error("the tree is not believed for a new wish")
	}
	if have, _ := s.last(key, "u-1", now.Add(2*believed)); have != nil {
		t.Error("the tree is believed for ever")
	}
	s.doubt(key)
	if _, ok := s.get(key, "u-1", a, now); ok {
		t.Error("a doubt is without effect")
	}

	s.keep(key, underway{uid: "u-1", have: &lb.Tree{}, since: now})
	if _, ok := s.take(key, "u-2", now); ok {
		t.Error("another Gateway's load balancer is taken for ours")
	}
	if _, ok := s.take(key, "u-1", now); ok {
		t.Error("what was taken is still there")
	}
	s.keep(key, underway{uid: "u-1", have: &lb.Tree{}, since: now})
	if _, ok := s.take(key, "u-1", now.Add(underwayFor)); ok {
		t.Error("a load balancer is believed to be underway for ever")
	}
}

// Only success ends the count of failures: what is deleted and made again because it broke must not do so faster and faster.
func TestSettled_countsFailuresUntilSuccess(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Name: "edge"}
	var s settled
	broken, pending := outcomeOf(&cloud.Error{Class: cloud.Broken}), pendingAfter(time.Second, "")
	for i, c := range []struct {
		o    outcome
		want int
	}{{broken, 0}, {broken, 1}, {pending, 0}, {broken, 2}, {programmedUntil(time.Minute), 0}, {broken, 0}, {outcomeOf(&cloud.Error{Class: cloud.Retry}), 0}, {broken, 0}} {
		if got := s.failed(key, c.o); got != c.want {
			t.Errorf("pass %d (%s): %d failures before, want %d", i, c.o.Kind, got, c.want)
		}
	}
}

func TestJitter_spreadsAndIsStable(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for _, uid := range []types.UID{"a", "b", "c", "d", "e"} {
		d := jitter(10*time.Minute, uid)
		if d < 8*time.Minute || d > 12*time.Minute || d != jitter(10*time.Minute, uid) {
			t.Errorf("%s: %v", uid, d)
		}
		seen[d] = true
	}
	if len(seen) < 4 {
		t.Errorf("only %d different resyncs", len(seen))
	}
}
