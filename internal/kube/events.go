package kube

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	// repeatAfter is how long an equal Event is not sent again.
	repeatAfter = 10 * time.Minute
	// maxRemembered bounds the memory for that.
	maxRemembered = 4096
	// maxNote is the limit of the API for an Event's note, in bytes.
	maxNote = 1024
)

// Events tells people about transitions. Equal Events are sent once in ten minutes.
type Events struct {
	recorder events.EventRecorder
	now      func() time.Time

	mu   sync.Mutex
	sent map[sentEvent]time.Time
}

type sentEvent struct {
	uid                types.UID
	kind, reason, note string
}

// NewEvents wraps a recorder, such as the manager's GetEventRecorder.
func NewEvents(recorder events.EventRecorder) *Events {
	return &Events{recorder: recorder, now: time.Now, sent: map[sentEvent]time.Time{}}
}

// Normal says that something went as wished. action is what the controller did or tries to do, in CamelCase.
func (e *Events) Normal(object client.Object, reason, action, note string) {
	e.send(object, corev1.EventTypeNormal, reason, action, note)
}

// Warning says that somebody should look.
func (e *Events) Warning(object client.Object, reason, action, note string) {
	e.send(object, corev1.EventTypeWarning, reason, action, note)
}

func (e *Events) send(object client.Object, kind, reason, action, note string) {
	if e == nil {
		return
	}
	note = shorten(note)
	if !e.first(sentEvent{object.GetUID(), kind, reason, note}) {
		return
	}
	// The note is an argument: it may hold a user's percent signs.
	e.recorder.Eventf(object, nil, kind, reason, action, "%s", note)
}

func (e *Events) first(key sentEvent) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if at, ok := e.sent[key]; ok && now.Sub(at) < repeatAfter {
		return false
	}
	if len(e.sent) >= maxRemembered {
		for k, at := range e.sent {
			if now.Sub(at) >= repeatAfter {
				delete(e.sent, k)
			}
		}
		if len(e.sent) >= maxRemembered {
			clear(e.sent)
		}
	}
	e.sent[key] = now
	return true
}

// transitions tells changed conditions of an object: that it became programmed, what went wrong, and what is well again.
func (e *Events) transitions(object client.Object, changed []transition) {
	if e == nil {
		return
	}
	for _, t := range changed {
		note := t.to.Message
		if t.listener != "" {
			if t.to.Type == string(gwv1.ListenerConditionProgrammed) && (t.to.Reason != string(gwv1.ListenerReasonInvalid) || toldElsewhere(t.listener, changed)) {
				// The Gateway's condition, or another one of the listener, says it.
				continue
			}
			note = "Listener " + t.listener + ": " + note
		}
		bad := metav1.ConditionFalse
		switch t.to.Type {
		case string(gwv1.ListenerConditionConflicted), string(gwv1.ListenerConditionOverlappingTLSConfig), string(gwv1.RouteConditionPartiallyInvalid):
			bad = metav1.ConditionTrue
		}
		switch {
		case t.to.Reason == string(gwv1.GatewayReasonPending):
			// On the way to something else.
		case t.to.Status == bad:
			e.Warning(object, t.to.Reason, "Report"+t.to.Type, note)
		case t.to.Type == string(gwv1.GatewayConditionProgrammed):
			e.Normal(object, t.to.Reason, "Program", note)
		case t.from.Status == bad && t.from.Reason != string(gwv1.GatewayReasonPending):
			e.Normal(object, t.to.Reason, "Report"+t.to.Type, note)
		}
	}
}

// toldElsewhere says whether another condition of a listener has become bad too, which Programmed only repeats.
func toldElsewhere(listener string, changed []transition) bool {
	return slices.ContainsFunc(changed, func(t transition) bool {
		return t.listener == listener && (t.to.Type == string(gwv1.ListenerConditionAccepted) || t.to.Type == string(gwv1.ListenerConditionResolvedRefs)) &&
			t.to.Status == metav1.ConditionFalse
	})
}

func shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	const end = " [...]"
	return strings.ToValidUTF8(note[:maxNote-len(end)], "") + end
}
