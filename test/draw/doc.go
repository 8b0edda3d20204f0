// Package draw prints trees for people: the demo and the stories show load balancers with it. It is pure.
package draw
