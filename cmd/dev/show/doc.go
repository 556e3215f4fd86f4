// Package show tells the story of the demo's Jobs: what happened when, and how it ended. How they run is drawn by
// internal/progress.
//
//	watch events --Story.SawJob, SawPod--> Story --Summary--> a table
//	                     '--> moments: what is worth a line of its own
//
// All of it is a function of what it is given, the time included: it is tested without a clock.
package show
