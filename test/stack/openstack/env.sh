# Sourced by every script here: names, addresses, places. Defines, does nothing.
# shellcheck shell=bash disable=SC2034

RELEASE=${RELEASE:-trixie} # Debian suite; it decides the OpenStack release
case $RELEASE in
trixie | forky | bookworm) ;;
*) echo "RELEASE=$RELEASE is not known: use trixie (default), forky or bookworm" >&2 && exit 2 ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${GATEWAY_API_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gateway-api-openstack}
PREFIX=${GAO_PREFIX:-gao} # of namespaces; another one gives a second cloud beside the first
RUN=$CACHE/run
[ "$PREFIX" = gao ] || RUN=$CACHE/run-$PREFIX
STATE=$RUN/openstack # everything of the running cloud; `down` removes it

ROOT_RECIPE=1   # raise when root.sh makes a different root
SCHEMA_RECIPE=1 # raise when root.sh makes different databases
BASE=$CACHE/openstack/$RELEASE-$ROOT_RECIPE
SCHEMA=$BASE/schema-$SCHEMA_RECIPE
LOG=$STATE/log

NS=$PREFIX-cloud      # network namespace of the cloud
CLIENT=$PREFIX-client # network namespace of somebody on the public network

API=172.30.0.2          # every OpenStack API, an address on the loopback of $NS
MGMT=10.255.0           # amphora management network, /24; .2 is the cloud
PUBLIC=172.31.0         # public network, /24; .1 is the cloud, .10 is $CLIENT
DEMO_CIDR=10.0.0.0/24   # tenant network demo-net

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

need_root() { [ "$(id -u)" = 0 ] || die "this makes network namespaces and mounts: run it as root"; }

# in_cloud COMMAND...: runs it in the cloud's network, mounts, processes and root file system (without the lock of up.sh, which
# a command that outlives a killed up.sh must not hold).
in_cloud() {
	nsenter --target "$(cat "$STATE/pid")" --mount --uts --ipc --net --pid --root --wd -- \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		PYTHONPATH=/usr/local/lib/gao RELEASE=$RELEASE API=$API MGMT=$MGMT PUBLIC=$PUBLIC DEMO_CIDR=$DEMO_CIDR "$@" 8>&-
}

# cloud_runs: whether the first process of the cloud is there (and is ours: a pid may be used again).
cloud_runs() {
	local pid
	pid=$(cat "$STATE/pid" 2>/dev/null) && [ -n "$pid" ] && [ "/run/netns/$NS" -ef "/proc/$pid/ns/net" ]
}
