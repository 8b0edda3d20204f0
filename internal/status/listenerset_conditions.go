package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// listenerSetReasonParentNotProgrammed is a reason of the API that has no constant there.
const listenerSetReasonParentNotProgrammed gwv1.ListenerSetConditionReason = "ParentNotProgrammed"

// ListenerSetAccepted says that all listeners of the set are valid.
func ListenerSetAccepted() []Condition {
	return []Condition{condition(gwv1.ListenerSetConditionAccepted, metav1.ConditionTrue, gwv1.ListenerSetReasonAccepted, "The ListenerSet is accepted.")}
}

// ListenerSetPartlyValid says that the set is served without the named listeners.
func ListenerSetPartlyValid(refused []string) []Condition {
	return []Condition{condition(gwv1.ListenerSetConditionAccepted, metav1.ConditionTrue, gwv1.ListenerSetReasonListenersNotValid,
		fmt.Sprintf("The ListenerSet is accepted without %s: see their conditions.", listenerList(refused)))}
}

// ListenerSetListenersNotValid says that no listener of the set is valid.
func ListenerSetListenersNotValid(refused []string) []Condition {
	return setRefused(gwv1.ListenerSetReasonListenersNotValid, fmt.Sprintf("No listener is left without %s: see their conditions.", strings.Join(atMost(refused), ", ")))
}

// ListenerSetNotAllowed says that the Gateway takes no ListenerSets from this namespace.
func ListenerSetNotAllowed() []Condition {
	return setRefused(gwv1.ListenerSetReasonNotAllowed, "allowedListeners of the Gateway does not allow ListenerSets from this namespace.")
}

// ListenerSetParentNotAccepted says that the Gateway itself is refused.
func ListenerSetParentNotAccepted() []Condition {
	return []Condition{
		condition(gwv1.ListenerSetConditionAccepted, metav1.ConditionFalse, gwv1.ListenerSetReasonParentNotAccepted, "The Gateway is not accepted: see its conditions."),
		condition(gwv1.ListenerSetConditionProgrammed, metav1.ConditionFalse, listenerSetReasonParentNotProgrammed, "The Gateway is not accepted: see its conditions."),
	}
}

func setRefused(reason gwv1.ListenerSetConditionReason, message string) []Condition {
	return []Condition{
		condition(gwv1.ListenerSetConditionAccepted, metav1.ConditionFalse, reason, message),
		condition(gwv1.ListenerSetConditionProgrammed, metav1.ConditionFalse, reason, message),
	}
}
