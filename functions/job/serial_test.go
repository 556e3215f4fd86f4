package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/pod"
)

// A Pod is identified by its serial, an annotation, and annotations can be lost, copied and edited.

// complete checks that this many Pods have succeeded, that the Job counts them, and that no Pod ended any other way.
func complete(t *testing.T, w *world, pods int32) {
	t.Helper()
	w.wait(time.Minute)
	w.counted(pods, 0)
	if j := w.job(); !j.Finished() {
		t.Errorf("the Job is not finished: %v", j.Status.Conditions)
	}
	if n := count[effect.DeletePod](w); n > 0 {
		t.Errorf("%d Pods were deleted", n)
	}
	if left := w.pods(); len(left) > 0 {
		t.Errorf("Pods are left: %v", left)
	}
}

// TestTwoPodsWithOneSerialBothCount: two states gave the same serial to two Pods that they found, or a user has copied a Pod with
// "kubectl get -o yaml". The second one gets a serial of its own.
func TestTwoPodsWithOneSerialBothCount(t *testing.T) {
	two := func(j *events.Job) { j.Parallelism, j.Completions = 2, new(int32(2)) }
	first := func(p *events.Pod) { p.Serial = 0 }
	t.Run("found together", func(t *testing.T) {
		w := newWorld(t, job.DefaultLimits(), two)
		w.with("a", first)
		w.with("b", first)
		w.wake()
		if p := w.pods(); len(p) != 2 || p[0].Serial == p[1].Serial {
			t.Fatalf("got %v", p)
		}
		w.ends("a", events.Succeeded)
		w.ends("b", events.Succeeded)
		complete(t, w, 2)
	})
	t.Run("one comes later", func(t *testing.T) {
		w := newWorld(t, job.DefaultLimits(), two)
		w.api.Refuse = func(effect.CreatePod) (reason, message string) { return "Forbidden", "exceeded quota" }
		w.with("a", first)
		w.wake()
		w.with("copy", first)
		w.settle()
		if p := w.pods(); len(p) != 2 || p[0].Serial == p[1].Serial {
			t.Fatalf("got %v", p)
		}
		w.ends("copy", events.Succeeded)
		w.ends("a", events.Succeeded)
		complete(t, w, 2)
	})
}

// TestACopyDoesNotTakeThePlaceOfAPodThatIsBeingMade: the name of the intended Pod is known, and that Pod keeps its serial in
// whatever order the two are observed.
func TestACopyDoesNotTakeThePlaceOfAPodThatIsBeingMade(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 2, new(int32(2)) })
	w.inbox = []events.Event{events.TimerFired{Name: "wake"}}
	w.act(w.decide())
	effects, serial := w.decide(), 0 // on their way
	for _, e := range effects {
		if c, ok := e.(effect.CreatePod); ok {
			serial = c.Serial
		}
	}
	w.with("copy", func(p *events.Pod) { p.Serial = serial })
	w.settle()
	w.act(effects)
	w.settle()
	for _, p := range w.pods() {
		if (p.Serial == serial) != (p.Name == pod.Name("pi", w.uid, serial, events.NoIndex)) {
			t.Fatalf("%s has the serial %d", p.Name, p.Serial)
		}
	}
	for _, p := range w.pods() {
		if !p.Deleting {
			w.ends(p.Name, events.Succeeded)
		}
	}
	w.wait(time.Minute)
	w.counted(2, 0)
}

// TestANameThatIsUsedAgainMeansThatTheFirstPodIsGone: it was removed by force, and a worker that had not observed that created it
// again. The observations arrive in this order: the second Pod, a late one of the first, its end. The second one counts.
func TestANameThatIsUsedAgainMeansThatTheFirstPodIsGone(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	name := pod.Name("pi", w.uid, 0, events.NoIndex)
	a := w.with(name, func(p *events.Pod) { p.Serial, p.Phase = 0, events.Pending })
	w.wake()
	w.with(name, func(p *events.Pod) { p.Serial, p.Phase = 0, events.Pending })
	w.settle()
	a.Version++
	w.receive(events.PodObserved{Pod: a})
	a.Held = false
	w.receive(events.PodGone{Pod: a})
	w.ends(name, events.Succeeded)
	complete(t, w, 1)
	if n := count[effect.AdoptPod](w) + count[effect.CreatePod](w); n > 0 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAnEditedSerialChangesNothing: the Pod is the same, and gets its serial back if it still runs.
func TestAnEditedSerialChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		serial int
	}{{"none", events.NoSerial}, {"an unused one", 7}, {"that of a Pod that runs", 1}, {"that of a Pod that was counted", 2}} {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ended %v", c.name, ended), func(t *testing.T) {
				w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 3, new(int32(3)) })
				for i, name := range []string{"a", "b", "c"} {
					w.with(name, func(p *events.Pod) { p.Serial = i })
				}
				w.wake()
				w.ends("c", events.Succeeded)
				w.wait(time.Second)
				w.change("a", func(p *events.Pod) {
					if p.Serial = c.serial; ended {
						p.Phase, p.Finished = events.Succeeded, w.now
					}
				})
				w.ends("b", events.Succeeded)
				w.ends("a", events.Succeeded)
				complete(t, w, 3)
				if n := count[effect.CreatePod](w); n > 0 {
					t.Errorf("%d Pods were made besides", n)
				}
			})
		}
	}
}

// TestTheSerialOfAnOrphanIsForeign: it is that of the Job that the orphan comes from. Here an orphan is removed that has the
// serial of a Pod that is just being created.
func TestTheSerialOfAnOrphanIsForeign(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	w.inbox = []events.Event{events.TimerFired{Name: "wake"}}
	w.act(w.decide())
	effects := w.decide()
	for _, e := range effects {
		if c, ok := e.(effect.CreatePod); ok {
			w.receive(events.PodGone{Pod: events.Pod{Name: "old", UID: "old", Version: 1000, Serial: c.Serial, Index: events.NoIndex, Orphan: true}})
		}
	}
	w.act(effects)
	w.settle()
	pods := w.pods()
	if len(pods) != 1 || pods[0].Deleting {
		t.Fatalf("got %v, want one Pod", pods)
	}
	w.ends(pods[0].Name, events.Succeeded)
	complete(t, w, 1)
}
