package scheduledjob

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// A user may start a Job of the ScheduledJob by hand: "kubectl jobstream trigger" for now, "kubectl jobstream backfill" for a
// nominal time that has passed. This makes no nominal time due, so decidedUntil stays where it is. One status write lists the Job
// as active and records its verdict, or counts its end if that has come already:
//
//	New (state)  --->  status.recent + status.active  --->  counted
//
// A function that has lost its state finds Jobs that users have started, and has to know which of them are new. While the status has
// room for another verdict, it has every verdict that was ever given. After that, it still has how the Job ended that ended last.

// byHand reports whether a user has started the Job.
func byHand(r events.Run) bool { return r.Nominal.IsZero() || r.Manual }

// started returns when the Job was meant to run: the nominal time that it makes up for, or its creation.
func started(r events.Run) time.Time {
	if r.Nominal.IsZero() {
		return r.Created
	}
	return r.Nominal
}

// byHandVerdict returns the verdict on a Job that a user has started.
func byHandVerdict(r events.Run) v1alpha1.TickVerdict {
	v := v1alpha1.TickVerdict{Verdict: string(events.Started), Reason: events.ReasonManual, Time: metav1.NewTime(started(r)), Count: 1, JobName: r.Name, JobUID: r.UID}
	if !r.Nominal.IsZero() {
		v.Reason = events.ReasonBackfill
	}
	return v
}

// remembers reports whether the status has a verdict on the Job, or lists it.
func remembers(st *v1alpha1.ScheduledJobStatus, r events.Run) bool {
	for _, ref := range st.Active {
		if ref.UID == r.UID {
			return true
		}
	}
	return slices.ContainsFunc(st.Recent, func(v v1alpha1.TickVerdict) bool { return v.JobUID == r.UID })
}

// AwaitsVerdict reports whether a listed Job was started by a user and has no verdict yet. If the Job has finished and the status
// may have dropped its verdict, that is unknown, and AwaitsVerdict returns false.
func AwaitsVerdict(st *v1alpha1.ScheduledJobStatus, r events.Run) bool {
	return byHand(r) && (r.Result == "" || len(st.Recent) < v1alpha1.RecentVerdicts || endedLater(st, r)) && !remembers(st, r)
}

// endedLater reports whether the Job ended after all those that the status has counted. So it has not counted this one.
func endedLater(st *v1alpha1.ScheduledJobStatus, r events.Run) bool {
	return st.LastRun == nil || r.Finished.After(st.LastRun.CompletionTime.Time)
}

// unlisted returns the Jobs that users have started, that the status does not have yet, and whose times it has passed. A Job of a
// later nominal time gets the verdict of that time.
func (s State) unlisted(st *v1alpha1.ScheduledJobStatus, until time.Time) (out []Row) {
	for _, r := range s.rows() {
		if r.New && byHand(r.Run) && !r.Run.Nominal.After(until) && !remembers(st, r.Run) {
			out = append(out, r)
		}
	}
	return out
}

// waiting reports whether a Job that a user has started waits for its verdict.
func (s State) waiting() bool { return len(s.unlisted(&s.Object.Status, s.decidedUntil())) > 0 }

// enterByHand lists the Jobs that users have started, with their verdicts, as far as there is room for these.
func (b *book) enterByHand(unannounced int, until time.Time) {
	for _, r := range b.unlisted(&b.status, until) {
		if !b.room(unannounced) {
			return
		}
		unannounced++
		v := byHandVerdict(r.Run)
		b.status.Recent = append(b.status.Recent, v)
		b.status.LastDecision = v.Verdict
		b.report(false, "StartedByHand", "Saw job %s, which a user has started", r.Run.Name)
		if r.active() {
			b.list(r)
			continue
		}
		b.count(r)
	}
}
