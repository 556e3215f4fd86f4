package scheduledjob

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/inventory"
	"github.com/jobstream/jobstream/internal/zone"
)

var ten = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

// everyMinute returns the state of a ScheduledJob whose first status was written at ten.
func everyMinute() State {
	j := events.ScheduledJob{Namespace: "shop", Name: "nightly", UID: "s", Version: 5, Generation: 1, Created: ten, Schedule: "* * * * *",
		ConcurrencyPolicy: v1alpha1.AllowConcurrent, CatchUp: v1alpha1.CatchUpLatest, SuccessfulJobs: 3, FailedJobs: 1}
	j.Status.DecidedUntil, j.Status.ObservedGeneration, j.Status.ObservedSchedule = &metav1.Time{Time: ten}, 1, j.Schedule
	return State{Inventory: inventory.Inventory{Name: j.Name, Known: true}, Object: j, Until: ten}
}

func minute(n int) time.Time { return ten.Add(time.Duration(n) * time.Minute) }

// decideAt plans once and returns the effects of the kind.
func decideAt[E effect.Effect](s *State, now time.Time, received ...events.Event) (of []E) {
	var all []effect.Effect
	*s, all = New(zone.Load).Decide(*s, received, now)
	for _, e := range all {
		if e, ok := e.(E); ok {
			of = append(of, e)
		}
	}
	return of
}

func verdicts(s State) (all []string) {
	for _, v := range s.Pending {
		all = append(all, public(s.Object, v).String())
	}
	return all
}

// A request may be on its way for seconds when its time is given up. The function does not assume that its Job is absent before
// the request can no longer arrive.
func TestAJobIsLookedForWhenNoRequestCanMakeItAnyMore(t *testing.T) {
	s := everyMinute()
	if made := decideAt[effect.CreateJob](&s, minute(1)); len(made) != 1 {
		t.Fatalf("%v", made)
	}
	if found := decideAt[effect.FindRun](&s, minute(2)); len(found) != 0 { // a later time has come, and no answer has
		t.Errorf("looked for at once: %v", found)
	}
	if timers := decideAt[effect.SetTimer](&s, minute(2).Add(time.Second)); len(timers) != 1 || !timers[0].At.Equal(minute(2).Add(underWay)) {
		t.Errorf("no timer will start the search in time: %v", timers)
	}
	if found := decideAt[effect.FindRun](&s, minute(2).Add(underWay)); len(found) != 1 || found[0].Name != childName("nightly", minute(1)) {
		t.Errorf("looked for later: %v", found)
	}
}

// A refusal is an answer: no request is under way any more.
func TestAJobThatWasRefusedIsLookedForAtOnce(t *testing.T) {
	s := everyMinute()
	decideAt[effect.CreateJob](&s, minute(1))
	refused := events.EffectRefused{Effect: effect.KindCreateJob, Name: childName("nightly", minute(1)), Reason: "Forbidden", Message: "no", At: minute(1)}
	if found := decideAt[effect.FindRun](&s, minute(2), refused); len(found) != 1 {
		t.Errorf("%v", found)
	}
}

// A refusal of another effect is no answer to the creation, though the Job has the same name.
func TestARefusedDeletionSaysNothingOfTheCreation(t *testing.T) {
	s := everyMinute()
	decideAt[effect.CreateJob](&s, minute(1))
	refused := events.EffectRefused{Effect: effect.KindDeleteRun, Name: childName("nightly", minute(1)), Reason: "Forbidden", Message: "no", At: minute(1)}
	if made := decideAt[effect.CreateJob](&s, minute(1), refused); len(made) != 1 || s.Due[0].Refused != "" {
		t.Errorf("made %v, refused %q", made, s.Due[0].Refused)
	}
}

