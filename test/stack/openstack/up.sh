#!/bin/bash
# up.sh: brings up the cloud of $RELEASE, or makes sure that it is up. Writes $STATE/clouds.yaml.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
mkdir -p "$RUN"
exec 8>>"$RUN/openstack.lock" # no child that may outlive a killed up.sh gets it: a subshell would
flock -w 1800 8 || die "another up or down of the cloud has not ended after 30 minutes"
echo $$ >"$RUN/openstack.lock" # whom down.sh has to end

infrastructure=(mariadb rabbitmq)
apis=(keystone neutron barbican octavia-api)
workers=(octavia-worker octavia-health-manager)

service() { in_cloud /usr/local/lib/gao/service "$@"; }

# answers SERVICE URL: waits for an API, says why if it does not come.
answers() {
	for _ in $(seq 480); do
		nsenter --net="/run/netns/$NS" curl -s -o /dev/null --max-time 10 "$2" && return
		service status "$1" >/dev/null || die_log "$LOG/$1.log" "$1 ended"
		sleep 0.5
	done
	die_log "$LOG/$1.log" "$1 does not answer at $2"
}

boot() {
	"$here/down.sh" --locked # whatever an interrupted up has left
	say "starting the cloud ($RELEASE: $(awk '{ printf "%s%s %s", sep, $1, $2; sep = ", " }' "$BASE/versions"))"
	mkdir -p "$STATE"/{upper/etc/gao,upper/usr/local/lib/gao/amphora,work,root,log}
	chmod 755 "$STATE"
	echo "$RELEASE" >"$STATE/release"
	head -c 24 /dev/urandom | base64 | tr '+/' 'xy' >"$STATE/upper/etc/gao/password"
	chmod 600 "$STATE/upper/etc/gao/password"
	PASSWORD=$(cat "$STATE/upper/etc/gao/password") API=$API MGMT=$MGMT BASE=$BASE "$here/cloud/configure" "$STATE/upper"
	cp "$here"/cloud/* "$STATE/upper/usr/local/lib/gao/"
	cp "$here"/amphora/{boot,init.py,systemctl} "$STATE/upper/usr/local/lib/gao/amphora/"
	local python=$STATE/upper/usr/lib/python3/dist-packages
	mkdir -p "$python/gao_compute-1.dist-info"
	cp -r "$here/amphora/gao_compute" "$python/"
	printf 'Metadata-Version: 2.1\nName: gao-compute\nVersion: 1\n' >"$python/gao_compute-1.dist-info/METADATA"
	printf '[octavia.compute.drivers]\nnetns = gao_compute.compute:NetnsComputeDriver\n' >"$python/gao_compute-1.dist-info/entry_points.txt"

	ip netns add $NS
	setsid nsenter --net="/run/netns/$NS" unshare --mount --pid --uts --ipc --fork --kill-child -- "$here/boot.sh" \
		>"$LOG/boot.log" 2>&1 </dev/null 8>&- &
	for _ in $(seq 300); do
		cloud_runs && break
		sleep 0.1
	done
	cloud_runs || die_log "$LOG/boot.log" "the cloud's first process did not start"
	sleep 0.2 # it changes its root right after it has told its pid
}

# client: somebody on the public network, who knows the way to the tenant's networks too (as over a VPN), so that VIPs can be
# tried from outside.
client() {
	[ -e "/run/netns/$CLIENT" ] || ip netns add $CLIENT
	ip -n $CLIENT link set lo up
	ip -n $CLIENT link show eth0 >/dev/null 2>&1 || ip link add eth0 netns $CLIENT type veth peer name client netns $NS
	ip -n $NS link set client master br-ext up
	ip -n $CLIENT addr replace "$PUBLIC.10/24" dev eth0
	ip -n $CLIENT link set eth0 up
	ip -n $CLIENT route replace default via "$PUBLIC.1"
	ip -n $CLIENT route replace "$DEMO_CIDR" via "$1"
}

if cloud_runs && [ "$(cat "$STATE/release")" != "$RELEASE" ]; then
	die "the cloud of $(cat "$STATE/release") is up: take it down first"
fi
"$here/packages.sh" 8>&-
setpriv --pdeathsig KILL "$here/root.sh" 8>&-
cloud_runs && [ -e "$STATE/ready" ] || boot

service start "${infrastructure[@]}"
if [ ! -e "$STATE/ready" ]; then
	in_cloud /usr/local/lib/gao/certificates >"$LOG/certificates.log" 2>&1 || die_log "$LOG/certificates.log" "openssl failed"
	in_cloud /usr/local/lib/gao/bootstrap >"$LOG/bootstrap.log" 2>&1 || die_log "$LOG/bootstrap.log" "preparing Keystone failed"
	say "database and message queue answer"
fi
service start "${apis[@]}" l3
if [ ! -e "$STATE/clouds.yaml" ]; then
	install -m 600 /dev/null "$STATE/clouds.yaml.new"
	in_cloud python3 /usr/local/lib/gao/seed.py >"$STATE/clouds.yaml.new" 2>"$LOG/seed.log" ||
		die_log "$LOG/seed.log" "making users and networks failed"
	mv "$STATE/clouds.yaml.new" "$STATE/clouds.yaml"
	say "users and networks made"
fi
service start "${workers[@]}"
answers keystone "http://$API:5000/v3"
answers neutron "http://$API:9696/"
answers barbican "http://$API:9311/"
answers octavia-api "http://$API:9876/"
in_cloud python3 - <"$here/cloud/settled.py" >"$STATE/router" 2>"$LOG/settled.log" ||
	die_log "$LOG/settled.log" "a service of the cloud did not settle"
client "$(cat "$STATE/router")"
touch "$STATE/ready"
"$here/facts.sh"
say "the cloud is up: $STATE/clouds.yaml"
