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
)

// TestNoStatusListsMoreThanTheLimit, whatever its Pods have ended as, and the Job does not end before all of them have been listed
// and counted (upstream: "too many finished", "too many indexed finished").
func TestNoStatusListsMoreThanTheLimit(t *testing.T) {
	for _, c := range []struct {
		name              string
		indexed           bool
		succeeded, failed int32
	}{
		{"successes", false, 25, 0},
		{"failures", false, 0, 25},
		{"more successes than fit, and failures", false, 13, 12},
		{"successes, and more failures than fit", false, 4, 21},
		{"indexes", true, 25, 0},
		{"indexes, and failed tries of them", true, 13, 12},
		{"indexes, and more failed tries than fit", true, 4, 21},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := job.DefaultLimits()
			l.MaxUncounted = 10
			w := newWorld(t, l, func(j *events.Job) {
				j.Indexed, j.Parallelism, j.Completions, j.BackoffLimit = c.indexed, 25, new(max(1, c.succeeded)), 24
			})
			for i := range int(c.succeeded + c.failed) {
				w.with(fmt.Sprintf("pod-%d", i), func(p *events.Pod) {
					if p.Serial, p.Phase, p.Finished = i, events.Succeeded, w.now; i >= int(c.succeeded) {
						p.Phase = events.Failed
					}
					if c.indexed {
						p.Index = i % int(c.succeeded)
					}
				})
			}
			w.api.Wrote = func(before, after events.Job) {
				u, indexes := after.Status.UncountedTerminatedPods, 0
				if c.indexed {
					indexes = int(after.Status.Succeeded - before.Status.Succeeded)
				}
				if n := len(u.Succeeded) + len(u.Failed); n+indexes > 10 {
					t.Errorf("one write lists %d UIDs and %d indexes", n, indexes)
				}
			}
			w.wake()
			w.wait(time.Minute)
			end := batchv1.JobComplete
			if c.failed > 24 {
				end = batchv1.JobFailed
			}
			if _, over := w.job().Condition(end); !over {
				t.Errorf("the Job is not %s: %v", end, w.job().Status.Conditions)
			}
			w.counted(c.succeeded, c.failed)
		})
	}
}

// TestAFinalizerThatIsPutBackCountsNoFailureTwice: the Pod is listed and its finalizer is removed, a user puts the finalizer back,
// and the state is lost before it is removed again. As long as the Pod is held, the status has to list it: the inventory would
// find a failure that has not been counted.
func TestAFinalizerThatIsPutBackCountsNoFailureTwice(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 8, new(int32(8)) })
	for i := range 8 {
		w.with(fmt.Sprintf("pod-%d", i), func(p *events.Pod) { p.Serial = i })
	}
	w.wake()
	w.wait(time.Minute)
	w.ends("pod-0", events.Failed)
	if p := w.job().Status.UncountedTerminatedPods; len(p.Failed) != 1 || count[effect.RemoveFinalizer](w) != 1 {
		t.Fatalf("listed are %v; wanted %v", p, w.done)
	}
	w.answer = func(e effect.Effect) ([]events.Event, bool) { _, deletes := e.(effect.DeletePod); return nil, deletes } // no worker lives so long
	w.change("pod-0", func(p *events.Pod) { p.Held = true })
	w.wait(10 * time.Second)
	w.answer = nil
	w.wake()
	w.wait(time.Minute)
	w.counted(0, 1)
}

// TestAListedPodThatFlipsIsListedOnce: it was deleted and listed as failed, and then succeeds while it is held (upstream:
// "pod flips from failed to succeeded").
func TestAListedPodThatFlipsIsListedOnce(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	p := w.with("a", func(p *events.Pod) { p.Serial, p.Phase, p.Deleting, p.Finished = 0, events.Succeeded, true, w.now })
	w.status(func(s *batchv1.JobStatus) {
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{p.UID}}
	})
	w.api.Wrote = func(_, after events.Job) {
		if slices.Contains(after.Status.UncountedTerminatedPods.Succeeded, p.UID) {
			t.Errorf("listed as %v", after.Status.UncountedTerminatedPods)
		}
	}
	w.wake()
	w.wait(5 * time.Second)
	w.counted(0, 1)
}

// TestOfEachIndexOnePodCounts: of two running Pods the one further along goes on; a Pod whose index is out of range is removed;
// of two successes one counts (upstream: "indexed job repeated indexes", "indexes outside of range").
func TestOfEachIndexOnePodCounts(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Indexed, j.Parallelism, j.Completions = true, 3, new(int32(3)) })
	for i, p := range []struct {
		name  string
		index int
		phase events.PodPhase
	}{{"runs", 0, events.Running}, {"waits", 0, events.Pending}, {"beyond", 3, events.Running}, {"first", 1, events.Succeeded},
		{"second", 1, events.Succeeded}, {"last", 2, events.Running}, {"beyond-and-done", 4, events.Succeeded}} {
		w.with(p.name, func(x *events.Pod) { x.Serial, x.Index, x.Phase, x.Finished = i, p.index, p.phase, w.now })
	}
	w.wake()
	w.wait(time.Second)
	if s := w.job().Status; s.Succeeded != 1 || s.CompletedIndexes != "1" || s.Active != 2 || *s.Terminating != 2 || s.Failed != 0 {
		t.Errorf("got %+v", s)
	}
	for _, p := range w.pods() {
		if stays := p.Name == "runs" || p.Name == "last"; p.Deleting == stays || p.Held != stays {
			t.Errorf("%s: deleted %v, held %v", p.Name, p.Deleting, p.Held)
		}
	}
}

