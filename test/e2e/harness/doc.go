// Package harness starts everything that jobstream needs as in production, each part a process that a test may kill:
//
//	etcd, kube-apiserver, kube-controller-manager      internal/dev/controlplane        child processes
//	a node that runs Pods as processes                 internal/dev/processnode         in the test's process, or noded
//	NATS with JetStream                                natsd                        child process
//	jobstream-trigger, jobstream-reconciler            cmd/trigger, cmd/reconciler  child processes, the real binaries
//
// The files, in reading order:
//
//	suite.go     what all tests of a package share: TestMain, the folder, the common System
//	programs.go  builds the binaries, once for all tests
//	process.go   one child process: start, kill -9, start again, and what it printed
//	ready.go     readiness and metrics of the programs
//	system.go    all of the above together; its log files are shown when a test fails
//	bus.go       the NATS server, and how to replace it by an empty one
//	accounts.go  the NATS server with users who may do little
//	servers.go   a cluster of three NATS servers
//	nodes.go     nodes as processes of their own
//	link.go      a TCP connection's way, which can be cut and slowed
//	reach.go     the Links between the parts
//	jobs.go      a namespace of the test's own, Jobs in it, and their outcome
//	ledger.go    the file in which every Pod writes its UID and exit code: the truth about every count
//	audit.go     the requests to the API server, from its audit log
//	guide.go     a document's commands, followed word for word
//	wait.go      waiting for a condition with a deadline
//
// No test leaves anything behind: child processes die with the test's process (the kernel ensures it on Linux), and a folder
// that a killed test has left is removed by the next.
package harness
