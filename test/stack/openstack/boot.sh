#!/bin/bash
# Becomes the first process of the cloud. up.sh starts it in the network namespace $NS and new mount, pid, uts and ipc namespaces:
# every mount and every process made from here on ends with it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
root=$STATE/root
read -r pid _ </proc/self/stat # still the host's /proc, so this is the host's number
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$SCHEMA:$BASE/root,upperdir=$STATE/upper,workdir=$STATE/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root"/run/{netns,lock,gao/base,gao/amphorae} "$root/var/log/gao"
mount --bind "$LOG" "$root/var/log/gao"
mount --bind "$BASE/root" "$root/run/gao/base"
mount -o remount,bind,ro "$root/run/gao/base"
mount -t tmpfs -o size=4g tmpfs "$root/run/gao/amphorae" # holds what amphorae write; an overlay cannot be the upper of an overlay
hostname gao-cloud

ip link set lo up
ip addr add "$API/32" dev lo
ip link add br-mgmt type bridge && ip addr add "$MGMT.2/24" dev br-mgmt && ip link set br-mgmt up
ip link add br-ext type bridge && ip addr add "$PUBLIC.1/24" dev br-ext && ip link set br-ext up
for f in /proc/sys/net/bridge/bridge-nf-call-{ip,ip6,arp}tables; do
	[ ! -e "$f" ] || echo 0 >"$f" # where a machine filters bridged packets, it must not here
done

echo "$pid" >"$STATE/pid"
cd "$root"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/bin/python3 -SE /usr/local/lib/gao/init.py
