// Command openstack-gateway-controller serves GatewayClasses with OpenStack Octavia load balancers. It holds flags and wiring
// only.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
