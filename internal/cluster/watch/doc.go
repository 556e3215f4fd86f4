// Package watch is the trigger's half: a Watcher lists and watches Jobs, Pods and ScheduledJobs, and publishes facts about them.
//
//	             +--------------------- session ---------------------+
//	API server --|-> LIST ScheduledJobs, Jobs, Pods --> snapshots  --|--> Sink, which is the bus
//	             |-> watch each from its list on    --> observations-|-->
//	             +---------------------------------------------------+
//	                  ^                                        |
//	                  '------- list everything again <---------'  a gap, a lost fact, an interval, an emptied bus
//
// A Watcher keeps no object. What it has published is on the bus; what it may have missed it lists again. So any number of
// Watchers may run: two that observe the same publish the same fact, and the bus stores it once.
//
//	watcher.go     the Watcher, its Sink, and one watch that resumes where it broke
//	relist.go      a session; which snapshots a complete list publishes: functions/job.Idle decides which Jobs need none
//	pods.go        the events of a watch of Pods, and what has become of a Pod that leaves it
//	unlabelled.go  watches of Pods without the managed label, in namespaces where a Job may adopt them: their selectors are all
//	               that is remembered of the cluster
//	schedules.go   ScheduledJobs, which may not be installed; the Alarm receives each
//	meter.go       the Meter receives what metrics show
//	retrylog.go    pauses between attempts, and one line in the log when it begins and ends
package watch
