// Command kubectl-octavia is a kubectl plugin that shows what Gateways are in OpenStack Octavia. It holds no logic.
package main

import (
	"os"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/inspect"
)

func main() { os.Exit(inspect.Main()) }
