package job

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// A reconciler has created the first Pods of a Job and has seen them end, and its state is lost. The next state finds no Pods in its
// inventory, because nothing has touched the Job. Then the first status write of the lost one arrives, and lists a Pod that the next one has
// not found yet, and that is still held: it must not be counted as no longer held (worlds 331523218 and 331561055).
func TestAStatusOfALostStateIsNotCountedBeforeItsPodsAreFound(t *testing.T) {
	first := events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: 1, Generation: 1, Parallelism: 2, Completions: new(int32(2)), BackoffLimit: 6}
	later := func(change func(*batchv1.JobStatus)) events.Job {
		j := first
		j.Version = 8
		j.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: noon}, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
		change(&j.Status)
		return j
	}
	listing := later(func(st *batchv1.JobStatus) { st.UncountedTerminatedPods.Succeeded = []types.UID{"pod-3"} })
	old := listing
	old.Version = first.Version
	kinds := func(effects []effect.Effect) (out []string) {
		for _, e := range effects {
			out = append(out, e.Kind())
		}
		return out
	}
	for _, c := range []struct {
		name  string
		facts []events.Event
		again bool
	}{
		{"it lists a Pod", []events.Event{events.JobObserved{Job: listing}}, true},
		{"a part of a list shows it", []events.Event{events.JobPartListed{JobListed: events.JobListed{ID: "a relist", Version: 8, JobsVersion: 8, Job: &listing}, To: "8"}}, true},
		{"it has counted Pods", []events.Event{events.JobObserved{Job: later(func(st *batchv1.JobStatus) { st.Failed = 1 })}}, true},
		{"it has only started", []events.Event{events.JobObserved{Job: later(func(*batchv1.JobStatus) {})}}, false},
		{"it comes after the Job has gone", []events.Event{events.JobGone{}, events.JobObserved{Job: listing}}, false},
		{"it is no newer than what is known", []events.Event{events.JobObserved{Job: old}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New(DefaultLimits())
			s, effects := f.Decide(known(t, first), nil, noon)
			if !slices.Contains(kinds(effects), effect.KindCreatePod) {
				t.Fatalf("it has decided on %v", effects)
			}
			s, effects = f.Decide(s, c.facts, noon)
			if got := slices.Contains(kinds(effects), effect.KindTakeInventory); got != c.again {
				t.Errorf("it takes inventory again: %v; it has decided on %v", got, effects)
			}
			if c.again && (slices.Contains(kinds(effects), effect.KindWriteJobStatus) || s.Known) {
				t.Errorf("it counts: %v", effects)
			}
		})
	}
}

// A status that lists only Pods which this state knows is most likely its own. To take inventory again because of it would forget the ends of Pods
// that are still to be announced (world 4088257184).
func TestAStateThatKnowsAllThatAStatusListsIsNotOvertaken(t *testing.T) {
	first := events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: 1, Generation: 1, Parallelism: 2, Completions: new(int32(2)), BackoffLimit: 6}
	f := New(DefaultLimits())
	s, effects := f.Decide(known(t, first), nil, noon)
	i := slices.IndexFunc(effects, func(e effect.Effect) bool { return e.Kind() == effect.KindCreatePod })
	if i < 0 {
		t.Fatalf("it has decided on %v", effects)
	}
	create := effects[i].(effect.CreatePod)
	ended := events.Pod{Name: create.Name, UID: "pod-3", Version: 5, Owner: "pi", Serial: create.Serial, Index: events.NoIndex, Phase: events.Succeeded, Held: true, Created: noon}
	s, _ = f.Decide(s, []events.Event{events.PodObserved{Pod: ended}}, noon)
	own := first
	own.Version = 8
	own.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: noon}, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"pod-3"}}}
	s, effects = f.Decide(s, []events.Event{events.JobObserved{Job: own}}, noon)
	removes := slices.ContainsFunc(effects, func(e effect.Effect) bool { return e.Kind() == effect.KindRemoveFinalizer })
	if !s.Known || !removes {
		t.Errorf("known: %v; it has decided on %v", s.Known, effects)
	}
}
