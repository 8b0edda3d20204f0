// Package scale measures the controller's own binary with a real API server on a simulated cloud that takes as long as a real one
// with amphorae: what it costs by the number of Gateways, and what a burst does.
//
//	world_test.go      the API server, the cloud and the controller's process
//	load_test.go       the objects: ten routes, five Services and fifty endpoints for each Gateway
//	measure_test.go    one size: cold start, at rest, an endpoint's change, restart
//	bursts_test.go     bursts, each with the calls that it may cost
//	report_test.go     docs/scale: a table, and plots
//
// Time is real here, so numbers depend on the machine; numbers of calls do not, and are asserted.
package scale
