package act

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func deleteEffect(j *batchv1.Job) effect.DeleteJob {
	return effect.DeleteJob{Job: j.Name, Version: events.Version(j.ResourceVersion)}
}

// expires gives the Job a time to live, in seconds.
func expires(after int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &after }
}

func unmanaged(j *batchv1.Job) { j.Spec.ManagedBy = nil }

// expiredJob creates a Job that is Complete, and whose time to live is over.
func (w *world) expiredJob(name string, change ...func(*batchv1.Job)) (*batchv1.Job, events.Key) {
	w.Helper()
	j, key := w.CreateJob(name, append([]func(*batchv1.Job){expires(0)}, change...)...)
	return w.Finish(w.StartJob(j)), key
}

func TestDeleteJob(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Now = time.Now })

	t.Run("in the foreground", func(t *testing.T) {
		j, key := w.expiredJob("pi")
		seen := clustertest.Only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job
		live := w.LiveJob("pi")
		if !seen.Deleting || seen.Version != events.Version(live.ResourceVersion) || !slices.Contains(live.Finalizers, metav1.FinalizerDeleteDependents) {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
		if again := clustertest.Only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job; !again.Deleting {
			t.Errorf("%+v", again)
		}
	})
	for name, make := range map[string]func(string) (*batchv1.Job, events.Key){
		"no Job that has not finished": func(name string) (*batchv1.Job, events.Key) { return w.CreateJob(name, expires(0)) },
		"none without a time to live":  func(name string) (*batchv1.Job, events.Key) { return w.FinishedJob(name, false) },
		"none whose time is not over":  func(name string) (*batchv1.Job, events.Key) { return w.expiredJob(name, expires(100)) },
		"none of another controller":   func(name string) (*batchv1.Job, events.Key) { return w.expiredJob(name, unmanaged) },
	} {
		t.Run(name, func(t *testing.T) {
			j, key := make("not")
			clustertest.Only[events.JobObserved](t, w.act(key, deleteEffect(j)))
			if w.LiveJob("not").DeletionTimestamp != nil {
				t.Error("it was deleted")
			}
			w.DeleteJob("not")
		})
	}
	t.Run("not if a user has changed it meanwhile", func(t *testing.T) {
		j, key := w.expiredJob("changed")
		touched := j.DeepCopy()
		touched.Spec.TTLSecondsAfterFinished = new(int32(3600))
		touched, err := w.BatchV1().Jobs(w.NS).Update(t.Context(), touched, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := clustertest.Only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job
		if seen.Deleting || seen.Version != events.Version(touched.ResourceVersion) || w.LiveJob("changed").DeletionTimestamp != nil {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("one that is gone, or another one", func(t *testing.T) {
		j, key := w.expiredJob("gone")
		w.DeleteJob("gone")
		if gone := clustertest.Only[events.JobGone](t, w.act(key, deleteEffect(j))); gone.Name != "gone" {
			t.Errorf("%+v", gone)
		}
		again, _ := w.expiredJob("gone")
		e := deleteEffect(again) // right version, wrong UID
		clustertest.Only[events.JobGone](t, w.act(key, e))
		if w.LiveJob("gone").DeletionTimestamp != nil {
			t.Error("another Job was deleted")
		}
	})
}
