#!/usr/bin/env bash
# Runs a build tool at the version that hack/tools pins, e.g. "hack/tool.sh golangci-lint run ./...".
# Built once into the cache, keyed by the lock file. "hack/tool.sh --path helm" prints where it is.
set -euo pipefail
tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/tools"
cache="${GATEWAY_API_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gateway-api-openstack}"
path=
[ "$1" != --path ] || { path=1; shift; }
tool=$1; shift
case "$tool" in
golangci-lint) module="$tools/lint" package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
controller-gen) module="$tools" package=sigs.k8s.io/controller-tools/cmd/controller-gen ;;
helm) module="$tools/helm" package=helm.sh/helm/v3/cmd/helm ;;
*) echo "hack/tool.sh: no tool $tool; known are golangci-lint, controller-gen, helm" >&2; exit 2 ;;
esac
bin="$cache/tools/$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c1-16)-$(go env GOVERSION)/$tool"
if [ ! -x "$bin" ]; then
	echo "building $tool (once, takes minutes on two cores) ..." >&2
	mkdir -p "$(dirname "$bin")"
	(cd "$module" && CGO_ENABLED=0 go build -trimpath -o "$bin.$$" "$package")
	mv "$bin.$$" "$bin"
fi
[ -z "$path" ] || { echo "$bin"; exit; }
exec "$bin" "$@"
