// Package partition decides which reconciler serves which partition of which function, without a leader and without a lock.
//
// Every reconciler tells all others, twice a second, that it is there, what it can read and which partitions it holds: a Beat.
// From the beats that it hears, each computes the same distribution for itself. Nobody agrees on anything:
//
//	beats of all --> Table --> who is live --> assign --> which partitions are mine
//	                                                        |  held by somebody else still? wait for its release
//	                                                        v
//	                  Keeper: consume | put down, release, say so at once
//
// Two reconcilers may serve a partition at the same time, when they have heard different things. That costs a conflict of the
// state's compare-and-set and is never wrong (docs/adr/0021-heartbeats.md): the beats are for efficiency, the
// compare-and-set is the fence.
//
// Time is counted in beats. A reconciler that does not hear itself is deaf, not alone: it changes nothing until it
// hears again. One that has heard itself Silence times since it last heard another takes the other for dead. So neither
// a server that pauses nor a process that was stopped for a while makes everybody take everything. Where some do not hear
// some others, a partition that all give away is taken in by one of them (orphans.go).
package partition
