#!/usr/bin/env bash
# Runs the end-to-end tests on the real stack: brings it up if it is down, installs the controller as users do (kustomize base,
# Deployment, Secret with clouds.yaml, its own ServiceAccount) with its static binary standing for the image, and runs the test
# binary inside the stack's network. Arguments go to the test binary, for example -test.run TestHTTP. GATEWAY_API_OPENSTACK_E2E_SEED (or "random"), _GATEWAYS, _REQUESTS, _CHANGES and
# _LOAD say what the tests draw and how much of it.
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

say "building the controller and the tests"
CGO_ENABLED=0 go build -trimpath -o "$work/controller.new" ./cmd/openstack-gateway-controller
go test -tags e2e -c -o "$work/e2e.test" ./test/e2e
crds=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard

say "installing the controller"
mv "$work/controller.new" "$work/controller"
"$root/test/stack/kubernetes/image.sh" gateway-api-openstack/controller "$work/controller"
"$root/test/stack/kubernetes/image.sh" gateway-api-openstack/echo "$OWN/echo"
"$kubectl" apply --server-side --force-conflicts -f "$crds" >/dev/null
mkdir -p "$work/overlay"
cat >"$work/overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["$(realpath --relative-to="$work/overlay" "$root/config")"]
components: ["$(realpath --relative-to="$work/overlay" "$root/config/components/responder")"]
patches:
# The tests read the metrics of the one that works.
- target: {kind: Deployment, name: openstack-gateway-controller}
  patch: |
    - {op: replace, path: /spec/replicas, value: 1}
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: openstack-gateway-controller, namespace: gateway-api-openstack-system}
    data: {GATEWAY_API_OPENSTACK_CLUSTER_ID: e2e, OS_CLOUD: $OS_CLOUD}
YAML
"$kubectl" apply --server-side --force-conflicts -k "$work/overlay" >/dev/null
# Only the entry of the tenant: the file has the administrator's too.
sed '/^  stack-admin:/,$d' "$OS_CLIENT_CONFIG_FILE" |
	"$kubectl" -n gateway-api-openstack-system create secret generic openstack-clouds --from-file=clouds.yaml=/dev/stdin \
	--dry-run=client -o yaml | "$kubectl" apply --server-side --force-conflicts -f - >/dev/null
# A new binary behind the same image name needs new Pods.
"$kubectl" -n gateway-api-openstack-system rollout restart deployment/openstack-gateway-controller >/dev/null
"$kubectl" -n gateway-api-openstack-system rollout status deployment/openstack-gateway-controller --timeout=180s

say "tests"
code=0
(cd "$root/test/e2e" && KUBECONFIG=$KUBECONFIG_ADMIN in_ns "$CP" "$work/e2e.test" -test.v -test.timeout 40m "$@") || code=$?
if [ "$code" != 0 ]; then
	echo "--- the controller's log" >&2
	"$kubectl" -n gateway-api-openstack-system logs deployment/openstack-gateway-controller --tail=60 >&2 || true
fi
say "end-to-end tests ended with $code"
exit "$code"
