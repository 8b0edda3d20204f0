package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// network joins Pods to the node, in whose namespace this process runs. Each
// Pod has a namespace with one address and a link of its own to the node; the
// node routes. There is no bridge.
type network struct {
	prefix  string // of the names of Pod namespaces on this node
	gateway netip.Addr
}

// prepare gives the node the address that Pods use as their gateway. It lies
// on the loopback device: the node answers for it on every Pod's link.
func (n *network) prepare() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	return netlink.AddrReplace(lo, &netlink.Addr{IPNet: host(n.gateway)})
}

func (n *network) names(id string) (ns, veth string) { return n.prefix + id, "v" + id }

// connect makes the namespace of a Pod.
func (n *network) connect(id string, addr netip.Addr) (path string, err error) {
	ns, veth := n.names(id)
	if err = namedNetns("add", ns); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.disconnect(id))
		}
	}()
	handle, err := netns.GetFromName(ns)
	if err != nil {
		return "", err
	}
	defer func() { _ = handle.Close() }()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = veth
	if err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(handle)}); err != nil {
		return "", fmt.Errorf("making the link %s: %w", veth, err)
	}
	if err = n.insidePod(handle, addr); err != nil {
		return "", fmt.Errorf("setting up the network of %s: %w", ns, err)
	}
	outer, err := netlink.LinkByName(veth)
	if err != nil {
		return "", err
	}
	if err := netlink.LinkSetUp(outer); err != nil {
		return "", err
	}
	route := &netlink.Route{LinkIndex: outer.Attrs().Index, Dst: host(addr), Src: n.gateway.AsSlice(), Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(route); err != nil {
		return "", fmt.Errorf("route to %s: %w", addr, err)
	}
	return netnsPath(ns), nil
}

func (n *network) insidePod(ns netns.NsHandle, addr netip.Addr) error {
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		if name == "eth0" {
			if err := h.AddrAdd(link, &netlink.Addr{IPNet: host(addr)}); err != nil {
				return err
			}
		}
		if err := h.LinkSetUp(link); err != nil {
			return err
		}
		if name == "lo" {
			continue
		}
		for _, r := range []*netlink.Route{
			{LinkIndex: link.Attrs().Index, Dst: host(n.gateway), Scope: netlink.SCOPE_LINK},
			{LinkIndex: link.Attrs().Index, Gw: n.gateway.AsSlice()},
		} {
			if err := h.RouteAdd(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// disconnect removes the namespace of a Pod; a missing one is no error. The
// link goes first, because a namespace vanishes some time after its deletion.
func (n *network) disconnect(id string) error {
	ns, veth := n.names(id)
	if link, err := netlink.LinkByName(veth); err == nil {
		if err := netlink.LinkDel(link); err != nil && !errors.Is(err, syscall.ENODEV) {
			return fmt.Errorf("removing the link %s: %w", veth, err)
		}
	}
	return deleteNetns(ns)
}

func deleteNetns(ns string) error {
	if _, err := os.Stat(netnsPath(ns)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return namedNetns("del", ns)
}

// namedNetns leaves the making of named namespaces to ip(8): it does not move
// a thread of this process, on whose life that of a container may depend.
func namedNetns(verb, ns string) error {
	cmd := exec.Command("ip", "netns", verb, ns) //nolint:noctx // it does not wait for anything
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns %s %s: %w: %s", verb, ns, err, out)
	}
	return nil
}

// sweep removes what an earlier kubelet of this node left: namespaces of Pods
// and any process in them.
func (n *network) sweep() (removed int, err error) {
	paths, err := filepath.Glob(netnsPath(n.prefix) + "*")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		if err := killInside(path); err != nil {
			return removed, err
		}
		id := strings.TrimPrefix(filepath.Base(path), n.prefix)
		if err := n.disconnect(id); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// killInside ends all processes of a network namespace and waits for them.
func killInside(path string) error {
	want, err := identity(path)
	if err != nil {
		return err
	}
	for range 100 {
		found := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if have, err := identity(filepath.Join("/proc", e.Name(), "ns", "net")); err == nil && have == want {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("processes in %s do not end", path)
}

// identity tells namespaces apart.
func identity(path string) (id [2]uint64, err error) {
	var st syscall.Stat_t
	err = syscall.Stat(path, &st)
	return [2]uint64{st.Dev, st.Ino}, err
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}
