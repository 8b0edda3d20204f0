package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func ofListenerSet(set *gwv1.ListenerSet) listening {
	out := listening{generation: set.Generation}
	for _, l := range set.Spec.Listeners {
		out.listeners = append(out.listeners, gwv1.Listener(l))
	}
	for _, l := range set.Status.Listeners {
		out.have = append(out.have, gwv1.ListenerStatus(l))
	}
	return out
}

// listenerSets makes the status of each ListenerSet that compile has a verdict on. One that the Gateway does not look at has no entries
// for its listeners.
func listenerSets(in Input, verdicts sorted, gateway Condition) []ListenerSetStatus {
	var out []ListenerSetStatus
	for _, v := range verdicts.sets {
		i := slices.IndexFunc(in.ListenerSets, func(s *gwv1.ListenerSet) bool {
			return s.Namespace == v.Object.Namespace && s.Name == v.Object.Name
		})
		if i < 0 {
			continue
		}
		s := ListenerSetStatus{Object: v.Object}
		if own := verdicts.listeners[ungenerated(v.Object)]; own != nil {
			s.Listeners, _ = listeners(in, ofListenerSet(in.ListenerSets[i]), own)
		}
		conditions := v.Conditions
		if _, known := find(conditions, string(gwv1.ListenerSetConditionProgrammed)); !known {
			conditions = append(slices.Clone(conditions), setProgrammed(s.Listeners, gateway))
		}
		s.Conditions = stamp(conditions, v.Object.Generation)
		out = append(out, s)
	}
	return out
}

// setProgrammed is the Programmed condition of a ListenerSet with listeners that are served.
func setProgrammed(listeners []gwv1.ListenerStatus, gateway Condition) Condition {
	if gateway.Status != metav1.ConditionTrue {
		return condition(gwv1.ListenerSetConditionProgrammed, metav1.ConditionFalse, listenerSetReasonParentNotProgrammed,
			"The Gateway is not programmed: "+gateway.Message)
	}
	for _, l := range listeners {
		for _, c := range l.Conditions {
			if c.Type == string(gwv1.ListenerEntryConditionProgrammed) && c.Status != metav1.ConditionTrue && c.Reason == string(gwv1.ListenerEntryReasonPending) {
				return condition(gwv1.ListenerSetConditionProgrammed, metav1.ConditionUnknown, gwv1.ListenerSetReasonPending, c.Message)
			}
		}
	}
	return condition(gwv1.ListenerSetConditionProgrammed, metav1.ConditionTrue, gwv1.ListenerSetReasonProgrammed,
		"The load balancer listens on the ports of all valid listeners.")
}
