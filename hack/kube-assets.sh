#!/usr/bin/env bash
# usage: hack/kube-assets.sh [component...]
#
# Makes sure that the named Kubernetes binaries exist and prints, as its only
# line on stdout, the directory that holds them (usable as KUBEBUILDER_ASSETS).
# Everything else goes to stderr. Needs Go; needs no root.
#
# components   etcd kube-apiserver kubectl (the default)
#              kube-controller-manager kube-scheduler kube-proxy
#
# environment  KUBEBUILDER_ASSETS            used as it is when it holds all that is asked for
#              GATEWAY_API_OPENSTACK_CACHE   where the binaries are kept
#              GATEWAY_API_OPENSTACK_BUILD_KUBE=1   always build, do not look for released binaries
#
# The versions are those of hack/kubernetes/go.mod.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
module=$here/kubernetes
setup_envtest=sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1
released="etcd kube-apiserver kubectl" # what setup-envtest offers

say() { echo "kube-assets: $*" >&2; }
die() { say "$*"; exit 1; }

package_of() {
	case $1 in
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	kubectl | kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy) echo "k8s.io/kubernetes/cmd/$1" ;;
	*) die "unknown component '$1'; known: etcd kube-apiserver kubectl kube-controller-manager kube-scheduler kube-proxy" ;;
	esac
}

[ $# -gt 0 ] || set -- etcd kube-apiserver kubectl
for c in "$@"; do package_of "$c" >/dev/null; done

# missing DIR component... : the components that are not in DIR
missing() {
	local dir=$1 c; shift
	for c in "$@"; do [ -x "$dir/$c" ] || echo "$c"; done
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -z "$(missing "$KUBEBUILDER_ASSETS" "$@")" ]; then
	echo "$KUBEBUILDER_ASSETS"
	exit 0
fi

version=$(sed -n 's#^\tk8s.io/kubernetes \(v[0-9.]*\).*#\1#p' "$module/go.mod")
[ -n "$version" ] || die "no version of k8s.io/kubernetes in $module/go.mod"
IFS=. read -r major minor _ <<<"${version#v}"
cache=${GATEWAY_API_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gateway-api-openstack}
top=$cache/kubernetes/$version
bin=$top/bin
lacking() { missing "$bin" "$@"; }

if [ -z "$(lacking "$@")" ]; then
	echo "$bin"
	exit 0
fi
command -v go >/dev/null || die "go is not on PATH; install Go $(sed -n 's/^go //p' "$module/go.mod") or newer (https://go.dev/dl)"
mkdir -p "$bin" || die "cannot create $bin; set GATEWAY_API_OPENSTACK_CACHE to a directory that you may write"

# One process at a time makes a component; what another finished meanwhile
# is used. The lock goes away with its holder.
locked() { # locked NAME command...
	local name=$1; shift
	exec 9>"$top/$name.lock"
	if ! flock -n 9; then
		say "waiting: another process prepares $name"
		flock 9
	fi
	"$@"
	exec 9>&-
}

work= ticker=
cleanup() {
	[ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A released binary saves ten minutes, but only where it can be had at once:
# a machine without internet access must not notice that this was tried.
download() {
	local want c got try=$top/no-release
	want=$(lacking $released)
	[ -n "$want" ] || return 0
	# A failed attempt is not repeated for an hour.
	[ -z "$(find "$try" -mmin -60 2>/dev/null)" ] || return 0
	if command -v curl >/dev/null &&
		! curl -sfIL -m 5 -o /dev/null https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml 2>/dev/null; then
		touch "$try"
		return 0
	fi
	work=$(mktemp -d "$top/download.XXXXXX")
	say "looking for released binaries of $major.$minor (at most 2 minutes)"
	if got=$(cd "$work" && GOFLAGS=-mod=mod timeout 120 go run "$setup_envtest" use -p path --bin-dir "$work" "$major.$minor.x!" 2>/dev/null) &&
		[ -z "$(missing "$got" $released)" ] && "$got/kubectl" version --client >/dev/null 2>&1; then
		for c in $want; do mv "$got/$c" "$bin/$c"; done
		say "took the released $(echo $want) from $(basename "$got")"
	else
		touch "$try"
	fi
	chmod -R u+w "$work"
	rm -rf "$work"
	work=
}

stamp() {
	local p
	printf -- '-s -w'
	for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		printf -- ' -X %s.%s' $p gitVersion="$version" $p gitMajor="$major" $p gitMinor="$minor" \
			$p gitCommit=0000000000000000000000000000000000000000 $p gitTreeState=clean $p buildDate=1970-01-01T00:00:00Z
	done
}

build() { # build component
	local c=$1 start=$SECONDS v=$version
	[ ! -x "$bin/$c" ] || return 0
	[ "$c" != etcd ] || v=$(sed -n 's#^\tgo.etcd.io/etcd/server/v3 \(v[0-9.]*\).*#\1#p' "$module/go.mod")
	say "building $c $v from source: the first time this takes minutes (on 2 cores kube-apiserver 4 to 10, others less)"
	work=$(mktemp -d "$top/build.XXXXXX")
	(while sleep 30; do say "still building $c ($((SECONDS - start)) s)"; done) 9>&- &
	ticker=$!
	(
		cd "$module"
		# The flags decide the keys of Go's build cache: keep them the same for all.
		export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off
		go build -trimpath -buildvcs=false -ldflags "$(stamp)" -o "$work/$c" "$(package_of "$c")"
	) 9>&- || die "building $c failed, see above"
	kill "$ticker" 2>/dev/null || true
	ticker=
	mv "$work/$c" "$bin/$c"
	rm -rf "$work"
	work=
	say "built $c in $((SECONDS - start)) s ($(($(stat -c %s "$bin/$c") / 1048576)) MB)"
}

if [ -z "${GATEWAY_API_OPENSTACK_BUILD_KUBE:-}" ]; then
	for c in $(lacking "$@"); do
		case " $released " in *" $c "*) locked release download; break ;; esac
	done
fi
for c in $(lacking "$@"); do locked "$c" build "$c"; done
echo "$bin"
