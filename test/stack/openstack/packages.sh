#!/bin/bash
# packages.sh: installs the Debian packages that the stack needs on the machine itself, those that are missing.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
packages=(
	bash debootstrap iproute2 util-linux mount procps iptables nftables conntrack bridge-utils ethtool openssl curl ca-certificates
	debian-archive-keyring
)
missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing+=("$p")
done
[ ${#missing[@]} = 0 ] && exit 0
command -v apt-get >/dev/null || die "this needs Debian or Ubuntu: apt-get is missing, and so are ${missing[*]}"
say "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
	die_log "$log" "installing ${missing[*]} failed"
