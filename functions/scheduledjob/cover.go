package scheduledjob

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const (
	// dueAtOnce is the largest number of nominal times that are due at once: more are covered as Jobs of these are created.
	dueAtOnce = 20
	// caughtUp is the largest number of nominal times that are made up for with catchUp All and without startingDeadlineSeconds,
	// or from before the creation of the object. Kubernetes' CronJob controller looked at no more.
	caughtUp = 100
	// grace is how late a Job may be with catchUp None (proposal scheduledjob.md considers a minimum of a minute, too).
	grace = time.Minute
	// longest is the largest number of seconds in a deadline that counts, 292 years: a time.Duration holds no more.
	longest = math.MaxInt64 / int64(time.Second)
)

// Delay returns how much later than its nominal time each Job is created: the ScheduledJob's own share of jitterSeconds, in whole
// seconds, and the same for each time.
func Delay(j events.ScheduledJob) time.Duration {
	if j.JitterSeconds <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(j.UID))
	return time.Duration(h.Sum64()%uint64(j.JitterSeconds+1)) * time.Second
}

// deadline returns after how long a nominal time is missed; ok is false if it never is.
func deadline(j events.ScheduledJob) (after time.Duration, ok bool) {
	if j.StartingDeadlineSeconds != nil {
		after, ok = time.Duration(min(*j.StartingDeadlineSeconds, longest))*time.Second, true
	}
	if j.CatchUp == v1alpha1.CatchUpNone && (!ok || after > grace) {
		return grace, true
	}
	return after, ok
}

// late reports whether a Job for the nominal time would be created too late.
func late(j events.ScheduledJob, nominal, now time.Time) bool {
	after, ok := deadline(j)
	return ok && now.After(nominal.Add(Delay(j)).Add(after))
}

// pastRunAt returns the problem of a runAt that was changed to a time that is decided already, because it is unknown whether a
// Job has run for it; nil if there is no such problem.
func (s State) pastRunAt() *Problem {
	j := s.Object
	if j.RunAt.IsZero() || j.RunAt.After(s.decidedUntil()) || Text(j) == j.Status.ObservedSchedule {
		return nil
	}
	return &Problem{v1alpha1.ReasonInvalidSchedule, fmt.Sprintf("spec.runAt: it was changed to %s, and everything up to %s is decided already: set a later time, or make another ScheduledJob",
		j.RunAt.UTC().Format(time.RFC3339), s.decidedUntil().Format(time.RFC3339))}
}

// change applies the effect of a changed spec, or of the end of a suspension, to the times that have passed. It does so once for
// each generation: after a loss of the state, the status shows which generation was applied. A pause that a user turns into a
// suspension ends, too: what passed before was skipped because of the pause.
func change(s State, t Times, now time.Time) State {
	st := s.Object.Status
	before, paused := s.Text, s.Paused
	if s.Applied == 0 { // a new state
		before, paused = st.ObservedSchedule, holds(s.Object, v1alpha1.SuspendedCondition)
		s.Applied = st.ObservedGeneration
	}
	stopped, observed := s.Object.Stopped(), condition(st.Conditions, v1alpha1.SuspendedCondition).Reason
	if s.Applied == s.Object.Generation && s.Text != "" && s.Paused == stopped {
		return s
	}
	s.Applied, s.Text, s.Paused = s.Object.Generation, Text(s.Object), stopped
	switch {
	case before == "", t == nil:
	case before != s.Text && s.Object.OnScheduleChange == v1alpha1.ChangeWaits:
		if now := now.UTC().Truncate(time.Second); now.After(s.Until) {
			s.Until = now
		}
	case paused && (!stopped || reasonStopped(observed) != stoppedBy(s.Object)): // a resumed schedule never floods
		if last, ok := t.Prev(now); ok && last.After(s.Until) {
			s = pass(s, t, last, events.Skipped, reasonStopped(observed), whyStopped(observed))
		}
	}
	if stopped {
		reason := stoppedBy(s.Object)
		s = dropDue(s, events.Skipped, reason, whyStopped(reason), now)
	}
	return s
}

// stoppedBy returns why no Jobs are created for now: the reason of the condition Suspended, and of the verdicts on the times that
// pass meanwhile.
func stoppedBy(j events.ScheduledJob) string {
	if !j.Suspended && j.Paused() {
		return v1alpha1.ReasonFailedRuns
	}
	return v1alpha1.ReasonSuspended
}

// reasonStopped returns the reason of an observed condition, which another program may have written.
func reasonStopped(reason string) string {
	if reason == v1alpha1.ReasonFailedRuns {
		return reason
	}
	return v1alpha1.ReasonSuspended
}

// whyStopped returns the message of a verdict with that reason.
func whyStopped(reason string) string {
	if reason == v1alpha1.ReasonFailedRuns {
		return "the ScheduledJob was paused, for too many Jobs in a row had failed"
	}
	return "the ScheduledJob was suspended"
}

// pass gives one verdict to all nominal times after Until, up to the given one. Times whose Job exists have started, before the
// state was lost.
func pass(s State, t Times, upTo time.Time, v events.Verdict, reason, message string) State {
	for _, r := range s.rows() {
		if n := r.Run.Nominal; n.After(s.Until) && !n.After(upTo) {
			s = judge(s, t, n.Add(-time.Second), v, reason, message)
			s.sayStarted(r.Run)
			s.Until = n
		}
	}
	return judge(s, t, upTo, v, reason, message)
}

