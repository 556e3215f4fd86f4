package scheduledjob

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// overdueAfter is how long after the end of its time to live a ScheduledJob counts as overdue. Before that, the timer that
// deletes it may still be on its way.
const overdueAfter = time.Minute

// Idle reports whether this function has nothing to do for the ScheduledJob with these Jobs before its next time comes, even if
// every fact about them and every timer was lost. A trigger that lists the cluster does not wake such a ScheduledJob.
// announceWithin is how long after a verdict the function is woken to announce it once more.
func Idle(j *events.ScheduledJob, runs []events.Run, now time.Time, announceWithin time.Duration) bool {
	s := &j.Status
	decided := time.Time{}
	if s.DecidedUntil != nil {
		decided = s.DecidedUntil.Time
	}
	switch {
	case s.ObservedGeneration != j.Generation, // never seen, or changed since
		s.DecidedUntil == nil && !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.StalledCondition),
		len(s.Active) > 0,
		meta.IsStatusConditionTrue(s.Conditions, v1alpha1.BlockedCondition),
		s.NextScheduleTime != nil && !j.Stopped() && !s.NextScheduleTime.After(now), // its due notice has fired in vain, or its start is delayed
		decidedSince(s, now.Add(-announceWithin)),
		outlived(j, now):
		return false
	}
	kept := map[events.RunResult]int32{}
	for _, r := range runs {
		if r.Result == "" || r.Nominal.After(decided) || AwaitsVerdict(s, r) { // not in status.active yet, or not counted
			return false
		}
		if !r.Deleting {
			kept[r.Result]++
		}
	}
	return kept[events.RunComplete] <= j.SuccessfulJobs && kept[events.RunFailed] <= j.FailedJobs
}

// decidedSince reports whether the status may have a verdict that was added after that time. The status does not record when.
func decidedSince(s *v1alpha1.ScheduledJobStatus, since time.Time) bool {
	if len(s.Recent) == 0 {
		return false
	}
	last := s.Recent[len(s.Recent)-1].Time.Time
	if s.DecidedUntil != nil {
		last = later(last, s.DecidedUntil.Time)
	}
	for _, c := range s.Conditions { // the end of runAt is one, and so is that of a suspension
		last = later(last, c.LastTransitionTime.Time)
	}
	return last.After(since)
}

// outlived reports whether the ScheduledJob should have been deleted by now, because its time to live is over: its timer was
// lost.
func outlived(j *events.ScheduledJob, now time.Time) bool {
	end := j.Expires()
	return !end.IsZero() && !j.Deleting && now.After(end.Add(overdueAfter))
}
