#!/bin/bash
# down.sh: ends the cloud and everything in it, also one that is only half up, and an up.sh that is at it; removes its state. Cached
# layers stay.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
if [ "${1:-}" != --locked ]; then
	mkdir -p "$RUN"
	exec 8>>"$RUN/openstack.lock"
	if ! flock -n 8; then
		up=$(cat "$RUN/openstack.lock")
		! grep -qs up.sh "/proc/$up/cmdline" || kill -KILL "$up" 2>/dev/null || true
		flock -w 60 8 || die "something keeps $RUN/openstack.lock"
	fi
fi

# Everything of ours is in one of our network namespaces or below our root. Killing the first process of the cloud ends its
# pid namespace; the rest are commands that somebody runs in the namespaces.
ours() {
	local p net
	for p in /proc/[0-9]*; do
		net=$(readlink "$p/ns/net" 2>/dev/null) || continue
		case " $inodes " in
		*" $net "*) echo "${p#/proc/}" && continue ;;
		esac
		case $(readlink "$p/root" 2>/dev/null) in
		"$STATE"/*) echo "${p#/proc/}" ;;
		esac
	done
}

inodes=
for n in $NS $CLIENT; do
	[ ! -e "/run/netns/$n" ] || inodes="$inodes net:[$(stat -Lc %i "/run/netns/$n")]"
done
for _ in $(seq 50); do
	mapfile -t pids < <(ours)
	[ ${#pids[@]} -gt 0 ] || break
	kill -KILL "${pids[@]}" 2>/dev/null || true
	sleep 0.1
done
[ ${#pids[@]} = 0 ] || die "processes of the cloud do not end: ${pids[*]}"
for n in $NS $CLIENT; do
	[ ! -e "/run/netns/$n" ] || ip netns del "$n"
done
rm -rf "$STATE" "$RUN/facts.env"
