package job_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

// Refused effects are delayed: world.settle fails if one is repeated without end. Transcripts: quota*.

// TestPodsRefusedForTheirParametersRest, although the ConfigMap is read again at once and found good: the worker that creates the
// Pod may see an older one, or a quota may refuse it.
func TestPodsRefusedForTheirParametersRest(t *testing.T) {
	for _, reason := range []string{"Forbidden", effect.InvalidParameters} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
				j.Indexed, j.Parallelism, j.Completions, j.Options.Parameters = true, 3, new(int32(3)), "fruits"
			})
			w.api.SetValues("fruits", &sim.Values{Count: 3})
			w.api.Refuse = func(effect.CreatePod) (string, string) { return reason, "no" }
			w.wake()
			w.wait(time.Minute)
			if n := count[effect.CreatePod](w); n < 3 || n > 7 { // after 1, 3, 7, 15, 31 s
				t.Errorf("%d Pods were tried within a minute", n)
			}
			if n := count[effect.ReadParameters](w); n > 7 {
				t.Errorf("the ConfigMap was read %d times within a minute", n)
			}
			if c, is := w.job().Condition(v1alpha1.RefusedCondition); !is || c.Reason != reason {
				t.Errorf("the condition is %v", c)
			}
			w.api.Refuse = nil
			w.wait(time.Minute)
			if n := len(w.pods()); n != 3 {
				t.Errorf("%d Pods run once they may", n)
			}
		})
	}
}

// TestAClockThatIsBehindDoesNotSpin: the clock of the worker that was refused first is ahead, so the next refusal is "before" it.
func TestAClockThatIsBehindDoesNotSpin(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	ahead := 3 * time.Second
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		if c, ok := e.(effect.CreatePod); ok {
			return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: c.Serial, Reason: "Forbidden", At: w.now.Add(ahead)}}, true
		}
		return nil, false
	}
	w.wake()
	suspend := func(yes bool) {
		w.api.UpdateJob(w.uid, func(j *events.Job) { j.Suspended = yes })
		w.settle()
	}
	suspend(true) // the Pod is not wanted any more: the refusal is forgotten
	ahead = 0
	suspend(false)
	if n := count[effect.CreatePod](w); n != 2 {
		t.Errorf("%d Pods were tried", n)
	}
}

// refusing answers each selected effect with a refusal, each a moment later than the one before, as on a real clock.
func (w *world) refusing(reason string, meant func(effect.Effect) bool) {
	later := time.Duration(0)
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		if !meant(e) {
			return nil, false
		}
		later += time.Microsecond
		return []events.Event{events.EffectRefused{Effect: e.Kind(), Name: effect.Subject(e), Reason: reason, Message: "no", At: w.now.Add(later)}}, true
	}
}

// TestARefusedStatusIsDecidedAnewForANewerJob and for no older one: the same Job again is no news. Else it is tried
// again when its time has come.
func TestARefusedStatusIsDecidedAnewForANewerJob(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.ActiveDeadlineSeconds = new(int64(30)) })
	w.with("a", func(p *events.Pod) { p.Serial = 0 })
	w.refusing("Invalid", func(e effect.Effect) bool { _, ok := e.(effect.WriteJobStatus); return ok })
	writes := func(after string, want int) {
		t.Helper()
		if n := count[effect.WriteJobStatus](w); n != want {
			t.Fatalf("after %s it was written %d times, want %d", after, n, want)
		}
	}
	w.wake()
	writes("the deadline", 1)
	old := w.job()
	w.receive(events.JobObserved{Job: old})
	w.receive(w.api.List("relist", w.uid))
	w.change("a", func(p *events.Pod) { p.Ready = true })
	writes("news that are none of the Job", 1)
	w.api.UpdateJob(w.uid, func(*events.Job) {})
	w.settle()
	writes("a newer Job", 2)
	w.receive(events.JobObserved{Job: old})
	w.receive(events.JobObserved{Job: w.job()})
	writes("the same again", 2)
	w.wait(1500 * time.Millisecond)
	writes("a second", 3)
	w.answer = nil
	w.wait(time.Minute)
	if _, failing := w.job().Condition(batchv1.JobFailureTarget); !failing || count[effect.DeletePod](w) != 1 {
		t.Errorf("it goes on with %v", w.done)
	}
}

// TestAPodThatKeepsItsFinalizerIsCountedLater, and the others at once (upstream: "pod patch errors").
func TestAPodThatKeepsItsFinalizerIsCountedLater(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 3, new(int32(3)) })
	for i, name := range []string{"a", "b", "c"} {
		w.with(name, func(p *events.Pod) { p.Serial, p.Phase, p.Finished = i, events.Succeeded, w.now })
	}
	w.refusing("InternalError", func(e effect.Effect) bool { r, ok := e.(effect.RemoveFinalizer); return ok && r.Name == "b" })
	w.wake()
	w.wait(5 * time.Second)
	s := w.job().Status
	if s.Succeeded != 2 || len(s.UncountedTerminatedPods.Succeeded) != 1 || w.job().Finished() {
		t.Errorf("got %+v", s)
	}
	w.answer = nil
	complete(t, w, 3)
}

// TestARefusedDeletionDoesNotHideTheNext, however few may be made at once, and is not repeated without end.
func TestARefusedDeletionDoesNotHideTheNext(t *testing.T) {
	limits := job.DefaultLimits()
	limits.MaxPodChanges = 1
	w := newWorld(t, limits, func(j *events.Job) {
		j.Parallelism, j.Completions, j.ActiveDeadlineSeconds = 4, new(int32(4)), new(int64(30))
	})
	for i, name := range []string{"a", "b", "c", "d"} {
		w.with(name, func(p *events.Pod) { p.Serial = i })
	}
	kept := map[string]bool{"a": true, "b": true}
	w.refusing("Forbidden", func(e effect.Effect) bool { d, ok := e.(effect.DeletePod); return ok && kept[d.Name] })
	w.wake()
	w.wait(500 * time.Millisecond)
	for _, p := range w.pods() {
		if p.Deleting == kept[p.Name] {
			t.Errorf("Pod %s is being deleted: %v", p.Name, p.Deleting)
		}
	}
	if n := count[effect.DeletePod](w); n != 4 {
		t.Errorf("%d deletions were tried at once, want one of each Pod", n)
	}
	w.answer = nil
	w.wait(time.Minute)
	if n := count[effect.DeletePod](w); n != 6 {
		t.Errorf("%d deletions were tried in the end, want two more", n)
	}
}
