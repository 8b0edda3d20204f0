#!/bin/bash
# enter.sh [COMMAND...]: runs a command, or a shell, inside the cloud: its root file system, processes and network. For example
#   enter.sh openstack loadbalancer list         (as the user demo)
#   enter.sh service kill octavia-worker         (and start, stop, status)
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
cloud_runs || die "the cloud is not up"
[ $# -gt 0 ] || set -- bash
in_cloud PATH=/usr/local/lib/gao:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" OS_AUTH_URL="http://$API:5000/v3" \
	OS_USERNAME=demo OS_PROJECT_NAME=demo OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default OS_REGION_NAME=RegionOne \
	OS_IDENTITY_API_VERSION=3 sh -c 'OS_PASSWORD=$(cat /etc/gao/password) exec "$@"' sh "$@"
