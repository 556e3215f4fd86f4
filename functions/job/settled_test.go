package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/pod"
)

// How many failed Pods stay if a Job limits them (jobstream.dev/failed-pods-limit). Transcript: failed_pods_limit.

// TestAPodWithAnotherFinalizerIsDeletedOnce: a failed Pod beyond jobstream.dev/failed-pods-limit has another finalizer too,
// perhaps from the Job's own template, and stays for a while.
func TestAPodWithAnotherFinalizerIsDeletedOnce(t *testing.T) {
	for _, finished := range []bool{false, true} {
		t.Run(map[bool]string{false: "the Job runs", true: "the Job is finished"}[finished], func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(0) })
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
			w.receive(events.PodObserved{Pod: a})
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

// oneFailedStays returns a Job that keeps at most one failed Pod, and has counted one, beside one that runs.
func oneFailedStays(t *testing.T) (*world, events.Pod) {
	t.Helper()
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	a.Version = 1000 // newer than the inventory
	w.receive(events.PodObserved{Pod: a})
	return w, a
}

// TestAKeptPodThatGoesIsNotCountedAsOneThatStays: a user deletes the one failed Pod that may stay, and an observation from before
// arrives late. It does not take the place of the next one.
func TestAKeptPodThatGoesIsNotCountedAsOneThatStays(t *testing.T) {
	w, a := oneFailedStays(t)
	before := a
	a.Deleting, a.Version = true, a.Version+1000
	w.receive(events.PodObserved{Pod: a})
	w.receive(events.PodObserved{Pod: before})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAKeptPodThatIsNotFoundIsNotCountedAsOneThatStays: a request has found that it is gone. Such an answer has no version.
func TestAKeptPodThatIsNotFoundIsNotCountedAsOneThatStays(t *testing.T) {
	w, a := oneFailedStays(t)
	w.receive(events.PodGone{Pod: events.Pod{Name: a.Name, UID: a.UID, Serial: a.Serial, Index: events.NoIndex}})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAKeptPodThatIsGoneDoesNotComeBack: its deletion was not observed, and an observation from before arrives late. The next one
// stays.
func TestAKeptPodThatIsGoneDoesNotComeBack(t *testing.T) {
	for _, known := range []bool{true, false} {
		for name, late := range map[string]func(*world, events.Pod) events.Event{
			"an observation": func(_ *world, p events.Pod) events.Event { return events.PodObserved{Pod: p} },
			"a snapshot": func(w *world, p events.Pod) events.Event {
				list := w.api.List("relist", w.uid)
				list.Version, list.Pods = p.Version, []events.Pod{p, list.Pods[slices.IndexFunc(list.Pods, func(p events.Pod) bool { return p.Name == "b" })]}
				return list
			},
		} {
			t.Run(fmt.Sprintf("%s of one that was known: %v", name, known), func(t *testing.T) {
				w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
				w.with("b", func(p *events.Pod) { p.Serial = 1 })
				w.wake()
				a := w.with("a", func(p *events.Pod) {
					p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(time.Hour)
				})
				if known {
					w.receive(events.PodObserved{Pod: a})
				}
				gone := a
				gone.Version++
				w.receive(events.PodGone{Pod: gone})
				w.receive(late(w, a))
				w.ends("b", events.Failed)
				w.wait(5 * time.Second)
				if n := count[effect.DeletePod](w); n > 0 {
					t.Errorf("wanted %v", w.done)
				}
			})
		}
	}
}

// TestAKeptPodThatWasTakenForGoneCountsAgain: a user has removed its labels, which ends the watch of it, and restored them.
func TestAKeptPodThatWasTakenForGoneCountsAgain(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.receive(events.PodObserved{Pod: a})
	a.Version++
	w.receive(events.PodGone{Pod: a})
	a.Version++
	w.receive(events.PodObserved{Pod: a})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n != 1 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestALateObservationOfAKeptPodIsHistory: the Pod ran at the time, and its name shows no serial. It does not wait for one again.
func TestALateObservationOfAKeptPodIsHistory(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	w.wake()
	a := events.Pod{Name: "a", UID: "a", Owner: "pi", Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Failed, Finished: w.now, Version: 1001}
	before := a
	before.Phase, before.Version = events.Running, 1000
	if once := w.remembers(events.PodObserved{Pod: a}); w.remembers(events.PodObserved{Pod: a}, events.PodObserved{Pod: before}) != once {
		t.Error("the late observation is in the state")
	}
}

// TestALateObservationOfAPodThatHasLeftIsHistory: two observations of a Pod leave the same state in either order. If the Pod no longer belongs
// to the Job, the older one proves that it was counted only if it had failed and ended by then.
func TestALateObservationOfAPodThatHasLeftIsHistory(t *testing.T) {
	left := func(p *events.Pod) { p.Orphan, p.Labels = true, map[string]string{"debug": "me"} }
	for name, c := range map[string]struct{ before, after func(*events.Pod) }{
		"it ran, and is no longer the Job's":            {func(p *events.Pod) { p.Phase, p.Held = events.Running, true }, left},
		"it ran without the finalizer, and then left":   {func(p *events.Pod) { p.Phase = events.Running }, left},
		"it had failed, was still held, and then left":  {func(p *events.Pod) { p.Held = true }, left},
		"it had failed, was counted, and then left":     {func(*events.Pod) {}, left},
		"it had succeeded, was counted, and then left":  {func(p *events.Pod) { p.Phase = events.Succeeded }, left},
		"it ran, and is selected by labels that differ": {func(p *events.Pod) { p.Phase, p.Held = events.Running, true }, func(p *events.Pod) { p.Labels = map[string]string{"debug": "me"} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
			w.wake()
			before := events.Pod{Name: "a", UID: "a", Owner: "pi", Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Failed, Finished: w.now, Version: 1000}
			after := before
			c.before(&before)
			after.Phase, after.Held, after.Version = before.Phase, before.Held, 1001
			c.after(&after)
			inOrder := w.remembers(events.PodObserved{Pod: before}, events.PodObserved{Pod: after})
			if turned := w.remembers(events.PodObserved{Pod: after}, events.PodObserved{Pod: before}); turned != inOrder {
				t.Errorf("two orders leave two states:\n%q\n%q", inOrder, turned)
			}
		})
	}
}

// TestASerialOfAPodThatIsGoneIsNotGivenAgain: the Pod has failed, was counted, and is gone, and that is observed before its failure.
func TestASerialOfAPodThatIsGoneIsNotGivenAgain(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	w.wake()
	const serial = 5000 // of a state that is lost
	a := events.Pod{Name: pod.Name("pi", w.uid, serial, events.NoIndex), UID: "a", Owner: "pi", Serial: serial, Index: events.NoIndex, Phase: events.Failed, Finished: w.now, Version: 1000}
	gone := a
	gone.Version++
	w.receive(events.PodGone{Pod: gone}, events.PodObserved{Pod: a})
	w.ends(w.pods()[0].Name, events.Failed)
	w.wait(time.Minute)
	var serials []int
	for _, e := range w.done {
		if c, ok := e.(effect.CreatePod); ok {
			serials = append(serials, c.Serial)
		}
	}
	if len(serials) != 2 || serials[1] != serial+1 {
		t.Errorf("created with %v, want %d at last", serials, serial+1)
	}
}

// TestPodsThatAreGoneDoNotFillTheState: thousands of failed Pods are removed before a snapshot comes. A late observation of the
// last one does not restore it.
func TestPodsThatAreGoneDoNotFillTheState(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(0) })
	w.wake()
	var all []events.Event
	for i := range 5000 {
		gone := events.Pod{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Owner: "pi", Serial: 100 + i, Index: events.NoIndex, Phase: events.Failed, Version: uint64(1000 + i)}
		all = append(all, events.PodGone{Pod: gone})
	}
	w.receive(all...)
	if n := len(w.state); n > 20_000 {
		t.Errorf("the state has %d bytes", n)
	}
	last := all[len(all)-1].(events.PodGone).Pod
	last.Version--
	w.receive(events.PodObserved{Pod: last})
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAKeptPodThatAUserHasTakenIsNotDeleted: a user has taken it out of the Job in order to inspect it.
func TestAKeptPodThatAUserHasTakenIsNotDeleted(t *testing.T) {
	w, a := oneFailedStays(t)
	a.Orphan, a.Labels, a.Version = true, map[string]string{"debug": "me"}, 2000
	w.receive(events.PodObserved{Pod: a})
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestManyFailedPodsGoAFewAtATime, as all that one plan deletes.
func TestManyFailedPodsGoAFewAtATime(t *testing.T) {
	const many, most = 1200, 500
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = new(0) })
	for i := range many {
		w.with(fmt.Sprint(i), func(p *events.Pod) {
			p.Serial, p.Phase, p.Held, p.Finished = i, events.Failed, false, w.now.Add(-time.Hour)
		})
	}
	w.status(func(s *batchv1.JobStatus) { s.Failed = many })
	w.inbox = []events.Event{events.TimerFired{Name: "wake"}}
	for len(w.inbox) > 0 {
		before := count[effect.DeletePod](w)
		w.act(w.decide())
		if n := count[effect.DeletePod](w) - before; n > most {
			t.Fatalf("%d at once", n)
		}
	}
	if n := count[effect.DeletePod](w); n != many {
		t.Errorf("%d of %d were deleted", n, many)
	}
}

// TestAPodThatCameAndWentUnseenIsNotKept: its serial is still intended when the Pod is gone, and the observation of its failure
// arrives late. The Pod that fails next stays.
func TestAPodThatCameAndWentUnseenIsNotKept(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
		j.Options.FailedPodsLimit, j.Parallelism, j.Completions = new(1), 2, new(int32(2))
	})
	var unseen events.Pod
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		c, ok := e.(effect.CreatePod)
		if ok && unseen.UID == "" {
			unseen = events.Pod{Name: c.Name, UID: "unseen", Owner: "pi", Serial: c.Serial, Index: events.NoIndex, Phase: events.Failed, Finished: w.now.Add(time.Hour)}
		}
		return nil, ok && c.Serial == unseen.Serial
	}
	w.wake()
	unseen.Version = 1000
	gone := unseen
	gone.Version++
	w.receive(events.PodGone{Pod: gone})
	w.receive(events.PodObserved{Pod: unseen})
	w.ends(w.pods()[0].Name, events.Failed)
	w.wait(5 * time.Second)
	for _, e := range w.done {
		if d, ok := e.(effect.DeletePod); ok {
			t.Errorf("deleted %s", d.Name)
		}
	}
}

