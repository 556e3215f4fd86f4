package job

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/functions/effect"
)

// plan decides from the state alone. Effects that the API server has just refused are delayed, and the timer is set to the
// earliest of all times that the plan waits for.
func plan(s State, now time.Time) (State, []effect.Effect) {
	var at effect.Wake
	var out []effect.Effect
	if s.Crowded && !s.piecemeal() && s.unsettled() <= roomAgain {
		s = s.lookAgain()
	}
	switch {
	case !s.Known:
		out = s.begin(now, &at)
	case s.Job.Foreign:
		s.Kept = nil
		return s, nil
	case s.Gone || s.Job.Deleting:
		s, out = removeFinalizers(s)
		due := func(e effect.Effect) bool { return !s.Waits.Blocked(e, now) }
		if s.Crowded && s.unsettled() < s.mostUnsettled() && !slices.ContainsFunc(out, due) {
			s = s.lookAgain()
			out = s.begin(now, &at)
		}
	case s.Job.Finished():
		s, out = cleanUp(s)
		out = append(out, expire(s, now, &at)...)
	default:
		s, out = track(s, now, &at)
	}
	if s.Known { // before the inventory, what is wanted is not known
		out = append(out, s.Request(now)...)
		s = clearBackoff(s, out)
	}
	s.retract()
	s.Outbox.Judge(s.Known, now, s.limits.Reannounce)
	out = append(out, s.Outbox.Announce(s.Job)...)
	if s.Outbox.Empty() {
		s.accept(effect.KindAnnounce, "")
	}
	out = slices.DeleteFunc(out, func(e effect.Effect) bool { return s.Waits.Blocked(e, now) })
	out = atOnce(out, s.limits.MaxPodChanges)
	at.By(s.Waits.End(now))
	if s.Job.Options.FailedPodsLimit == nil {
		s.Kept = nil
	}
	return s, append(out, at.Timer()...)
}

// begin takes inventory. If the State has become too large to be saved, it stands still for a while before.
func (s *State) begin(now time.Time, at *effect.Wake) []effect.Effect {
	if s.NeedsSync && now.Before(s.Overgrown.Until) {
		return standStill(*s, now, at)
	}
	return s.Request(now)
}

// atOnce omits the deletions that are too many for one plan. The observations that follow wake the next plan for them.
func atOnce(effects []effect.Effect, most int) []effect.Effect {
	return slices.DeleteFunc(effects, func(e effect.Effect) bool {
		if _, deletes := e.(effect.DeletePod); !deletes {
			return false
		}
		most--
		return most < 0
	})
}

// track reads top to bottom like the algorithm of KEP-2307, in the order in which Kubernetes 1.36 evaluates (syncJob):
// existing verdict, failure, fleet, completion, status.
func track(s State, now time.Time, at *effect.Wake) (State, []effect.Effect) {
	s.accountFor()
	s = settle(s)
	s, out := claimPods(s, now)                  // which Pods are the Job's
	c := tally(s)                                // KEP step 1: what has ended, what runs
	v := verdict(s, c, now)                      // is it over?
	s, c, v = arrange(s, c, v, now)              // the status shows at once what is intended or marked surplus
	out = append(out, removeCounted(s, c, v)...) // KEP step 3: only what the observed status lists
	out = append(out, command(s, c, now, at)...) // the fleet
	out = append(out, prune(s)...)
	if !s.Job.Suspended && !s.haveParameters() {
		out = append(out, effect.ReadParameters{ConfigMap: s.Job.Options.Parameters})
	}
	s = clearBackoff(s, out)
	if v.kind == "" {
		at.By(deadline(s.Job))
		if !s.Job.Suspended && int(c.active) < wanted(s.Job, c) {
			at.By(backoffEnds(s, c, now))
			at.By(indexesRest(s, c, now))
		}
	}
	if want, differs := account(s, c, v, now, at); differs && !s.starting(c, out) { // KEP steps 2 and 4: list UIDs, count what is no longer held
		if write, due := writeStatus(s, want, c, now, at); due {
			s.Written = now
			for _, p := range s.unreported(c.ignored) {
				s.Reported = s.Reported.With(p.Serial)
			}
			out = append([]effect.Effect{write}, out...)
		}
	}
	return s, out
}
