// Package engine takes turns: it loads a key's state, lets the function decide, commits, acts, and only then acknowledges.
// It declares the ports (ports.go) that the bus and the cluster implement, and imports neither.
//
//	ports.go   Store, Actor, Delivery, Timers, Announcer: what an adapter promises
//	turn.go    one turn in steps, for the simulator and for the runner alike
//	runner.go  the goroutines: one turn of a key at a time, many keys at once
//	rounds.go  what a turn does: decide, commit, act, and again with the answers; what becomes of its facts
//	remember.go  facts whose turn does not come, or does not end
//	alarm.go   waking keys: timers on the bus, alarms in this process, rest after failures
//
// The order is the first law, commit before act. Whatever is interrupted is delivered again and decided again, from the
// same state to the same effects, each of which may be done twice.
package engine
