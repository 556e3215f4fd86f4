package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Before the inventory, the function remembers whether it needs one, and no more.
func TestWhatNeedsAnInventory(t *testing.T) {
	finished := events.Job{Version: 1, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
	for _, c := range []struct {
		name string
		e    events.Event
		want bool
	}{
		{"a Job that runs", events.JobObserved{Job: events.Job{Version: 1}}, true},
		{"another controller's", events.JobObserved{Job: events.Job{Version: 1, Foreign: true}}, false},
		{"a Job that has finished", events.JobObserved{Job: finished}, false},
		{"a Job that is gone", events.JobGone{}, false},
		{"a Pod that runs", events.PodObserved{Pod: events.Pod{Phase: events.Running, Held: true}}, true},
		{"a Pod that runs and has lost its finalizer", events.PodObserved{Pod: events.Pod{Phase: events.Running}}, true},
		{"a Pod that has ended and is not counted", events.PodObserved{Pod: events.Pod{Phase: events.Succeeded, Held: true}}, true},
		{"a Pod that was counted", events.PodObserved{Pod: events.Pod{Phase: events.Succeeded}}, false},
		{"a part of a snapshot", events.JobPartListed{JobListed: events.JobListed{Job: &finished}}, true},
		{"a part of a snapshot without the Job", events.JobPartListed{}, true},
		{"a timer", events.TimerFired{Name: "wake"}, true},
	} {
		s := State{limits: DefaultLimits()}
		if s = observeUnsynced(s, c.e); s.NeedsSync != c.want || s.Known || len(s.Pods) > 0 || s.Job.Version > 0 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// Of refusals, only those are remembered that the function can meet before the inventory: of the inventory itself, and of the status
// write of a Job whose state is too large.
func TestRefusalsBeforeTheInventory(t *testing.T) {
	for _, c := range []struct {
		name      string
		kind      string
		overgrown int
		want      int
	}{
		{"of the inventory", effect.KindTakeInventory, 0, 1},
		{"of the inventory of an overgrown Job", effect.KindTakeInventory, 1, 1},
		{"of the status of an overgrown Job", effect.KindWriteJobStatus, 1, 1},
		{"of a status, by a lost memory", effect.KindWriteJobStatus, 0, 0},
		{"of a Pod, by a lost memory", effect.KindCreatePod, 0, 0},
		{"of a Pod of an overgrown Job", effect.KindCreatePod, 1, 0},
	} {
		s := observeUnsynced(State{Pacing: Pacing{Overgrown: Overgrown{Count: c.overgrown}}}, events.EffectRefused{Effect: c.kind, Reason: "Forbidden", At: noon})
		if len(s.Waits) != c.want {
			t.Errorf("%s: %v", c.name, s.Waits)
		}
	}
}

// Of an overgrown Job the newest observation is remembered, for the status write that says so. Its deletion ends the wait.
func TestAnOvergrownJobIsRemembered(t *testing.T) {
	for _, c := range []struct {
		name    string
		count   int
		has, is events.Job
		version uint64
		waits   bool
	}{
		{name: "a newer observation", count: 1, has: events.Job{Version: 5}, is: events.Job{Version: 6, Name: "new"}, version: 6, waits: true},
		{name: "the same once more", count: 1, has: events.Job{Version: 5}, is: events.Job{Version: 5, Deleting: true}, version: 5, waits: true},
		{name: "an older one", count: 1, has: events.Job{Version: 5}, is: events.Job{Version: 4, Deleting: true}, version: 5, waits: true},
		{name: "it is being deleted", count: 1, has: events.Job{Version: 5}, is: events.Job{Version: 6, Deleting: true}, version: 6, waits: false},
		{name: "it was being deleted before", count: 1, has: events.Job{Version: 5, Deleting: true}, is: events.Job{Version: 6, Deleting: true}, version: 6, waits: true},
		{name: "one that is not overgrown", count: 0, is: events.Job{Version: 6}, version: 0, waits: true},
	} {
		s := State{Job: c.has, Pacing: Pacing{Overgrown: Overgrown{Count: c.count, Until: noon}}, limits: DefaultLimits()}
		s = observeUnsynced(s, events.JobObserved{Job: c.is})
		if s.Job.Version != c.version || s.Overgrown.Until.IsZero() == c.waits {
			t.Errorf("%s: version %d, waits until %s", c.name, s.Job.Version, s.Overgrown.Until)
		}
	}
	for count, want := range map[int]bool{0: false, 1: true} {
		s := State{Pacing: Pacing{Overgrown: Overgrown{Count: count, Until: noon}}}
		if s = observeUnsynced(s, events.JobGone{}); s.Gone != want || s.Overgrown.Until.IsZero() != want {
			t.Errorf("count %d: gone is %v, waits until %s", count, s.Gone, s.Overgrown.Until)
		}
		s.Overgrown.Until = noon
		if s = observeUnsynced(s, events.JobGone{}); s.Overgrown.Until.IsZero() {
			t.Error("told twice: the wait ends twice")
		}
	}
}

// A Job is removed piecemeal if its Pods together made the state too large, and it is being deleted or gone.
func TestPiecemeal(t *testing.T) {
	for _, c := range []struct {
		count          int
		gone, deleting bool
		want           bool
	}{{0, false, true, false}, {0, true, false, false}, {1, false, false, false}, {1, true, false, true}, {1, false, true, true}, {2, true, true, true}} {
		s := State{Gone: c.gone, Job: events.Job{Deleting: c.deleting}, Pacing: Pacing{Overgrown: Overgrown{Count: c.count}}}
		if got := s.piecemeal(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
