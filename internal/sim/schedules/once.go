package schedules

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// times are the nominal times of a ScheduledJob: those of its schedule, or the one of runAt.
type times interface {
	Next(after time.Time) (time.Time, bool)
	Prev(upTo time.Time) (time.Time, bool)
	Count(from, to time.Time) int64
}

// runAt is one nominal time.
type runAt time.Time

func (r runAt) Next(after time.Time) (time.Time, bool) {
	return time.Time(r), time.Time(r).After(after)
}
func (r runAt) Prev(upTo time.Time) (time.Time, bool) { return time.Time(r), !time.Time(r).After(upTo) }

func (r runAt) Count(from, to time.Time) int64 {
	if t := time.Time(r); t.After(from) && !t.After(to) {
		return 1
	}
	return 0
}

// chooseOnce makes the ScheduledJob run once, soon or in the past, and be deleted some time after that.
func (w *World) chooseOnce(j *events.ScheduledJob) {
	j.Schedule, j.StartAfter = "", time.Time{}
	j.RunAt = w.Now.Truncate(time.Second).Add(time.Duration(w.random.IntN(900)-300) * time.Second)
	if w.random.IntN(4) == 0 {
		j.RunAt = w.Now.Truncate(time.Second) // the second of its creation
	}
	if w.random.IntN(3) > 0 {
		j.TTLSecondsAfterFinished = new(int32(w.random.IntN(300)))
	}
}

// moveOn is a user who lets the ScheduledJob run once more, at a later time.
func (w *World) moveOn() {
	w.Edit(func(j *events.ScheduledJob) {
		j.RunAt = w.Now.Truncate(time.Second).Add(time.Duration(1+w.random.IntN(600)) * time.Second)
	})
	w.log("it runs at %s", w.Object.RunAt.Format(time.TimeOnly))
}

// expires checks the deletion of a ScheduledJob that has run once: in time, with every Job ended and counted, and every verdict told.
func (t *Truth) expires(e effect.DeleteScheduledJob) {
	j := t.world.Object
	if j == nil || e.Version != j.Version {
		return
	}
	st := j.Status
	done := meta.FindStatusCondition(st.Conditions, v1alpha1.FinishedCondition)
	switch {
	case j.TTLSecondsAfterFinished == nil, done == nil, t.world.Now.Before(done.LastTransitionTime.Add(time.Duration(*j.TTLSecondsAfterFinished) * time.Second)):
		t.fail("%v before its time", e)
	case st.ObservedGeneration != j.Generation, st.DecidedUntil.Time.Before(j.RunAt), len(st.Active) > 0:
		t.fail("%v, and it has not run: decided until %v, active %v", e, st.DecidedUntil, st.Active)
	}
	if told, all := len(t.decided()), len(t.verdicts(st)); told < all {
		t.fail("%v, and %d of %d verdicts are on the ledger or dropped", e, told, all)
	}
	for name := range t.users.uids {
		if t.seen[name] && t.users.unseen(name) && !t.users.doubt[name] {
			t.fail("%v, and %s, which a user has started, has no verdict", e, name)
		}
	}
}
