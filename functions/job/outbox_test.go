package job

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/outbox"
)

// Transcripts announced_* show what is announced, when, and how often. These tests cover what no transcript can: observations
// that come late or out of order, and states that begin in the middle.

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// observationOf returns the Job at that version: started and finished this many minutes before noon, 0 for not.
func observationOf(version uint64, started, finished int) events.Job {
	j := events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: version, Parallelism: int32(version), Completions: new(int32(1))}
	if started > 0 {
		j.Status.StartTime = &metav1.Time{Time: noon.Add(-time.Duration(started) * time.Minute)}
	}
	if finished > 0 {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True",
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(finished) * time.Minute))}}
	}
	return j
}

// tell folds observations into the state, confirms what is announced, one after the other, and returns it.
func tell(s State, observations ...events.Job) (State, []string) {
	f := New(DefaultLimits())
	var facts []events.Event
	for _, j := range observations {
		facts = append(facts, events.JobObserved{Job: j})
	}
	var said []string
	for range 100 {
		var effects []effect.Effect
		s, effects = f.Decide(s, facts, noon)
		facts = nil
		for _, e := range effects {
			if a, ok := e.(effect.Announce); ok {
				said = append(said, a.Event.String())
				facts = append(facts, events.Announced{ID: events.PublicID(a.Event)})
			}
		}
		if len(facts) == 0 {
			break
		}
	}
	return s, said
}

// known returns a state that began with an observation.
func known(t *testing.T, j events.Job) State {
	t.Helper()
	f := New(DefaultLimits())
	s, effects := f.Decide(State{}, []events.Event{events.TimerFired{}}, noon)
	return f.Observe(s, events.JobListed{ID: effects[0].(effect.TakeInventory).ID, Job: &j, JobsVersion: j.Version, Version: j.Version})
}

// TestWhatIsNews: the limit of an hour only applies to what may have been announced before a loss of the state. If the state
// shows the running Job, its end is announced, however late it is observed: all workers were away.
func TestWhatIsNews(t *testing.T) {
	for name, tt := range map[string]struct {
		memory       State
		observations []events.Job
		want         []string
	}{
		"no memory, an end within the hour":                     {State{}, []events.Job{observationOf(9, 59, 58)}, []string{"JobStart 2026-01-01T11:01:00Z", "JobFinish Succeeded 2026-01-01T11:02:00Z"}},
		"no memory, a start before it":                          {State{}, []events.Job{observationOf(9, 61, 58)}, []string{"JobFinish Succeeded 2026-01-01T11:02:00Z"}},
		"no memory, all of it before":                           {State{}, []events.Job{observationOf(9, 63, 61)}, nil},
		"a memory that began after the start":                   {known(t, observationOf(5, 300, 0)), []events.Job{observationOf(9, 300, 200)}, []string{"JobFinish Succeeded 2026-01-01T08:40:00Z"}},
		"a memory that began before the start":                  {known(t, observationOf(1, 0, 0)), []events.Job{observationOf(5, 300, 0)}, []string{"JobStart 2026-01-01T07:00:00Z"}},
		"a clock that is hours behind":                          {known(t, observationOf(5, 0, 0)), []events.Job{observationOf(6, 500, 0), observationOf(7, 500, 400)}, []string{"JobStart 2026-01-01T03:40:00Z", "JobFinish Succeeded 2026-01-01T05:20:00Z"}},
		"an old observation of before the memory began":         {known(t, observationOf(8, 30, 0)), []events.Job{observationOf(2, 120, 0)}, []string{"JobStart 2026-01-01T11:30:00Z"}},
		"an old observation of after it: a start since resumed": {known(t, observationOf(1, 0, 0)), []events.Job{observationOf(8, 30, 0), observationOf(2, 120, 0)}, []string{"JobStart 2026-01-01T10:00:00Z", "JobStart 2026-01-01T11:30:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, said := tell(tt.memory, tt.observations...)
			if !slices.Equal(said, tt.want) {
				t.Errorf("said %q, want %q", said, tt.want)
			}
			if _, again := tell(s, tt.observations...); again != nil {
				t.Errorf("observed again, it announces again %q", again)
			}
		})
	}
}

// TestForeignJobsAreNotAnnounced: the controller that runs them may announce them.
func TestForeignJobsAreNotAnnounced(t *testing.T) {
	j := observationOf(9, 5, 4)
	j.Foreign = true
	if _, said := tell(State{}, j); said != nil {
		t.Errorf("said %q", said)
	}
}

