// Package run turns the arguments of "kubectl jobstream run" into objects. It has no I/O and no clock: the caller has read the
// files, and the same Options give the same objects.
//
//	options.go   Options, and Build, which reads top to bottom like the command's help
//	list.go      --per-completion-env: one value for each index
//	variables.go the other variables, and what "$(NAME)" in the command means
//	when.go      --run-at: a time, or a schedule
//	command.go   commands that would not do what they seem to
//	objects.go   the Job, the ScheduledJob, the ConfigMap
//
// # The proposals
//
// The flags are those of the proposals indexed-job.md ("Running Ad-Hoc Jobs using kubectl", "Kubectl Interface Changes") and
// scheduledjob.md ("Running ScheduledJobs using kubectl"). The proposal puts a script in front of the command to set the
// variables; jobstream's controller sets them when it creates a Pod, so no image needs a shell.
package run
