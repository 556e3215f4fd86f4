package replay

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// wroteJob reports whether the fact shows the Job after that write of its status; no fact after the first newer one can.
func wroteJob(x events.Event, e effect.WriteJobStatus) (shows, further bool) {
	j, gone := jobOf(x)
	if gone || j.Version <= e.Version {
		return gone, true
	}
	return sameCounts(j.Status, e.Status), false
}

// sameCounts reports whether two statuses account for the same Pods and have the same conditions. What runs at the moment does not count: a
// reconciler may have seen more of it.
func sameCounts(a, b batchv1.JobStatus) bool {
	uncounted := func(s batchv1.JobStatus) (all []string) {
		if u := s.UncountedTerminatedPods; u != nil {
			for _, uid := range u.Succeeded {
				all = append(all, "succeeded "+string(uid))
			}
			for _, uid := range u.Failed {
				all = append(all, "failed "+string(uid))
			}
		}
		slices.Sort(all)
		return all
	}
	conditions := func(s batchv1.JobStatus) (all []string) {
		for _, c := range s.Conditions {
			all = append(all, string(c.Type)+" "+string(c.Status))
		}
		slices.Sort(all)
		return all
	}
	return a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.CompletedIndexes == b.CompletedIndexes && ptr.Deref(a.FailedIndexes, "") == ptr.Deref(b.FailedIndexes, "") &&
		(a.StartTime == nil) == (b.StartTime == nil) && slices.Equal(uncounted(a), uncounted(b)) && slices.Equal(conditions(a), conditions(b))
}

// wroteSchedule reports whether the fact shows the ScheduledJob after that write of its status; no fact after the first newer one can.
func wroteSchedule(x events.Event, e effect.WriteScheduleStatus) (shows, further bool) {
	j, gone := scheduleOf(x)
	if gone || j.Version <= e.Version {
		return gone, true
	}
	a, b := j.Status, e.Status
	return a.Successful == b.Successful && a.Failed == b.Failed && a.Missed == b.Missed && len(a.Active) == len(b.Active) && a.DecidedUntil.Equal(b.DecidedUntil), false
}

func jobOf(x events.Event) (j events.Job, gone bool) {
	switch x := x.(type) {
	case events.JobObserved:
		return x.Job, false
	case events.JobGone:
		return j, true
	}
	return j, false
}

func scheduleOf(x events.Event) (j events.ScheduledJob, gone bool) {
	switch x := x.(type) {
	case events.ScheduledJobObserved:
		return x.ScheduledJob, false
	case events.ScheduledJobGone:
		return j, true
	}
	return j, false
}

func podOf(x events.Event) (p events.Pod, gone bool) {
	switch x := x.(type) {
	case events.PodObserved:
		return x.Pod, false
	case events.PodGone:
		return x.Pod, true
	}
	return p, false
}

func runOf(x events.Event) (r events.Run, gone bool) {
	switch x := x.(type) {
	case events.RunObserved:
		return x.Run, false
	case events.RunGone:
		return x.Run, true
	}
	return r, false
}

func createdAt(x events.Event) time.Time {
	switch x := x.(type) {
	case events.JobObserved:
		return x.Job.Created
	case events.ScheduledJobObserved:
		return x.ScheduledJob.Created
	case events.PodObserved, events.PodGone:
		p, _ := podOf(x)
		return p.Created
	case events.RunObserved, events.RunGone:
		r, _ := runOf(x)
		return r.Created
	}
	return time.Time{}
}
