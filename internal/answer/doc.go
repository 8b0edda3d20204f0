// Package answer is the meaning of the fallback responder's ports: what each of them answers.
//
//	port.go      the ports with one meaning for ever, and the ports whose meaning an annotation says
//	redirect.go  a redirect as data, and the Location that it gives to a request
//
// Compile chooses ports by this package and the responder answers by it, so that both always mean the same. The package is pure:
// no context, client, clock, randomness or log. docs/adr/0001-responder-ports.md says why ports mean what they mean.
package answer
