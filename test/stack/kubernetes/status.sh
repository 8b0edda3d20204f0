#!/usr/bin/env bash
# status.sh: what runs of the cluster, with its memory, its nodes and Pods; status 0 if it is complete.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
if [ ! -e "$STATE/nodes" ]; then
	left=$(namespaces)
	echo "Kubernetes: down${left:+, but namespaces are left: $left (test/stack/kubernetes/down.sh removes them)}"
	exit 1
fi
rc=0
for name in $(daemons); do
	if pid=$(pid_of "$name"); then
		printf '%-28s %5d MB\n' "$name" $(($(awk '/^Pss:/ { print $2; exit }' "/proc/$pid/smaps_rollup") / 1024))
	else
		printf '%-28s %s\n' "$name" "does not run, see $LOG/$name.log"
		rc=1
	fi
done
for i in $(nodes); do
	# A down.sh that was killed may have left processes without a place.
	[ -e "/run/netns/$(node_ns "$i")" ] || { echo "namespace $(node_ns "$i") is missing" && rc=1; }
done
if pid_of kube-apiserver >/dev/null; then
	echo
	admin --request-timeout=10s get nodes -o wide || rc=1
	echo
	admin --request-timeout=10s get pods -A -o wide || rc=1
	[ $rc != 0 ] || admin --request-timeout=10s wait --for=condition=Ready --timeout=1s node --all >/dev/null || rc=1
fi
[ $rc = 0 ] || echo "Kubernetes: not complete; test/stack/kubernetes/up.sh mends it"
exit $rc
