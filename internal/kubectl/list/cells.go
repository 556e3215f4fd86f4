package list

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/progress"
)

const (
	// late is how far past its time a due Job must be before it is called late.
	late = 10 * time.Second
	// Untouched is how long a new object may wait before the plugin suspects that jobstream does not run. It usually takes a tenth of
	// a second.
	Untouched = 10 * time.Second
)

// Schedule returns the schedule, or several, as text; "once" for runAt.
func Schedule(s *v1alpha1.ScheduledJob) string {
	if s.Spec.RunAt != nil {
		return "once"
	}
	return clean(s.Spec.AllSchedules())
}

// Zone returns the name of the schedule's zone.
func Zone(s *v1alpha1.ScheduledJob) string { return clean(ptr.Deref(s.Spec.TimeZone, "UTC")) }

// Due is when the next Job of a ScheduledJob is created.
type Due struct {
	// Time is the moment, its delay by jitterSeconds included; zero if there is none.
	Time time.Time
	// Nominal is its nominal time on the clock of the schedule's zone, In how long Time is from now, as in "5m" or "5m late"; "" if there
	// is no next Job.
	Nominal, In string
	// Late reports whether the moment has passed.
	Late bool
}

// Next returns when the next Job is created.
func Next(s *v1alpha1.ScheduledJob, zones scheduledjob.Zones, now time.Time) (d Due) {
	if s.Status.NextScheduleTime == nil {
		return d
	}
	next := s.Status.NextScheduleTime.UTC()
	if zone, err := zones(ptr.Deref(s.Spec.TimeZone, "")); err == nil {
		next = next.In(zone)
	}
	d.Nominal = strings.TrimSuffix(next.Format(time.DateTime), ":00")
	d.Time = next.Add(scheduledjob.Delay(events.ProjectScheduledJob(s)))
	over := now.Sub(d.Time)
	if d.Late = over > late; d.Late {
		d.In = duration.HumanDuration(over) + " late"
		return d
	}
	d.In = duration.HumanDuration(max(0, -over))
	return d
}

// Problem explains why a ScheduledJob creates no Jobs; "" if it does, or if it shall not.
func Problem(s *v1alpha1.ScheduledJob, now time.Time) string {
	for _, kind := range []string{v1alpha1.StalledCondition, v1alpha1.BlockedCondition} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == "True" {
			return clean(c.Reason + ": " + c.Message)
		}
	}
	if paused(s) {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.SuspendedCondition)
		return clean(c.Reason + ": " + c.Message)
	}
	if s.Status.ObservedGeneration == 0 && now.Sub(s.CreationTimestamp.Time) > Untouched && !ptr.Deref(s.Spec.Suspend, false) {
		return "not taken up: it waits until jobstream runs in this cluster"
	}
	return ""
}

// paused reports whether pauseAfterFailures has paused the ScheduledJob.
func paused(s *v1alpha1.ScheduledJob) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.SuspendedCondition)
	return c != nil && c.Status == "True" && c.Reason == v1alpha1.ReasonFailedRuns
}

// Failed reports whether a run has not done its work: it failed, or was deleted before its end by anything but concurrencyPolicy.
func Failed(r *v1alpha1.EndedRun) bool {
	return r != nil && r.Result != string(events.RunComplete) && r.Reason != Replaced
}

// Replaced is the reason of a run that concurrencyPolicy has deleted.
const Replaced = "Replaced"

// lastReason describes why the last run has failed.
func lastReason(r *v1alpha1.EndedRun) string {
	switch {
	case r.Reason != "":
		return "last run: " + clean(r.Reason)
	case r.Result == missingRun:
		return "last run: deleted before its end"
	}
	return ""
}

// missingRun is the result of a Job that was deleted before its end.
const missingRun = "Missing"

// LastResult returns how the last Job ended; before any has, the latest verdict.
func LastResult(st *v1alpha1.ScheduledJobStatus) string {
	if st.LastRun != nil {
		return clean(st.LastRun.Result)
	}
	return clean(st.LastDecision)
}

// last returns LastResult with its age.
func (l *List) last(st *v1alpha1.ScheduledJobStatus) string {
	if st.LastRun == nil {
		return LastResult(st)
	}
	return LastResult(st) + " " + duration.HumanDuration(max(0, l.Now.Sub(st.LastRun.CompletionTime.Time))) + " ago"
}

// SuspendedBy describes who has suspended an object, from the value of the label; "" without one.
func SuspendedBy(whom string) string {
	if whom == "" {
		return ""
	}
	return "suspended by " + clean(whom)
}

// clean removes from an object's text what is unsafe to print on a terminal.
func clean(text string) string {
	const most = 500 // bytes
	return progress.Clean(text, most)
}
