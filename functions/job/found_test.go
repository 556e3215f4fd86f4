package job_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// Pods that the Job finds without a valid serial: the built-in controller created them, or a user has changed the annotation.
// Transcripts: found_pod_gets_a_serial, *_found_pods*.

// TestAFoundPodThatIsListedAlreadyIsCountedOnce: the controller that ran the Job before has added its UID to the status and has
// not removed the finalizer.
func TestAFoundPodThatIsListedAlreadyIsCountedOnce(t *testing.T) {
	for _, how := range []events.PodPhase{events.Succeeded, events.Failed} {
		t.Run(string(how), func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Parallelism, j.Completions = 2, new(int32(2)) })
			p := w.with("theirs", func(p *events.Pod) { p.Phase, p.Finished = how, w.now.Add(-time.Hour) })
			w.status(func(s *batchv1.JobStatus) {
				s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
				if how == events.Succeeded {
					s.UncountedTerminatedPods.Succeeded = []types.UID{p.UID}
				} else {
					s.UncountedTerminatedPods.Failed = []types.UID{p.UID}
				}
			})
			w.wake()
			w.wait(time.Minute)
			if how == events.Succeeded {
				w.counted(1, 0)
			} else {
				w.counted(0, 1)
			}
		})
	}
}

// TestAFoundPodThatHasEndedCountsBeforeTheJobIsOver: no Pod runs any more, and all completions have succeeded.
func TestAFoundPodThatHasEndedCountsBeforeTheJobIsOver(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) { j.Completions = nil })
	w.status(func(s *batchv1.JobStatus) { s.Succeeded = 1 })
	w.with("theirs", func(p *events.Pod) { p.Phase, p.Finished = events.Succeeded, w.now })
	w.wake()
	complete(t, w, 2)
}

// TestAFoundPodOfAFinishedJobDoesNotRunOn: its finalizer is removed and it is deleted, as the Job's own would be.
func TestAFoundPodOfAFinishedJobDoesNotRunOn(t *testing.T) {
	for _, serial := range []int{0, events.NoSerial} {
		for _, held := range []bool{true, false} {
			for _, phase := range []events.PodPhase{events.Running, events.Succeeded} {
				t.Run(fmt.Sprintf("serial %d, held %v, %s", serial, held, phase), func(t *testing.T) {
					w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
					w.status(func(s *batchv1.JobStatus) {
						s.Succeeded, s.CompletionTime = 1, s.StartTime
						for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
							s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: c, Status: "True"})
						}
					})
					w.with("theirs", func(p *events.Pod) { p.Serial, p.Held, p.Phase = serial, held, phase })
					w.wake()
					for _, p := range w.pods() {
						if p.Held || !p.Deleting {
							t.Errorf("it is held %v, deleted %v", p.Held, p.Deleting)
						}
					}
					if n := count[effect.WriteJobStatus](w); n > 0 {
						t.Errorf("the status of a finished Job was written %d times", n)
					}
				})
			}
		}
	}
}

// TestFoundPodsAreTakenAFewAtATime: 20,000 patches at once would delay the Job's other effects for minutes.
func TestFoundPodsAreTakenAFewAtATime(t *testing.T) {
	l := job.DefaultLimits()
	l.MaxPodChanges = 10
	w := newWorld(t, l, func(j *events.Job) { j.Parallelism, j.Completions = 45, new(int32(45)) })
	for i := range 45 {
		w.with(fmt.Sprintf("theirs-%d", i), func(*events.Pod) {})
	}
	w.inbox = []events.Event{events.TimerFired{Name: "wake"}}
	for len(w.inbox) > 0 {
		effects, n := w.decide(), 0
		for _, e := range effects {
			if _, ok := e.(effect.AdoptPod); ok {
				n++
			}
		}
		if n > 10 {
			t.Fatalf("%d at once", n)
		}
		w.act(effects)
	}
	serials := map[int]bool{}
	for _, p := range w.pods() {
		serials[p.Serial] = true
	}
	if len(serials) != 45 || serials[events.NoSerial] {
		t.Errorf("45 Pods have %d serials: %v", len(serials), serials)
	}
	if n := count[effect.CreatePod](w); n > 0 {
		t.Errorf("%d Pods are made besides", n)
	}
}

// TestAFoundPodWithoutLabelsIsNotTheJobs: a user who removes the labels takes the Pod from the Job.
func TestAFoundPodWithoutLabelsIsNotTheJobs(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	w.with("bare", func(p *events.Pod) { p.Labels = map[string]string{} })
	w.wake()
	if count[effect.ReleasePod](w) != 1 || count[effect.CreatePod](w) != 1 {
		t.Errorf("wanted %v", w.done)
	}
}
