#!/usr/bin/env bash
# controller.sh CLUSTER_ID REPLICAS [CRDS]: installs the controller on the running stack as users do (kustomize base, Deployment, Secret with
# clouds.yaml, its own ServiceAccount), with the fallback responder, and waits until it is ready. Its static binary stands for the image; so
# does the tests' echo for its own. CRDS is a directory with the Gateway API CRDs, by default those of go.mod's version.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/kubernetes/env.sh"
need_root
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
cd "$root"
cluster=$1 replicas=$2 crds=${3:-$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard}
work=$RUN/controller
mkdir -p "$work/overlay"
kubectl=$root/test/stack/kubectl
set -a
. "$RUN/facts.env"
set +a

say "building the controller"
CGO_ENABLED=0 go build -trimpath -o "$work/controller.new" ./cmd/openstack-gateway-controller
mv "$work/controller.new" "$work/controller"
"$root/test/stack/kubernetes/image.sh" gateway-api-openstack/controller "$work/controller"
"$root/test/stack/kubernetes/image.sh" gateway-api-openstack/echo "$OWN/echo"

say "installing the controller"
"$kubectl" apply --server-side --force-conflicts -f "$crds" >/dev/null
cat >"$work/overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: ["$(realpath --relative-to="$work/overlay" "$root/config")"]
components: ["$(realpath --relative-to="$work/overlay" "$root/config/components/responder")"]
patches:
- target: {kind: Deployment, name: openstack-gateway-controller}
  patch: |
    - {op: replace, path: /spec/replicas, value: $replicas}
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: openstack-gateway-controller, namespace: gateway-api-openstack-system}
    data: {GATEWAY_API_OPENSTACK_CLUSTER_ID: $cluster, OS_CLOUD: $OS_CLOUD}
YAML
"$kubectl" apply --server-side --force-conflicts -k "$work/overlay" >/dev/null
# Only the entry of the tenant: the file has the administrator's too.
sed '/^  stack-admin:/,$d' "$OS_CLIENT_CONFIG_FILE" |
	"$kubectl" -n gateway-api-openstack-system create secret generic openstack-clouds --from-file=clouds.yaml=/dev/stdin \
		--dry-run=client -o yaml | "$kubectl" apply --server-side --force-conflicts -f - >/dev/null
# A new binary behind the same image name needs new Pods.
"$kubectl" -n gateway-api-openstack-system rollout restart deployment/openstack-gateway-controller >/dev/null
"$kubectl" -n gateway-api-openstack-system rollout status deployment/openstack-gateway-controller --timeout=180s
