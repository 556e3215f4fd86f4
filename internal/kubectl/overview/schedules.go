package overview

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/list"
)

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
	why := list.Problem(s, o.Now)
	due := list.Next(s, zones, o.Now)
	next, in := due.Nominal, due.In
	switch {
	case ptr.Deref(s.Spec.Suspend, false):
		o.suspended++
		l.rank, l.state = rankSuspended, "suspended"
		next, in = cmp.Or(list.SuspendedBy(s.Labels[v1alpha1.SuspendedByLabel]), "suspended"), ""
	case why != "":
		l.rank = rankProblem
	}
	if st.NextScheduleTime != nil {
		l.at = st.NextScheduleTime.Time
	}
	l.cells = []string{s.Name, list.Schedule(s), list.Zone(s), next, in, list.LastResult(st), fmt.Sprint(len(st.Active)), fmt.Sprint(st.Missed), why}
	o.schedules = append(o.schedules, l)
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
