// Package e2e holds the tests on the real stack (test/stack): real Kubernetes, real Octavia and HAProxy, and the controller as a
// Deployment. They need the build tag e2e and an environment that run.sh makes; "make e2e" calls it.
//
// ground_test.go is what the tests stand on: clients, requests from a namespace of one's choice, waiting, and the leak check;
// wanted_test.go says what the controller should make of Kubernetes' objects and what package route says of that, ask_test.go sends
// requests as they are, generate_test.go draws Gateways and requests, haproxy_test.go lets HAProxy check its configuration.
// Each other file is one story. Stories use Kubernetes namespaces of their own and leave nothing behind.
package e2e
