#!/usr/bin/env bash
# selftest.sh: brings up a cluster of its own beside the one that may run, tries what the tests of this project need of it, takes it
# down and looks for leftovers. KEEP=1 leaves it when something fails.
set -euo pipefail
export GAO_PREFIX=${GAO_PREFIX:-gaoself}
. "$(dirname "$0")/env.sh"
need_root
k() { "$here/../kubectl" --request-timeout=30s "$@"; }
ok() { say "ok: $*"; }
fail() { say "FAILED: $*"; exit 1; }

finish() {
	local rc=$?
	if [ $rc != 0 ]; then
		k get pods,nodes -A -o wide 2>/dev/null || true
		k get events -A --sort-by=.lastTimestamp 2>/dev/null | tail -n 30 || true
		[ -z "${KEEP:-}" ] || { say "left for a look: GAO_PREFIX=$GAO_PREFIX test/stack/kubectl" && exit $rc; }
		say "logs are in $LOG until the next run"
	fi
	"$here/down.sh"
	exit $rc
}

# soon SECONDS WHAT COMMAND...: the command has to succeed within the time.
soon() {
	local seconds=$1 what=$2 end
	shift 2
	end=$(($(date +%s) + seconds))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$end" ] || fail "$what (not within $seconds s)"
		sleep 0.3
	done
	ok "$what"
}

fetch() { in_ns "$CP" curl -sf -m 3 "$@"; }
# answers_from NODE COUNT: through the NodePort of a node, COUNT Pods answer.
answers_from() {
	local seen
	seen=$(for _ in $(seq 12); do fetch "http://$(node_address "$1"):30080/a" | grep -o '"pod":"[^"]*"' || true; done | sort -u | wc -l)
	[ "$seen" = "$2" ]
}
pods_on() { k get pods -l app=echo --field-selector "spec.nodeName=$1,status.phase=Running" -o name; }
pod() { k get pods -l "app=$1" -o "jsonpath={.items[0].$2}"; }
at_least() { [ "$("${@:2}")" -ge "$1" ]; }
is() { [ "$("${@:2}")" = "$1" ]; }

"$here/down.sh" >/dev/null
trap finish EXIT
# An up that is killed in the middle leaves nothing that a down or the next up minds.
NODE_COUNT=1 "$here/up.sh" >"$RUN/selftest-killed-up" 2>&1 &
victim=$!
for _ in $(seq 3000); do
	[ ! -e "$PIDS/kube-apiserver" ] || break
	sleep 0.1
done
kill -KILL $victim
wait $victim 2>/dev/null || true
"$here/down.sh"
[ -z "$(namespaces)" ] || fail "down after a killed up leaves $(namespaces)"
ok "down after an up that was killed"

"$here/up.sh"
"$here/up.sh" # again: nothing to do
"$here/status.sh" >/dev/null || fail "status says that the cluster is not complete"
"$here/image.sh" kubectl "$(cat "$STATE/bin")/kubectl"

k create configmap settings --from-literal=color=red
k create secret generic cloud --from-literal=clouds.yaml=first
k apply -f "$here/selftest.yaml"
k rollout status deployment/echo --timeout=60s
[ -n "$(pods_on node1)" ] && [ -n "$(pods_on node2)" ] || fail "the two Pods are not on two nodes"
for i in 1 2; do soon 20 "both Pods answer through the NodePort of node$i" answers_from "$i" 2; done
k logs deployment/echo | grep -q 'listens on' || fail "no logs"
ok "logs"
fetch "http://$(pod echo status.podIP):8080/" | grep -q '"text":"red"' || fail "the ConfigMap's value is not in the environment"
ok "environment"

k wait --for=condition=Complete --timeout=60s job/whoami >/dev/null || fail "a Pod with a service account did not reach the API server: $(k logs job/whoami)"
k logs job/whoami | grep -q system:serviceaccount:default:default || fail "the Pod is not its service account"
ok "a Pod reaches the API server through its Service, as its service account"
soon 60 "an init container, then a restart after each failure" at_least 3 pod restarts 'status.containerStatuses[0].restartCount'
soon 60 "a failed liveness probe restarts the container" at_least 1 pod dead 'status.containerStatuses[0].restartCount'
soon 20 "an unknown image is told" is ErrImagePull pod unknown 'status.containerStatuses[0].state.waiting.reason'

secret_of() { cat "$STATE"/node*/pods/"$(pod files metadata.uid)"/volumes/cloud/clouds.yaml; }
soon 20 "a Secret as a file" is first secret_of
k create secret generic cloud --from-literal=clouds.yaml=second --dry-run=client -o yaml | k apply -f - >/dev/null 2>&1
soon 10 "a changed Secret changes the file" is second secret_of
[ "$(pod files 'status.containerStatuses[0].restartCount')" = 0 ] || fail "the Pod restarted meanwhile"

# Graceful end: the echo goes on answering while it drains.
before=$(pod files status.podIP)
(sleep 0.7 && fetch "http://$before:8080/" >"$STATE/drained" || true) &
k delete pod -l app=files --wait=true --timeout=30s >/dev/null
wait $!
grep -q '"pod"' "$STATE/drained" || fail "the Pod did not answer between SIGTERM and its end"
ok "graceful termination"

k drain node1 --ignore-daemonsets --delete-emptydir-data --force --timeout=60s >/dev/null
[ -z "$(pods_on node1)" ] || fail "Pods are left on the drained node"
k rollout status deployment/echo --timeout=60s
soon 20 "a drained node: all Pods are on the other one, its NodePort still answers" answers_from 1 2
k uncordon node1 >/dev/null

# A kubelet that is killed takes its Pods along; the next one starts them anew and removes the remains.
kill -KILL "$(pid_of kubelet-node2)"
sleep 0.5
! fetch "http://$(pod echo status.podIP):8080/" >/dev/null || fail "a Pod outlives its kubelet"
"$here/up.sh"
soon 60 "Pods after a restart of the kubelet" k wait --for=condition=Ready --timeout=1s pod -l app=echo
soon 20 "the NodePort after a restart of the kubelet" answers_from 1 2
[ "$(namespaces | grep -c "^$PREFIX-p-2-")" = "$(k get pods -A --field-selector spec.nodeName=node2,status.phase=Running -o name | wc -l)" ] || fail "namespaces of old Pods are left: $(namespaces)"

"$here/logs.sh" "$STATE/collected"
[ -s "$STATE/collected/network.txt" ] && ls "$STATE"/collected/pods/*echo* >/dev/null || fail "logs are not collected"
ok "logs are collected"

# A restart of the machine ends every process and namespace and leaves the files: the next up begins anew.
k create configmap before-the-restart
cp -a "$STATE" "$RUN/kubernetes.restarted"
"$here/down.sh" >/dev/null
rm -rf "$STATE" && mv "$RUN/kubernetes.restarted" "$STATE"
"$here/up.sh"
! k get configmap before-the-restart >/dev/null 2>&1 || fail "objects of before the restart of the machine are still there"
ok "a new cluster after a restart of the machine"

trap - EXIT
"$here/down.sh"
[ -z "$(namespaces)" ] || fail "namespaces are left: $(namespaces)"
for p in /proc/[0-9]*; do
	line=$(cat "$p/cmdline" 2>/dev/null | tr '\0' ' ') || true
	[[ "$line" != *"$STATE/"* ]] || fail "a process is left: $line"
done
! grep -qF "$STATE/" /proc/mounts || fail "a mount is left"
"$here/down.sh" # again: nothing to do
ok "nothing is left"
