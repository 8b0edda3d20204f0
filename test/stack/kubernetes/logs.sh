#!/usr/bin/env bash
# logs.sh [DIR]: copies the logs of every component and every Pod, Kubernetes' objects and the nodes' network tables to DIR; without DIR
# it prints the end of each log. Also works on what a failed up has left.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
[ -d "$LOG" ] || die "there are no logs: the cluster has not been started"
if [ -z "${1:-}" ]; then
	for f in "$LOG"/*.log "$LOG"/pods/*.log; do
		[ -e "$f" ] || continue
		printf '\n==> %s <==\n' "$f"
		tail -n "${LINES_OF_LOG:-10}" "$f"
	done
	exit
fi
mkdir -p "$1"
cp -r "$LOG"/. "$1/"
if pid_of kube-apiserver >/dev/null; then
	# Secrets stay where they are.
	for kind in nodes,leases pods,services,endpointslices,deployments,replicasets,jobs gatewayclasses,gateways,httproutes,referencegrants; do
		admin --request-timeout=20s get "$kind" -A -o yaml >"$1/${kind%%,*}.yaml" 2>/dev/null || rm -f "$1/${kind%%,*}.yaml"
	done
	admin --request-timeout=20s get events -A --sort-by=.lastTimestamp >"$1/events.txt" 2>&1 || true
fi
for n in $(namespaces); do
	echo "== $n"
	ip -n "$n" -br addr
	ip -n "$n" route
	case $n in "$PREFIX"-n-*) in_ns "$n" nft list ruleset ;; esac
done >"$1/network.txt" 2>&1 || true
