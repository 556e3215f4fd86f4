// Package show tells the story of the demo: what happened to Jobs and to a schedule, what a subscriber received, and whether the
// counts are exact although the reconciler was killed. internal/progress draws how the Jobs run.
//
//	watch events   --Story.SawJob, SawPod--.
//	public events  --Story.Received--------+--> Story --Summary--> tables
//	kill -9        --Story.Crashed---------'      '--> moments: what is worth a line of its own
//
// The summary does not trust the reconciler: it compares counts with the Pods that were created and the lines that their
// containers printed (crash.go), and verdicts with the schedule and the Jobs that were created (schedule.go).
//
// The package has no I/O and no clock: the caller passes the time.
package show
