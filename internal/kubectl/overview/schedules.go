package overview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// late is how far past its time a due Job must be before it is called late.
const late = 10 * time.Second

var scheduleColumns = []string{"SCHEDULEDJOB", "SCHEDULE", "ZONE", "NEXT", "IN", "LAST", "ACTIVE", "MISSED", "REASON"}

// The order of ScheduledJobs: those with problems, those that are due, those that are suspended.
const (
	rankProblem = iota
	rankDue
	rankSuspended
)

// SawScheduledJob adds a ScheduledJob. A finished one is only counted.
func (o *Overview) SawScheduledJob(s *v1alpha1.ScheduledJob, zones scheduledjob.Zones) {
	st := &s.Status
	if meta.IsStatusConditionTrue(st.Conditions, v1alpha1.FinishedCondition) {
		o.finished++
		return
	}
	l := line{namespace: s.Namespace, name: s.Name, rank: rankDue}
	schedule, zone := clean(s.Spec.Schedule), clean(ptr.Deref(s.Spec.TimeZone, "UTC"))
	if at := s.Spec.RunAt; at != nil {
		schedule = "once"
	}
	why := problem(s)
	next, in := o.next(s, zones)
	switch {
	case ptr.Deref(s.Spec.Suspend, false):
		o.suspended++
		l.rank, l.state = rankSuspended, "suspended"
		next, in = cmp.Or(by(s.Labels[v1alpha1.SuspendedByLabel]), "suspended"), ""
	case why != "":
		l.rank = rankProblem
	case st.ObservedGeneration == 0 && o.Now.Sub(s.CreationTimestamp.Time) > untouched:
		l.rank, why = rankProblem, "not taken up: it waits until jobstream runs in this cluster"
	}
	if st.NextScheduleTime != nil {
		l.at = st.NextScheduleTime.Time
	}
	l.cells = []string{s.Name, schedule, zone, next, in, clean(lastResult(st)), fmt.Sprint(len(st.Active)), fmt.Sprint(st.Missed), why}
	o.schedules = append(o.schedules, l)
}

// lastResult returns how the last Job ended; before any has, the latest verdict.
func lastResult(st *v1alpha1.ScheduledJobStatus) string {
	if st.LastRun != nil {
		return st.LastRun.Result
	}
	return st.LastDecision
}

// next returns when the next Job is created, on the clock of the schedule's zone, and how long that is from now.
func (o *Overview) next(s *v1alpha1.ScheduledJob, zones scheduledjob.Zones) (at, in string) {
	if s.Status.NextScheduleTime == nil {
		return "", ""
	}
	next := s.Status.NextScheduleTime.UTC()
	if zone, err := zones(ptr.Deref(s.Spec.TimeZone, "")); err == nil {
		next = next.In(zone)
	}
	at = next.Format("2006-01-02 15:04:05")
	at = strings.TrimSuffix(at, ":00")
	due := next.Add(scheduledjob.Delay(events.ProjectScheduledJob(s)))
	if over := o.Now.Sub(due); over > late {
		return at, duration.HumanDuration(over) + " late"
	}
	return at, duration.HumanDuration(max(0, due.Sub(o.Now)))
}

// problem explains why a ScheduledJob creates no Jobs; "" if it does.
func problem(s *v1alpha1.ScheduledJob) string {
	for _, kind := range []string{v1alpha1.StalledCondition, v1alpha1.BlockedCondition} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == "True" {
			return clean(c.Reason + ": " + c.Message)
		}
	}
	return ""
}

// schedulesTitle returns the title with the number of ScheduledJobs, "" if there are none.
func (o *Overview) schedulesTitle() string {
	all := o.ScheduledJobs()
	if all == 0 {
		return ""
	}
	text := fmt.Sprintf("ScheduledJobs: %d", all)
	if o.suspended > 0 {
		text += fmt.Sprintf(", %d suspended", o.suspended)
	}
	if o.finished > 0 {
		text += fmt.Sprintf(", %d finished", o.finished)
	}
	return text
}

// ScheduledJobs returns the number of ScheduledJobs.
func (o *Overview) ScheduledJobs() int { return len(o.schedules) + o.finished }
