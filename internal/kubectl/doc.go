// Package kubectl is the plugin "kubectl jobstream". It knows the API server; "events", "decisions" and "replay" ask the bus, and "history"
// may, through nats*.go alone. It has nothing of the engine.
//
//	main.go        Main: signals, exit codes, and how errors are printed
//	root.go        the command "jobstream" and the list of those below it
//	client.go      connecting to the API server, with kubectl's own flags
//	scheduled.go   a client of ScheduledJobs
//	remedy.go      advice for errors of the API server
//	follow.go      listing and watching: one loop, which survives lost connections
//	await.go       waiting until a Job has ended, or jobstream has processed it
//	jobs.go        following several Jobs, by names or a selector
//	view.go        how followed Jobs are shown; internal/progress draws them
//	overview.go    "jobstream" alone: an overview; overview/ sums up the objects
//	output.go      -o
//	complete.go    what the Tab key offers
//	run.go         "run": its flags, and its steps in order
//	create.go      the requests that create objects, and their undoing
//	maker.go       shared by commands that create objects: --dry-run, --output, --wait, --logs
//	verdict.go     from the creation of the objects to the exit code
//	logs.go        the output of the Pods, as it arrives
//	watch.go       "watch", wait.go "wait", joblogs.go "logs"
//	next.go        "next": when ScheduledJobs are due
//	list.go        "list": ScheduledJobs, with those first that need a user
//	list/          what a line shows of a ScheduledJob, and the order; no I/O, and no clock
//	history.go     "history": what became of each time of a ScheduledJob
//	nats_server.go the flags about NATS, nats_history.go what history reads from the bus
//	history/       verdicts joined with their runs, and drawn; no I/O, and no clock
//	table/         aligned lines of columns, in colours; no I/O
//	trigger.go     "trigger": a Job of a ScheduledJob for now
//	backfill.go    "backfill": Jobs for nominal times that have passed; backfill_work.go has the requests
//	backfill/      which times, and which comes next; no I/O, and no clock
//	suspend.go     "suspend" and "resume", stop.go "stop"
//	selection.go   shared by suspend, resume and stop: names, a selector, --dry-run
//	target.go      the objects they change: found by name or selector, changed by UID
//	named.go       KIND/NAME arguments
//	rerun.go       "rerun": a new Job from one that has ended, or from its failed indexes
//	rerun/         how the new Job is built; no I/O
//	why.go         "why": what an object waits for, or how it ended; why_read.go has the requests
//	why/           the causes and their order; no I/O, and no clock
//	events.go      "events": public events; events_line.go describes one in a line
//	decisions.go   "decisions" and "replay": stored facts, folded again
//	nats_stored.go what these three read from the bus: facts, states, public events
//	replay/        the folding, and the transcript; no I/O, and no clock
//	doctor.go      "doctor": problems that a user can see
//	doctor/        its judgement of the listed objects; no I/O, and no clock
//	next/          the next times of a schedule; no I/O, and no clock
//	convert.go     "convert": manifests, and the objects of a cluster
//	convert/       the conversion, and the steps of a cut-over
//	run/           from the flags of "run" to objects, or a clear error; no I/O
//
// # To add a command
//
// Write a file with a constructor, such as newRun(*tool) *cobra.Command, and add its line to root.go. Put what can be decided
// without a request into a package beside it, like run. Return a usage error if the command line is wrong (exit code 2), and
// any other error otherwise (1). Write through tool.Out and tool.ErrOut: standard output for what the user asked for (objects,
// logs), standard error for progress. Tests run the commands in Example.
package kubectl
