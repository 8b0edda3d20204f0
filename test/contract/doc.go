// Package contract holds one suite of tests that runs against two clouds: the
// embedded simulator (internal/sim) by default, and a real one with
//
//	GATEWAY_API_OPENSTACK_CONTRACT=real OS_CLIENT_CONFIG_FILE=... OS_CLOUD=... go test ./test/contract/
//
// where the real one must let this process reach its APIs, and its floating IPs
// for the tests of the data plane. What the suite asserts is what the rest of
// the project relies on: fault strings, limits, locks, field sets, quirks. When
// a real cloud disagrees, the test and the simulator are mended, in that order.
//
// The real clouds of record are Octavia 16.0.0 (2025.1). Tests of quotas need a
// second cloud entry named $OS_CLOUD-admin. Every test removes what it made.
package contract
