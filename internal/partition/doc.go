// Package partition decides which reconciler serves which partition of which function, without a leader and without a lock.
//
// Twice a second every reconciler sends a Heartbeat to all others: which states it can read, and which partitions it holds. From
// the heartbeats that it receives, each reconciler computes the same assignment for itself. There is no agreement protocol:
//
//	heartbeats of all --> Table --> live members --> assign --> my partitions
//	                                                             |  still held by another member? wait for its release
//	                                                             v
//	                       Keeper: consume | release, and say so in a heartbeat at once
//
// Two reconcilers may serve a partition at the same time when they have received different heartbeats. That costs a conflict of
// the state's compare-and-set and is never wrong (docs/adr/0021-heartbeats.md): heartbeats make work efficient, and the
// compare-and-set is the fence.
//
// Time is counted in ticks: a member's own regular heartbeats that came back to it. A member that does not receive its own
// heartbeats is isolated, not alone: it changes nothing until they come back. A member that has counted DeadAfter ticks since it
// last received another takes the other for dead. So neither a server that pauses nor a process that was stopped for a while
// makes all members take all partitions. Where some members do not receive some others, a partition that each assigns to
// another one is served by one of them (unserved.go).
//
// Inspect reports to an operator which members live and which partitions are served (inspect.go).
package partition
