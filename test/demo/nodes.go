package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes plays the part of kubelets, kube-proxy and the controller manager, as far as a load balancer sees it: Nodes with loopback
// addresses, EndpointSlices, and one backend for each Service that listens on its node port on every Node.
type nodes struct {
	addresses []string // node-1 is the first
	servers   []*http.Server
	// hits counts requests by backend.
	hits map[string]*atomic.Int64
}

// start makes everything for the NodePort Services that there are.
func (n *nodes) start(ctx context.Context, c client.Client) error {
	n.hits = map[string]*atomic.Int64{}
	for i := range n.addresses {
		if err := n.register(ctx, c, i); err != nil {
			return err
		}
	}
	var services corev1.ServiceList
	if err := c.List(ctx, &services); err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	for i := range services.Items {
		if service := &services.Items[i]; service.Spec.Type == corev1.ServiceTypeNodePort {
			if err := n.serve(ctx, c, service); err != nil {
				return err
			}
		}
	}
	return nil
}

func nodeName(i int) string { return "node-" + strconv.Itoa(i+1) }

func (n *nodes) register(ctx context.Context, c client.Client, i int) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
	if err := c.Create(ctx, node); err != nil {
		return fmt.Errorf("registering a Node: %w", err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.addresses[i]}}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Demo", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
	}}
	if err := c.Status().Update(ctx, node); err != nil {
		return fmt.Errorf("registering a Node: %w", err)
	}
	return nil
}

// serve makes the backend of a Service: one Pod on each Node, reached through the node port on that Node.
func (n *nodes) serve(ctx context.Context, c client.Client, service *corev1.Service) error {
	ready, port := true, service.Spec.Ports[0]
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-demo",
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port.Name, Port: new(port.TargetPort.IntVal), Protocol: &port.Protocol}},
	}
	hits := &atomic.Int64{}
	n.hits[service.Name] = hits
	for i, address := range n.addresses {
		name := nodeName(i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			// Only the load balancer of a PodIP class would use these.
			Addresses: []string{fmt.Sprintf("10.244.%d.%d", i+1, len(n.hits))}, NodeName: &name,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port.NodePort))))
		if err != nil {
			return fmt.Errorf("opening the node port of Service %s/%s on %s: %w", service.Namespace, service.Name, name, err)
		}
		server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hits.Add(1)
			w.Header().Set("X-Backend", service.Name)
			w.Header().Set("X-Node", name)
			// The error is that the client is gone.
			_, _ = fmt.Fprintf(w, "%s on %s: %s %s%s\n", service.Name, name, r.Method, r.Host, r.URL.Path)
		})}
		n.servers = append(n.servers, server)
		go func() {
			if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				panic(fmt.Sprintf("backend %s on %s: %v", service.Name, name, err))
			}
		}()
	}
	if err := c.Create(ctx, slice); err != nil {
		return fmt.Errorf("writing the endpoints of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}

func (n *nodes) stop() {
	for _, s := range n.servers {
		// Nothing is under way that matters.
		_ = s.Close()
	}
}
