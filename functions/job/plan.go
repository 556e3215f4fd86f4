package job

import (
	"maps"
	"slices"
	"strconv"
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
		s, out = ask(s, now, &at)
	case s.Job.Foreign:
		s.Kept = nil
		return s, nil
	case s.Gone || s.Job.Deleting:
		s, out = removeFinalizers(s)
		if s.Crowded && s.unsettled() < s.mostUnsettled() && s.allRest(out, now) {
			s, out = ask(s.lookAgain(), now, &at)
		}
	case s.Job.Finished():
		s, out = cleanUp(s)
		out = append(out, expire(s, now, &at)...)
	default:
		s, out = track(s, now, &at)
	}
	if s.Unread != "" {
		out = append(out, effect.TakeInventory{ID: s.Unread, Job: s.Name})
	}
	if s.Known { // before the inventory, what is wanted is not known
		s = clearBackoff(s, out)
	}
	s.Outbox.judge(s.Known, now, s.limits.Reannounce)
	out = append(out, s.announce()...)
	if s.Outbox.empty() {
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

// allRest reports whether all of the effects are delayed.
func (s State) allRest(effects []effect.Effect, now time.Time) bool {
	return !slices.ContainsFunc(effects, func(e effect.Effect) bool { return !s.Waits.Blocked(e, now) })
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
	s, out := claimPods(s, now) // which Pods are the Job's
	c := tally(s)               // KEP step 1: what has ended, what runs
	v := verdict(s, c, now)     // is it over?
	s, v = arrange(s, v, c, now)
	c = tally(s)                                 // the status shows at once what was just intended or marked surplus
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
	if want, differs := account(s, c, v, now); differs { // KEP steps 2 and 4: list UIDs, count what was released
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

// clearBackoff drops refusals of effects that the plan no longer wants.
func clearBackoff(s State, wanted []effect.Effect) State {
	s.Waits.Forget(wanted)
	for _, kind := range s.Waits.Kinds() {
		wants := func(e effect.Effect) bool { return e.Kind() == kind }
		// These may be wanted and delayed for other reasons than a refusal.
		announce := kind == (effect.Announce{}).Kind()
		write := kind == (effect.WriteJobStatus{}).Kind() && s.Known && !s.Gone
		create := kind == (effect.CreatePod{}).Kind() && slices.ContainsFunc(slices.Collect(maps.Values(s.Pods)), func(r Row) bool { return r.intended() && !r.Withdrawn })
		if !announce && !write && !create && !slices.ContainsFunc(wanted, wants) {
			s.accept(kind, "")
		}
	}
	return s
}

// ask takes inventory under an ID of its own: the answer to a request of a lost state proves nothing.
//
// It asks only after an event that may need an inventory. Otherwise the late deletion of a Job or a Pod that was settled long ago
// would cost a list of the whole cluster.
func ask(s State, now time.Time, at *effect.Wake) (State, []effect.Effect) {
	if !s.NeedsSync {
		return s, nil
	}
	if now.Before(s.Overgrown.Until) {
		return s, lieLow(s, now, at)
	}
	if s.Asked == "" {
		s.Asked = strconv.FormatInt(now.UnixNano(), 36)
	}
	return s, []effect.Effect{effect.TakeInventory{ID: s.Asked, Job: s.Name}}
}

// removeFinalizers removes the finalizers of the Pods of a Job that is gone or being deleted, and counts nothing (KEP-2307,
// "Deleted Jobs"). Whether the Pods live on depends on how the Job was deleted.
func removeFinalizers(s State) (State, []effect.Effect) {
	var out []effect.Effect
	for _, serial := range s.serials() {
		if r := s.Pods[serial]; r.held() {
			out = append(out, effect.RemoveFinalizer{Name: r.Pod.Name, UID: r.Pod.UID})
		} else {
			s.settleSerial(serial)
		}
	}
	return s, append(out, s.releaseUnplaced(false)...)
}

// cleanUp removes what is left of a Job that is Complete or Failed: none of its Pods may stay held, and none may run on.
func cleanUp(s State) (State, []effect.Effect) {
	var out []effect.Effect
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		switch {
		case r.held() && r.live() && mine(s.Job, r.Pod):
			out = append(out, effect.DeletePod{Name: r.Pod.Name, UID: r.Pod.UID, Version: r.Pod.Version, RemoveFinalizer: true})
		case r.held():
			out = append(out, effect.RemoveFinalizer{Name: r.Pod.Name, UID: r.Pod.UID})
		case r.live() && !r.Pod.Deleting && mine(s.Job, r.Pod):
			out = append(out, effect.DeletePod{Name: r.Pod.Name, UID: r.Pod.UID})
		default:
			s.settleSerial(serial)
		}
	}
	return s, slices.Concat(out, s.releaseUnplaced(true), prune(s))
}

// rests reports whether nothing is left to do for the Job.
func rests(s State) bool {
	if !s.Outbox.empty() || s.Unread != "" {
		return false
	}
	if !s.Known {
		return !s.NeedsSync
	}
	clean := s.unsettled() == 0
	finished := s.Job.Finished() && !s.Crowded && expiry(s).IsZero() && len(prune(s)) == 0
	return s.Job.Foreign || clean && (s.Gone || finished)
}

// settle forgets Pods that no longer matter: released and ended, or gone. The observed status may still list their UIDs; a listed
// UID that is not held is one that may be counted.
func settle(s State) State {
	var over []int
	for serial, r := range s.Pods {
		if r.Gone || r.Pod.UID != "" && !r.Pod.Held && r.Pod.Terminal() && !r.Pod.Orphan {
			over = append(over, serial)
		}
	}
	slices.Sort(over) // so that, if too many ends of Pods are due, equal states drop the same ones
	for _, serial := range over {
		s.settleSerial(serial)
	}
	return s
}
