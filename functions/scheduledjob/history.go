package scheduledjob

import (
	"cmp"
	"slices"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// prune deletes finished Jobs beyond the history limits, the oldest first, once the status remembers their end: so a Job
// that is deleted is never made again, and never forgotten, whatever is lost.
func prune(s State) (out []effect.Effect) {
	for result, keep := range map[events.RunResult]int32{events.RunComplete: s.Object.SuccessfulJobs, events.RunFailed: s.Object.FailedJobs} {
		var done []events.Run
		for _, r := range s.rows() {
			if r.Run.Result == result && !r.Gone && !r.Run.Deleting && !s.counts(r.Run.UID) && !r.Run.Nominal.After(s.decidedUntil()) {
				done = append(done, r.Run)
			}
		}
		for _, r := range done[:max(0, len(done)-int(keep))] {
			out = append(out, effect.DeleteRun{Name: r.Name, UID: r.UID})
		}
	}
	slices.SortFunc(out, func(a, b effect.Effect) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
