package scheduledjob

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// start creates the Jobs that are due, in order, or gives a verdict with the reason why not.
func start(s State, now time.Time, at *effect.Wake) (State, []effect.Effect) {
	var out []effect.Effect
	var left []Due
	for _, d := range s.Due {
		r, seen := s.runAt(d.Nominal)
		switch {
		case seen:
			if d.Again.After(r.Again) {
				r.Again = d.Again
				s.put(r)
			}
			s.sayStarted(r.Run)
			continue
		case d.Withdrawn != "" && d.Absent:
			s.unmade(d)
			continue
		case d.Intended && d.Withdrawn == "" && (hopeless(d.Refused) || late(s.Object, d.Nominal, now)):
			d.withdraw("Deadline", now)
			out = append(out, s.search(d, now, at)...)
		case d.Withdrawn != "":
			out = append(out, s.search(d, now, at)...)
		case late(s.Object, d.Nominal, now):
			s.say(events.Missed, "Deadline", "it could not be started before its deadline", d.Nominal)
			continue
		case d.Intended:
			create := s.create(d, at)
			if !s.Waits.Blocked(create, now) {
				d.Again = now
			}
			out = append(out, create)
		case s.waits(d, left):
			s.wake(d, at)
		case s.Object.ConcurrencyPolicy == v1alpha1.ForbidConcurrent && s.busy(left):
			s.say(events.Skipped, "Overlap", "an earlier Job was still active, and concurrencyPolicy is Forbid", d.Nominal)
			continue
		case s.Object.ConcurrencyPolicy == v1alpha1.ReplaceConcurrent && s.busy(left):
			out = append(out, s.replace(now, at)...)
			s.wake(d, at)
		default:
			create := s.create(d, at)
			d.Intended = !s.Waits.Blocked(create, now) // what is not tried yet need not be searched for when a pause withdraws it
			out = append(out, create)
		}
		left = append(left, d)
	}
	s.Due = left
	return s, out
}

func (s State) create(d Due, at *effect.Wake) effect.Effect {
	s.wake(d, at)
	return effect.CreateJob{ScheduledJob: s.Object.Name, Name: childName(s.Object.Name, d.Nominal), Nominal: d.Nominal, Generation: s.Object.Generation}
}

// wake requests a plan when the deadline is over.
func (s State) wake(d Due, at *effect.Wake) {
	if after, ok := deadline(s.Object); ok {
		at.By(d.Nominal.Add(Delay(s.Object)).Add(after).Add(time.Millisecond))
	}
}

// busy reports whether a Job is active, or may have been created for an earlier due time.
func (s State) busy(earlier []Due) bool {
	for _, r := range s.Runs {
		if r.active() {
			return true
		}
	}
	return slices.ContainsFunc(earlier, func(d Due) bool { return d.Intended })
}

// replace deletes the active Jobs. They are deleted in the foreground, after their Pods, so that two never run at once. Each is
// deleted only after the status has listed it, because no other record shows that it has started.
func (s State) replace(now time.Time, at *effect.Wake) (out []effect.Effect) {
	for _, r := range s.rows() {
		if r.active() && !r.Run.Deleting && s.counts(r.Run.UID) && !r.mayReturn(now, at) {
			out = append(out, effect.DeleteRun{Name: r.Run.Name, UID: r.Run.UID, Version: r.Run.Version, Foreground: true})
		}
	}
	return out
}

// hopeless reports whether the API server will refuse the Job for the same reason until the spec changes.
func hopeless(reason string) bool { return reason == string(metav1.StatusReasonInvalid) }

// withdraw gives up an intended Job, which may have been created, unless it is observed.
func (d *Due) withdraw(reason string, now time.Time) {
	d.Withdrawn, d.Search, d.Since = reason, strconv.FormatInt(now.UnixNano(), 36), now
}

// underWay is how long a request for a Job may be under way after it was decided: the engine sends no request that is older than
// a second and a half, and each ends after fifteen.
const underWay = 17 * time.Second

// mayReturn reports whether a request that is still under way would create the Job a second time if it were deleted now.
func (r Row) mayReturn(now time.Time, at *effect.Wake) bool {
	over := r.Again.Add(underWay)
	if r.Again.IsZero() || !now.Before(over) {
		return false
	}
	at.By(over)
	return true
}

// search looks for a withdrawn Job once no request is under way any more that could create it. If its creation was decided once and
// refused, none is, so the search need not wait; a refusal of a later try says nothing about the request of another reconciler.
func (s State) search(d Due, now time.Time, at *effect.Wake) []effect.Effect {
	last := d.Again
	if d.Refused == "" {
		last = d.Since
	}
	if over := last.Add(underWay); !last.IsZero() && now.Before(over) {
		at.By(over)
		return nil
	}
	return []effect.Effect{effect.FindRun{Name: childName(s.Object.Name, d.Nominal), ID: d.Search}}
}

// unmade gives the verdict on an intended Job that was never created.
func (s *State) unmade(d Due) {
	switch {
	case d.Withdrawn == v1alpha1.ReasonSuspended, d.Withdrawn == v1alpha1.ReasonFailedRuns:
		s.say(events.Skipped, d.Withdrawn, whyStopped(d.Withdrawn), d.Nominal)
	case d.Refused == string(metav1.StatusReasonAlreadyExists):
		s.say(events.Blocked, "NameTaken", d.Message, d.Nominal)
	case d.Refused != "":
		s.say(events.NotCreated, d.Refused, d.Message, d.Nominal)
	case d.Withdrawn == "Deadline":
		s.say(events.Missed, d.Withdrawn, "its Job could not be made before its deadline", d.Nominal)
	default:
		s.say(events.Missed, d.Withdrawn, "its Job could not be made before a later time had come", d.Nominal)
	}
}