func judge(s State, t Times, upTo time.Time, v events.Verdict, reason, message string) State {
	n := t.Count(s.Until, upTo)
	if n == 0 {
		return s
	}
	first, _ := t.Next(s.Until)
	s = leaveOut(s, t, first)
	of := v1alpha1.TickVerdict{Verdict: string(v), Reason: reason, Message: message, Time: metav1.NewTime(first.UTC()), Count: n}
	if n > 1 {
		end, _ := t.Prev(upTo)
		of.Until = &metav1.Time{Time: end.UTC()}
	}
	s.sayOf(of)
	s.Until = upTo.UTC()
	return s
}

// leaveOut gives one verdict to all times after Until and before the given one that exclude leaves out. There is no nominal time among
// them: so a time that is left out gets its verdict when the next one has come, and costs no write of its own.
func leaveOut(s State, t Times, before time.Time) State {
	out := excluded(t)
	if out == nil {
		return s
	}
	upTo := before.Add(-time.Second)
	n := out.Count(s.Until, upTo)
	if n == 0 {
		return s
	}
	first, _ := out.Next(s.Until)
	of := v1alpha1.TickVerdict{Verdict: string(events.Skipped), Reason: events.ReasonExcluded, Message: "spec.exclude leaves it out", Time: metav1.NewTime(first.UTC()), Count: n}
	if end, ok := out.Prev(upTo); ok && n > 1 {
		of.Until = &metav1.Time{Time: end.UTC()}
	}
	s.sayOf(of)
	s.Until = last(of)
	return s
}

// makeDue makes a nominal time due.
func makeDue(s State, t Times, nominal time.Time) State {
	s = leaveOut(s, t, nominal)
	s.Due = append(s.Due, Due{Nominal: nominal.UTC()})
	s.Until = nominal.UTC()
	return s
}

// cover decides about the nominal times that have come since the last time, in order: some become due, the others get a verdict.
func cover(s State, t Times, now time.Time) State {
	to := now.Add(-Delay(s.Object))
	last, ok := t.Prev(to)
	if !ok || !last.After(s.Until) {
		return s
	}
	if after, ok := deadline(s.Object); ok {
		if missed, ok := t.Prev(to.Add(-after - time.Nanosecond)); ok && missed.After(s.Until) {
			s = pass(s, t, missed, events.Missed, "Deadline", "it was noticed after its deadline")
		}
	}
	if s.Object.ConcurrencyPolicy == v1alpha1.QueueConcurrent {
		return queue(s, t, last)
	}
	if s.Object.CatchUp == v1alpha1.CatchUpAll && s.Object.ConcurrencyPolicy != v1alpha1.ReplaceConcurrent {
		return catchUp(s, t, last)
	}
	if !last.After(s.Until) {
		return s
	}
	if before, ok := t.Prev(last.Add(-time.Second)); ok && before.After(s.Until) {
		s = pass(s, t, before, events.Missed, "Superseded", "a later time had come")
	}
	s = dropDue(s, events.Missed, "Superseded", "a later time had come", now)
	return makeDue(s, t, last)
}

// catchUp makes all nominal times up to the last one due, as many at once as there is room for. With startAfter, there may be any
// number from before the creation of the object, and a deadline that suits later times does not mean that all of them are wanted.
func catchUp(s State, t Times, last time.Time) State {
	if _, bounded := deadline(s.Object); !bounded {
		s = latest(s, t, last.Add(-time.Second), "without startingDeadlineSeconds") // the last one has just come
	} else if created := s.Object.Created; created.After(s.Until) {
		if created.After(last) {
			created = last
		}
		s = latest(s, t, created, "from before the ScheduledJob was made")
	}
	for len(s.Due) < dueAtOnce {
		next, ok := t.Next(s.Until)
		if !ok || next.After(last) {
			break
		}
		s = makeDue(s, t, next)
	}
	return s
}

// latest records all nominal times up to the given one as missed, except for the latest of them.
func latest(s State, t Times, upTo time.Time, which string) State {
	from := upTo.Add(time.Second)
	for range caughtUp {
		before, ok := t.Prev(from.Add(-time.Second))
		if !ok || !before.After(s.Until) {
			return s
		}
		from = before
	}
	if before, ok := t.Prev(from.Add(-time.Second)); ok && before.After(s.Until) {
		s = pass(s, t, before, events.Missed, "Superseded", fmt.Sprintf("no more than %d are made up for %s", caughtUp, which))
	}
	return s
}

// dropDue gives up what is due. An intended Job may have been created, and has to be looked for: a refusal does not exclude an
// earlier try whose answer was lost.
func dropDue(s State, v events.Verdict, reason, message string, now time.Time) State {
	var left []Due
	for _, d := range s.Due {
		switch {
		case d.Intended:
			if _, seen := s.runAt(d.Nominal); !seen && d.Withdrawn == "" {
				d.withdraw(reason, now)
			}
			left = append(left, d)
		default:
			s.say(v, reason, message, d.Nominal)
		}
	}
	s.Due = left
	return s
}
