// Package watch is the trigger's eye: a Watcher lists and watches Jobs, Pods and ScheduledJobs, and publishes facts about them.
//
//	             +--------------------- session ---------------------+
//	API server --|-> LIST ScheduledJobs, Jobs, Pods --> snapshots  --|--> Sink, which is the bus
//	             |-> watch each from its list on    --> observations-|-->
//	             +---------------------------------------------------+
//	                  ^                                        |
//	                  '------- list everything again <---------'  a gap, a lost fact, an interval, the bus was emptied
//
// A Watcher keeps no object. What it has published is on the bus; what it may have missed is listed again. So any number of them may
// run: two that see the same publish the same, and the bus stores it once.
//
//	watcher.go     the Watcher, its Sink, and one watch that goes on where it broke
//	relist.go      a session; which snapshots a complete list tells: functions/job.Idle decides which Jobs need none
//	pods.go        what a watch of Pods shows, and what has become of a Pod that it shows no longer
//	unlabelled.go   watches of Pods without our label, in namespaces where a Job may adopt them: the selectors of such Jobs are all
//	               that is remembered of the cluster
//	schedules.go   ScheduledJobs, which may not be installed; the Alarm hears of each
//	retrylog.go     pauses between attempts, and one line in the log when it begins and ends
package watch
