#!/usr/bin/env bash
# Checks the Helm chart without a cluster: lint, what it makes of several values, and that bad values are refused with a reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
helm() { "$root/hack/tool.sh" helm "$@"; }
versions=(--kube-version 1.36.0) # helm as built here claims an old one
chart=$root/charts/gateway-api-openstack
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

helm lint --strict "$chart" "${versions[@]}" --set clusterID=one --quiet

# kinds FILE: the kinds in it, counted.
kinds() { grep -hE '^kind: ' "$1" | sort | uniq -c | awk '{ printf "%s%s=%s", sep, $3, $1; sep = " " }'; }
# renders NAME KINDS ARGUMENT...: what the chart makes of values.
renders() {
	local name=$1 want=$2 got
	shift 2
	helm template gw "$chart" "${versions[@]}" --namespace gateway-api-openstack-system --set clusterID=one "$@" >"$out/$name.yaml" || fail "$name does not render"
	got=$(kinds "$out/$name.yaml")
	want=$(tr " " "\n" <<<"$want" | sort | paste -sd " ")
	[ "$got" = "$want" ] || fail "$name: $got, want $want"
}
base="ClusterRole=1 ClusterRoleBinding=1 Deployment=1"
renders default "$base PodDisruptionBudget=1 Role=1 RoleBinding=1 ServiceAccount=1"
renders single "$base Role=1 RoleBinding=1 ServiceAccount=1" --set replicas=1
renders class "$base GatewayClass=1 OpenStackGatewayClassConfig=1 PodDisruptionBudget=1 Role=1 RoleBinding=1 Service=1 ServiceAccount=1" \
	--set gatewayClass.create=true,gatewayClass.config.vipSubnet.name=lbs,responder.enabled=true
grep -q -- '--responder=gateway-api-openstack-system/openstack-gateway-responder' "$out/class.yaml" || fail "class: the responder is not on"
grep -A4 '^  responder:' "$out/class.yaml" | grep -q 'name: openstack-gateway-responder' || fail "class: the class does not know the responder"
[ "$(grep -c 'name: redirect-' "$out/class.yaml")" = 32 ] || fail "class: not 32 ports for redirects"
renders few-ports "$base PodDisruptionBudget=1 Role=1 RoleBinding=1 Service=1 ServiceAccount=1" --set responder.enabled=true,responder.redirectPorts=2
[ "$(grep -c 'name: redirect-' "$out/few-ports.yaml")" = 2 ] || fail "few-ports: not 2 ports for redirects"
renders monitoring "$base ConfigMap=1 NetworkPolicy=1 PodDisruptionBudget=1 PodMonitor=1 PrometheusRule=1 Role=1 RoleBinding=1 ServiceAccount=1" \
	--set podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,networkPolicy.enabled=true
[ "$(helm show crds "$chart" | grep -c '^kind: CustomResourceDefinition')" = "$(find "$root/config/crd" -name '*.dev_*.yaml' | wc -l)" ] || fail "not all CRDs are in the chart"

# refuses REASON ARGUMENT...: values that must not render.
refuses() {
	local reason=$1
	shift
	! helm template gw "$chart" "${versions[@]}" "$@" >/dev/null 2>"$out/error" || fail "took $*"
	grep -q -- "$reason" "$out/error" || fail "$*: says $(cat "$out/error"), not $reason"
}
refuses 'clusterID is required'
refuses clusterID --set 'clusterID=has/slash'
refuses replicas --set clusterID=one,replicas=0
refuses redirectPorts --set clusterID=one,responder.redirectPorts=99
refuses unknown --set clusterID=one,unknown=1
refuses digest --set clusterID=one,image.digest=latest

echo "the chart is as it shall be"
