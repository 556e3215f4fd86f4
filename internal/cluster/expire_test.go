package cluster

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

func deleteEffect(j *batchv1.Job) effect.DeleteJob {
	return effect.DeleteJob{Job: j.Name, Version: events.Version(j.ResourceVersion)}
}

func TestDeleteJob(t *testing.T) {
	w := newWorld(t)

	t.Run("in the foreground", func(t *testing.T) {
		j, key := w.createJob("pi")
		seen := only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job
		live := w.liveJob("pi")
		if !seen.Deleting || seen.Version != events.Version(live.ResourceVersion) || !slices.Contains(live.Finalizers, metav1.FinalizerDeleteDependents) {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
		if again := only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job; !again.Deleting {
			t.Errorf("%+v", again)
		}
	})
	t.Run("not where somebody has changed it meanwhile", func(t *testing.T) {
		j, key := w.createJob("changed")
		touched := j.DeepCopy()
		touched.Spec.TTLSecondsAfterFinished = new(int32(3600))
		touched, err := w.BatchV1().Jobs(w.ns).Update(t.Context(), touched, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := only[events.JobObserved](t, w.act(key, deleteEffect(j))).Job
		if seen.Deleting || seen.Version != events.Version(touched.ResourceVersion) || w.liveJob("changed").DeletionTimestamp != nil {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("one that is gone, or another one", func(t *testing.T) {
		j, key := w.createJob("gone")
		w.deleteJob("gone")
		if gone := only[events.JobGone](t, w.act(key, deleteEffect(j))); gone.Name != "gone" {
			t.Errorf("%+v", gone)
		}
		again, _ := w.createJob("gone")
		e := deleteEffect(again) // right version, wrong UID
		only[events.JobGone](t, w.act(key, e))
		if w.liveJob("gone").DeletionTimestamp != nil {
			t.Error("another Job was deleted")
		}
	})
}
