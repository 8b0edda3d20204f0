// Package scenario tells stories about the whole controller as text: what happens in Kubernetes and in the cloud, and what comes
// of it. The real loops run on a fake Kubernetes API and, through the real client, on the simulator of internal/sim, in one
// process and on a clock that only moves when somebody waits: the same story gives the same text, in milliseconds.
//
// A story is a file in testdata (file.go has the format, commands.go the commands):
//
//	# Why this must be so.
//	apply gateway.yaml
//	----
//	gateway/infra/edge created
//
// "go test ./test/scenario -update" rewrites what is below the dashes. A bug in the interplay of the packages becomes a story first.
package scenario
