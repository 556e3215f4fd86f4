package scheduledjob

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// plan decides from the state alone. Effects that the API server has just refused are delayed, and the timer is set to the
// earliest of all times that the plan waits for.
func plan(s State, zones Zones, now time.Time) (State, []effect.Effect) {
	var at effect.Wake
	var out []effect.Effect
	switch {
	case s.Gone || s.Known && s.Object.Deleting: // the garbage collector deletes the Jobs
		s.Due, s.Pending, s.Waits, s.Unread = nil, nil, nil, ""
		return s, nil
	case !s.Known:
		out = append(s.Request(now), begin(s, zones, now)...)
	default:
		s, out = decide(s, zones, now, &at)
		out = append(out, s.Request(now)...)
	}
	s.Waits.Forget(out)
	out = slices.DeleteFunc(out, func(e effect.Effect) bool { return s.Waits.Blocked(e, now) })
	if !rests(s) {
		at.By(s.Waits.End(now))
	}
	return s, append(out, at.Timer()...)
}

// decide reads top to bottom like the life of a nominal time. Only verdicts in the status are announced, and Jobs are deleted
// only when the status has counted their end.
func decide(s State, zones Zones, now time.Time, at *effect.Wake) (State, []effect.Effect) {
	var out []effect.Effect
	t, problem := Timetable(s.Object, zones)
	if s.begun() {
		if past := s.pastRunAt(); past != nil {
			t, problem = nil, past
		}
		s = change(s, t, now)
		switch {
		case problem != nil:
		case s.Object.Stopped():
			s = recallSuspended(s, t, now, at)
		default:
			s = cover(s, t, now)
		}
		s, out = start(s, now, at)
		s = recall(s, t)
	}
	s.forget(t)
	out = append(append(out, announce(s)...), prune(s, now, at)...)
	write, differs := account(s, t, problem, now)
	if differs {
		out = append(out, write)
	}
	// The trigger's clock was ahead of this one when it sent the due notice, or the start is delayed.
	if next, ok := upcoming(s, t); ok && (!next.After(s.Noticed) || !next.After(now)) {
		if start := next.Add(Delay(s.Object)); start.After(now) {
			at.By(start)
		}
	}
	return s, append(out, expire(s, now, at)...)
}

// begin writes the first status of a ScheduledJob. From then on every nominal time gets a verdict.
func begin(s State, zones Zones, now time.Time) []effect.Effect {
	if s.begun() || s.Object.UID == "" || s.Object.Deleting {
		return nil
	}
	t, problem := Timetable(s.Object, zones)
	write, _ := account(s, t, problem, now)
	return []effect.Effect{write}
}

// announce publishes the verdicts in the status until the bus has confirmed them. After a loss of the state it publishes them
// once more, word for word.
func announce(s State) (out []effect.Effect) {
	for _, v := range s.Object.Status.Recent {
		if t := public(s.Object, v); !v.Announced && !s.Acked[events.PublicID(t)] {
			out = append(out, effect.Announce{Event: t})
		}
	}
	return out
}

// rests reports whether nothing is left to do for the ScheduledJob. While a next time is to come, there is: keeping the state
// saves an inventory then.
func rests(s State) bool {
	if !s.Known {
		return !s.NeedsSync && (s.Object.UID == "" || s.Object.Deleting || over(s.Object))
	}
	return s.Gone || s.Object.Deleting || s.Unread == "" && over(s.Object) && s.Object.TTLSecondsAfterFinished == nil && !s.waiting() &&
		len(s.Pending)+len(s.Due)+len(s.Object.Status.Active)+len(announce(s))+len(s.unwanted())+len(s.beyondLimits()) == 0
}

// over reports whether a ScheduledJob that runs once has done so, and no user has changed it since.
func over(j events.ScheduledJob) bool {
	return holds(j, v1alpha1.FinishedCondition) && j.Status.ObservedGeneration == j.Generation
}

// upcoming returns the next nominal time that is not covered.
func upcoming(s State, t Times) (time.Time, bool) {
	if t == nil || s.Object.Stopped() || !s.begun() {
		return time.Time{}, false
	}
	return t.Next(s.Until)
}

// expire deletes a ScheduledJob that has run once, when its time to live is over and every verdict has been announced.
func expire(s State, now time.Time, at *effect.Wake) []effect.Effect {
	end := s.Object.Expires()
	if end.IsZero() || len(s.Pending)+len(announce(s)) > 0 || s.waiting() {
		return nil
	}
	if now.Before(end) {
		at.By(end)
		return nil
	}
	return []effect.Effect{effect.DeleteScheduledJob{ScheduledJob: s.Object.Name, Version: s.Object.Version}}
}
