package clustertest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Job returns a Job that jobstream manages, with a container that no node runs.
func Job(name string, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			ManagedBy: new(v1alpha1.DefaultManagedBy),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "none"}},
			}},
		},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

// Picky gives a Job a selector of its user's own.
func Picky(app string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.ManualSelector = new(true)
		j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		j.Spec.Template.Labels = map[string]string{"app": app}
	}
}

// Limited makes the Job keep at most n failed Pods.
func Limited(n string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.FailedPodsLimitAnnotation: n} }
}

// CreateJob creates the Job and returns it with its function's key.
func (w *World) CreateJob(name string, change ...func(*batchv1.Job)) (*batchv1.Job, events.Key) {
	w.Helper()
	j, err := w.BatchV1().Jobs(w.NS).Create(w.Context(), Job(name, change...), metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j, events.Key{Function: "job", Namespace: w.NS, UID: j.UID}
}

// StartJob gives the Job a start time, as the reconciler's first status write does.
func (w *World) StartJob(j *batchv1.Job) *batchv1.Job {
	w.Helper()
	j = j.DeepCopy()
	j.Status.StartTime = new(metav1.NewTime(time.Unix(1000, 0)))
	j, err := w.BatchV1().Jobs(w.NS).UpdateStatus(w.Context(), j, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// Finish makes the Job Complete.
func (w *World) Finish(j *batchv1.Job) *batchv1.Job {
	w.Helper()
	now := metav1.Now()
	j.Status.Succeeded, j.Status.CompletionTime = 1, &now
	j.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	j, err := w.BatchV1().Jobs(w.NS).UpdateStatus(w.Context(), j, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// FinishedJob creates a Job that is Complete, with or without a Pod that still carries the finalizer.
func (w *World) FinishedJob(name string, holds bool) (*batchv1.Job, events.Key) {
	w.Helper()
	j, key := w.CreateJob(name)
	j = w.StartJob(j)
	if holds {
		w.EndPod(w.MakePod(j, 0).Name, corev1.PodSucceeded)
	}
	return w.Finish(j), key
}

// LiveJob reads the Job.
func (w *World) LiveJob(name string) *batchv1.Job {
	w.Helper()
	j, err := w.BatchV1().Jobs(w.NS).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// DeleteJob deletes the Job and none of its dependents: there is no garbage collector here.
func (w *World) DeleteJob(name string) {
	w.Helper()
	err := w.BatchV1().Jobs(w.NS).Delete(w.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil {
		w.Fatal(err)
	}
}
