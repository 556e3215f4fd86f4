package act

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// world is one test's namespace and an Actor for it.
type world struct {
	*clustertest.World
	actor *Actor
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	b := clustertest.NewWorld(t)
	config := Config{Client: b.Client, ScheduledJobs: b.ScheduledJobs, Now: func() time.Time { return time.Unix(1000, 0) }}
	for _, f := range change {
		f(&config)
	}
	actor, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{b, actor}
}

// cached waits until the watch cache of the API server has the Job as it is, or as it is gone: a Pod is created from what it has there.
func (w *world) cached(name string) {
	w.Helper()
	version := func(at string) string {
		j, err := w.BatchV1().Jobs(w.NS).Get(w.Context(), name, metav1.GetOptions{ResourceVersion: at})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			w.Fatal(err)
		}
		return j.ResourceVersion
	}
	clustertest.Eventually(w, func() string {
		if has, is := version(anyVersion), version(newest); has != is {
			return fmt.Sprintf("the watch cache has the Job %s at version %q, it is at %q", name, has, is)
		}
		return ""
	})
}

func (w *world) createPod(j *batchv1.Job, key events.Key, serial int) events.Pod {
	w.Helper()
	return clustertest.Only[events.PodObserved](w, w.act(key, clustertest.CreateEffect(j, serial))).Pod
}

func (w *world) act(key events.Key, e effect.Effect) []events.Event {
	w.Helper()
	facts, err := w.actor.Act(w.Context(), key, e)
	if err != nil {
		w.Fatalf("%s: %v", e, err)
	}
	return facts
}

// settledPods creates a Pod that has failed and one that has succeeded, both counted.
func (w *world) settledPods(j *batchv1.Job, key events.Key) (failed, succeeded events.Pod) {
	w.Helper()
	for serial, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		p := w.createPod(j, key, serial)
		w.EndPod(p.Name, phase)
		w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
	}
	return w.createdPod(j, 0), w.createdPod(j, 1)
}

func (w *world) createdPod(j *batchv1.Job, serial int) events.Pod {
	w.Helper()
	return events.ProjectPod(w.LivePod(clustertest.CreateEffect(j, serial).Name))
}
