package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

// What the API server refuses rests: world.settle fails where it is asked again without end. Transcripts: quota*.

// TestPodsRefusedForTheirParametersRest, although the ConfigMap is read again at once and found good: whoever makes the Pod
// may see an older one, or a quota may refuse it.
func TestPodsRefusedForTheirParametersRest(t *testing.T) {
	for _, reason := range []string{"Forbidden", effect.InvalidParameters} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
				j.Indexed, j.Parallelism, j.Completions, j.Wishes.Parameters = true, 3, new(int32(3)), "fruits"
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

// TestAClockThatIsBehindDoesNotSpin: one worker was refused by a clock that is ahead, the next one is refused "before" that.
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
	suspend(true) // nobody wants the Pod any more: the refusal is forgotten
	ahead = 0
	suspend(false)
	if n := count[effect.CreatePod](w); n != 2 {
		t.Errorf("%d Pods were tried", n)
	}
}

// refusing answers each effect that is meant with a refusal, each a moment later than the one before, as a clock has it.
func (w *world) refusing(reason string, meant func(effect.Effect) bool) {
	later := time.Duration(0)
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		if !meant(e) {
			return nil, false
		}
		later += time.Microsecond
		return []events.Event{events.EffectRefused{Effect: e.Kind(), Reason: reason, Message: "no", At: w.now.Add(later)}}, true
	}
}

// TestARefusedStatusIsDecidedAnewForANewerJob and for no older one: the same Job again says nothing new. Else it is tried
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
	w.hear(events.JobObserved{Job: old})
	w.hear(w.api.List("relist", w.uid))
	w.change("a", func(p *events.Pod) { p.Ready = true })
	writes("news that are none of the Job", 1)
	w.api.UpdateJob(w.uid, func(*events.Job) {})
	w.settle()
	writes("a newer Job", 2)
	w.hear(events.JobObserved{Job: old})
	w.hear(events.JobObserved{Job: w.job()})
	writes("the same again", 2)
	w.wait(1500 * time.Millisecond)
	writes("a second", 3)
	w.answer = nil
	w.wait(time.Minute)
	if _, failing := w.job().Condition(batchv1.JobFailureTarget); !failing || count[effect.DeletePod](w) != 1 {
		t.Errorf("it goes on with %v", w.done)
	}
}

// TestAPodThatSomebodyElseHoldsIsDeletedOnce: a failed Pod beyond jobstream.dev/failed-pods-limit has another finalizer too,
// perhaps from the Job's own template, and stays for a while.
func TestAPodThatSomebodyElseHoldsIsDeletedOnce(t *testing.T) {
	for _, finished := range []bool{false, true} {
		t.Run(map[bool]string{false: "the Job runs", true: "the Job is finished"}[finished], func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(0) })
			a := w.with("a", func(p *events.Pod) {
				p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
			})
			w.with("b", func(p *events.Pod) { p.Serial = 1 })
			w.status(func(s *batchv1.JobStatus) { s.Failed = 1 })
			w.answer = func(e effect.Effect) ([]events.Event, bool) {
				if d, ok := e.(effect.DeletePod); ok && d.UID == a.UID {
					a.Deleting, a.Version = true, a.Version+1000
					return []events.Event{events.PodObserved{Pod: a}}, true
				}
				return nil, false
			}
			w.wake()
			if finished {
				w.ends("b", events.Succeeded)
			}
			a.Version++
			w.hear(events.PodObserved{Pod: a})
			w.wait(time.Hour)
			if n := count[effect.DeletePod](w); n != 1 {
				t.Errorf("it was deleted %d times", n)
			}
			if w.rests != finished {
				t.Errorf("the Job may be forgotten: %v", w.rests)
			}
		})
	}
}

// TestAKeptPodThatGoesIsNotCountedAsOneThatStays: somebody deletes the one failed Pod that may stay, and a sight of before comes
// late. It does not take the place of the next one.
func TestAKeptPodThatGoesIsNotCountedAsOneThatStays(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(1) })
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	a.Version = 1000 // newer than the inventory
	w.hear(events.PodObserved{Pod: a})
	before := a
	a.Deleting, a.Version = true, a.Version+1000
	w.hear(events.PodObserved{Pod: a})
	w.hear(events.PodObserved{Pod: before})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAKeptPodThatIsGoneDoesNotComeBack: it has gone before anybody has seen that it goes, and what was seen before comes late.
