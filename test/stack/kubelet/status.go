package main

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view is what the kubelet knows about a Pod when it writes its status.
type view struct {
	podIP, hostIP netip.Addr
	started       metav1.Time
	// failure says why containers cannot be started yet.
	failure     *startFailure
	inits, main []corev1.ContainerStatus
}

// startFailure is shown as the waiting reason of containers.
type startFailure struct{ reason, message string }

// podStatus returns the status of a Pod. What others wrote (PodScheduled,
// readiness gates, disruption) is kept.
func podStatus(pod *corev1.Pod, v view, now metav1.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.ObservedGeneration = pod.Generation
	s.HostIP, s.HostIPs = v.hostIP.String(), []corev1.HostIP{{IP: v.hostIP.String()}}
	if v.podIP.IsValid() {
		s.PodIP, s.PodIPs = v.podIP.String(), []corev1.PodIP{{IP: v.podIP.String()}}
	}
	if s.StartTime == nil {
		start := metav1.NewTime(v.started.Rfc3339Copy().Time)
		s.StartTime = &start
	}
	s.InitContainerStatuses = fillStatuses(pod.Spec.InitContainers, v.inits, v.failure)
	s.ContainerStatuses = fillStatuses(pod.Spec.Containers, v.main, v.failure)
	s.Phase = phase(pod, v)

	initialized := len(v.main) > 0 || len(pod.Spec.InitContainers) == 0
	ready := len(v.main) == len(pod.Spec.Containers) && pod.DeletionTimestamp == nil
	for _, c := range v.main {
		ready = ready && c.Ready
	}
	reason := ""
	if s.Phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	}
	setCondition(pod, &s, corev1.PodReadyToStartContainers, v.podIP.IsValid(), "", now)
	setCondition(pod, &s, corev1.PodInitialized, initialized, reason, now)
	setCondition(pod, &s, corev1.ContainersReady, ready, notReady(ready, reason), now)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && holds(s.Conditions, gate.ConditionType)
	}
	setCondition(pod, &s, corev1.PodReady, ready, notReady(ready, reason), now)
	return s
}

func notReady(ready bool, reason string) string {
	if !ready && reason == "" {
		return "ContainersNotReady"
	}
	return reason
}

// fillStatuses adds a waiting status for each container without one.
func fillStatuses(specs []corev1.Container, have []corev1.ContainerStatus, failure *startFailure) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range specs {
		if i < len(have) {
			out = append(out, have[i])
			continue
		}
		w := &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
		if failure != nil {
			w = &corev1.ContainerStateWaiting{Reason: failure.reason, Message: failure.message}
		}
		no := false
		out = append(out, corev1.ContainerStatus{Name: specs[i].Name, Image: specs[i].Image, Started: &no, State: corev1.ContainerState{Waiting: w}})
	}
	return out
}

func phase(pod *corev1.Pod, v view) corev1.PodPhase {
	for _, c := range v.inits {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
	}
	if len(v.main) < len(pod.Spec.Containers) {
		return corev1.PodPending
	}
	ended, failed, begun := true, false, false
	for _, c := range v.main {
		t := c.State.Terminated
		ended = ended && t != nil
		failed = failed || t != nil && t.ExitCode != 0
		begun = begun || c.State.Running != nil || t != nil || c.LastTerminationState.Terminated != nil
	}
	switch {
	// While a Pod is being deleted its containers end whatever the policy says.
	case ended && failed:
		return corev1.PodFailed
	case ended:
		return corev1.PodSucceeded
	case begun:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func holds(conditions []corev1.PodCondition, t corev1.PodConditionType) bool {
	for _, c := range conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func setCondition(pod *corev1.Pod, s *corev1.PodStatus, t corev1.PodConditionType, value bool, reason string, now metav1.Time) {
	want := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now, ObservedGeneration: pod.Generation}
	if value {
		want.Status = corev1.ConditionTrue
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			if s.Conditions[i].Status == want.Status {
				want.LastTransitionTime = s.Conditions[i].LastTransitionTime
			}
			s.Conditions[i] = want
			return
		}
	}
	s.Conditions = append(s.Conditions, want)
}
