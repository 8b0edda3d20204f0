// Package plan turns a wanted and an observed lb.Tree into steps: each one API call as data, with its reason.
//
// New and Diff are minimal (equal content is matched to what exists, so that a rename is no step) and ordered so that no
// request is misrouted on the way: after each step every request gets its old or its new answer. Apply simulates one step
// on a tree as Octavia performs it, which is how the tests prove that, with package route.
//
// Keys in steps are those of the cloud: a wanted object that is matched to an existing one goes by the existing one's key.
//
// The package is pure: no context, client, clock, randomness or log. Of ours it imports only lb.
package plan
