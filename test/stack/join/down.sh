#!/bin/bash
# down.sh: undoes up.sh as far as either side is still there.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
if cloud_runs; then
	in_cloud NODES=$NODES python3 - down <"$join/neutron.py" || die "Neutron keeps the network of the machines"
	ip -n $CLIENT route del "$NODES.0/24" 2>/dev/null || true
fi
if [ -e "/run/netns/$FABRIC" ]; then
	ip -n "$FABRIC" link del uplink 2>/dev/null || true
	ip -n "$FABRIC" link show br0 >/dev/null 2>&1 && ip -n "$FABRIC" addr replace "$NODES.1/24" dev br0
fi
! cloud_runs || "$here/facts.sh"
