#!/bin/bash
# status.sh: whether every machine of Kubernetes reaches the OpenStack APIs; status 0 if all do.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
rc=1
while read -r ns address pods; do
	rc=${failed:-0}
	if nsenter --net="/run/netns/$ns" curl -s -o /dev/null --max-time 3 "http://$API:5000/v3"; then
		state=joined
	else
		state="does not reach $API" failed=1 rc=1
	fi
	printf '%-24s %-12s pods %-16s %s\n' "$ns" "$address" "$pods" "$state"
done < <(machines)
[ $rc = 0 ] || echo "join: not complete"
exit $rc
