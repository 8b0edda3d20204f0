#!/usr/bin/env bash
# Runs the contract suite against the real cloud of the test ground (test/stack/stack up). Arguments go to the test binary, for
# example -test.run DataPlane. They run where a client of the public network is: it reaches the APIs, the VIPs and the floating
# IPs, and the amphorae reach it as a member.
set -euo pipefail
suite=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$suite/../stack/kubernetes/env.sh"
need_root
[ -r "$RUN/facts.env" ] || die "the test ground is down: make stack-up"
set -a
. "$RUN/facts.env"
set +a
mkdir -p "$RUN/contract"
(cd "$suite/../.." && go test -c -o "$RUN/contract/contract.test" ./test/contract)
cd "$suite"
GATEWAY_API_OPENSTACK_CONTRACT=real exec nsenter --net="/run/netns/$GAO_CLIENT_NAMESPACE" -- "$RUN/contract/contract.test" -test.v -test.timeout 60m "$@"
