// Package responder is the fallback responder: the answers that Octavia cannot give itself, 404, 500, 503 and redirects without a fixed
// target. It runs in every Pod of the controller, leader or not, behind a Service of its own.
//
//	handler.go  one request, one answer
//	server.go   the ports
//
// It never forwards anything. An answer depends on the port, on the request, and for redirects on the table that the annotation of the
// Service holds; nothing else is kept. See internal/answer for what ports mean.
package responder
