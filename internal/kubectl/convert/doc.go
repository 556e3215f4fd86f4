// Package convert makes ScheduledJobs of CronJobs, and CronJobs of ScheduledJobs, and reports what changes in meaning.
//
// Most fields are the same on both sides, so the package edits the manifest's text only where something differs:
// comments, order and documents of other kinds stay as they are.
//
//	stream.go     a stream of YAML documents in, the same with other kinds out
//	forward.go    CronJob to ScheduledJob: the edits, and the differences in behaviour
//	back.go       ScheduledJob to CronJob
//	daylight.go   the next clock change that the two handle differently
//	nodes.go      reading and editing YAML nodes
//	report.go     the report about each object
//
// These files have no clock and no I/O. A Cutover applies the result to a cluster:
//
//	cutover.go    the steps, in an order that survives an interruption
//	takeover.go   a ScheduledJob takes over from a CronJob
//	handback.go   the other way round
package convert
