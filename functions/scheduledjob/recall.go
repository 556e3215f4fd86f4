package scheduledjob

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// recall gives their verdict to Jobs that have turned up and that nothing due stands for: made before our memory was lost, for
// a schedule that has been changed since; or made after all, when their time had been given up.
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

// recallSuspended gives their verdicts to Jobs of a suspended ScheduledJob that were made before our memory was lost, and to the
// times between them, which nobody will make up for: the status has to list what runs. One of a time that has not come yet, by
// our clock, waits for it.
func recallSuspended(s State, t Times, now time.Time, at *effect.Wake) State {
	for _, r := range s.rows() {
		switch n := r.Run.Nominal; {
		case !n.After(s.Until):
		case n.After(now):
			at.By(n)
		default:
			s = pass(s, t, n, events.Skipped, "Suspended", "the ScheduledJob was suspended")
		}
	}
	return s
}

// retract takes back what was said about a nominal time and does not stand in the status yet: its Job has turned up after all,
// and a time has one verdict. One that is about a range is cut in two, which takes a timetable.
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
	if before, ok := t.Prev(n.Add(-time.Second)); ok && !before.Before(v.Time.Time) {
		s.sayOf(between(v, t, v.Time.UTC(), before))
	}
	if after, ok := t.Next(n); ok && !after.After(last(v)) {
		s.sayOf(between(v, t, after, last(v)))
	}
	return true
}

// between is the part of a verdict that is about the nominal times from first to last.
func between(v v1alpha1.TickVerdict, t Times, first, last time.Time) v1alpha1.TickVerdict {
	v.Time, v.Until, v.Count = metav1.NewTime(first.UTC()), nil, t.Count(first.Add(-time.Second), last)
	if v.Count > 1 {
		v.Until = &metav1.Time{Time: last.UTC()}
	}
	return v
}
