// Package compile turns one Gateway, with all that belongs to it, into the load balancer to have and the verdicts for status.
//
// Gateway in compile.go is the only entry. It is total: a user's mistake is a verdict, never an error. Read on in this order:
//
//	snapshot.go    what goes in and what comes out          input.go       the snapshot, findable
//	listener.go    Gateway listeners, conflicts, ports      tls.go         what HTTPS listeners need
//	certificate.go Secrets as a TLS server reads them         sni.go         which certificate HAProxy presents
//	clientca.go    CAs of client certificates               tlsoptions.go  versions and ALPN
//	listenerset.go ListenerSets and their status            ambiguity.go   regular expressions that cost too much
//	attach.go      parentRefs, allowedRoutes, hostnames     rule.go        routes, rules, what is refused, route status
//	hostname.go    nested hostnames                         path.go, header.go, regex.go   one match each
//	encode.go      the only way for values into rules       precedence.go  the one total order
//	program.go     ordered entries become policies          isolation.go   listeners keep their hosts to themselves
//	negation.go    redirects yield to forwards above them   redirect.go    which redirects are exact
//	backend.go     backendRefs become endpoints             node.go        which Nodes take requests
//	endpoint.go    EndpointSlices
//	grant.go       references across namespaces             weight.go      shares become member weights
//	pool.go        shared pools and health monitors          responder.go   answers that Octavia cannot give
//
// testdata/ holds one golden case for each idea. The package is pure: no context, client, clock, randomness or log.
package compile
