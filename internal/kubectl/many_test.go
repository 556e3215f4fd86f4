package kubectl

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// store puts the i-th copies of an object, from <= i < to, into the API server's store, and removes what the namespace has of the
// resource with the test. Thousands of requests would take minutes, and only the answers about the objects are tested.
func (w *world) store(resource string, from, to int, nth func(i int) controlplane.Object) {
	w.Helper()
	var all []controlplane.Object
	for i := from; i < to; i++ {
		all = append(all, nth(i))
	}
	cp := apiServer(w.T)
	if err := cp.Store(w.Context(), resource, all); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := cp.Forget(context.Background(), resource, w.ns); err != nil {
			w.Error(err)
		}
	})
}

// jobLike returns a Job that differs from the other one by its name and its UID.
func jobLike(j *batchv1.Job, name string) *batchv1.Job {
	like := j.DeepCopy()
	like.Name, like.UID = name, uuid.NewUUID()
	for _, labels := range []map[string]string{like.Spec.Selector.MatchLabels, like.Spec.Template.Labels} {
		renamed(labels, j, like)
	}
	return like
}

// podOf returns a Pod of the Job that is otherwise like p.
func podOf(p *corev1.Pod, j *batchv1.Job, name string) *corev1.Pod {
	like := p.DeepCopy()
	like.Name, like.UID = name, uuid.NewUUID()
	like.OwnerReferences[0].Name, like.OwnerReferences[0].UID = j.Name, j.UID
	like.Labels[batchv1.ControllerUidLabel] = string(j.UID)
	return like
}

// eventOf returns the i-th Event about the Job that is otherwise like e.
func eventOf(e *corev1.Event, j *batchv1.Job, i int) *corev1.Event {
	like := e.DeepCopy()
	like.Name, like.UID = fmt.Sprintf("%s.%d", j.Name, i), uuid.NewUUID()
	like.InvolvedObject.Name, like.InvolvedObject.UID = j.Name, j.UID
	return like
}

// renamed puts the new name and UID into labels that have the old ones.
func renamed(labels map[string]string, old, now *batchv1.Job) {
	for key, value := range labels {
		switch {
		case types.UID(value) == old.UID:
			labels[key] = string(now.UID)
		case value == old.Name:
			labels[key] = now.Name
		}
	}
}
