// Package robustness runs the whole controller through random schedules and then asks whether all came out right.
//
// The real loops of internal/controller run on a Kubernetes API in memory (server.go, view.go: caches that lag, watches, conflicts) and,
// through the real client, on the simulator of internal/sim, in one goroutine and on a clock that only moves when everybody waits. A
// schedule (schedule.go) is a list of events: changes in Kubernetes (objects.go), faults of the cloud and of the network (wire.go),
// what others do to our objects and beside them (outside.go), crashes, second leaders. Each happens at one call of the controller or
// another, so that a crash hits between any two steps. Then the faults end, and check.go says what must be true.
//
// A schedule follows from its seed: GATEWAY_API_OPENSTACK_SEED=n replays one, and a failing one is told with the events that it
// takes (shrink.go).
package robustness
