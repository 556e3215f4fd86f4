package job

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

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
	return s, append(out, s.clearUnplaced(false)...)
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
	return s, slices.Concat(out, s.clearUnplaced(true), prune(s))
}

// clearUnplaced removes the finalizers of unplaced Pods of a Job that is over. If the Job has finished, it also deletes strays,
// and those of its own that still run.
func (s *State) clearUnplaced(finished bool) (out []effect.Effect) {
	for _, u := range append(s.unplaced(true), s.unplaced(false)...) {
		p := u.Pod
		switch {
		case finished && (u.Stray || mine(s.Job, p) && !p.Terminal() && (p.Held || !p.Deleting)):
			out = append(out, u.remove())
		case p.Held:
			out = append(out, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		default:
			s.placed(p.UID, events.NoSerial)
		}
	}
	return out
}

// expires reports whether this function has to delete the Job some time after it has finished.
func (s State) expires(j events.Job) bool {
	return s.limits.DeleteExpired && j.TTLSecondsAfterFinished != nil
}

// expiry returns when this function has to delete a finished Job; zero for never.
func expiry(s State) time.Time {
	if !s.expires(s.Job) {
		return time.Time{}
	}
	return s.Job.Expires()
}

// expire deletes a finished Job whose time to live is over.
func expire(s State, now time.Time, at *effect.Wake) []effect.Effect {
	end := expiry(s)
	switch {
	case end.IsZero():
		return nil
	case now.Before(end):
		at.By(end)
		return nil
	}
	return []effect.Effect{effect.DeleteJob{Job: s.Job.Name, Version: s.Job.Version}}
}

// rests reports whether nothing is left to do for the Job.
func rests(s State) bool {
	if !s.Outbox.Empty() || s.Unread != "" {
		return false
	}
	if !s.Known {
		return !s.NeedsSync
	}
	clean := s.unsettled() == 0
	finished := s.Job.Finished() && !s.Crowded && expiry(s).IsZero() && len(prune(s)) == 0
	return s.Job.Foreign || clean && (s.Gone || finished)
}
