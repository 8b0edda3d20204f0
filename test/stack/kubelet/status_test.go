package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func running(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func terminated(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func waiting(before *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: corev1.ContainerState{Terminated: before}}
}

func TestPodStatus_phaseAndConditions(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(noon)
	for _, c := range []struct {
		name        string
		policy      corev1.RestartPolicy
		inits, main []corev1.ContainerStatus
		expect      string // phase, Initialized, ContainersReady, Ready
	}{
		{"nothing yet", "Always", nil, nil, "Pending False False False"},
		{"init runs", "Always", []corev1.ContainerStatus{running(false)}, nil, "Pending False False False"},
		{"init failed for good", "Never", []corev1.ContainerStatus{terminated(1)}, nil, "Failed False False False"},
		{"not ready", "Always", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{running(false)}, "Running True False False"},
		{"ready", "Always", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{running(true)}, "Running True True True"},
		{"never started", "Always", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{waiting(nil)}, "Pending True False False"},
		{"crashing", "Always", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{waiting(&corev1.ContainerStateTerminated{})}, "Running True False False"},
		{"done", "Never", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{terminated(0)}, "Succeeded True False False"},
		{"failed", "Never", []corev1.ContainerStatus{terminated(0)}, []corev1.ContainerStatus{terminated(2)}, "Failed True False False"},
	} {
		pod := testPod()
		pod.Spec.RestartPolicy = c.policy
		pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
		pod.Spec.Containers = []corev1.Container{{Name: "c"}}
		s := podStatus(pod, view{podIP: testFacts.podIP, hostIP: testFacts.hostIP, started: now, inits: c.inits, main: c.main}, now)
		state := map[corev1.PodConditionType]corev1.ConditionStatus{}
		for _, x := range s.Conditions {
			state[x.Type] = x.Status
		}
		got := fmt.Sprint(s.Phase, " ", state[corev1.PodInitialized], " ", state[corev1.ContainersReady], " ", state[corev1.PodReady])
		if got != c.expect {
			t.Errorf("%s: %s, want %s", c.name, got, c.expect)
		}
		if s.PodIP != "10.244.1.2" || s.HostIP != "10.88.0.11" || len(s.ContainerStatuses) != 1 || len(s.InitContainerStatuses) != 1 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func TestPodStatus_keepsForeignConditionsAndTimes(t *testing.T) {
	t.Parallel()
	early, now := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	pod := testPod()
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a.test/gate"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: early}}
	v := view{podIP: testFacts.podIP, hostIP: testFacts.hostIP, started: early, main: []corev1.ContainerStatus{running(true)}}
	pod.Status = podStatus(pod, v, early)
	if holds(pod.Status.Conditions, corev1.PodReady) || !holds(pod.Status.Conditions, corev1.ContainersReady) {
		t.Errorf("a missing readiness gate: %+v", pod.Status.Conditions)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "a.test/gate", Status: corev1.ConditionTrue})
	got := podStatus(pod, v, now)
	for _, c := range got.Conditions {
		want := early
		switch c.Type {
		case corev1.PodReady:
			want = now
		case "a.test/gate":
			continue
		}
		if !c.LastTransitionTime.Equal(&want) || c.Status != corev1.ConditionTrue {
			t.Errorf("%s: %s since %v", c.Type, c.Status, c.LastTransitionTime)
		}
	}
	if !got.StartTime.Equal(&early) {
		t.Errorf("start time %v", got.StartTime)
	}
}

func TestPodStatus_deletionAndFailure(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(noon)
	pod := testPod()
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	s := podStatus(pod, view{hostIP: testFacts.hostIP, started: now, failure: &startFailure{"ErrImagePull", "no binary"}}, now)
	if w := s.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ErrImagePull" || w.Message != "no binary" || s.PodIP != "" || s.Phase != corev1.PodPending {
		t.Errorf("%+v", s)
	}
	pod.DeletionTimestamp = &now
	s = podStatus(pod, view{podIP: testFacts.podIP, hostIP: testFacts.hostIP, started: now, main: []corev1.ContainerStatus{running(true)}}, now)
	if holds(s.Conditions, corev1.PodReady) {
		t.Error("a Pod that is being deleted is ready")
	}
}

func TestNodeStatus_keepsTimesAndForeignConditions(t *testing.T) {
	t.Parallel()
	cfg := &config{nodeName: "node1", nodeIP: testFacts.hostIP, version: "v1"}
	early, now := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	s := nodeStatus(corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "a.test/x"}, {Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: early}}}, cfg, early)
	s = nodeStatus(s, cfg, now)
	if len(s.Conditions) != 5 || s.Conditions[0].Type != "a.test/x" {
		t.Fatalf("%+v", s.Conditions)
	}
	ready := s.Conditions[1]
	if ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.Equal(&early) || !ready.LastHeartbeatTime.Equal(&now) {
		t.Errorf("%+v", ready)
	}
	if s.Addresses[0].Type != corev1.NodeInternalIP || s.Addresses[0].Address != "10.88.0.11" {
		t.Errorf("%+v", s.Addresses)
	}
}

func TestBackoff_growsAndForgets(t *testing.T) {
	t.Parallel()
	b := backoff{first: time.Second, limit: 4 * time.Second}
	var got []time.Duration
	for _, ran := range []time.Duration{0, 0, 0, 0, time.Minute, 0} {
		got = append(got, b.next(ran)/time.Second)
	}
	if want := "[1ns 2ns 4ns 4ns 1ns 2ns]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAgain_followsThePolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy corev1.RestartPolicy
		code   int32
		want   bool
	}{{"Always", 0, true}, {"Always", 1, true}, {"OnFailure", 0, false}, {"OnFailure", 1, true}, {"Never", 1, false}} {
		if again(c.policy, c.code) != c.want {
			t.Errorf("%s, exit code %d", c.policy, c.code)
		}
	}
}
