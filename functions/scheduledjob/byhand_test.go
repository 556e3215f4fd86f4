package scheduledjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// settle writes the status as the plan wants it, once, and confirms what is announced then. It returns how many Jobs are
// complete.
func settle(t *testing.T, s *State, received ...events.Event) int64 {
	t.Helper()
	writes := decideAt[effect.WriteScheduleStatus](s, ten, received...)
	if len(writes) != 1 {
		t.Fatalf("%d status writes, want one", len(writes))
	}
	j := s.Object
	j.Version, j.Status = j.Version+1, writes[0].Status
	for _, a := range decideAt[effect.Announce](s, ten, events.ScheduledJobObserved{ScheduledJob: j}) {
		decideAt[effect.Announce](s, ten, events.Announced{ID: events.PublicID(a.Event)})
	}
	return j.Status.Successful
}

// byUser returns an observation of a Job that a user has started for now.
func byUser(name string, version uint64, result events.RunResult) events.RunObserved {
	return events.RunObserved{Run: events.Run{Name: name, UID: types.UID(name), Version: version, Manual: true, Created: ten, Result: result}}
}

// The answer to a deletion comes before the trigger's observation of it, and so may an older observation of the Job, from a list
// or delivered again. The Job has been counted, even if ten later verdicts have displaced its own from the status.
func TestALateObservationOfAJobThatIsGoneIsNoNewJob(t *testing.T) {
	s := everyMinute()
	settle(t, &s, byUser("urgent", 20, ""))
	if n := settle(t, &s, byUser("urgent", 21, events.RunComplete)); n != 1 {
		t.Fatalf("%d Jobs are complete", n)
	}
	for n := range v1alpha1.RecentVerdicts {
		settle(t, &s, byUser(fmt.Sprint("later-", n), uint64(22+n), ""))
	}
	decideAt[effect.Announce](&s, ten, events.RunGone{Run: events.Run{Name: "urgent", UID: "urgent"}})
	if writes := decideAt[effect.WriteScheduleStatus](&s, ten, byUser("urgent", 21, events.RunComplete)); len(writes) != 0 {
		t.Errorf("%d Jobs are complete, want one", writes[0].Status.Successful)
	}
	decideAt[effect.Announce](&s, ten, events.RunGone{Run: events.Run{Name: "urgent", UID: "urgent", Version: 40}})
	if _, known := s.Runs["urgent"]; known {
		t.Error("it is never forgotten")
	}
}

// Whether a user has started a Job does not change: an annotation that a user adds or removes while it runs proves nothing about
// it.
func TestWhoHasStartedAJobDoesNotChange(t *testing.T) {
	s := everyMinute()
	run := events.Run{Name: childName("nightly", minute(-5)), UID: "backfill", Version: 20, Nominal: minute(-5), Manual: true, Created: ten}
	decideAt[effect.WriteScheduleStatus](&s, ten, events.RunObserved{Run: run})
	run.Version, run.Manual = 21, false
	if deleted := decideAt[effect.DeleteRun](&s, ten, events.RunObserved{Run: run}); len(deleted) != 0 {
		t.Errorf("it is deleted as one that the clock has made too late: %v", deleted)
	}
}

// A status that is full has dropped verdicts, but has counted nothing that ended after its last run.
func TestAwaitsVerdict(t *testing.T) {
	status := func(verdicts int, lastEnd int) (st v1alpha1.ScheduledJobStatus) {
		for n := range verdicts {
			st.Recent = append(st.Recent, v1alpha1.TickVerdict{Time: metav1.NewTime(minute(n)), Verdict: string(events.Started), Reason: events.ReasonManual, JobName: "job", JobUID: types.UID(fmt.Sprint(n))})
		}
		if lastEnd >= 0 {
			st.LastRun = &v1alpha1.EndedRun{CompletionTime: metav1.NewTime(minute(lastEnd))}
		}
		return st
	}
	const none, full = -1, v1alpha1.RecentVerdicts
	ended := func(n int) events.Run {
		return events.Run{UID: "job", Result: events.RunComplete, Finished: minute(n)}
	}
	with := func(r events.Run, change func(r *events.Run)) events.Run { change(&r); return r }
	listed := status(full, 20)
	listed.Active = []corev1.ObjectReference{{UID: "job"}}
	for _, c := range []struct {
		name   string
		status v1alpha1.ScheduledJobStatus
		run    events.Run
		awaits bool
	}{
		{"ended later than all", status(full, 20), ended(21), true},
		{"ended at the same time as the last", status(full, 20), ended(20), false},
		{"ended earlier than the last", status(full, 20), ended(19), false},
		{"ended first", status(full, none), ended(1), true},
		{"ended later than all, listed", listed, ended(21), false},
		{"ended later than all, has its verdict", status(full, 20), with(ended(21), func(r *events.Run) { r.UID = "3" }), false},
		{"ended later than all, made up for by a user", status(full, 20), with(ended(21), func(r *events.Run) { r.Nominal, r.Manual = minute(2), true }), true},
		{"ended later than all, made by the clock", status(full, 20), with(ended(21), func(r *events.Run) { r.Nominal = minute(2) }), false},
		{"ended earlier than the last, and there is room", status(full-1, 20), ended(19), true},
		{"runs", status(full, 20), events.Run{UID: "job"}, true},
	} {
		if got := AwaitsVerdict(&c.status, c.run); got != c.awaits {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Two Jobs were started at once, and the status had to drop the verdict of the later one: that of the earlier was not announced yet.
// So what the status still has does not tell what it has dropped. Simulated world 2398060673 counted such a Job twice.
func TestAVerdictThatWasDroppedBeforeAnEarlierOne(t *testing.T) {
	st := v1alpha1.ScheduledJobStatus{LastRun: &v1alpha1.EndedRun{JobUID: "later", CompletionTime: metav1.NewTime(minute(5))}}
	for n := range v1alpha1.RecentVerdicts {
		st.Recent = append(st.Recent, v1alpha1.TickVerdict{Time: metav1.NewTime(minute(n)), Verdict: string(events.Missed), Announced: true})
	}
	st.Recent[0].Verdict, st.Recent[0].Reason, st.Recent[0].JobUID = string(events.Started), events.ReasonManual, "earlier"
	if AwaitsVerdict(&st, events.Run{UID: "later", Created: minute(1), Result: events.RunComplete, Finished: minute(5)}) {
		t.Error("it is counted again")
	}
}