// TestALimitThatComesWithWhatHasGone: a failed Pod is removed, and its Job's limit is set or removed at the same time. The order
// and number of the observations change nothing. An observation from before does not restore the Pod if there is a limit by then.
func TestALimitThatComesWithWhatHasGone(t *testing.T) {
	for name, c := range map[string]struct {
		was, is *int
		version uint64
	}{
		"set":       {nil, new(1), 1000},
		"taken off": {new(1), nil, 1000},
		"taken off, and a list has shown that the Pod has gone": {new(1), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = c.was })
			w.with("b", func(p *events.Pod) { p.Serial = 1 })
			w.wake()
			a := events.Pod{Name: "a", UID: "a", Owner: "pi", Index: events.NoIndex, Phase: events.Failed, Finished: w.now.Add(time.Hour), Version: c.version}
			gone := a
			gone.Deleting, gone.Version = true, a.Version+1
			w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.FailedPodsLimit = c.is })
			facts := []events.Event{events.PodGone{Pod: gone}, events.JobObserved{Job: w.job()}}
			once := w.remembers(facts...)
			if w.remembers(slices.Concat(facts, facts)...) != once {
				t.Error("observed twice, the state differs")
			}
			if w.remembers(facts[1], facts[0]) != once {
				t.Error("observed in the other order, the state differs")
			}
			w.inbox = nil
			w.receive(facts...)
			w.receive(events.PodObserved{Pod: a})
			w.ends("b", events.Failed)
			w.wait(5 * time.Second)
			if n := count[effect.DeletePod](w); n > 0 {
				t.Errorf("wanted %v", w.done)
			}
		})
	}
}

