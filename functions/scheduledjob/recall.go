package scheduledjob

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// recall gives a verdict to observed Jobs that match no due time. They were created before the state was lost, for a schedule
// that has been changed since; or they were created after all, when their time had been given up.
func recall(s State, t Times) State {
	for _, r := range s.rows() {
		n := r.Run.Nominal
		covered := !n.After(s.Until) || t != nil && t.Count(s.Until, n) == 0
		due := slices.ContainsFunc(s.Due, func(d Due) bool { return d.Nominal.Equal(n) })
		said := slices.ContainsFunc(s.Pending, func(v v1alpha1.TickVerdict) bool { return v.JobUID == r.Run.UID })
		if covered && !due && !said && n.After(s.decidedUntil()) && s.retract(n, t) {
			s.sayStarted(r.Run)
			s.Until = later(s.Until, n)
		}
	}
	return s
}

// recallSuspended gives a verdict to Jobs of a suspended ScheduledJob that were created before the state was lost, because the
// status has to list running Jobs. The times between them, which no Job will make up for, are skipped. A Job of a time that is
// still to come by this worker's clock waits for it.
func recallSuspended(s State, t Times, now time.Time, at *effect.Wake) State {
	for _, r := range s.rows() {
		switch n := r.Run.Nominal; {
		case !n.After(s.Until):
		case n.After(now):
			at.By(n)
		default:
			reason := stoppedBy(s.Object)
			s = pass(s, t, n, events.Skipped, reason, whyStopped(reason))
		}
	}
	return s
}

// retract removes the verdict on a nominal time that is not in the status yet, because its Job has been observed after all and a
// time has one verdict. A verdict on a range is cut in two, which requires a timetable.
func (s *State) retract(n time.Time, t Times) bool {
	i := slices.IndexFunc(s.Pending, func(v v1alpha1.TickVerdict) bool { return !n.Before(v.Time.Time) && !n.After(last(v)) })
	if i < 0 {
		return true
	}
	v := s.Pending[i]
	if v.Until != nil && t == nil {
		return false
	}
	s.Pending = slices.Delete(s.Pending, i, i+1)
	if v.Until == nil {
		return true
	}
	if before, ok := of(v, t).Prev(n.Add(-time.Second)); ok && !before.Before(v.Time.Time) {
		s.sayOf(between(v, t, v.Time.UTC(), before))
	}
	if after, ok := of(v, t).Next(n); ok && !after.After(last(v)) {
		s.sayOf(between(v, t, after, last(v)))
	}
	return true
}

// of returns the times that a verdict on a range is about.
func of(v v1alpha1.TickVerdict, t Times) Times {
	if out := excluded(t); out != nil && v.Reason == events.ReasonExcluded {
		return out
	}
	return t
}

// between returns the part of a verdict that covers the nominal times from first to last.
func between(v v1alpha1.TickVerdict, t Times, first, last time.Time) v1alpha1.TickVerdict {
	t = of(v, t)
	v.Time, v.Until, v.Count = metav1.NewTime(first.UTC()), nil, t.Count(first.Add(-time.Second), last)
	if v.Count > 1 {
		v.Until = &metav1.Time{Time: last.UTC()}
	}
	return v
}
