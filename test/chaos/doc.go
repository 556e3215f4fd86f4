// Package chaos runs jobstream while everything around it breaks. Then an independent checker examines the result. Every part is
// a process of its own, on a real control plane:
//
//	2 triggers, 3 reconcilers     the real binaries        killed, frozen, cut off, slowed, their clocks shifted
//	3 NATS servers, R3 streams    test/e2e/natsd           killed (the leader, too), frozen, cut off, emptied
//	3 nodes                       test/e2e/noded           killed for good with their Pods, cut off, slowed
//	kube-apiserver                internal/dev/controlplane    killed
//	etcd, kube-controller-manager                          left alone
//
// The files, in reading order:
//
//	run.go       one run from its seed to its verdict
//	faults.go    what breaks when: drawn from the seed alone
//	storm.go     breaks it, and heals it
//	parts.go     how to break and heal each part
//	keeper.go    starts again what has ended, as a kubelet does
//	work.go      what there is to do: drawn from the seed alone
//	jobs.go      each kind of Job, and how it must end
//	user.go      creates, suspends, resumes and deletes
//	ledger.go    the file into which each Pod writes a line
//	observations.go    every state of every Pod, from a watch of etcd
//	recorder.go  every public event, from a durable subscription
//	check*.go    the checker
//	report.go    the table at the end
//
// The checker uses nothing of jobstream: it reads the API server, etcd, the file of the Pods and its own
// subscription. A failure
// prints the seed and how to repeat the run, and keeps logs, objects and events in a folder that it names.
//
//	go test ./chaos -run TestChaos -minutes 10 -seed 7 -v
//
// The seed decides what happens and when, but not how fast the machine is: runs of one seed are similar, never identical.
package chaos
