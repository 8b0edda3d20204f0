package compile

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// terminatedHTTPS says why an HTTPS listener is not served; "" when it is.
func terminatedHTTPS(gwv1.Listener) string {
	return "terminated HTTPS is not served by this build: use an HTTP listener"
}