// TestAnObservationThatAListHasPassedChangesNothing: a Pod that was never observed is removed, and an observation of it arrives
// together with a list that no longer has it. If both are delivered twice, the list comes last, and the state is the same.
func TestAnObservationThatAListHasPassedChangesNothing(t *testing.T) {
	for name, limit := range map[string]*int{"failed Pods are limited": new(1), "they are not": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Options.FailedPodsLimit = limit })
			var unseen events.Pod
			w.answer = func(e effect.Effect) ([]events.Event, bool) {
				c, ok := e.(effect.CreatePod)
				if ok {
					unseen = events.Pod{Name: c.Name, UID: "unseen", Owner: "pi", Serial: c.Serial, Index: events.NoIndex, Version: 1000, Phase: events.Failed, Deleting: true}
				}
				return nil, ok
			}
			w.wake()
			list := w.api.List("relist", w.uid)
			list.Version = 1001
			facts := []events.Event{list, events.PodObserved{Pod: unseen}}
			if w.remembers(facts...) != w.remembers(slices.Concat(facts, facts)...) {
				t.Error("observed twice, the state differs")
			}
		})
	}
}

// TestACountedPodThatWasReleasedAndAdoptedAgain: the order in which its observations arrive decides nothing.
func TestACountedPodThatWasReleasedAndAdoptedAgain(t *testing.T) {
	for _, limit := range []*int{nil, new(1)} {
		w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
			j.Parallelism, j.Completions, j.Options.FailedPodsLimit = 1, new(int32(1)), limit
		})
		p := w.with(pod.Name("pi", w.uid, 0, events.NoIndex), func(p *events.Pod) { p.Serial, p.Phase, p.Finished = 0, events.Failed, w.now })
		w.wake()
		w.wait(time.Minute)
		w.counted(0, 1)
		orphan, own := p, p
		orphan.Version, orphan.Orphan, orphan.Held = p.Version+100, true, true
		own.Version, own.Held = p.Version+101, false
		inOrder := w.remembers(events.PodObserved{Pod: orphan}, events.PodObserved{Pod: own})
		if turned := w.remembers(events.PodObserved{Pod: own}, events.PodObserved{Pod: orphan}); turned != inOrder {
			t.Errorf("with a limit of failed Pods %v: two orders leave two states", limit != nil)
		}
	}
}

// TestAKeptPodThatIsHeldAgainIsNotCountedAgain: a state that was lost has counted the failed Pod. Since a user limits how many may
// stay, a snapshot shows it, and then a user adds the finalizer.
func TestAKeptPodThatIsHeldAgainIsNotCountedAgain(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Completions, j.NextSerial = new(int32(2)), 2 })
	w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.status(func(s *batchv1.JobStatus) { s.Failed = 1 })
	w.wake()
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	w.settle()
	w.receive(w.api.List("relist", w.uid))
	w.change("a", func(p *events.Pod) { p.Held = true })
	w.wait(time.Minute)
	w.counted(0, 1)
	if n := count[effect.RemoveFinalizer](w) + count[effect.DeletePod](w); n == 0 {
		t.Errorf("it stays held: %v", w.done)
	}
}
