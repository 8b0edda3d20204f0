#!/bin/bash
# status.sh: what runs of the cloud, with its memory; status 0 if it is complete.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
if ! cloud_runs; then
	echo "cloud: down"
	exit 1
fi
rc=0
[ -e "$STATE/ready" ] || rc=1
echo "cloud: $(cat "$STATE/release"), up since $(stat -c %y "$STATE/pid" | cut -d. -f1)$([ $rc = 0 ] || echo ', not complete')"

# megabytes PID...: their memory; shared pages are counted in proportion.
memory() {
	local total=0 pss p
	for p in "$@"; do
		pss=$(awk '/^Pss:/ { print $2; exit }' "/proc/$p/smaps_rollup" 2>/dev/null) || continue
		total=$((total + ${pss:-0}))
	done
	echo $((total / 1024))
}
# Daemons are told apart by session, and amphorae by being in pid namespaces of their own.
declare -A session_of
while read -r name session; do
	session_of[$name]=$session
done < <(in_cloud sh -c 'for f in /run/gao/*.pid; do n=${f##*/}; echo "${n%.pid} $(cat "$f")"; done')
declare -A members
amphora=()
for p in /proc/[0-9]*; do
	case $(readlink "$p/root" 2>/dev/null) in "$STATE"/*) ;; *) continue ;; esac
	if [ "$p/ns/pid" -ef "/proc/$(cat "$STATE/pid")/ns/pid" ]; then
		session=$(awk '/^NSsid:/ { print $NF }' "$p/status" 2>/dev/null) || continue
		case $(cat "$p/comm" 2>/dev/null) in beam.smp | erl_child_setup | epmd) session=${session_of[rabbitmq]:-0} ;; esac
		members[$session]+=" ${p#/proc/}"
	else
		amphora+=("${p#/proc/}")
	fi
done
for name in $(printf '%s\n' "${!session_of[@]}" | sort); do
	read -ra pids <<<"${members[${session_of[$name]}]:-}"
	if [ ${#pids[@]} = 0 ]; then
		printf '%-24s ended, see %s\n' "$name" "$LOG/$name.log" && rc=1
	else
		printf '%-24s %5d MB\n' "$name" "$(memory "${pids[@]}")"
	fi
done
printf '%-24s %5d MB\n' "$(in_cloud sh -c 'ls /run/gao/amphorae | wc -l') amphorae" "$(memory "${amphora[@]}")"
exit $rc
