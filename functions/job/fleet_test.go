package job_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// TestAWithdrawnPodKeepsItsPlaceUntilItIsLookedFor: the Pod of an index was requested, and another reconciler has recorded the index
// as completed. Whether the Pod exists is unknown yet, so no other takes its place: more than spec.parallelism could run.
func TestAWithdrawnPodKeepsItsPlaceUntilItIsLookedFor(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Indexed, j.Completions = true, new(int32(3)) })
	unanswered := true
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		switch e.(type) {
		case effect.CreatePod, effect.FindPod:
			return nil, unanswered
		}
		return nil, false
	}
	w.wake()
	if n := count[effect.CreatePod](w); n == 0 {
		t.Fatal("no Pod is requested")
	}
	w.done = nil
	w.status(func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
	w.settle()
	if made, found := count[effect.CreatePod](w), count[effect.FindPod](w); made > 0 || found == 0 {
		t.Fatalf("%d Pods are requested, %d looked for: %v", made, found, w.done)
	}
	unanswered = false
	w.receive(events.TimerFired{Name: "wake"})
	w.wait(time.Second)
	if pods := w.pods(); len(pods) != 1 || pods[0].Index != 1 {
		t.Errorf("Pods %v", pods)
	}
}

// TestASurplusPodKeepsItsPlaceUntilItIsDeleted: a user scales down and, before the surplus Pods are deleted, up again.
func TestASurplusPodKeepsItsPlaceUntilItIsDeleted(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 3, new(int32(9)) })
	w.wake()
	w.wait(time.Second)
	unanswered := true
	w.answer = func(e effect.Effect) ([]events.Event, bool) {
		_, deletes := e.(effect.DeletePod)
		return nil, deletes && unanswered
	}
	scale := func(to int32) {
		w.done = nil
		w.api.UpdateJob(w.uid, func(j *events.Job) { j.Parallelism = to })
		w.settle()
	}
	scale(1)
	scale(3)
	if made, deleted := count[effect.CreatePod](w), count[effect.DeletePod](w); made > 0 || deleted == 0 {
		t.Fatalf("%d Pods are requested while %d are still to be deleted: %v", made, deleted, w.done)
	}
	unanswered = false
	w.receive(events.TimerFired{Name: "wake"})
	w.wait(time.Minute)
	if n := count[effect.CreatePod](w); n != 2 {
		t.Errorf("%d Pods take the places of the deleted ones: %v", n, w.done)
	}
}
