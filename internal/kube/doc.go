// Package kube is the Kubernetes edge: it turns informer caches into compile.Snapshot values and status.Statuses values into
// writes.
//
// Reader reads everything that one Gateway depends on, or fails. Watches maps each event of any other kind to the
// Gateways that it can change, through field indexes and never through cluster-wide lists of routes. Writer writes only
// our own conditions, parents and finalizers, by JSON patches under an optimistic lock, so that what others wrote stays as
// it is to the byte.
//
// Objects that come out of Reader may share memory with the cache: nothing changes them.
// The package never imports cloud.
package kube
