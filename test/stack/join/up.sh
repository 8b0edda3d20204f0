#!/bin/bash
# up.sh: makes the network of Kubernetes' machines a Neutron network behind demo-router, so that load balancers reach nodes and pods,
# and pods reach the OpenStack APIs. Both sides must be up. May be run again at any time, after either side was made anew too.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
cloud_runs && [ -e "$STATE/ready" ] || die "the cloud is not up"
[ -e "/run/netns/$FABRIC" ] && [ -e "/run/netns/$PREFIX-cp" ] || die "Kubernetes is not up: there is no namespace $FABRIC or $PREFIX-cp"
mapfile -t list < <(machines)

answer=$(in_cloud NODES=$NODES python3 - up "${list[@]}" <"$join/neutron.py") || die "Neutron did not take the machines' network"
network=$(awk '$1 == "network" { print $2 }' <<<"$answer")
router=$(awk '$1 == "router" { print $2 }' <<<"$answer")
bridge=brq${network:0:11}

ip -n $NS link show "$bridge" >/dev/null 2>&1 || ip -n $NS link add "$bridge" type bridge
ip -n $NS link set "$bridge" up
ip -n "$FABRIC" addr del "$NODES.1/24" dev br0 2>/dev/null || true # that address is demo-router's now
if ! ip -n $NS link show nodes >/dev/null 2>&1; then
	ip -n "$FABRIC" link del uplink 2>/dev/null || true
	ip link add uplink netns "$FABRIC" type veth peer name nodes netns $NS
fi
ip -n "$FABRIC" link set uplink master br0 up
ip -n $NS link set nodes master "$bridge" up
while read -r what ns mac; do
	[ "$what" = machine ] || continue
	[ "$(ip -n "$ns" -o link show dev eth0 | sed 's/.*link\/ether \([^ ]*\).*/\1/')" = "$mac" ] || ip -n "$ns" link set dev eth0 address "$mac"
done <<<"$answer"
for line in "${list[@]}"; do
	ip -n "${line%% *}" neigh flush all
done
ip -n $CLIENT route replace "$NODES.0/24" via "$router"

for line in "${list[@]}"; do
	ns=${line%% *}
	reached=
	for _ in $(seq 50); do
		nsenter --net="/run/netns/$ns" curl -s -o /dev/null --max-time 2 "http://$API:5000/v3" && reached=1 && break
		sleep 0.2
	done
	[ -n "$reached" ] || die "$ns does not reach Keystone at $API: see $LOG/l3.log and 'ip -n $ns route'"
done
"$here/facts.sh"
say "joined ${#list[@]} machines: network k8s-net, subnet $NODES.0/24"