// TestPodsFeelTheirWay: one is tried first, then as many more as have been accepted, and never more than the limit at once
// (upstream: slowStartBatch, MaxPodCreateDeletePerSync).
func TestPodsFeelTheirWay(t *testing.T) {
	l := job.DefaultLimits()
	l.MaxPodChanges = 20
	w := newWorld(t, l, func(j *events.Job) { j.Parallelism, j.Completions = 100, new(int32(100)) })
	w.inbox = []events.Event{events.TimerFired{Name: "wake"}}
	var rounds []int
	for made := 0; len(w.inbox) > 0; {
		effects, n := w.decide(), 0
		for _, e := range effects {
			if _, ok := e.(effect.CreatePod); ok {
				n++
			}
		}
		if made += n; n > 0 {
			rounds = append(rounds, n)
		}
		w.act(effects)
		if made == 100 {
			break
		}
	}
	if !slices.Equal(rounds, []int{1, 2, 6, 18, 20, 20, 20, 13}) {
		t.Errorf("made %v", rounds)
	}
}

// TestPodsAreMadeOfTheNewestTemplate: the generation requires the change that was made while the Job was suspended.
func TestPodsAreMadeOfTheNewestTemplate(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Suspended, j.Status = true, batchv1.JobStatus{} })
	w.wake()
	for _, suspended := range []bool{true, false} {
		w.api.UpdateJob(w.uid, func(j *events.Job) { j.Generation++; j.Suspended = suspended })
		w.settle()
	}
	for _, e := range w.done {
		if c, ok := e.(effect.CreatePod); ok && c.Generation == 3 {
			return
		}
	}
	t.Errorf("wanted %v", w.done)
}

// TestEachHandledFailureIsReportedOnce, for the metric of the podFailurePolicy: also a failure that waits for the next Pod of its
// index, and those that do not fit into one status.
func TestEachHandledFailureIsReportedOnce(t *testing.T) {
	rule := func(a batchv1.PodFailurePolicyAction) *batchv1.PodFailurePolicy {
		return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: a,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{3}}}}}
	}
	for _, action := range []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionIgnore} {
		for _, perIndex := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, per index %v", action, perIndex), func(t *testing.T) {
				l := job.DefaultLimits()
				l.MaxUncounted = 2
				w := newWorld(t, l, func(j *events.Job) {
					j.Indexed, j.Parallelism, j.Completions, j.BackoffLimit = true, 8, new(int32(8)), 100
					j.PodFailurePolicy, j.ReplaceFailedOnly = rule(action), true
					if perIndex {
						j.BackoffLimitPerIndex, j.Status.FailedIndexes = new(int32(5)), new("")
					}
				})
				for i := range 8 {
					w.with(fmt.Sprintf("pod-%d", i), func(p *events.Pod) { p.Serial, p.Index = i, i })
				}
				w.wake()
				for i := range 5 { // one after the other, and then three at once
					w.api.UpdatePod(fmt.Sprintf("pod-%d", i), func(p *events.Pod) {
						p.Phase, p.Finished, p.Exits = events.Failed, w.now, []events.Exit{{Container: "main", Code: 3}}
					})
					if i < 2 || i == 4 {
						w.settle()
						w.wait(1500 * time.Millisecond)
					}
				}
				w.change("pod-7", func(p *events.Pod) { p.Ready = true })
				w.wait(time.Minute)
				handled := 0
				for _, e := range w.done {
					if s, ok := e.(effect.WriteJobStatus); ok {
						handled += s.Handled[action]
					}
				}
				if handled != 5 {
					t.Errorf("5 failures were handled, reported %d", handled)
				}
			})
		}
	}
}

// TestEveryStatusHasItsCounts: ready and terminating are always set, no more Pods are ready than active, and failedIndexes is
// set, even if empty, only if failures count per index (upstream: "count ready pods", "count terminating pods").
func TestEveryStatusHasItsCounts(t *testing.T) {
	for _, perIndex := range []bool{false, true} {
		t.Run(fmt.Sprintf("per index %v", perIndex), func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
				if j.Indexed, j.Parallelism, j.Completions = true, 4, new(int32(4)); perIndex {
					j.BackoffLimitPerIndex, j.BackoffLimit = new(int32(1)), 1<<31-1
				}
			})
			most := int32(0)
			w.api.Wrote = func(_, after events.Job) {
				s := after.Status
				if s.Ready == nil || s.Terminating == nil || *s.Ready > s.Active || (s.FailedIndexes != nil) != perIndex {
					t.Errorf("wrote %+v", s)
				}
				most = max(most, *s.Ready)
			}
			for i := range 4 {
				w.with(fmt.Sprintf("pod-%d", i), func(p *events.Pod) { p.Serial, p.Index, p.Ready, p.ReadySince = i, i, true, w.now })
			}
			w.wake()
			w.wait(time.Second) // all have their serials, and show
			w.ends("pod-0", events.Succeeded)
			w.ends("pod-1", events.Failed)
			w.wait(time.Second)
			w.change("pod-2", func(p *events.Pod) { p.Deleting, p.Finished = true, w.now })
			w.wait(time.Second)
			w.api.UpdateJob(w.uid, func(j *events.Job) { j.Suspended = true })
			w.settle()
			w.wait(time.Minute)
			if s := w.job().Status; most != 4 || s.Active != 0 || *s.Ready != 0 || *s.Terminating != 2 {
				t.Errorf("at most %d were ready; in the end %+v", most, s)
			}
		})
	}
}