// The next one stays.
func TestAKeptPodThatIsGoneDoesNotComeBack(t *testing.T) {
	for _, known := range []bool{true, false} {
		for name, late := range map[string]func(*world, events.Pod) events.Event{
			"a sight": func(_ *world, p events.Pod) events.Event { return events.PodObserved{Pod: p} },
			"a roster": func(w *world, p events.Pod) events.Event {
				list := w.api.List("relist", w.uid)
				list.Version, list.Pods = p.Version, []events.Pod{p, list.Pods[slices.IndexFunc(list.Pods, func(p events.Pod) bool { return p.Name == "b" })]}
				return list
			},
		} {
			t.Run(fmt.Sprintf("%s of one that was known: %v", name, known), func(t *testing.T) {
				w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(1) })
				w.with("b", func(p *events.Pod) { p.Serial = 1 })
				w.wake()
				a := w.with("a", func(p *events.Pod) {
					p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(time.Hour)
				})
				if known {
					w.hear(events.PodObserved{Pod: a})
				}
				gone := a
				gone.Version++
				w.hear(events.PodGone{Pod: gone})
				w.hear(late(w, a))
				w.ends("b", events.Failed)
				w.wait(5 * time.Second)
				if n := count[effect.DeletePod](w); n > 0 {
					t.Errorf("wanted %v", w.done)
				}
			})
		}
	}
}

// TestAKeptPodThatWasTakenForGoneCountsAgain: somebody has taken its labels off, which ends our watch of it, and put them back.
func TestAKeptPodThatWasTakenForGoneCountsAgain(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(1) })
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.hear(events.PodObserved{Pod: a})
	a.Version++
	w.hear(events.PodGone{Pod: a})
	a.Version++
	w.hear(events.PodObserved{Pod: a})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n != 1 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestPodsThatAreGoneDoNotFillTheMemory: thousands of failed Pods go before a roster comes.
func TestPodsThatAreGoneDoNotFillTheMemory(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(0) })
	w.wake()
	var all []events.Event
	for i := range 5000 {
		gone := events.Pod{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Owner: "pi", Serial: 100 + i, Index: events.NoIndex, Phase: events.Failed, Version: uint64(1000 + i)}
		all = append(all, events.PodGone{Pod: gone})
	}
	w.hear(all...)
	if n := len(w.state); n < 10_000 || n > 100_000 {
		t.Errorf("the state has %d bytes", n)
	}
}

// TestAKeptPodThatAUserHasTakenIsNotDeleted: somebody has taken it out of the Job in order to look at it.
func TestAKeptPodThatAUserHasTakenIsNotDeleted(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Wishes.FailedPodsLimit = new(1) })
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	a.Version = 1000 // newer than the inventory
	w.hear(events.PodObserved{Pod: a})
	a.Orphan, a.Labels, a.Version = true, map[string]string{"debug": "me"}, 2000
	w.hear(events.PodObserved{Pod: a})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAPodThatCannotBeReleasedIsCountedLater, and the others at once (upstream: "pod patch errors").
func TestAPodThatCannotBeReleasedIsCountedLater(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 3, new(int32(3)) })
	for i, name := range []string{"a", "b", "c"} {
		w.with(name, func(p *events.Pod) { p.Serial, p.Phase, p.Finished = i, events.Succeeded, w.now })
	}
	w.refusing("InternalError", func(e effect.Effect) bool { r, ok := e.(effect.ReleasePod); return ok && r.Name == "b" })
	w.wake()
	w.wait(5 * time.Second)
	s := w.job().Status
	if s.Succeeded != 2 || len(s.UncountedTerminatedPods.Succeeded) != 1 || w.job().Finished() {
		t.Errorf("got %+v", s)
	}
	w.answer = nil
	complete(t, w, 3)
}
