// Package route answers which policy, pool or redirect a request hits in a lb.Tree, as the HAProxy that Octavia
// configures from that tree would.
//
// It models Octavia's template and HAProxy, not Gateway API: the three action classes, what is not rendered (disabled
// objects, policies without rules, policies whose pool is disabled), comma-separated headers, hosts with their port, and
// the HTML escaping of values. A tree that would break HAProxy's configuration is an error of New.
//
// The tests prove compiled trees and plans with it, and people ask it through Explain why a request went where it went.
// The package is pure: no context, client, clock, randomness or log.
package route
