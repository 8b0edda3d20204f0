// Package lb is the model: one Octavia load balancer with everything below it, as plain values.
//
// The same types describe what is wanted (internal/compile fills everything but ids) and what the cloud has
// (internal/cloud fills ids and statuses too). Objects refer to each other by Key, never by id, so a whole tree can be
// built, printed and compared before any cloud call. Keys are unique among siblings of a kind.
//
// Identity (identity.go) is the ownership contract: what every object we create carries, and how it is recognised.
//
// The package is pure: no context, client, clock, randomness or log. Of ours it imports only the
// domain constant.
package lb
