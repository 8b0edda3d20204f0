#!/usr/bin/env bash
# down.sh: ends the cluster, also one that is only half up, and an up.sh that is at it; removes its namespaces and state. Logs stay
# until the next down.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
mkdir -p "$RUN"
exec 8>>"$RUN/kubernetes.lock"
if ! flock -n 8; then
	up=$(cat "$RUN/kubernetes.lock")
	! grep -qs up.sh "/proc/$up/cmdline" || kill -KILL "$up" 2>/dev/null || true
	flock -w 60 8 || die "something keeps $RUN/kubernetes.lock"
fi

# ours: every process in one of our network namespaces, whoever has started it.
ours() {
	local p net
	for p in /proc/[0-9]*; do
		net=$(readlink "$p/ns/net" 2>/dev/null) || continue
		case " $inodes " in *" $net "*) echo "${p#/proc/}" ;; esac
	done
}

mapfile -t all < <(namespaces)
inodes=
for n in "${all[@]}"; do inodes="$inodes net:[$(stat -Lc %i "/run/netns/$n")]"; done
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
