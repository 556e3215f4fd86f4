package job_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// fail makes a Pod fail with an exit code.
func (w *world) fail(name string, code int32) {
	w.t.Helper()
	w.change(name, func(p *events.Pod) {
		p.Phase, p.Ready, p.Finished = events.Failed, false, w.now
		p.Exits = []events.Exit{{Container: "main", Code: code}}
	})
}

// backingOff returns the condition.
func (w *world) backingOff() (c batchv1.JobCondition) {
	for _, c := range w.job().Status.Conditions {
		if c.Type == v1alpha1.BackingOffCondition {
			return c
		}
	}
	return c
}

// TestBackingOffShowsUntilWhenAndWhy: what a Job waits for stands in its condition, from its first failure to its next Pod, and costs
// no status write of its own. Only the first time is worth an Event.
func TestBackingOffShowsUntilWhenAndWhy(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	w.wake()
	w.wait(time.Second)
	told := 0
	for _, c := range []struct {
		code int32
		rest time.Duration
		says []string
	}{
		{3, 10 * time.Second, []string{"the next Pod is created at 2026-01-01T00:00:11Z; Pod ", " failed: container main, exit code 3"}},
		{4, 20 * time.Second, []string{"2 failures in a row: the next Pod is created at ", " failed: container main, exit code 4"}},
	} {
		before := count[effect.WriteJobStatus](w)
		pods := w.pods()
		w.fail(pods[len(pods)-1].Name, c.code)
		w.wait(2 * time.Second)
		got := w.backingOff()
		for _, text := range c.says {
			if got.Status != corev1.ConditionTrue || got.Reason != "PodFailed" || !strings.Contains(got.Message, text) {
				t.Errorf("after exit code %d: %+v, want %q", c.code, got, text)
			}
		}
		w.wait(c.rest)
		if got := w.backingOff(); got.Status != corev1.ConditionFalse {
			t.Errorf("after the next Pod: %+v", got)
		}
		if n := count[effect.WriteJobStatus](w) - before; n > 3 { // the failure is listed, counted, and the next Pod is active
			t.Errorf("exit code %d cost %d status writes", c.code, n)
		}
	}
	for _, e := range w.done {
		if write, ok := e.(effect.WriteJobStatus); ok {
			for _, r := range write.Reports {
				if r.Reason == "BackingOff" {
					told++
				}
			}
		}
	}
	if told != 1 {
		t.Errorf("%d Events", told)
	}
}

// TestTheLastFailureIsTheOneThatDecided: Pods that the reconciler deletes because the Job fails end later than the failure that the user
// looks for. It outlives the state.
func TestTheLastFailureIsTheOneThatDecided(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions, j.BackoffLimit = 2, new(int32(2)), 0 })
	w.wake()
	w.wait(time.Second)
	pods := w.pods()
	if len(pods) != 2 {
		t.Fatalf("%d Pods", len(pods))
	}
	w.fail(pods[0].Name, 7)
	w.state = nil // all memory is lost between the decision and the end
	w.wait(time.Second)
	w.fail(pods[1].Name, 143)
	w.wait(time.Minute)
	j := w.job()
	end, ended := j.Ended()
	if !ended || end.LastFailure == nil || end.LastFailure.Pod != pods[0].Name || end.LastFailure.ExitCode != 7 {
		t.Errorf("ended: %v, %+v", ended, end.LastFailure)
	}
	if got := w.backingOff(); got.Status == corev1.ConditionTrue {
		t.Errorf("the Job has failed: %+v", got)
	}
}
