#!/usr/bin/env bash
# up.sh: brings up the cluster, or what is down of it. $NODE_COUNT (2) nodes; the kubeconfig is $CACHE/run/kubernetes/kubeconfig.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
for tool in ip nsenter setsid nft openssl curl flock; do
	command -v $tool >/dev/null || die "$tool is missing: apt-get install iproute2 util-linux nftables openssl curl"
done
[[ $NODE_COUNT =~ ^[1-9]$ ]] || die "NODE_COUNT=$NODE_COUNT: want 1 to 9"

mkdir -p "$RUN"
exec 8>>"$RUN/kubernetes.lock" # no child that may outlive a killed up.sh gets it
flock -w 3600 8 || die "another up or down of the cluster has not ended after an hour"
echo $$ >"$RUN/kubernetes.lock" # whom down.sh has to end
# What a restart of the machine has left is no cluster: its objects name a cloud that is gone.
[ ! -e "$STATE/nodes" ] || [ -e "/run/netns/$CP" ] || "$here/down.sh" --locked
mkdir -p "$STATE" "$LOG" "$PIDS"
# The end of a log is of no use when it grows without end.
for f in "$LOG"/*.log; do [ ! -e "$f" ] || [ "$(stat -c %s "$f")" -lt 20000000 ] || : >"$f"; done

if [ -e "$STATE/nodes" ] && [ "$(cat "$STATE/nodes")" != "$NODE_COUNT" ]; then
	[ "$NODE_COUNT" -gt "$(cat "$STATE/nodes")" ] || die "the cluster has $(cat "$STATE/nodes") nodes: take it down before you make it smaller"
fi

# shellcheck disable=SC2086
BIN=$("$root/hack/kube-assets.sh" $COMPONENTS 8>&-) || die "the Kubernetes binaries could not be had, see above"
mkdir -p "$OWN"
say "building kubelet and echo"
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$OWN/" ./test/stack/kubelet ./test/stack/echo) 8>&- || die "building the kubelet failed, see above"
echo "$BIN" >"$STATE/bin"
echo "$NODE_COUNT" >"$STATE/nodes"
"$here/image.sh" echo "$OWN/echo"

# start NAME NAMESPACE COMMAND...: starts a daemon in a namespace unless it runs.
start() {
	local name=$1 ns=$2 pid
	shift 2
	pid_of "$name" >/dev/null && return
	say "starting $name"
	setsid nsenter --net="/run/netns/$ns" -- "$@" >>"$LOG/$name.log" 2>&1 </dev/null 8>&- &
	pid=$!
	echo "$pid $(start_time "$pid")" >"$PIDS/$name"
}

# await SECONDS NAME WHAT COMMAND...: waits until the command succeeds, as long as the daemon NAME lives.
await() {
	local seconds=$1 name=$2 what=$3 end
	shift 3
	end=$(($(date +%s) + seconds))
	until "$@" >/dev/null 2>"$STATE/last-error"; do
		pid_of "$name" >/dev/null || die_log "$LOG/$name.log" "$name ended"
		[ "$(date +%s)" -lt "$end" ] || die_log "$LOG/$name.log" "$what took longer than $seconds s: $(tail -n 1 "$STATE/last-error")"
		sleep 0.2
	done
}

"$here/network.sh" 8>&-
"$here/pki.sh" 8>&-

start etcd "$CP" "$BIN/etcd" --data-dir "$STATE/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync --log-level warn
start kube-apiserver "$CP" "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
	--bind-address=0.0.0.0 --advertise-address="$CP_ADDRESS" --secure-port="$API_PORT" \
	--tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
	--kubelet-client-certificate="$PKI/apiserver-kubelet.crt" --kubelet-client-key="$PKI/apiserver-kubelet.key" --kubelet-preferred-address-types=InternalIP \
	--service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
	--service-cluster-ip-range="$SERVICE_CIDR" --authorization-mode=RBAC --allow-privileged=true --profiling=false
await 120 kube-apiserver "the API server" admin get --raw /readyz
start kube-controller-manager "$CP" "$BIN/kube-controller-manager" --kubeconfig="$PKI/kube-controller-manager.kubeconfig" --bind-address=127.0.0.1 \
	--leader-elect=false --use-service-account-credentials=true --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
	--cluster-cidr="$POD_CIDR" --allocate-node-cidrs=false --profiling=false
start kube-scheduler "$CP" "$BIN/kube-scheduler" --kubeconfig="$PKI/kube-scheduler.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false --profiling=false
for i in $(nodes); do
	start "kubelet-$(node_name "$i")" "$(node_ns "$i")" "$OWN/kubelet" --kubeconfig="$PKI/kubelet.kubeconfig" --client-ca="$PKI/ca.crt" \
		--node-name="$(node_name "$i")" --node-ip="$(node_address "$i")" --pod-cidr="$(node_pods "$i")" --kubernetes-service="$API_SERVICE:443" \
		--netns-prefix="$(pod_prefix "$i")" --state-dir="$STATE/$(node_name "$i")" --log-dir="$LOG/pods" --images="$IMAGES"
	# A namespace may not set the machine's limits for connection tracking: 0 leaves them alone.
	start "kube-proxy-$(node_name "$i")" "$(node_ns "$i")" "$BIN/kube-proxy" --kubeconfig="$PKI/kube-proxy.kubeconfig" --hostname-override="$(node_name "$i")" \
		--proxy-mode=nftables --cluster-cidr="$POD_CIDR" --conntrack-max-per-core=0 --conntrack-min=0 \
		--conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s \
		--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249
done
await 120 kube-controller-manager "the default service account" admin get serviceaccount default
for i in $(nodes); do
	await 120 "kubelet-$(node_name "$i")" "$(node_name "$i")" admin wait --for=condition=Ready --timeout=1s "node/$(node_name "$i")"
	await 120 "kube-proxy-$(node_name "$i")" "kube-proxy of $(node_name "$i")" in_ns "$CP" curl -sf -m 2 -o /dev/null "http://$(node_address "$i"):10256/healthz"
done
for name in $(daemons); do pid_of "$name" >/dev/null || die_log "$LOG/$name.log" "$name ended"; done
say "Kubernetes $(basename "$(dirname "$BIN")") is up with $NODE_COUNT nodes: test/stack/kubectl get nodes"
