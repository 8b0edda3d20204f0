#!/usr/bin/env bash
# usage: hack/demo.sh            what "make demo" runs: builds what the demo needs, then runs it (test/demo)
#        KEEP=1 hack/demo.sh     leaves everything running until Ctrl-C
#
# Needs Go and nothing else. What is slow to build is kept in ${GATEWAY_API_OPENSTACK_CACHE:-~/.cache/gateway-api-openstack}
# and in Go's build cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${GATEWAY_API_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gateway-api-openstack}
say() { echo "demo: $*" >&2; }

command -v go >/dev/null || { say "go is not on PATH; install Go $(sed -n 's/^go //p' go.mod) or newer (https://go.dev/dl)"; exit 1; }

assets=$(hack/kube-assets.sh etcd kube-apiserver kubectl)
crds=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard

# Says something every 15 seconds: the first build compiles the Kubernetes client libraries.
bin=$cache/demo
mkdir -p "$bin"
start=$SECONDS
(while sleep 15; do say "still building the controller and the demo ($((SECONDS - start)) s; the first time takes minutes)"; done) &
ticker=$!
trap 'kill "$ticker" 2>/dev/null || true' EXIT
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$bin/" ./cmd/openstack-gateway-controller ./test/demo
kill "$ticker" 2>/dev/null || true
trap - EXIT

arguments=(-assets "$assets" -controller "$bin/openstack-gateway-controller" -crds "$crds" -state "$cache/run")
[ -z "${KEEP:-}" ] || arguments+=(-keep)
exec "$bin/demo" "${arguments[@]}"
