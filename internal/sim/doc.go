// Package sim runs the real functions through the real engine turn, and the real distribution of partitions, in a world where
// everything happens that may happen: turns end between any two steps, sleep and wake late, messages are repeated and
// reordered, several reconcilers have the same key, come, leave, die, are stopped, do not hear each other, know different
// versions, have wrong clocks, the memory and the whole bus are lost, the API server conflicts, refuses and fails after it
// has done the work, Pods fail, vanish and are deleted, users scale and delete. One seed decides all of it, so a bad world
// can be run again and read as a trace.
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