// TestTheOldestObservationTells: the event is the same whichever of several observations comes first.
func TestTheOldestObservationTells(t *testing.T) {
	for _, observations := range [][]events.Job{{observationOf(3, 9, 0), observationOf(4, 9, 0)}, {observationOf(4, 9, 0), observationOf(3, 9, 0)}} {
		_, effects := New(DefaultLimits()).Decide(State{}, []events.Event{events.JobObserved{Job: observations[0]}, events.JobObserved{Job: observations[1]}}, noon)
		for _, e := range effects {
			if a, ok := e.(effect.Announce); ok && a.Event.(events.JobStarted).Parallelism != 3 {
				t.Errorf("it announces %+v", a.Event)
			}
		}
	}
}

// TestAConfirmationThatOvertakes: the state was lost while the bus confirmed. The confirmed event is recognized when the Job is
// observed.
func TestAConfirmationThatOvertakes(t *testing.T) {
	start, _ := observationOf(3, 9, 0).Started()
	s, _ := New(DefaultLimits()).Decide(State{}, []events.Event{events.Announced{ID: events.PublicID(start)}}, noon)
	if _, said := tell(s, observationOf(3, 9, 0)); said != nil {
		t.Errorf("said %q", said)
	}
}

// TestAStateThatAnnouncesDoesNotRest until all is confirmed. It is worth keeping then, because it records what was announced.
func TestAStateThatAnnouncesDoesNotRest(t *testing.T) {
	f := New(DefaultLimits())
	s, _ := f.Decide(State{}, []events.Event{events.JobObserved{Job: observationOf(9, 5, 4)}}, noon)
	if f.Rests(s) {
		t.Error("rests with two announcements due")
	}
	if s, _ = tell(s); !f.Rests(s) {
		t.Error("does not rest when all is confirmed")
	}
	if s, effects := f.Decide(State{}, []events.Event{events.JobObserved{Job: observationOf(9, 99, 98)}}, noon); !f.Rests(s) || len(effects) > 0 {
		t.Errorf("an old end costs %v", effects)
	}
}

// TestStartsWithoutEnd: a queue that suspends and resumes a Job for days does not make the state grow.
func TestStartsWithoutEnd(t *testing.T) {
	s := known(t, observationOf(1, 0, 0))
	for i := range 3 * outbox.MaxNotices {
		var said []string
		if s, said = tell(s, observationOf(uint64(i+2), 9000-i, 0)); len(said) != 1 {
			t.Fatalf("start %d: said %q", i, said)
		}
	}
	if len(s.Outbox.Notices) > outbox.MaxNotices {
		t.Errorf("%d notices are kept", len(s.Outbox.Notices))
	}
	s = known(t, observationOf(1, 0, 0)) // the bus confirms nothing: none may be dropped
	for i := range 2 * outbox.MaxNotices {
		s.Outbox.Note(observationOf(uint64(i+2), 9000-i, 0))
	}
	s.Outbox.Confirmed("unknown")
	if n := len(s.Outbox.Notices); n < 2*outbox.MaxNotices {
		t.Errorf("%d of %d are left", n, 2*outbox.MaxNotices)
	}
	if _, said := tell(s); len(said) == 0 || said[0] != fmt.Sprintf("JobStart %s", noon.Add(-9000*time.Minute).Format(time.RFC3339)) {
		t.Errorf("begins with %.1q", said)
	}
}

// TestAnnouncementsRestAfterARefusal, ever longer, before and after the inventory, and for a second again after a confirmation.
// The status of the Job does not show it, and the Job goes on.
func TestAnnouncementsRestAfterARefusal(t *testing.T) {
	for name, s := range map[string]State{"the Job is known": known(t, observationOf(1, 0, 0)), "it is not": {}} {
		t.Run(name, func(t *testing.T) {
			f := New(DefaultLimits())
			now := noon
			announced := func(facts ...events.Event) (id string) {
				var effects []effect.Effect
				s, effects = f.Decide(s, facts, now)
				for _, e := range effects {
					switch e := e.(type) {
					case effect.Announce:
						id = events.PublicID(e.Event)
					case effect.WriteJobStatus:
						if _, refused := (&events.Job{Status: e.Status}).Condition(v1alpha1.RefusedCondition); refused {
							t.Errorf("wanted %v", e)
						}
					}
				}
				return id
			}
			refused := func() { announced(effect.Unconfirmed(errors.New("timeout"), now)) }
			start := announced(events.JobObserved{Job: observationOf(9, 1, 0)})
			if start == "" {
				t.Fatal("nothing is announced")
			}
			for _, rest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
				refused()
				if now = now.Add(rest - 1); announced() != "" {
					t.Errorf("it does not rest for %v", rest)
				}
				if now = now.Add(1); announced() != start {
					t.Errorf("it is not tried again after %v", rest)
				}
			}
			if announced(events.Announced{ID: start}, events.JobObserved{Job: observationOf(10, 1, 1)}) == "" {
				t.Error("the next one rests after a confirmation")
			}
			refused()
			if now = now.Add(time.Second); announced() == "" {
				t.Error("it rests for more than a second")
			}
		})
	}
}
