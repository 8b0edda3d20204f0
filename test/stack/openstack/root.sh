#!/bin/bash
# Builds the two cached layers of one Debian suite: $BASE/root, with every package that the cloud runs, and $SCHEMA on it, with
# the empty databases. Neither is written to again; running clouds and amphorae are overlays on them.
set -euo pipefail
. "$(dirname "$0")/env.sh"

packages=(
	keystone neutron-server barbican-api
	octavia-api octavia-worker octavia-health-manager octavia-housekeeping octavia-driver-agent
	octavia-agent haproxy
	mariadb-server rabbitmq-server python3-pymysql
	python3-openstackclient python3-octaviaclient python3-barbicanclient
	iproute2 nftables ethtool procps openssl curl
)

# repository LABEL: where this machine's own apt gets its packages from.
repository() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk -v want="$1" '$1 == want { print $2; exit }'
}

sources() {
	echo "deb $1 $RELEASE main"
	case $RELEASE in
	trixie | bookworm)
		echo "deb $1 $RELEASE-updates main"
		[ -z "$2" ] || echo "deb $2 $RELEASE-security main"
		;;
	esac
}

# Both builds run in mount and pid namespaces of their own (see the end): what they mount and start goes away with them,
# however they end.
build_root() {
	local root=$BASE/root.new mirror security script
	mirror=${MIRROR:-$(repository Debian)}
	security=${MIRROR_SECURITY:-$(repository Debian-Security)}
	[ -n "$mirror" ] || die "this machine's apt has no Debian repository: run 'apt-get update', or set MIRROR=URL"

	rm -rf "$root" && mkdir -p "$root"
	script=/usr/share/debootstrap/scripts/$RELEASE
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
	say "debootstrap $RELEASE"
	debootstrap --variant=minbase --include=ca-certificates "$RELEASE" "$root" "$mirror" "$script" >"$BASE/build.log" 2>&1 ||
		die_log "$BASE/build.log" "debootstrap of $RELEASE failed"

	sources "$mirror" "$security" >"$root/etc/apt/sources.list"
	# How to reach the mirror (proxy, clock checks) is the machine's business too.
	apt-config dump | grep -E '^(Acquire::(https?::|Check-)|APT::Sandbox)' >"$root/etc/apt/apt.conf.d/90machine" || true
	case $RELEASE in forky) echo 'Acquire::Check-Valid-Until "false";' >>"$root/etc/apt/apt.conf.d/90machine" ;; esac
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
	printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/locale/*' \
		force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/slim"
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"

	say "installing packages (3 to 5 minutes)"
	in_root apt-get update -q >>"$BASE/build.log" 2>&1 || die_log "$BASE/build.log" "apt-get update failed in the new root"
	in_root apt-get install -y -q --no-install-recommends "${packages[@]}" >>"$BASE/build.log" 2>&1 ||
		die_log "$BASE/build.log" "package installation failed"
	in_root apt-get clean
	rm -rf "$root"/var/lib/apt/lists/* "$root/etc/apt/apt.conf.d/90machine"
	in_root dpkg-query -W -f '${Package} ${Version}\n' keystone neutron-server barbican-api octavia-api octavia-agent haproxy \
		>"$BASE/versions"
	echo '127.0.0.1 localhost gao-cloud' >"$root/etc/hosts" # RabbitMQ resolves its own host name on every connection
	rm -rf "$root"/var/lib/mysql/* "$root"/var/lib/rabbitmq/mnesia
	umount -R "$root"
	sync -f "$BASE"
	mv "$root" "$BASE/root"
	say "root built: $(du -sm "$BASE/root" | cut -f1) MB"
}

in_root() {
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

build_schema() {
	local new=$SCHEMA.new root=$SCHEMA.new/root log=$BASE/schema.log
	say "creating the databases (half a minute)"
	rm -rf "$new" && mkdir -p "$new/upper" "$new/work" "$root"
	mount -t overlay overlay -o "lowerdir=$BASE/root,upperdir=$new/upper,workdir=$new/work" "$root" ||
		die "overlay mounts do not work on the file system of $BASE: set GATEWAY_API_OPENSTACK_CACHE to a directory on ext4 or xfs"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	ip link set lo up
	PASSWORD=none API=$API MGMT=$MGMT BASE=$BASE "$here/cloud/configure" "$root"
	mkdir -p "$root/run/gao" "$root/var/log/gao"
	in_root install -d -o mysql -g mysql /var/lib/mysql /run/mysqld
	in_root mariadb-install-db --user=mysql --datadir=/var/lib/mysql --skip-test-db >"$log" 2>&1 ||
		die_log "$log" "MariaDB's own tables could not be made"
	in_root mariadbd --defaults-file=/etc/gao/my.cnf >>"$log" 2>&1 &
	local database=$!
	cp "$here/cloud/schema" "$root/run/schema"
	in_root /run/schema >>"$log" 2>&1 || die_log "$log" "creating the databases failed"
	in_root mariadb-admin --socket=/run/mysqld/mysqld.sock shutdown
	wait $database
	rm -rf "$root/etc/gao" "$root/var/log/gao"
	umount -R "$root"
	rm -rf "$new/work" "$root"
	sync -f "$BASE"
	mv "$new/upper" "$SCHEMA"
	rmdir "$new"
	say "databases made: $(du -sm "$SCHEMA" | cut -f1) MB"
}

need_root
case ${1:-} in
--root) mount --make-rprivate /; build_root; exit ;;
--schema) mount --make-rprivate /; build_schema; exit ;;
esac
[ -d "$BASE/root" ] && [ -d "$SCHEMA" ] && exit 0
mkdir -p "$BASE"
exec 9>"$BASE/lock"
flock -w 1800 9 || die "another build of $BASE has not ended after 30 minutes"
[ -d "$BASE/root" ] || setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child -- "$0" --root 9>&-
[ -d "$SCHEMA" ] || setpriv --pdeathsig KILL unshare --mount --pid --net --fork --kill-child -- "$0" --schema 9>&-
