// Command conformance judges a run of the Gateway API conformance suite against this controller on the real stack, and writes the
// gap report in docs/conformance.
//
// run.sh brings up the stack and runs the suite as it is published (suite_test.go): first everything that the GatewayClass claims,
// which makes the upstream report; then every other test of the profile GATEWAY-HTTP, which has to fail for a reason that gaps.go
// states. "conformance judge" reads the log of that run and fails when a test ended otherwise than gaps.go says, when a claimed
// feature fails, and when a feature passes that is not claimed. "conformance report" turns the results of both configurations into
// Markdown, and "conformance sample" names the tests of the gate.
//
// It is a module of its own because the suite needs other modules than the controller.
package main
