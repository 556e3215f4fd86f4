package scheduledjob

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// prune deletes finished Jobs beyond the history limits, and Jobs that are not wanted.
func prune(s State, now time.Time, at *effect.Wake) (out []effect.Effect) {
	for _, r := range s.unwanted() { // at the observed version, which changes when the Job finishes
		out = append(out, effect.DeleteRun{Name: r.Run.Name, UID: r.Run.UID, Version: r.Run.Version})
	}
	for _, r := range s.beyondLimits() {
		if !r.mayReturn(now, at) {
			out = append(out, effect.DeleteRun{Name: r.Run.Name, UID: r.Run.UID})
		}
	}
	slices.SortFunc(out, func(a, b effect.Effect) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// unwanted returns the Jobs whose time was given up while a request was under way that succeeded in the end. The status lists every
// running Job from the write on that passes its time. So a running Job of such a time that is not listed, and that no user has
// started, is not wanted.
func (s State) unwanted() (out []Row) {
	for _, r := range s.rows() {
		if n := r.Run.Nominal; r.active() && !r.Run.Deleting && !n.IsZero() && !n.After(s.decidedUntil()) && !r.Run.Manual && !s.counts(r.Run.UID) {
			out = append(out, r)
		}
	}
	return out
}

// beyondLimits returns the finished Jobs beyond the history limits, the earliest created first, once the status has counted their end. So
// a deleted Job is never created again and always counted, whatever is lost.
func (s State) beyondLimits() (out []Row) {
	for result, keep := range map[events.RunResult]int32{events.RunComplete: s.Object.SuccessfulJobs, events.RunFailed: s.Object.FailedJobs} {
		var done []Row
		for _, r := range s.rows() {
			if r.Run.Result == result && !r.Gone && !r.New && !r.Run.Deleting && !s.counts(r.Run.UID) && !r.Run.Nominal.After(s.decidedUntil()) {
				done = append(done, r)
			}
		}
		// A Job that a user has just started is no older than the others, whatever time it is for.
		slices.SortStableFunc(done, func(a, b Row) int { return a.Run.Created.Compare(b.Run.Created) })
		out = append(out, done[:max(0, len(done)-int(keep))]...)
	}
	return out
}