// A Job that a search did not find, and that is observed before its verdict was announced, has started, and its time gets no
// other verdict.
func TestATimeHasOneVerdict(t *testing.T) {
	s := everyMinute()
	decideAt[effect.CreateJob](&s, minute(1))
	decideAt[effect.FindRun](&s, minute(2))
	find := decideAt[effect.FindRun](&s, minute(2).Add(underWay))[0]
	decideAt[effect.WriteScheduleStatus](&s, minute(2).Add(underWay), events.RunMissing{Name: find.Name, ID: find.ID})
	if got := verdicts(s); len(got) == 0 || got[0] != "Missed(Superseded) 2026-07-01T10:01:00Z" {
		t.Fatalf("%q", got)
	}
	late := events.Run{Name: find.Name, UID: "j", Version: 9, Nominal: minute(1), Created: minute(2).Add(underWay)}
	writes := decideAt[effect.WriteScheduleStatus](&s, minute(2).Add(underWay+time.Second), events.RunObserved{Run: late})
	if got := verdicts(s); !slices.Contains(got, "Started 2026-07-01T10:01:00Z") || slices.Contains(got, "Missed(Superseded) 2026-07-01T10:01:00Z") {
		t.Errorf("%q", got)
	}
	if len(writes) != 1 || writes[0].Status.Missed != 0 || len(writes[0].Status.Active) != 1 {
		t.Errorf("written: %+v", writes)
	}
}

// The deletion of a Job may overtake the observation of its end. It shows the end, too, which counts as what it was; the late
// observation changes nothing.
func TestADeletionThatOvertakesTheEndOfItsJob(t *testing.T) {
	for _, c := range []struct {
		result             events.RunResult
		successful, failed int64
		last               string
	}{
		{events.RunComplete, 1, 0, "Complete"},
		{events.RunFailed, 0, 1, "Failed"},
		{"", 0, 1, "Missing"},
	} {
		t.Run(c.last, func(t *testing.T) {
			s := everyMinute()
			running := events.Run{Name: childName("nightly", minute(1)), UID: "j", Version: 7, Nominal: minute(1), Created: minute(1)}
			s.put(Row{Run: running})
			s.Object.Status.DecidedUntil, s.Until = &metav1.Time{Time: minute(1)}, minute(1)
			s.Object.Status.Active = []corev1.ObjectReference{{Kind: "Job", Name: running.Name, UID: running.UID}}
			ended, gone := running, running
			ended.Version, ended.Result, ended.Finished = 8, c.result, minute(1).Add(30*time.Second)
			gone.Version, gone.Result, gone.Finished = 9, ended.Result, ended.Finished
			writes := decideAt[effect.WriteScheduleStatus](&s, minute(1).Add(40*time.Second), events.RunGone{Run: gone}, events.RunObserved{Run: ended})
			if len(writes) != 1 {
				t.Fatalf("written: %+v", writes)
			}
			st := writes[0].Status
			if st.Successful != c.successful || st.Failed != c.failed || len(st.Active) > 0 || *st.ActiveCount != 0 {
				t.Errorf("%d successful, %d failed, active are %v", st.Successful, st.Failed, st.Active)
			}
			end := ended.Finished
			if c.result == "" {
				end = minute(1).Add(40 * time.Second) // when it was found to be gone
			}
			if l := st.LastRun; l == nil || l.Result != c.last || l.JobName != running.Name || !l.ScheduledTime.Time.Equal(minute(1)) || !l.CompletionTime.Time.Equal(end) {
				t.Errorf("the last run is %+v", st.LastRun)
			}
			if c.successful > 0 && (st.LastSuccessfulTime == nil || !st.LastSuccessfulTime.Time.Equal(ended.Finished)) {
				t.Errorf("the last successful time is %v", st.LastSuccessfulTime)
			}
		})
	}
}

