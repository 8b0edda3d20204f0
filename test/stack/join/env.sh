# Sourced by the scripts here: the names on both sides. Defines, does nothing.
# shellcheck shell=bash disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/../openstack/env.sh"
join=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

FABRIC=$PREFIX-fabric # the network namespace of Kubernetes' bridge br0; its machines are $PREFIX-cp and $PREFIX-n-<number>
NODES=10.88.0         # the machines' network, /24; .1 is the router

# machines: namespace, address and pod network ("-" for none) of every machine of Kubernetes, a line each.
machines() {
	local path ns address
	for path in /run/netns/"$PREFIX-cp" /run/netns/"$PREFIX"-n-*; do
		[ -e "$path" ] || continue
		ns=${path##*/}
		address=$(ip -n "$ns" -4 -o addr show dev eth0 | awk '{ sub("/.*", "", $4); print $4; exit }')
		# The control plane has a route to the pods of every node.
		echo "$ns $address $(ip -n "$PREFIX-cp" route show | awk -v hop="$address" '$2 == "via" && $3 == hop { n = $1 } END { print n ? n : "-" }')"
	done
}
