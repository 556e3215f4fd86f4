// Package run turns what the user types after "kubectl jobstream run" into objects. It does no I/O and has no clock: files
// have been read when it is called, and the same Options give the same objects.
//
//	options.go   what can be asked for, and Build, which reads top to bottom like the command's help
//	list.go      --per-completion-env: one value for each index
//	variables.go the other variables, and what "$(NAME)" in the command means
//	when.go      --run-at: a time, or a schedule
//	command.go   commands that would not do what they look like
//	objects.go   the Job, the ScheduledJob, the ConfigMap
//
// # The proposals
//
// The flags are those of the proposals indexed-job.md ("Running Ad-Hoc Jobs using kubectl", "Kubectl Interface Changes") and
// scheduledjob.md ("Running ScheduledJobs using kubectl"). What the proposal does by a script that is put before the command,
// jobstream's controller does when it makes a Pod: no image needs a shell.
package run
