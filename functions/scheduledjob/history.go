package scheduledjob

import (
	"cmp"
	"slices"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// prune deletes finished Jobs beyond the history limits, those first that were created first, once the status remembers their end: so a Job
// that is deleted is never made again, and never forgotten, whatever is lost.
//
// It also deletes Jobs whose time was given up: a request that was under way then, and was done at last. The status lists
// every Job that runs, by the write that passes its time; one that it does not list, and that no user has started, is not wanted. The precondition is the
// observation, since a Job that has finished looks different.
func prune(s State) (out []effect.Effect) {
	for _, r := range s.rows() {
		if n := r.Run.Nominal; r.active() && !r.Run.Deleting && !n.IsZero() && !n.After(s.decidedUntil()) && !r.Run.Manual && !s.counts(r.Run.UID) {
			out = append(out, effect.DeleteRun{Name: r.Run.Name, UID: r.Run.UID, Version: r.Run.Version})
		}
	}
	for result, keep := range map[events.RunResult]int32{events.RunComplete: s.Object.SuccessfulJobs, events.RunFailed: s.Object.FailedJobs} {
		var done []events.Run
		for _, r := range s.rows() {
			if r.Run.Result == result && !r.Gone && !r.New && !r.Run.Deleting && !s.counts(r.Run.UID) && !r.Run.Nominal.After(s.decidedUntil()) {
				done = append(done, r.Run)
			}
		}
		// A Job that a user has just started is no older than the others, whatever time it is for.
		slices.SortStableFunc(done, func(a, b events.Run) int { return a.Created.Compare(b.Created) })
		for _, r := range done[:max(0, len(done)-int(keep))] {
			out = append(out, effect.DeleteRun{Name: r.Name, UID: r.UID})
		}
	}
	slices.SortFunc(out, func(a, b effect.Effect) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
