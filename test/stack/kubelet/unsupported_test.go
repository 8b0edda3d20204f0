package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestUnsupported_isToldByName(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	for want, change := range map[string]func(*corev1.PodSpec, *corev1.Container){
		"neither httpGet nor tcpSocket": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}
		},
		"postStart": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}}
		},
		"preStop": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
		},
		"hostPort": func(_ *corev1.PodSpec, c *corev1.Container) { c.Ports = []corev1.ContainerPort{{HostPort: 80}} },
		"block":    func(_ *corev1.PodSpec, c *corev1.Container) { c.VolumeDevices = []corev1.VolumeDevice{{}} },
		"restartPolicy": func(s *corev1.PodSpec, _ *corev1.Container) {
			s.InitContainers = []corev1.Container{{RestartPolicy: &always}}
		},
		"sharing": func(s *corev1.PodSpec, _ *corev1.Container) { s.HostPID = true },
	} {
		pod := testPod()
		pod.Spec.Containers = []corev1.Container{{Name: "web"}}
		if err := unsupported(pod); err != nil {
			t.Fatal(err)
		}
		change(&pod.Spec, &pod.Spec.Containers[0])
		if err := unsupported(pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
