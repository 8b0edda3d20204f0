#!/usr/bin/env bash
# Runs the end-to-end tests on the real stack: brings it up if it is down, installs the controller as users do, and runs the test
# binary inside the stack's network. Arguments go to the test binary, for example -test.run TestHTTP. GATEWAY_API_OPENSTACK_E2E_SEED (or "random"), _GATEWAYS, _REQUESTS, _CHANGES,
# _LOAD and _KILLS (rounds in which processes of both sides die) say what the tests draw and how much of it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/test/stack/kubernetes/env.sh"
need_root
cd "$root"
work=$RUN/e2e
mkdir -p "$work"
kubectl=$root/test/stack/kubectl

say "stack"
"$root/test/stack/stack" up
set -a
. "$RUN/facts.env"
set +a

"$root/test/stack/controller.sh" e2e 1 # the tests read the metrics of the one that works

say "building the tests"
go test -tags e2e -c -o "$work/e2e.test" ./test/e2e

say "tests"
code=0
(cd "$root/test/e2e" && KUBECONFIG=$KUBECONFIG_ADMIN in_ns "$CP" "$work/e2e.test" -test.v -test.timeout 60m "$@") || code=$?
if [ "$code" != 0 ]; then
	echo "--- the controller's log" >&2
	"$kubectl" -n gateway-api-openstack-system logs deployment/openstack-gateway-controller --tail=60 >&2 || true
fi
say "end-to-end tests ended with $code"
exit "$code"
