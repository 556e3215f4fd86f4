// Package list sums up ScheduledJobs, a line each, with those first that need a user. It has no I/O and no clock: the same objects
// and time give the same lines.
//
//	list.go   the lines and their order
//	cells.go  what a cell says of one ScheduledJob; the overview says the same
package list

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/table"
	"github.com/jobstream/jobstream/internal/progress"
)

var (
	columns     = []string{"NAME", "SCHEDULE", "NEXT", "LAST", "ACTIVE", "MISSED"}
	wideColumns = []string{"ZONE", "NEXT TIME", "LAST JOB"}
)

// leastSchedule is the number of columns that a schedule gets on a terminal, however narrow.
const leastSchedule = 14

// View is how a List is shown.
type View struct {
	// Namespaces adds the column of the namespace, Wide those for which a terminal has no room.
	Namespaces, Wide bool
	// Style is that of the output.
	Style progress.Style
}

// List is a list of ScheduledJobs.
type List struct {
	// Now is the time from which ages are measured.
	Now time.Time
	// Zones loads a time zone by its name.
	Zones scheduledjob.Zones

	entries []entry
}

// entry is what the list keeps of one ScheduledJob.
type entry struct {
	object *v1alpha1.ScheduledJob
	rank   rank
	reason string
	next   Due
}

// rank orders ScheduledJobs: what needs a user most comes first.
type rank int

const (
	stuck  rank = iota // it creates no Jobs
	failed             // the run that ended last has failed
	missed             // nominal times were missed
	well
)

// Add adds a ScheduledJob.
func (l *List) Add(s *v1alpha1.ScheduledJob) {
	e := entry{object: s, rank: well, next: Next(s, l.Zones, l.Now)}
	switch why := Problem(s, l.Now); {
	case why != "":
		e.rank, e.reason = stuck, why
	case Failed(s.Status.LastRun):
		e.rank, e.reason = failed, lastReason(s.Status.LastRun)
	case s.Status.Missed > 0:
		e.rank = missed
	}
	l.entries = append(l.entries, e)
}

// sort puts the entries in order: by rank, then by the next time; those without one come last.
func (l *List) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), boolean(a.next.Time.IsZero(), b.next.Time.IsZero()), a.next.Time.Compare(b.next.Time),
			cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
	})
}

// boolean puts false before true.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Objects returns the ScheduledJobs in the order of the lines.
func (l *List) Objects() []*v1alpha1.ScheduledJob {
	l.sort()
	all := make([]*v1alpha1.ScheduledJob, len(l.entries))
	for i, e := range l.entries {
		all[i] = e.object
	}
	return all
}

// Lines returns a line for each ScheduledJob, after one with the names of the columns.
func (l *List) Lines(v View) []string {
	l.sort()
	names := columns
	if v.Namespaces {
		names = append([]string{"NAMESPACE"}, names...)
	}
	if v.Wide {
		names = append(slices.Clip(names), wideColumns...)
	}
	rows := make([]table.Row, len(l.entries))
	for i, e := range l.entries {
		rows[i] = l.row(e, v)
	}
	return table.Lines(append(slices.Clip(names), "REASON"), rows, v.Style)
}

func (l *List) row(e entry, v View) table.Row {
	s, st := e.object, &e.object.Status
	schedule := Schedule(s)
	if v.Style.Width > 0 { // several schedules must not take the room of all else
		schedule = progress.Style{Width: max(leastSchedule, v.Style.Width/4), Blocks: v.Style.Blocks}.Fit(schedule)
	}
	cells := []string{s.Name, schedule, e.next.In, l.last(st), fmt.Sprint(len(st.Active)), fmt.Sprint(st.Missed)}
	colour := [...]progress.Colour{stuck: progress.Red, failed: progress.Red, missed: progress.Yellow, well: progress.Normal}[e.rank]
	switch {
	case ptr.Deref(s.Spec.Suspend, false):
		cells[2] = cmp.Or(SuspendedBy(s.Labels[v1alpha1.SuspendedByLabel]), "suspended")
		colour = cmp.Or(colour, progress.Faint)
	case meta.IsStatusConditionTrue(st.Conditions, v1alpha1.FinishedCondition):
		cells[2] = "finished"
		colour = cmp.Or(colour, progress.Faint)
	case paused(s):
		cells[2] = "paused"
	case st.Queued > 0: // the next time is one of those that wait
		cells[2], e.reason = "queued", cmp.Or(e.reason, fmt.Sprintf("%d times wait for the end of an earlier Job", st.Queued))
	case e.next.Late:
		colour = cmp.Or(colour, progress.Yellow)
	case e.next.In != "":
		cells[2] = "in " + e.next.In
	}
	if v.Namespaces {
		cells = append([]string{s.Namespace}, cells...)
	}
	if v.Wide {
		job := ""
		if st.LastRun != nil {
			job = clean(st.LastRun.JobName)
		}
		cells = append(cells, Zone(s), e.next.Nominal, job)
	}
	return table.Row{Cells: append(cells, e.reason), Colour: colour}
}
