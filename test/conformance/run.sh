#!/usr/bin/env bash
# Runs the Gateway API conformance suite against the controller on the real stack, which is brought up when it is not running.
#
#   run.sh [CONFIGURATION...]      native, responder; both without arguments. Members are Pod addresses.
#
# ONLY=test,test runs these tests only, ONLY=sample those of sample.go. CLAIMED_ONLY=1 leaves out the tests that have to fail. PUBLISH=1 writes what was seen to
# docs/conformance; a configuration that is not run again keeps what was seen last. RELEASE selects the OpenStack release of the stack. Everything else is in docs/conformance/README.md.
set -euo pipefail
suite=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$suite/../stack/kubernetes/env.sh"
need_root
cd "$suite"
export RELEASE=${RELEASE:-trixie}
ONLY=${ONLY:-} CLAIMED_ONLY=${CLAIMED_ONLY:-}
configurations=("$@")
[ $# -gt 0 ] || configurations=(native responder)
for c in "${configurations[@]}"; do
	case $c in native | responder) ;; *) die "no configuration $c; there are native and responder" ;; esac
done
if [ -n "${PUBLISH:-}" ] && [ -n "$ONLY$CLAIMED_ONLY" ]; then die "only a whole run is published: without ONLY and CLAIMED_ONLY"; fi
work=$RUN/conformance
out=$work/$RELEASE
mkdir -p "$out"
kubectl=$suite/../stack/kubectl

say "stack"
"$suite/../stack/stack" up
set -a
. "$RUN/facts.env"
set +a
[ "$GAO_RELEASE" = "$RELEASE" ] || die "the stack that runs is $GAO_RELEASE, not $RELEASE: make stack-down first"

say "building the suite and its backend"
go test -tags conformance -c -o "$work/conformance.test" .
go build -o "$work/judge" .
[ "$ONLY" != sample ] || ONLY=$("$work/judge" sample)
CGO_ENABLED=0 go build -o "$work/echo-basic" sigs.k8s.io/gateway-api/conformance/echo-basic
version=$(go list -m -f '{{.Version}}' sigs.k8s.io/gateway-api)
crds=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard
"$suite/../stack/kubernetes/image.sh" registry.k8s.io/gateway-api/echo-basic "$work/echo-basic"
# The suite's base has a name server for UDPRoute, which the profile does not test: it only has to run.
"$suite/../stack/kubernetes/image.sh" registry.k8s.io/coredns/coredns "$OWN/echo"

# Two replicas: with one, the responder would be away while it restarts.
"$suite/../stack/controller.sh" conformance 2 "$crds"

installed() { "$suite/../stack/openstack/enter.sh" dpkg-query -W -f '${Version}' "$1"; }
commit=$(git -C "$suite" describe --always --dirty --abbrev=12)
ground="gateway-api=$version,release=$RELEASE,controller=$commit,octavia=$(installed octavia-api),haproxy=$(installed haproxy)"
ground+=",kubernetes=$("$kubectl" version -o json | sed -n '/serverVersion/,$s/.*"gitVersion": "\(.*\)".*/\1/p')"

class() { # class NAME [LINE...]: a class whose VIPs are on the node subnet
	printf '%s\n' 'apiVersion: gateway-api-openstack.dev/v1alpha1' 'kind: OpenStackGatewayClassConfig' "metadata: {name: $1}" 'spec:' \
		"  vipSubnet: {id: $GAO_NODE_SUBNET_ID}" '  memberMode: PodIP' "${@:2}" --- \
		'apiVersion: gateway.networking.k8s.io/v1' 'kind: GatewayClass' "metadata: {name: $1}" 'spec:' \
		'  controllerName: gateway-api-openstack.dev/gateway-controller' \
		"  parametersRef: {group: gateway-api-openstack.dev, kind: OpenStackGatewayClassConfig, name: $1}" --- |
		"$kubectl" apply --server-side --force-conflicts -f - >/dev/null
}
class conformance-native
class conformance-responder '  responder:' '    service: {namespace: gateway-api-openstack-system, name: openstack-gateway-responder}'

# pending: once a second, how many load balancers Octavia is at work on. Its own tables are cheaper to ask than its API.
pending() {
	"$suite/../stack/openstack/enter.sh" sh -c \
		'while sleep 1; do mariadb -N octavia -e "select count(*) from load_balancer where provisioning_status like \"PENDING%\""; done' 2>/dev/null
}
sampler=
trap '[ -z "$sampler" ] || kill -- -"$sampler" 2>/dev/null || true' EXIT

rc=0
for c in "${configurations[@]}"; do
	say "the suite, $c"
	"$kubectl" wait --for=condition=Accepted --timeout=120s "gatewayclass/conformance-$c" >/dev/null
	# Two tests at once for each core: they wait for Octavia most of the time. The suite ends with a failure when a test that has to
	# fail does: the judge decides.
	set -m
	pending >"$out/$c.pending" &
	sampler=$!
	set +m
	KUBECONFIG=$KUBECONFIG_ADMIN in_ns "$CP" "$work/conformance.test" -test.v=test2json -test.timeout 150m -test.parallel 4 \
		-configuration "$c" -only "$ONLY" -claimed-only="${CLAIMED_ONLY:-0}" \
		-gateway-class "conformance-$c" -usable-address 10.88.0.90 -unusable-address 203.0.113.90 \
		-organization gateway-api-openstack -project gateway-api-openstack -url https://github.com/gateway-api-openstack/gateway-api-openstack \
		-version "$commit" -contact https://github.com/gateway-api-openstack/gateway-api-openstack/issues \
		-report-output "$out/$c.yaml" >"$out/$c.log" 2>&1 || true
	kill -- -"$sampler" 2>/dev/null || true
	sampler=
	if "$work/judge" judge -pending "$out/$c.pending" -configuration "$c" -only "$ONLY" -claimed-only="${CLAIMED_ONLY:-0}" \
		-ground "$ground,date=$(date -u +%F)" -out "$out/$c.json" "$out/$c.log"; then
		[ -n "$ONLY$CLAIMED_ONLY" ] || cp "$out/$c.json" "$out/$c.seen.json"
	else
		rc=1
	fi
	# The next configuration begins with nothing.
	"$kubectl" delete namespace -l gateway-conformance --timeout=300s >/dev/null || rc=1
done
if [ $rc -ne 0 ]; then
	say "failed; the logs of the suite are in $out, the controller's:"
	"$kubectl" -n gateway-api-openstack-system logs -l app.kubernetes.io/name=openstack-gateway-controller --prefix --tail=40 >&2 || true
	exit $rc
fi
if [ -n "${PUBLISH:-}" ]; then
	docs=$suite/../../docs/conformance
	for c in "${configurations[@]}"; do cp "$out/$c.yaml" "$docs/$version-$RELEASE-$c.yaml"; done
	"$work/judge" report "$out"/*.seen.json >"$docs/$version-$RELEASE.md"
	say "written: docs/conformance/$version-$RELEASE.md and the reports beside it"
fi
say "conformance is as claimed"
