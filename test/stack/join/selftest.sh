#!/bin/bash
# selftest.sh: proves the join: two pods answer through load balancers with VIPs on either subnet, whose members are node ports and
# pods, by VIP and by floating IP, from outside and from a node. Everything must be up. Leaves nothing.
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_root
kubectl() { "$join/../kubectl" "$@"; }

cleanup() {
	rc=$?
	in_cloud python3 - delete <"$join/selftest.py" || rc=1
	kubectl delete namespace join-selftest --ignore-not-found --timeout=60s >/dev/null || rc=1
	exit $rc
}
trap cleanup EXIT

kubectl apply -f - >/dev/null <<'END'
apiVersion: v1
kind: Namespace
metadata: {name: join-selftest}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: join-selftest}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: echo}}}
      containers:
      - name: echo
        image: echo
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: join-selftest}
spec:
  type: NodePort
  selector: {app: echo}
  ports: [{port: 80, targetPort: 8080}]
END
kubectl -n join-selftest wait --for=condition=Available --timeout=60s deployment/echo >/dev/null
port=$(kubectl -n join-selftest get service echo -o 'jsonpath={.spec.ports[0].nodePort}')
members=()
for address in $(kubectl get nodes -o 'jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}'); do members+=("node:$address:$port"); done
for address in $(kubectl -n join-selftest get pods -o 'jsonpath={.items[*].status.podIP}'); do members+=("pod:$address:8080"); done
say "two pods are ready"

addresses=$(in_cloud python3 - create "${members[@]}" <"$join/selftest.py") || die "the load balancers could not be made"
while read -r what address; do
	what=${what//_/ }
	for ns in "$CLIENT" "$PREFIX-cp" "$PREFIX-n-1"; do
		answered=
		for _ in $(seq 60); do
			body=$(nsenter --net="/run/netns/$ns" curl -s --max-time 5 "http://$address/") || { sleep 0.5 && continue; }
			pod=$(sed -n 's/.*"pod": *"\([^"]*\)".*/\1/p' <<<"$body")
			[[ -z $pod || " $answered " = *" $pod "* ]] || answered="$answered $pod"
			[ "$(wc -w <<<"$answered")" = 2 ] && break
		done
		[ "$(wc -w <<<"$answered")" = 2 ] || die "$what $address from $ns: both pods should answer, got:$answered ($body)"
	done
	say "$what $address: both pods answer"
done <<<"$addresses"
