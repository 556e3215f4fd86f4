package scheduledjob

import (
	"fmt"
	"testing"

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

// A status that is full has dropped verdicts, but none that came after all that it has.
func TestAwaitsVerdict(t *testing.T) {
	full := func(change func(v *v1alpha1.TickVerdict)) (st v1alpha1.ScheduledJobStatus) {
		for n := range v1alpha1.RecentVerdicts {
			v := v1alpha1.TickVerdict{Time: metav1.NewTime(minute(n)), Verdict: string(events.Started), Reason: events.ReasonManual, JobName: "job", JobUID: types.UID(fmt.Sprint(n)), Announced: true}
			if change(&v); v.Verdict != "" {
				st.Recent = append(st.Recent, v)
			}
		}
		return st
	}
	asIs := func(*v1alpha1.TickVerdict) {}
	for _, c := range []struct {
		name   string
		status v1alpha1.ScheduledJobStatus
		run    events.Run
		awaits bool
	}{
		{"finished, later than all", full(asIs), events.Run{Created: minute(99), Result: events.RunComplete}, true},
		{"finished, at the same time as the last", full(asIs), events.Run{Created: minute(v1alpha1.RecentVerdicts - 1), Result: events.RunComplete}, false},
		{"finished, later than one only", full(asIs), events.Run{Created: minute(1), Result: events.RunComplete}, false},
		{"running, earlier than all", full(asIs), events.Run{Created: minute(-9)}, true},
		{"finished, made by the clock", full(asIs), events.Run{Created: minute(99), Nominal: minute(99), Result: events.RunComplete}, false},
		{"finished, made up for by a user", full(asIs), events.Run{Created: minute(99), Nominal: minute(9), Manual: true, Result: events.RunComplete}, true},
		{"finished, and has its verdict", full(asIs), events.Run{UID: "3", Created: minute(99), Result: events.RunComplete}, false},
		{"finished, later than backfills", full(func(v *v1alpha1.TickVerdict) { v.Reason = events.ReasonBackfill }), events.Run{Created: minute(99), Result: events.RunComplete}, false},
		{"finished, later than Jobs of the clock", full(func(v *v1alpha1.TickVerdict) { v.Reason = "" }), events.Run{Created: minute(99), Result: events.RunComplete}, false},
		{"finished, later than one by a user and Jobs of the clock", full(func(v *v1alpha1.TickVerdict) {
			if v.JobUID != "4" {
				v.Reason = ""
			}
		}), events.Run{Created: minute(99), Result: events.RunComplete}, true},
		{"finished, later than what is not announced", full(func(v *v1alpha1.TickVerdict) { v.Announced = false }), events.Run{Created: minute(99), Result: events.RunComplete}, false},
		{"finished, and there is room", full(func(v *v1alpha1.TickVerdict) {
			if v.JobUID == "0" {
				v.Verdict = ""
			}
		}), events.Run{Created: minute(-9), Result: events.RunComplete}, true},
	} {
		if got := AwaitsVerdict(&c.status, c.run); got != c.awaits {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
