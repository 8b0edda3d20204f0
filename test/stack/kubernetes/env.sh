# Sourced by every script here: names, addresses, places. Defines, does nothing.
# shellcheck shell=bash disable=SC2034

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
CACHE=${GATEWAY_API_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gateway-api-openstack}
PREFIX=${GAO_PREFIX:-gao} # of network namespaces; another one gives a second cluster beside the first
RUN=$CACHE/run
[ "$PREFIX" = gao ] || RUN=$CACHE/run-$PREFIX
STATE=$RUN/kubernetes # everything of the running cluster; `down` removes it, except the logs
LOG=$STATE/log
PKI=$STATE/pki
PIDS=$STATE/pid
KUBECONFIG_ADMIN=$STATE/kubeconfig # works inside the namespace $CP only
IMAGES=$STATE/images               # lines "IMAGE PATH": the static binary that stands for an image
OWN=$CACHE/stack/bin               # our own binaries: kubelet, echo

NODE_COUNT=${NODE_COUNT:-2} # up to 9

# The fabric is a bridge to which every machine is attached with a veth pair.
FABRIC=$PREFIX-fabric
BRIDGE=br0
ROUTER=10.88.0.1 # lies on the bridge until a Neutron router takes it over; the way out of the cluster
FABRIC_CIDR=10.88.0.0/24
CP=$PREFIX-cp
CP_ADDRESS=10.88.0.2

node_name() { echo "node$1"; }
node_ns() { echo "$PREFIX-n-$1"; }
node_address() { echo "10.88.0.$((10 + $1))"; }
node_pods() { echo "10.244.$1.0/24"; }
pod_prefix() { echo "$PREFIX-p-$1-"; } # of the names of a node's Pod namespaces

POD_CIDR=10.244.0.0/16
SERVICE_CIDR=10.96.0.0/16
API_SERVICE=10.96.0.1 # the first address of SERVICE_CIDR: Service "kubernetes"
API_PORT=6443

COMPONENTS="etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubectl"

started=${started:-$(date +%s)} && export started
say() { printf '[%4ds] %s\n' $(($(date +%s) - started)) "$*"; }
die() { printf 'error: %s\n' "$*" >&2 && exit 1; }

# die_log FILE MESSAGE: die with the end of a log file.
die_log() {
	printf '%s\n' "--- last lines of $1" >&2
	tail -n 25 "$1" >&2 || true
	printf '%s\n' '---' >&2
	shift
	die "$@"
}

need_root() { [ "$(id -u)" = 0 ] || die "this makes network namespaces: run it as root"; }

in_ns() { # in_ns NAMESPACE COMMAND...
	local ns=$1
	shift
	nsenter --net="/run/netns/$ns" -- "$@"
}

admin() { in_ns "$CP" "$(cat "$STATE/bin")/kubectl" --kubeconfig="$KUBECONFIG_ADMIN" "$@" 8>&-; }

# start_time PID: when a process began, to tell it from a later one with the same number.
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# pid_of NAME: the process of a daemon that start (up.sh) has started, if it runs.
pid_of() {
	local pid began
	[ -e "$PIDS/$1" ] && read -r pid began <"$PIDS/$1" || return 1
	[ -n "$began" ] && [ "$(start_time "$pid")" = "$began" ] && echo "$pid"
}

# daemons: the names of all that should run, in the order of their start.
daemons() {
	local i
	echo etcd kube-apiserver kube-controller-manager kube-scheduler
	for i in $(nodes); do echo "kubelet-$(node_name "$i") kube-proxy-$(node_name "$i")"; done
}

nodes() { seq "$(cat "$STATE/nodes" 2>/dev/null || echo "$NODE_COUNT")"; }

# namespaces: those of ours that exist. Others of the same prefix belong to the OpenStack half.
namespaces() {
	local n
	for n in $(ls /run/netns 2>/dev/null); do
		case $n in "$FABRIC" | "$CP" | "$PREFIX"-n-* | "$PREFIX"-p-*) echo "$n" ;; esac
	done
}