// After a loss of the state, Jobs of a ScheduledJob that is suspended by now are counted all the same: it is unknown when it is
// resumed.
func TestJobsOfASuspendedScheduleAreCounted(t *testing.T) {
	s := everyMinute()
	s.Object.Suspended, s.Applied, s.Text, s.Paused = true, 1, s.Object.Schedule, true
	s.Runs = map[types.UID]Row{}
	for _, n := range []int{1, 3, 9} {
		s.put(Row{Run: events.Run{Name: childName("nightly", minute(n)), UID: types.UID(minute(n).String()), Version: 7, Nominal: minute(n)}})
	}
	writes := decideAt[effect.WriteScheduleStatus](&s, minute(5))
	want := []string{"Started 2026-07-01T10:01:00Z", "Skipped(Suspended) 2026-07-01T10:02:00Z", "Started 2026-07-01T10:03:00Z"}
	if got := verdicts(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(writes) != 1 || len(writes[0].Status.Active) != 2 || !writes[0].Status.DecidedUntil.Time.Equal(minute(3)) {
		t.Errorf("written: %+v", writes)
	}
	if timers := decideAt[effect.SetTimer](&s, minute(5)); len(timers) != 1 || !timers[0].At.Equal(minute(9)) {
		t.Errorf("the Job of a time that has not come is not looked after: %v", timers)
	}
}

// After a loss of the state the function decides on a range of times; another worker has decided on some of them meanwhile. Each
// counts once.
func TestARangeThatTheStatusHasPassedInPartCountsOnce(t *testing.T) {
	s := everyMinute()
	s.Object.CatchUp = v1alpha1.CatchUpNone
	now := minute(5).Add(30 * time.Second)
	missed := decideAt[effect.WriteScheduleStatus](&s, now)[0].Status.Missed
	newer := s.Object
	newer.Version, newer.Status.DecidedUntil, newer.Status.Missed = 9, &metav1.Time{Time: minute(2)}, 2
	newer.Status.Recent = []v1alpha1.TickVerdict{{Verdict: "Missed", Reason: "Superseded", Time: metav1.NewTime(minute(1)), Until: &metav1.Time{Time: minute(2)}, Count: 2}}
	writes := decideAt[effect.WriteScheduleStatus](&s, now, events.ScheduledJobObserved{ScheduledJob: newer})
	if len(writes) != 1 || missed < 4 || writes[0].Status.Missed != missed {
		t.Errorf("%d missed, and then %+v", missed, writes)
	}
}

// A verdict about a range is cut in two around the Job that was observed after all.
func TestARangeIsCutAroundAJob(t *testing.T) {
	missed := func(first, last int) v1alpha1.TickVerdict {
		v := v1alpha1.TickVerdict{Verdict: "Missed", Reason: "Deadline", Time: metav1.NewTime(minute(first)), Count: int64(last - first + 1)}
		if last > first {
			v.Until = &metav1.Time{Time: minute(last)}
		}
		return v
	}
	times, problem := Timetable(everyMinute().Object, zone.Load)
	if problem != nil {
		t.Fatal(problem)
	}
	for _, c := range []struct {
		name     string
		said     v1alpha1.TickVerdict
		turnedUp int
		t        Times
		want     []v1alpha1.TickVerdict
	}{
		{"in the middle", missed(1, 5), 3, times, []v1alpha1.TickVerdict{missed(1, 2), missed(4, 5)}},
		{"the first", missed(1, 5), 1, times, []v1alpha1.TickVerdict{missed(2, 5)}},
		{"the last", missed(1, 5), 5, times, []v1alpha1.TickVerdict{missed(1, 4)}},
		{"one of three", missed(1, 3), 2, times, []v1alpha1.TickVerdict{missed(1, 1), missed(3, 3)}},
		{"the only one", missed(1, 1), 1, times, nil},
		{"the only one, of a schedule that cannot be parsed any more", missed(1, 1), 1, nil, nil},
		{"another", missed(1, 1), 2, times, []v1alpha1.TickVerdict{missed(1, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := State{Pending: []v1alpha1.TickVerdict{c.said}}
			if !s.retract(minute(c.turnedUp), c.t) {
				t.Error("it cannot be taken back")
			}
			if !slices.EqualFunc(s.Pending, c.want, func(a, b v1alpha1.TickVerdict) bool {
				return a.Time.Equal(&b.Time) && a.Count == b.Count && (a.Until == nil) == (b.Until == nil) && last(a).Equal(last(b)) && a.Reason == b.Reason
			}) {
				t.Errorf("left are %+v, want %+v", s.Pending, c.want)
			}
		})
	}
	if s := (State{Pending: []v1alpha1.TickVerdict{missed(1, 3)}}); s.retract(minute(2), nil) {
		t.Error("a range was cut without a timetable")
	}
}

// TestAStateThatIsTooLargeBacksOff: it is forgotten, and its inventory is taken with increasing delays.
func TestAStateThatIsTooLargeBacksOff(t *testing.T) {
	f, now := New(zone.Load), minute(0)
	s, effects := f.Decide(State{}, []events.Event{events.ScheduleDue{Nominal: now}}, now)
	inventories := 0
	for range 20 {
		ask, asks := effect.TakeInventory{}, false
		if len(effects) > 0 {
			ask, asks = effects[0].(effect.TakeInventory)
		}
		received := []events.Event{events.TimerFired{}}
		if asks {
			inventories++
			received = []events.Event{events.ScheduleListed{ID: ask.ID, Version: 7},
				events.EffectRefused{Effect: effect.SaveState, Reason: effect.StateTooLarge, Message: "9 bytes", At: now}}
		}
		s, effects = f.Decide(s, received, now)
		now = now.Add(6 * time.Second)
	}
	if s.Known || inventories < 3 || inventories > 6 { // at once, and then 1 s, 3 s, 7 s, 15 s, 31 s, 63 s later
		t.Errorf("%d inventories within two minutes, known %v", inventories, s.Known)
	}
}

// A ScheduledJob that has run once is remembered until its Job is gone that the history limit does not keep. A deletion that waits, because
// another request for that Job may be under way, would otherwise be forgotten.
func TestTheHistoryLimitHoldsAfterTheOnlyRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		keeps int32
		run   func(*Row)
		rests bool
	}{
		{"a Job beyond the limit", 0, func(*Row) {}, false},
		{"a Job that may return", 0, func(r *Row) { r.Again = minute(1) }, false},
		{"a Job within the limit", 1, func(*Row) {}, true},
		{"a Job that is being deleted", 0, func(r *Row) { r.Run.Deleting = true }, true},
		{"a Job that runs though its time was given up", 1, func(r *Row) { r.Run.Result = "" }, false},
	} {
		s := everyMinute()
		s.Object.Schedule, s.Object.RunAt, s.Object.SuccessfulJobs = "", ten, c.keeps
		s.Object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
		r := Row{Run: events.Run{Name: "nightly-x", UID: "j", Nominal: ten, Result: events.RunComplete}}
		c.run(&r)
		s.Runs = map[types.UID]Row{"j": r}
		if got := rests(s); got != c.rests {
			t.Errorf("%s: rests is %v", c.name, got)
		}
	}
}

// A Job that is not tried, since the API server has just refused another one, is not intended: once too many Jobs have failed, it waits
// until their failures are counted, and is not created after the pause has begun.
func TestAJobThatIsNotTriedIsNotIntended(t *testing.T) {
	s := everyMinute()
	s.Object.PauseAfterFailures = 1
	s.Waits.Refuse(events.EffectRefused{Effect: effect.KindCreateJob, Serial: events.NoSerial, Name: childName("nightly", minute(1)), Reason: "Forbidden", At: minute(2)})
	s.Due = []Due{{Nominal: minute(2)}}
	s, _ = start(s, minute(2), &effect.Wake{})
	if s.Due[0].Intended {
		t.Fatal("it is intended while creations are blocked")
	}
	s.Object.Status.Active = []corev1.ObjectReference{{UID: "failed"}}
	s.put(Row{Run: events.Run{Name: "nightly-1", UID: "failed", Result: "Failed"}})
	later := s.Waits.End(minute(2))
	if s, effects := start(s, later, &effect.Wake{}); s.Due[0].Intended || len(effects) > 0 {
		t.Errorf("intended %v, effects %v, though a failure is not counted yet", s.Due[0].Intended, effects)
	}
}
