// Package convert makes ScheduledJobs of CronJobs, and CronJobs of ScheduledJobs, and says what changes in meaning.
//
// Most fields are the same on both sides, so a manifest is not written anew: its text is edited where something differs, and
// comments, order and documents of other kinds stay as they are.
//
//	stream.go     a stream of YAML documents in, the same with other kinds out
//	forward.go    CronJob to ScheduledJob: what is edited, and what is different from then on
//	back.go       ScheduledJob to CronJob
//	daylight.go   the next time at which the two disagree about daylight saving
//	nodes.go      how text is read and edited
//	report.go     what is said about each object
//
// All of that is a function of its arguments: neither clock nor cluster. What is done to a cluster is a Cutover:
//
//	cutover.go    the steps, in an order that may be interrupted
//	takeover.go   a ScheduledJob takes over from a CronJob
//	handback.go   the other way round
package convert
