#!/usr/bin/env bash
# pki.sh: makes the cluster's CA, certificates and kubeconfigs, those that are missing. up.sh calls it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
umask 077
mkdir -p "$PKI"
cd "$PKI"

quiet() { # openssl writes progress to stderr: show it only when it fails
	"$@" 2>openssl.log >&2 || die_log "$PKI/openssl.log" "$* failed"
}

if [ ! -e ca.crt ]; then
	quiet openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=gao-cluster \
		-addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.crt.new
	mv ca.crt.new ca.crt
fi
if [ ! -e sa.pub ]; then
	quiet openssl genrsa -out sa.key 2048
	quiet openssl rsa -in sa.key -pubout -out sa.pub.new
	mv sa.pub.new sa.pub
fi

# certificate NAME SUBJECT [SUBJECT_ALT_NAME]: for clients, and for servers when there is a name.
certificate() {
	[ ! -e "$1.crt" ] || return 0
	local ext=extendedKeyUsage=clientAuth
	[ -z "${3:-}" ] || ext=$(printf 'extendedKeyUsage=serverAuth\nsubjectAltName=%s' "$3")
	quiet openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr"
	printf 'basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n%s\n' "$ext" >"$1.ext"
	quiet openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -set_serial "0x$(openssl rand -hex 8)" -days 3650 -extfile "$1.ext" -out "$1.crt.new"
	mv "$1.crt.new" "$1.crt"
	rm -f "$1.csr" "$1.ext"
}

# kubeconfig NAME FILE: for the client certificate NAME; it refers to no other file.
kubeconfig() {
	[ ! -e "$2" ] || return 0
	cat >"$2.new" <<-K
		apiVersion: v1
		kind: Config
		clusters:
		- name: stack
		  cluster:
		    server: https://$CP_ADDRESS:$API_PORT
		    certificate-authority-data: $(base64 -w0 ca.crt)
		users:
		- name: $1
		  user:
		    client-certificate-data: $(base64 -w0 "$1.crt")
		    client-key-data: $(base64 -w0 "$1.key")
		contexts:
		- name: stack
		  context: {cluster: stack, user: $1}
		current-context: stack
	K
	mv "$2.new" "$2"
}

certificate apiserver /CN=kube-apiserver "IP:$CP_ADDRESS,IP:$API_SERVICE,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
certificate apiserver-kubelet /CN=kube-apiserver-kubelet-client
certificate admin /O=system:masters/CN=admin
# One certificate for all kubelets: the Node authorizer would want one for each.
certificate kubelet /O=system:masters/CN=process-kubelet
for c in kube-controller-manager kube-scheduler kube-proxy; do certificate $c "/CN=system:$c"; done
for c in kubelet kube-controller-manager kube-scheduler kube-proxy; do kubeconfig $c "$PKI/$c.kubeconfig"; done
kubeconfig admin "$KUBECONFIG_ADMIN"
