// Package show tells the story of the demo: what happened to Jobs and to a schedule, what a subscriber heard of it, and whether
// the counts are exact although the reconciler was killed. How Jobs run is drawn by internal/progress.
//
//	watch events   --Story.SawJob, SawPod--.
//	public events  --Story.Heard-----------+--> Story --Summary--> tables
//	kill -9        --Story.Crashed---------'      '--> moments: what is worth a line of its own
//
// What is said in the end to be exact is held against something else than what the reconciler says: counts against the Pods
// that were made and the lines that their containers have printed (crash.go), verdicts against the schedule and the Jobs that
// were made (schedule.go).
//
// All of it is a function of what it is given, the time included: it is tested without a clock.
package show
