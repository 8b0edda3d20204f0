#!/bin/bash
# selftest.sh: one load balancer, made by raw API calls, carries traffic and is deleted again. The cloud must be up.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
cloud_runs || die "the cloud is not up: run $here/up.sh"
in_cloud python3 - <"$here/cloud/selftest.py"
