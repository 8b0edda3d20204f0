// Package bench measures the controller on a simulated cloud whose writes take as long as those of a real one with amphorae, by
// the calls that change something and by the time in that world, and prints ratios:
//
//	of Octavia     time until the Gateway is as it shall be, over the time that Octavia was busy with our calls: what is more than 1 is ours
//	against        a writer that makes the same tree object by object
//
// Time in that world does not depend on the machine. Reads take none of it there, so they are counted too.
package bench
