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

// start makes the Jobs that are due, in order, or gives the verdict why not.
func start(s State, now time.Time, at *effect.Wake) (State, []effect.Effect) {
	var out []effect.Effect
	var left []Due
	for _, d := range s.Due {
		r, seen := s.runAt(d.Nominal)
		switch {
		case seen:
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
			out = append(out, s.create(d, at))
		case s.Object.ConcurrencyPolicy == v1alpha1.ForbidConcurrent && s.busy(left):
			s.say(events.Skipped, "Overlap", "an earlier Job was still active, and concurrencyPolicy is Forbid", d.Nominal)
			continue
		case s.Object.ConcurrencyPolicy == v1alpha1.ReplaceConcurrent && s.busy(left):
			out = append(out, s.replace()...)
			s.wake(d, at)
		default:
			d.Intended = true
			out = append(out, s.create(d, at))
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

// wake looks again when the deadline is over.
func (s State) wake(d Due, at *effect.Wake) {
	if after, ok := deadline(s.Object); ok {
		at.By(d.Nominal.Add(Delay(s.Object)).Add(after).Add(time.Millisecond))
	}
}

// busy says that a Job is active, or may have been made for an earlier time that is due.
func (s State) busy(earlier []Due) bool {
	for _, r := range s.Runs {
		if r.active() {
			return true
		}
	}
	return slices.ContainsFunc(earlier, func(d Due) bool { return d.Intended })
}

// replace deletes the Jobs that are active. They are gone only after their Pods, so that two never run at once; and they go
// only after the status has listed them, since nothing else would remember that they have started.
func (s State) replace() (out []effect.Effect) {
	for _, r := range s.rows() {
		if r.active() && !r.Run.Deleting && s.counts(r.Run.UID) {
			out = append(out, effect.DeleteRun{Name: r.Run.Name, UID: r.Run.UID, Version: r.Run.Version, Foreground: true})
		}
	}
	return out
}

// hopeless says that the API server will refuse the Job for the same reason as long as the spec is what it is.
func hopeless(reason string) bool { return reason == string(metav1.StatusReasonInvalid) }

// withdraw gives up a Job that may have been made, unless it turns up.
func (d *Due) withdraw(reason string, now time.Time) {
	d.Withdrawn, d.Search, d.Since = reason, strconv.FormatInt(now.UnixNano(), 36), now
}

// underWay is how long a request for a Job may be under way when its time is given up: the engine sends none that is older
// than a second and a half, and each ends after fifteen.
const underWay = 17 * time.Second

// search looks whether the Job has been made, once nothing is under way any more that could make it. A refusal is an answer:
// whoever gets it does not wait for another.
func (s State) search(d Due, now time.Time, at *effect.Wake) []effect.Effect {
	if over := d.Since.Add(underWay); d.Refused == "" && now.Before(over) {
		at.By(over)
		return nil
	}
	return []effect.Effect{effect.FindRun{Name: childName(s.Object.Name, d.Nominal), ID: d.Search}}
}

// unmade gives the verdict of a Job that was intended and never made.
func (s *State) unmade(d Due) {
	switch {
	case d.Withdrawn == "Suspended":
		s.say(events.Skipped, d.Withdrawn, "the ScheduledJob was suspended", d.Nominal)
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
