// Package sim runs the real functions through the real engine turn and the real distribution of partitions, and injects every
// fault that can occur. Turns end between any two steps, sleep, and continue late. Messages are repeated and reordered.
// Reconcilers share a key, join, leave, die, are stopped, miss each other's heartbeats, have different versions and wrong
// clocks. The memory or the whole bus is lost. The API server reports conflicts, refuses requests, and fails after it has done
// the work. Pods fail, vanish and are deleted; users scale and delete Jobs. One seed decides all of it: a world that breaks a
// law can be replayed and read as a trace.
//
//	world.go        time, step by step           tenant.go      one Job in a namespace of its own
//	api.go          an API server as far as effects reach: preconditions, versions, finalizers
//	nodes.go        kubelet; gc.go: kube-controller-manager; users.go: users who meddle
//	plan.go         what a seed draws: the Job and what happens to it
//	bus.go          facts in partitions, timers and the state's compare-and-set, and how they get lost
//	fleet.go        the reconcilers that run, and what befalls them
//	member.go       a reconciler's partitions         reconciler.go  its clock, its alarms
//	worker.go       a turn, step by step         faults.go      what goes wrong between the steps
//	oracle.go       what must be true at every step and at the end; life.go: when
//	rows.go         the rows of the behaviour table, and how many worlds exercise each
//
// Every other world is a crowd: one Job, and two reconcilers that serve all partitions for ever, so that only the
// compare-and-set keeps them apart. In the others partitions are shared as in a cluster.
package sim
