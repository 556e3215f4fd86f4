// Package kubectl is the plugin "kubectl jobstream". It knows the API server and nothing else: no bus, no engine.
//
//	main.go        Main: signals, exit codes, and how errors are told
//	root.go        the command "jobstream" and the list of those below it
//	client.go      how the API server is reached, by kubectl's own flags
//	scheduled.go   a client of ScheduledJobs
//	remedy.go      what to do about what the API server answers
//	follow.go      everything that lists and watches: one loop, which survives a connection
//	await.go       a Job until it has ended, or has been taken up
//	jobs.go        several Jobs, by names or a selector, until it is enough
//	view.go        what is shown of Jobs that are followed; internal/progress draws it
//	overview.go    "jobstream" alone: what there is, overview/ sums it up
//	output.go      -o
//	complete.go    what the Tab key offers
//	run.go         "run": its flags, and the order of what happens
//	create.go      the requests that create objects, and how they are undone
//	maker.go       what commands share that create objects: --dry-run, --output, --wait, --logs
//	verdict.go     what follows when all is created, up to the exit code
//	logs.go        what the Pods print, as it comes
//	watch.go       "watch", wait.go "wait", joblogs.go "logs"
//	next.go        "next": when ScheduledJobs are due
//	trigger.go     "trigger": a Job of a ScheduledJob for now
//	backfill.go    "backfill": Jobs for nominal times that have passed; backfill_work.go has the requests
//	backfill/      which times those are, and which is next; no I/O, and no clock
//	suspend.go     "suspend" and "resume", stop.go "stop"
//	selection.go   what they share: names, a selector, --dry-run
//	target.go      what they are about: found by name or selector, and changed by its UID
//	named.go       KIND/NAME, as users type it
//	rerun.go       "rerun": a Job that has ended, or what of it has failed, as a new Job
//	rerun/         which Job that is; no I/O
//	doctor.go      "doctor": what is wrong, as far as a user can see it
//	doctor/        what it makes of what was listed; no I/O, and no clock
//	next/          what "next" says of a schedule; no I/O, and no clock
//	convert.go     "convert": manifests, and what runs
//	convert/       what it makes of them, and the steps of a cut-over
//	run/           what "run" makes of its flags: objects, or a clear error; no I/O
//
// # To add a command
//
// A file with a constructor, such as newRun(*tool) *cobra.Command, and its line in root.go; a package beside it, like run, for
// what can be decided without a request. Its errors are usage where the command line is wrong (exit code 2), and any other
// error else (1). Everything is written through tool.Out and tool.ErrOut: standard output is what was asked for (objects,
// logs), standard error what happens meanwhile. Examples in Example are run by tests.
package kubectl
