#!/usr/bin/env bash
# network.sh: makes the namespaces of the fabric, the control plane and the nodes, what is missing of them. up.sh calls it.
# Pod namespaces are the kubelet's.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root

has_link() { ip -n "$1" link show "$2" >/dev/null 2>&1; }

make_ns() {
	[ -e "/run/netns/$1" ] || ip netns add "$1"
	ip -n "$1" link set lo up
}

# machine NAMESPACE PORT ADDRESS: a namespace attached to the fabric. Its MAC address is left alone: a Neutron port may have given it.
machine() {
	make_ns "$1"
	has_link "$1" eth0 || ip link add "$2" netns "$FABRIC" type veth peer name eth0 netns "$1"
	ip -n "$FABRIC" link set "$2" master "$BRIDGE" up
	ip -n "$1" addr replace "$3/${FABRIC_CIDR#*/}" dev eth0
	ip -n "$1" link set eth0 up
	ip -n "$1" route replace default via "$ROUTER"
}

make_ns "$FABRIC"
has_link "$FABRIC" "$BRIDGE" || ip -n "$FABRIC" link add "$BRIDGE" type bridge forward_delay 0
ip -n "$FABRIC" link set "$BRIDGE" up
# Joined with OpenStack (link "uplink") the router's address is a Neutron router's.
has_link "$FABRIC" uplink || ip -n "$FABRIC" addr replace "$ROUTER/${FABRIC_CIDR#*/}" dev "$BRIDGE"

machine "$CP" cp "$CP_ADDRESS"
for i in $(nodes); do
	ns=$(node_ns "$i")
	machine "$ns" "n$i" "$(node_address "$i")"
	in_ns "$ns" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	# Outside the cluster nobody knows the way back to a Pod.
	in_ns "$ns" nft -f - <<-N
		add table ip $PREFIX-pods
		delete table ip $PREFIX-pods
		table ip $PREFIX-pods {
			chain postrouting {
				type nat hook postrouting priority srcnat; policy accept;
				ip saddr $(node_pods "$i") ip daddr != { $POD_CIDR, $FABRIC_CIDR } oifname eth0 masquerade
			}
		}
	N
done
for i in $(nodes); do
	ip -n "$CP" route replace "$(node_pods "$i")" via "$(node_address "$i")"
	for j in $(nodes); do
		[ "$i" = "$j" ] || ip -n "$(node_ns "$j")" route replace "$(node_pods "$i")" via "$(node_address "$i")"
	done
done
