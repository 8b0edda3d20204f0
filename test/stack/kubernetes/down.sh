#!/usr/bin/env bash
# down.sh: ends the cluster, also one that is only half up, and an up.sh that is at it; removes its namespaces and state. Logs stay
# until the next down.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
if [ "${1:-}" != --locked ]; then
	mkdir -p "$RUN"
	exec 8>>"$RUN/kubernetes.lock"
	if ! flock -n 8; then
		up=$(cat "$RUN/kubernetes.lock")
		! grep -qs up.sh "/proc/$up/cmdline" || kill -KILL "$up" 2>/dev/null || true
		flock -w 60 8 || die "something keeps $RUN/kubernetes.lock"
	fi
fi

# ours: every process in one of our network namespaces, whoever has started it.
ours() {
	[ ${#all[@]} -gt 0 ] || return 0
	{ stat -Lc '%d:%i' "${all[@]/#//run/netns/}" && echo && { stat -Lc '%d:%i %n' /proc/[0-9]*/ns/net 2>/dev/null || true; }; } |
		awk '!NF { found = 1; next } !found { ours[$1] = 1; next } $1 in ours { split($2, path, "/"); print path[3] }'
}

mapfile -t all < <(namespaces)
pids=()
for _ in $(seq 100); do
	mapfile -t pids < <(ours)
	[ ${#pids[@]} -gt 0 ] || break
	kill -KILL "${pids[@]}" 2>/dev/null || true
	sleep 0.1
done
[ ${#pids[@]} = 0 ] || die "processes of the cluster do not end: ${pids[*]}"
# A kubelet that was killed in the middle may have made one more.
for n in $(namespaces); do ip netns del "$n"; done
if [ -d "$STATE" ]; then
	rm -rf "$RUN/kubernetes.log.old"
	[ ! -d "$LOG" ] || mv "$LOG" "$RUN/kubernetes.log.old"
	rm -rf "$STATE"
	mkdir -p "$STATE"
	[ ! -d "$RUN/kubernetes.log.old" ] || mv "$RUN/kubernetes.log.old" "$LOG"
fi
say "Kubernetes is down"
