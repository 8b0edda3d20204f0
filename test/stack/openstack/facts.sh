#!/bin/bash
# facts.sh: writes $RUN/facts.env, what tests need to know about the stack, as shell assignments.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cloud_runs || die "the cloud is not up"
{
	echo "# Written by test/stack; for sourcing."
	in_cloud python3 - <"$here/cloud/facts.py"
	echo "GAO_RELEASE=$RELEASE"
	echo "GAO_CLOUD_NAMESPACE=$NS"
	echo "GAO_CLIENT_NAMESPACE=$CLIENT"
	echo "GAO_AUTH_URL=http://$API:5000/v3"
	echo "OS_CLIENT_CONFIG_FILE=$STATE/clouds.yaml"
	echo "OS_CLOUD=stack"
	if [ -e "$RUN/kubernetes/kubeconfig" ]; then
		echo "GAO_KUBECONFIG=$RUN/kubernetes/kubeconfig"
		echo "GAO_CONTROL_PLANE_NAMESPACE=$PREFIX-cp"
		echo "GAO_FABRIC_NAMESPACE=$PREFIX-fabric"
	fi
} >"$RUN/facts.env.new" || die "the cloud does not tell its facts"
mv "$RUN/facts.env.new" "$RUN/facts.env"
