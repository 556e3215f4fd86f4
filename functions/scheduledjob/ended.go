package scheduledjob

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// count counts the end of a Job, and records how it ended.
func (b *book) count(r Row) {
	st, name := &b.status, r.Run.Name
	switch r.Run.Result {
	case events.RunComplete:
		st.Successful++
		st.ConsecutiveFailures = 0
		if end := metav1.NewTime(r.Run.Finished); st.LastSuccessfulTime == nil || st.LastSuccessfulTime.Before(&end) {
			st.LastSuccessfulTime = &end
		}
		b.report(false, "SawCompletedJob", "Saw completed job: %s, condition: Complete", name)
	case events.RunFailed:
		st.Failed++
		if b.Object.PauseAfterFailures > 0 && st.ConsecutiveFailures < math.MaxInt32 {
			st.ConsecutiveFailures++
		}
		b.report(false, "SawCompletedJob", "Saw completed job: %s, condition: Failed", name)
	default: // its result is unknown
		st.Failed++
		r.Run.Result, r.Run.Finished = missing, b.now.Truncate(time.Second)
		if r.Run.Deleting && b.Object.ConcurrencyPolicy == v1alpha1.ReplaceConcurrent {
			r.Run.Reason = "Replaced" // the deletion was reported
		} else {
			b.report(true, "MissingJob", "Active job went missing: %s; it counts as failed", name)
		}
	}
	b.ended(r.Run)
}

// missing is the result of a Job that was deleted before its end.
const missing events.RunResult = "Missing"

// ended records how a Job ended: with its verdict, and as the last one if no other ended later.
func (b *book) ended(r events.Run) {
	for i := range b.status.Recent {
		if v := &b.status.Recent[i]; v.JobUID == r.UID && v.JobName == r.Name {
			v.Result, v.CompletionTime = string(r.Result), &metav1.Time{Time: r.Finished}
			if r.Nominal.IsZero() && v.Reason != events.ReasonManual { // no observation of the Job is left
				r.Nominal = v.Time.UTC()
			}
		}
	}
	if l := b.status.LastRun; l != nil && r.Finished.Before(l.CompletionTime.Time) {
		return
	}
	b.status.LastRun = &v1alpha1.EndedRun{JobName: r.Name, JobUID: r.UID, ScheduledTime: given(r.Nominal), Result: string(r.Result), Reason: r.Reason,
		StartTime: given(r.Started), CompletionTime: metav1.Time{Time: r.Finished}}
}

// given returns nil for the zero time.
func given(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
