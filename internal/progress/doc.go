// Package progress draws Jobs as they run: what a watch shows of Jobs and Pods goes in, lines of text come out.
//
//	Job, Pod, now --SawJob, SawPod, JobGone--> Board --Frame(now, Style)--> the lines that a terminal redraws in place
//	                                             '-----Changes(now)-------> lines for a file, one per change, throttled
//
// A frame has one line per Job; below it, where the Job is Indexed, a map of its indexes, and what is wrong with it. It
// is made for a terminal of any width and height: columns give way by their importance, maps by their detail, and Jobs
// that have ended to those that run.
//
// The package has no clock and no terminal: the caller passes the time. The
// package terminal beside it has both. Texts in objects come from any user who may write in their namespace: they cost no
// more than their length, and none of their escape sequences reaches the terminal.
package progress
