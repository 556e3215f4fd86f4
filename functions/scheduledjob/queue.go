package scheduledjob

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// queue makes the oldest times up to the last one due, as many as may wait, and one more if no Job is active: that one starts at once.
// The others came while the queue was full. Their verdicts wait for those of the times before them, as one.
//
//	active   waiting: queueLimit                   skipped: QueueFull
//	02:00    03:00 04:00 05:00                     06:00 to 09:00
func queue(s State, t Times, last time.Time) State {
	most := int(max(s.Object.QueueLimit, 1))
	if !s.busy(s.Due) {
		most++
	}
	for s.queued() < most {
		next, ok := t.Next(s.Until)
		if !ok || next.After(last) {
			return s
		}
		s = makeDue(s, t, next)
	}
	if !last.After(s.Until) {
		return s
	}
	return s.merge(pass(s, t, last, events.Skipped, events.ReasonQueueFull, "as many times as queueLimit allows waited already"))
}

// queued returns how many times wait for the end of an earlier Job.
func (s State) queued() (n int) {
	for _, d := range s.Due {
		if !d.Intended {
			n++
		}
	}
	return n
}

// merge joins the verdict that next has last with the one before it, if both are about a full queue and no nominal time lies between
// them: while a Job runs for hours, each time that is skipped would add one.
func (s State) merge(next State) State {
	n := len(next.Pending)
	if n < 2 || n != len(s.Pending)+1 || len(next.Due) > 0 && next.Due[len(next.Due)-1].Nominal.After(next.Pending[n-2].Time.Time) {
		return next
	}
	a, b := &next.Pending[n-2], next.Pending[n-1]
	if a.Reason != b.Reason || a.Verdict != b.Verdict || !last(*a).Before(b.Time.Time) {
		return next
	}
	until := last(b)
	a.Count += b.Count
	a.Until = b.Until
	if a.Until == nil {
		a.Until = &b.Time
	}
	a.Until.Time = until
	next.Pending = slices.Delete(next.Pending, n-1, n)
	return next
}

// uncounted reports whether a Job of an earlier time, or one that a user has started, has ended, and the status does not show how.
func (s State) uncounted(nominal time.Time) bool {
	for uid, r := range s.Runs {
		if !r.active() && (s.counts(uid) || r.New || r.Run.Nominal.After(s.decidedUntil()) && r.Run.Nominal.Before(nominal)) {
			return true
		}
	}
	return false
}

// waits reports whether the Job of a due time has to wait: for the end of an earlier one, or with pauseAfterFailures for its count.
func (s State) waits(d Due, earlier []Due) bool {
	return s.Object.ConcurrencyPolicy == v1alpha1.QueueConcurrent && s.busy(earlier) || s.Object.PauseAfterFailures > 0 && s.uncounted(d.Nominal)
}
