// Package engine takes turns: it loads a key's state, lets the function decide, commits, acts, and only then acknowledges.
// It declares the ports (ports.go) that the bus and the cluster implement, and imports neither.
//
//	ports.go      Store, Actor, Delivery, Timers, Announcer: what an adapter promises
//	turn.go       one turn in steps, for the simulator and for the runner alike
//	runner.go     the goroutines: one turn of a key at a time, many keys at the same time
//	rounds.go     what a turn does: decide, commit, act, and again with the answers; what becomes of its facts
//	between.go    what happens between two rounds: others go first, facts join
//	partition.go  taking and releasing partitions
//	recent.go     states that this process has saved need not be read again
//	remember.go   facts whose turn does not come, or does not end
//	timers.go     waking keys: timers on the bus, wakeups in this process, backoff after failures
//	announce.go   effects for subscribers
//	doubt.go      states that do not converge with the cluster
//
// The example is the whole driving loop of one key. The order is the first law, commit before act. After an interruption the facts are delivered again and lead from the same state
// to the same decision, so each effect may be done twice.
package engine
