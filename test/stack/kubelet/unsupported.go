package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// unsupported returns what a Pod asks for that this kubelet cannot do. To
// ignore it would make tests pass that prove nothing.
func unsupported(pod *corev1.Pod) error {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if what := unsupportedIn(&list[i], pod.Spec.HostNetwork); what != "" {
				return fmt.Errorf("container %q: %s is not supported by the process kubelet", list[i].Name, what)
			}
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil {
			return fmt.Errorf("container %q: restartPolicy of an init container is not supported by the process kubelet", c.Name)
		}
	}
	if pod.Spec.HostPID || pod.Spec.HostIPC || deref(pod.Spec.ShareProcessNamespace) {
		return fmt.Errorf("sharing process or ipc namespaces is not supported by the process kubelet")
	}
	return nil
}

func unsupportedIn(c *corev1.Container, hostNetwork bool) string {
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p != nil && p.HTTPGet == nil && p.TCPSocket == nil {
			return "a probe that is neither httpGet nor tcpSocket"
		}
	}
	if l := c.Lifecycle; l != nil {
		if l.PostStart != nil {
			return "a postStart hook"
		}
		if h := l.PreStop; h != nil && h.Sleep == nil && h.HTTPGet == nil {
			return "a preStop hook that is neither sleep nor httpGet"
		}
	}
	for _, p := range c.Ports {
		if p.HostPort != 0 && !hostNetwork {
			return "hostPort"
		}
	}
	if len(c.VolumeDevices) > 0 {
		return "a block device"
	}
	return ""
}
