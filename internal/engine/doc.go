// Package engine takes turns: it loads a key's state, lets the function decide, commits, acts, and only then acknowledges.
// It declares the ports (ports.go) that the bus and the cluster implement, and imports neither.
//
//	ports.go   Store, Actor, Delivery, Timers: what an adapter promises
//	turn.go    one turn in steps, for the simulator and for the runner alike
//	runner.go  the goroutines: one key at a time, many keys at once
//
// The order is the first law, commit before act. Whatever is interrupted is delivered again and decided again, from the
// same state to the same effects, each of which may be done twice.
package engine
