package main

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	kubeletPort   = 10250
	leasePause    = 5 * time.Second
	leaseDuration = 40 * time.Second
	statusPause   = time.Minute
)

// capacity is what the node claims to have: enough that the scheduler never
// refuses a test.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("32Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("64Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

// register makes the Node object, or takes over the one that exists: labels,
// taints and cordons of others stay.
func register(ctx context.Context, client kubernetes.Interface, cfg *config) error {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("the API server's version: %w", err)
	}
	cfg.version = version.GitVersion
	cidr := cfg.podCIDR.String()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: cfg.nodeName, Labels: map[string]string{
			corev1.LabelHostname: cfg.nodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH}},
		Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making node %s: %w", cfg.nodeName, err)
	}
	return postNode(ctx, client, cfg)
}

// postNode writes the Node's status. The node lifecycle controller writes to a
// new Node too, so a conflict is normal.
func postNode(ctx context.Context, client kubernetes.Interface, cfg *config) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, cfg.nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status = nodeStatus(node.Status, cfg, metav1.Now())
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("status of node %s: %w", cfg.nodeName, err)
	}
	return nil
}

// nodeStatus returns the status of a healthy node, keeping conditions of
// others and the times of those that did not change.
func nodeStatus(s corev1.NodeStatus, cfg *config, now metav1.Time) corev1.NodeStatus {
	s.Capacity, s.Allocatable = capacity(), capacity()
	s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: cfg.nodeIP.String()}, {Type: corev1.NodeHostName, Address: cfg.nodeName}}
	s.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	s.NodeInfo.KubeletVersion, s.NodeInfo.ContainerRuntimeVersion = cfg.version, "process://1"
	s.NodeInfo.OperatingSystem, s.NodeInfo.Architecture, s.NodeInfo.OSImage = "linux", runtime.GOARCH, "network namespace"
	for _, want := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
	} {
		want.LastHeartbeatTime, want.LastTransitionTime = now, now
		found := false
		for i, have := range s.Conditions {
			if have.Type == want.Type {
				if have.Status == want.Status {
					want.LastTransitionTime = have.LastTransitionTime
				}
				s.Conditions[i], found = want, true
			}
		}
		if !found {
			s.Conditions = append(s.Conditions, want)
		}
	}
	return s
}

// heartbeat keeps the node's Lease fresh, which is what makes it Ready for the
// node lifecycle controller, and posts Ready again after it was taken away.
func heartbeat(ctx context.Context, client kubernetes.Interface, cfg *config) {
	var posted time.Time
	every(ctx, leasePause, func() {
		if err := renewLease(ctx, client, cfg.nodeName, time.Now()); err != nil && ctx.Err() == nil {
			log.Printf("lease: %v", err)
			posted = time.Time{} // the node may be seen as lost: post again at once
			return
		}
		if time.Since(posted) < statusPause {
			return
		}
		if err := postNode(ctx, client, cfg); err != nil {
			if ctx.Err() == nil {
				log.Print(err)
			}
			return
		}
		posted = time.Now()
	})
}

func renewLease(ctx context.Context, client kubernetes.Interface, name string, now time.Time) error {
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	renew, seconds := metav1.NewMicroTime(now), int32(leaseDuration/time.Second)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &renew}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &name, &seconds, &renew
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
