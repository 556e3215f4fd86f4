// Package show tells the story of Jobs as they run: from what the API server's watches show to lines on a terminal.
//
//	watch events --Story.SawJob, SawPod--> Story --Bars, Summary--> lines --Screen--> terminal or file
//	                     '--> moments: what is worth a line of its own
//
// All but the Screen is a function of what it is given, the time included: it is tested without a terminal or a clock.
package show
