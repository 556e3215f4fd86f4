package watch

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
)

// Meter receives what lists and watches show, for metrics. Several goroutines may call it at the same time; it must return at once,
// and must not change its arguments.
type Meter interface {
	// Listed is the complete list with which a session begins, before its watches: all claimed Jobs, and each of their Pods with the
	// UID of its Job. What is not in it does not exist. The sequences end with the call.
	Listed(jobs iter.Seq[*events.Job], pods iter.Seq2[types.UID, events.Pod])
	// ListedSchedules is a complete list of ScheduledJobs, before their watch.
	ListedSchedules(iter.Seq[*events.ScheduledJob])
	// SawJob follows each observation of a claimed Job by the watch, and reports whether it has just been created.
	SawJob(j events.Job, created bool)
	// MissedJob follows the deletion of a Job.
	MissedJob(uid types.UID)
	// SawPod follows each observation of a Pod by a watch, with the UID of its Job.
	SawPod(namespace string, job types.UID, p events.Pod)
	// MissedPod follows the deletion of a Pod, or that it does not concern its Job any more.
	MissedPod(uid types.UID)
	// SawSchedule follows each observation of a ScheduledJob by the watch.
	SawSchedule(events.ScheduledJob)
	// MissedSchedule follows the deletion of a ScheduledJob.
	MissedSchedule(uid types.UID)
}

// noMeter is a Meter that counts nothing.
type noMeter struct{}

func (noMeter) Listed(iter.Seq[*events.Job], iter.Seq2[types.UID, events.Pod]) {}
func (noMeter) ListedSchedules(iter.Seq[*events.ScheduledJob])                 {}
func (noMeter) SawJob(events.Job, bool)                                        {}
func (noMeter) MissedJob(types.UID)                                            {}
func (noMeter) SawPod(string, types.UID, events.Pod)                           {}
func (noMeter) MissedPod(types.UID)                                            {}
func (noMeter) SawSchedule(events.ScheduledJob)                                {}
func (noMeter) MissedSchedule(types.UID)                                       {}

// meterLists passes the lists of Jobs and Pods with which a session begins to the Meter.
func (w *Watcher) meterLists(lists cluster.Lists) {
	w.config.Meter.Listed(maps.Values(lists.Jobs), func(yield func(types.UID, events.Pod) bool) {
		for of, pods := range lists.Pods {
			for _, p := range pods {
				if !yield(of.UID, p) {
					return
				}
			}
		}
	})
}
