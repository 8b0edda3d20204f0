// Package sim is an embedded OpenStack: Keystone v3, Octavia v2, Neutron and
// Barbican behind one HTTP listener, for tests and for the demo.
//
// It answers like the real services do, with their fault strings, validation,
// locks and quirks, so that the real client library can talk to it. State
// changes take time on an injected clock: an accepted write leaves the load
// balancer PENDING_* until its latency has passed, and every write in between
// is refused with 409. Nothing runs in the background; due changes are applied
// when somebody looks (see settle).
//
// Every call is recorded, faults can be scripted (Inject), the whole state can
// be dumped (Snapshot) and changed behind the client's back (the methods of
// outside.go). With Options.Forward the simulator also listens on the VIPs,
// which are loopback addresses then, and really balances.
//
// The contract suite in test/contract holds it against a real cloud. Where the
// two differ, this package is wrong.
package sim
