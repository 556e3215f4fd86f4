// Package sim runs the real functions through the real engine turn in a world where everything happens that may happen:
// workers die between any two steps, sleep and wake late, messages are repeated and reordered, two workers have the same
// key, the memory and all facts are lost, the API server conflicts, refuses and fails after it has done the work, Pods
// fail, vanish and are deleted, users scale and delete. One seed decides all of it, so a bad world can be run again and
// read as a trace.
//
//	api.go      an API server as far as effects reach: preconditions, versions, finalizers
//	nodes.go    kubelet; gc.go: kube-controller-manager; users.go: users who meddle
//	plan.go     what a seed draws: the Job and what happens to it
//	bus.go      facts, timers and the state's compare-and-set, and how they get lost
//	world.go    workers step by step, and the faults between the steps
//	oracle.go   what must be true at every step and at the end
//	rows.go     the rows of the behaviour table, and how many worlds exercise each
package sim
