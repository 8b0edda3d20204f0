// Command openstack-gateway-controller serves GatewayClasses with OpenStack Octavia load balancers. It holds flags and wiring
// only.
package main

import (
	"os"

	// The public certificate authorities, for an image that has no files: used only where the system has none.
	_ "golang.org/x/crypto/x509roots/fallback"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
