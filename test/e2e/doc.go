// Package e2e tests the promises of jobstream on a real API server, a real NATS server and with the real binaries as processes
// of their own, whose Pods run as processes of this machine. Nothing is simulated; what is killed is killed with -9. It needs
// the control plane that "make controlplane" builds, and sh; a case that needs a missing program is skipped with the reason.
//
//	counts_test.go    1,000 completions, 5 % of the Pods failing: every Pod counted once, few status writes
//	crash_test.go     the same with the reconciler, the trigger or the whole bus lost in the middle; two of each
//	parity_test.go    documented Jobs end as under the built-in controller
//	delete_test.go    Pods of deleted Jobs lose their finalizer, and namesakes start anew
//	refusal_test.go   Pods that the API server refuses
//	behind_test.go    Kubernetes' own controller removes the finalizer of a Pod that is not its own
//	bus_test.go       unreadable messages; secrets
//	start_test.go     programs that cannot work
//	users_test.go     what users do with Jobs
//	trace_test.go     one trace from the tick to the Pod
//	permissions_test.go, permissions_smoke_test.go
//	                  no more than deploy/ grants, and no less
//	demo_test.go      "jobstream-dev demo" as a program
//	cronjobs_test.go  CronJobs as users have them, converted, applied, run, and converted back
//	jobstream_test.go the first hour by README.md, with jobstream alone; and how others take over from it
//	kubectl_test.go   kubectl jobstream run: the proposals' command lines, and the examples of its help
//	kubectl_rerun_test.go, kubectl_stop_test.go, kubectl_doctor_test.go
//	                  what is left of a Job runs again, with its indexes; a Job is ended for good; what is wrong
//	kubectl_why_test.go, kubectl_why_jobs_test.go, kubectl_why_schedules_test.go
//	                  the true cause of each of 39 situations comes first
//	examples_test.go  the programs in examples/, with no more than a subscriber's credentials
//
// One control plane, NATS, trigger and reconciler serve all tests, each in a namespace of its own; tests that break what others
// need have their own. The package harness starts and observes all of it.
// # Run one test
//
//	make controlplane                                                       # once
//	go test -C test ./e2e -v -run 'Thousand/^Indexed'
//	go test -C test ./e2e -v -run KilledReconciler -count=10                # the moment of the kill is another one each time
//	JOBSTREAM_LONG=1 go test -C test ./e2e -v -run 'Killed|Empty'           # the long forms: see internal/dev/size
//
// # Logs
//
// A test that fails shows the warnings and the last lines of the log of every part since it began. To keep all logs, name a
// folder: it gets trigger-0.log, reconciler-0.log (with every turn), nats.log and node.log, in "shared" or in a folder of the
// test's name. Otherwise nothing is left behind.
//
//	JOBSTREAM_E2E_LOGS=/tmp/e2e go test -C test ./e2e -v -run Empty
package e2e
