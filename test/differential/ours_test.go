package differential_test

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// claim is that of a reconciler with default flags.
var claim = events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}

var function = job.New(job.DefaultLimits())

// decide returns the first effects of jobstream's Job function for a Job and its Pods, after inventory.
func decide(t *rapid.T, j *batchv1.Job, pods []*corev1.Pod, now time.Time) []effect.Effect {
	t.Helper()
	_, effects := take(t, j, pods, now)
	return effects
}

func take(t *rapid.T, j *batchv1.Job, pods []*corev1.Pod, now time.Time) (job.State, []effect.Effect) {
	t.Helper()
	state, effects := function.Decide(job.State{}, []events.Event{events.TimerFired{Name: "wake"}}, now)
	asks := only[effect.TakeInventory](effects)
	if len(asks) != 1 {
		t.Fatalf("an empty state causes %v", effects)
	}
	projected := events.ProjectJob(j, claim)
	snapshot := events.JobListed{ID: asks[0].ID, Name: j.Name, Job: &projected, JobsVersion: 3000, Version: 3000}
	for _, p := range pods {
		if listed := events.ProjectPod(p); listed.Held || !listed.Terminal() {
			snapshot.Pods = append(snapshot.Pods, listed)
		}
	}
	return function.Decide(state, []events.Event{snapshot}, now)
}

// creations returns the Pods that are created, in their order, if each creation is answered with an observation of the Pod:
// jobstream creates one first, then two, then four.
func creations(t *rapid.T, j *batchv1.Job, pods []*corev1.Pod, now time.Time) (out []effect.CreatePod) {
	t.Helper()
	state, effects := take(t, j, pods, now)
	for {
		created := only[effect.CreatePod](effects)
		if len(created) == 0 {
			return out
		}
		var observations []events.Event
		for _, e := range created {
			out = append(out, e)
			observations = append(observations, events.PodObserved{Pod: events.Pod{Name: e.Name, UID: types.UID("made-" + e.Name), Version: uint64(4000 + len(out)),
				Owner: e.Job, Serial: e.Serial, Index: e.Index, Phase: events.Pending, Held: true, Created: now}})
		}
		state, effects = function.Decide(state, observations, now)
	}
}

// only keeps the effects of one kind.
func only[E effect.Effect](effects []effect.Effect) (out []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			out = append(out, e)
		}
	}
	return out
}
