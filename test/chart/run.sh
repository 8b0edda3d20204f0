#!/usr/bin/env bash
# Installs the Helm chart on the stack (brought up when it is down), upgrades it, rolls it back and removes it: the controller becomes
# ready each time, a Gateway class is accepted by the real cloud, and the CRDs stay with their objects.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/test/stack/kubernetes/env.sh"
need_root
cd "$root"
work=$RUN/chart
mkdir -p "$work"
kubectl=$root/test/stack/kubectl
chart=$root/charts/gateway-api-openstack
namespace=gateway-api-openstack-chart
fail() { say "FAILED: $*"; "$kubectl" -n $namespace get pods,events 2>/dev/null || true; exit 1; }
ok() { say "ok: $*"; }
helm=$("$root/hack/tool.sh" --path helm)
release() { in_ns "$CP" env KUBECONFIG="$KUBECONFIG_ADMIN" "$helm" --namespace $namespace "$@"; }

"$root/test/stack/stack" up
. "$RUN/facts.env"
CGO_ENABLED=0 go build -trimpath -o "$work/controller" ./cmd/openstack-gateway-controller
"$root/test/stack/kubernetes/image.sh" gateway-api-openstack/chart-test "$work/controller"
crds=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard
"$kubectl" apply --server-side --force-conflicts -f "$crds" >/dev/null

finish() {
	local rc=$?
	"$kubectl" delete gatewayclass chart --ignore-not-found --timeout=30s >/dev/null 2>&1 || true
	release uninstall gw --wait --timeout 60s >/dev/null 2>&1 || true
	"$kubectl" delete namespace $namespace --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
	exit $rc
}
trap finish EXIT

"$kubectl" create namespace $namespace --dry-run=client -o yaml | "$kubectl" apply -f - >/dev/null
"$kubectl" label namespace $namespace pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null
sed '/^  stack-admin:/,$d' "$OS_CLIENT_CONFIG_FILE" | "$kubectl" -n $namespace create secret generic openstack-clouds \
	--from-file=clouds.yaml=/dev/stdin --dry-run=client -o yaml | "$kubectl" apply -f - >/dev/null

cat >"$work/values.yaml" <<YAML
clusterID: chart-test
controllerName: gateway-api-openstack.dev/chart-test
openstack: {cloud: $OS_CLOUD}
image: {repository: gateway-api-openstack/chart-test, tag: dev}
gatewayClass:
  create: true
  name: chart
  config:
    vipSubnet: {id: $GAO_NODE_SUBNET_ID}
YAML
available() { "$kubectl" -n $namespace rollout status deployment/openstack-gateway-controller --timeout=180s >/dev/null || fail "$1: the controller does not become ready"; }
accepted() { "$kubectl" wait --for=condition=Accepted --timeout=60s gatewayclass/chart >/dev/null || fail "$1: the class is not accepted: $("$kubectl" get gatewayclass chart -o jsonpath='{.status.conditions}')"; }

release install gw "$chart" -f "$work/values.yaml" >/dev/null || fail "install"
available install
accepted install
[ "$("$kubectl" -n $namespace get deployment openstack-gateway-controller -o jsonpath='{.status.readyReplicas}')" = 2 ] || fail "not two replicas"
ok "installed: two replicas, the class is accepted"

# As values.yaml says: Helm leaves CRDs alone.
"$helm" show crds "$chart" | "$kubectl" apply --server-side --force-conflicts -f - >/dev/null || fail "upgrade of the CRDs"
release upgrade gw "$chart" -f "$work/values.yaml" --set responder.enabled=true,replicas=3 >/dev/null || fail "upgrade"
available upgrade
accepted upgrade
[ "$("$kubectl" get openstackgatewayclassconfig chart -o jsonpath='{.spec.responder.service.name}')" = openstack-gateway-responder ] || fail "the class does not know the responder"
"$kubectl" -n $namespace get service openstack-gateway-responder >/dev/null || fail "no Service of the responder"
ok "upgraded: responder on"

release rollback gw 1 >/dev/null || fail "rollback"
available rollback
accepted rollback
! "$kubectl" -n $namespace get service openstack-gateway-responder >/dev/null 2>&1 || fail "the Service of the responder is left after the rollback"
ok "rolled back"

release uninstall gw --wait --timeout 120s >/dev/null || fail "uninstall"
"$kubectl" get crd openstackgatewayclassconfigs.gateway-api-openstack.dev >/dev/null || fail "the CRD went with the release"
ok "removed; the CRDs stay"
