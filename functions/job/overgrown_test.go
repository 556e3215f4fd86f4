package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// A Job whose state is too large for the bus is deleted. Its Pods lose their finalizer, a part at a time, although all of them never fit.
// Those that the garbage collector has deleted disappear only then. Transcript of a Job that is not deleted: state_too_large.
func TestPodsOfAnOvergrownJobThatGoesLoseTheirFinalizer(t *testing.T) {
	const many, free, atOnce = 95, 30, 10
	for name, remove := range map[string]func(w *world){
		"it is gone":          func(w *world) { w.api.DeleteJob(w.uid) },
		"it is being deleted": func(w *world) { w.api.UpdateJob(w.uid, func(j *events.Job) { j.Deleting = true }) },
		"its deletion was not observed": func(w *world) {
			w.api.DeleteJob(w.uid)
			w.inbox, w.timer = nil, w.now.Add(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			limits := job.DefaultLimits()
			limits.MaxPodChanges = atOnce
			w := newWorld(t, limits, func(j *events.Job) { j.Parallelism, j.Completions = many, new(int32(many)) })
			for i := range many {
				w.with(fmt.Sprintf("held-%d", i), func(p *events.Pod) { p.Serial = i })
			}
			for i := range free { // these say nothing about those that are held
				w.with(fmt.Sprintf("free-%d", i), func(p *events.Pod) { p.Serial, p.Held = many+i, false })
			}
			w.most = 5_000
			w.wake()
			if s := w.job().Status.Conditions; len(s) != 1 || s[0].Reason != effect.StateTooLarge {
				t.Fatalf("wanted %v, has the conditions %v", w.done, s)
			}
			w.done = nil
			remove(w)
			w.settle()
			w.wait(30 * time.Minute)
			for _, p := range w.pods() {
				if p.Held {
					t.Errorf("%s is held after %v", p.Name, w.done)
				}
			}
			if n := count[effect.TakeInventory](w); n > 2+many/atOnce {
				t.Errorf("it took %d inventories", n)
			}
			if gone := w.api.List("", w.uid).Job == nil; w.rests != gone {
				t.Errorf("the Job is gone: %v, it may be forgotten: %v", gone, w.rests)
			}
		})
	}
}

// A webhook refuses to have the finalizer of some Pods removed. That does not delay the others, even if more are refused than one part has. The
// next part is listed as often as necessary, and the refused ones with increasing delays.
func TestPodsOfAnOvergrownJobThatAreRefusedDoNotKeepTheOthers(t *testing.T) {
	const many, atOnce = 95, 10
	for _, refused := range []int{1, atOnce - 1, atOnce, 3 * atOnce, many} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d are refused, the Job is gone: %v", refused, gone), func(t *testing.T) {
				limits := job.DefaultLimits()
				limits.MaxPodChanges = atOnce
				w := newWorld(t, limits, func(j *events.Job) { j.Parallelism, j.Completions = many, new(int32(many)) })
				kept := map[string]bool{}
				for i := range many {
					name := fmt.Sprintf("held-%d", i)
					kept[name] = i < refused
					w.with(name, func(p *events.Pod) { p.Serial = i })
				}
				w.most = 5_000
				w.wake()
				w.done, w.most = nil, 0
				w.answer = func(e effect.Effect) ([]events.Event, bool) {
					r, ok := e.(effect.RemoveFinalizer)
					if !ok || !kept[r.Name] {
						return nil, false
					}
					return []events.Event{events.EffectRefused{Effect: e.Kind(), Name: r.Name, Serial: events.NoSerial, Reason: "Forbidden", Message: "webhook", At: w.now}}, true
				}
				if gone {
					w.api.DeleteJob(w.uid)
				} else {
					w.api.UpdateJob(w.uid, func(j *events.Job) { j.Deleting = true })
				}
				w.settle()
				w.wait(time.Minute)
				for _, p := range w.pods() {
					if p.Held && !kept[p.Name] {
						t.Errorf("%s is held", p.Name)
					}
				}
				asked, tried := count[effect.TakeInventory](w), count[effect.RemoveFinalizer](w)
				if asked > 2+many/atOnce {
					t.Errorf("it took %d inventories", asked)
				}
				w.wait(time.Hour)
				if n := count[effect.TakeInventory](w) - asked; n > 0 {
					t.Errorf("%d further inventories in an hour", n)
				}
				if n := count[effect.RemoveFinalizer](w) - tried; n > 62*refused {
					t.Errorf("%d were tried %d times in an hour", refused, n)
				}
			})
		}
	}
}

// A change to a Job that is being deleted, such as a label or a finalizer, does not make its state too large once more: that
// would cost an inventory of everything, and a minute.
func TestTouchesOfAnOvergrownJobThatGoesCostNothing(t *testing.T) {
	const many, atOnce = 95, 10
	limits := job.DefaultLimits()
	limits.MaxPodChanges = atOnce
	w := newWorld(t, limits, func(j *events.Job) { j.Parallelism, j.Completions = many, new(int32(many)) })
	for i := range many {
		w.with(fmt.Sprintf("held-%d", i), func(p *events.Pod) { p.Serial = i })
	}
	w.most = 5_000
	w.wake()
	w.done = nil
	removed := 0
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		if _, ok := e.(effect.RemoveFinalizer); ok {
			if removed++; removed%5 == 0 {
				w.api.UpdateJob(w.uid, func(j *events.Job) { j.Generation++ })
			}
		}
		return nil, false
	}
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Deleting = true })
	w.settle()
	for _, p := range w.pods() {
		if p.Held {
			t.Errorf("%s is held", p.Name)
		}
	}
	if n := count[effect.TakeInventory](w); n > 2+many/atOnce {
		t.Errorf("it took %d inventories", n)
	}
}
