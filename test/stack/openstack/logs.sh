#!/bin/bash
# logs.sh [DIR]: copies every log of the cloud, of its amphorae and HAProxies, and the HAProxy configurations, to DIR; without DIR it
# prints the end of each. Also works on what a failed up has left.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
[ -d "$LOG" ] || die "there are no logs: the cloud has not been started"
if [ -z "${1:-}" ]; then
	for f in "$LOG"/*.log; do
		printf '\n==> %s <==\n' "$f"
		tail -n "${LINES_OF_LOG:-10}" "$f"
	done
	exit
fi
mkdir -p "$1"
cp "$LOG"/*.log "$1/"
[ ! -e "$RUN/facts.env" ] || cp "$RUN/facts.env" "$1/"
cloud_runs || exit 0
# Rules, pools and members as HAProxy has them; certificates and keys stay where they are.
in_cloud sh -c 'cd /run/gao/amphorae && find . -name haproxy.cfg -path "*/upper/var/lib/octavia/*"' | while read -r f; do
	in_cloud cat "/run/gao/amphorae/$f" >"$1/haproxy-$(cut -d/ -f2 <<<"$f")-$(basename "$(dirname "$f")").cfg"
done
{
	ip -n $NS -br addr
	in_cloud sh -c 'for n in $(ls /run/netns); do echo "== $n"; ip -n $n -br addr; ip -n $n route; done; nft list ruleset'
} >"$1/network.txt" 2>&1 || true
