package main

import (
	"fmt"
	"net/netip"
)

// addresses hands out the Pod addresses of one node. The first address of the
// range is the node's own end and is never handed out. Addresses are reused as
// late as possible, so that a stale connection or load balancer member does
// not meet a new Pod.
type addresses struct {
	prefix netip.Prefix
	last   netip.Addr
	used   map[netip.Addr]bool
}

func newAddresses(prefix netip.Prefix) *addresses {
	a := &addresses{prefix: prefix.Masked(), used: map[netip.Addr]bool{}}
	a.last = a.gateway()
	return a
}

// gateway is the address of the node's end of every Pod's link.
func (a *addresses) gateway() netip.Addr { return a.prefix.Addr().Next() }

func (a *addresses) take() (netip.Addr, error) {
	for addr := a.last; ; {
		addr = addr.Next()
		if !a.usable(addr) {
			addr = a.gateway().Next()
		}
		if a.usable(addr) && !a.used[addr] {
			a.used[addr] = true
			a.last = addr
			return addr, nil
		}
		if addr == a.last || len(a.used) == 0 {
			return netip.Addr{}, fmt.Errorf("no free Pod address left in %s (%d in use)", a.prefix, len(a.used))
		}
	}
}

func (a *addresses) release(addr netip.Addr) { delete(a.used, addr) }

// usable says whether addr may be given to a Pod: inside the range and not its
// broadcast address.
func (a *addresses) usable(addr netip.Addr) bool {
	return a.prefix.Contains(addr) && a.prefix.Contains(addr.Next())
}
