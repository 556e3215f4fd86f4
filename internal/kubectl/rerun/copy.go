package rerun

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// generated are the labels that the API server puts on a Job's Pod template; where a Job has no labels of its own, they are on
// the Job, too (Kubernetes 1.36, pkg/registry/batch/job, generateSelector).
var generated = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

// notTaken are labels and annotations of a Job that say what it is, or what a controller has noted on it. A new Job is
// something else.
var notTaken = []string{
	v1alpha1.NextSerialAnnotation, v1alpha1.BackoffAnnotation, v1alpha1.RerunOfAnnotation, v1alpha1.SuspendedByLabel,
	v1alpha1.ScheduledJobAnnotation, v1alpha1.NominalTimeAnnotation, v1alpha1.ScheduledJobUIDLabel, v1alpha1.CreatedByAnnotation,
	v1alpha1.InstantiateAnnotation, batchv1.CronJobScheduledTimestampAnnotation, corev1.LastAppliedConfigAnnotation, "batch.kubernetes.io/job-tracking",
}

// copied is what a user could have written to get the old Job, without its name: no status, nothing that the API server or a
// controller has added, and not suspended.
//
// It has no owner. A ScheduledJob that owned it would count it: delete it by its history limits, skip a time because it runs,
// or stop it for the next one. The user has started this Job, and the user deletes it. What its Pods are told of the schedule
// stays: a program that works on the day of its nominal time has to work on the same day again.
func copied(old *batchv1.Job) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Labels: users(old.Labels),
			Annotations: with(users(old.Annotations), v1alpha1.RerunOfAnnotation, old.Name+"/"+string(old.UID))},
		Spec: *old.Spec.DeepCopy(),
	}
	j.Spec.Selector, j.Spec.ManualSelector, j.Spec.Suspend = nil, nil, nil
	for _, label := range generated {
		delete(j.Spec.Template.Labels, label)
	}
	return j
}

// users are the labels or annotations that are the user's; nil where there are none.
func users(all map[string]string) map[string]string {
	all = maps.Clone(all)
	for _, key := range append(generated[:len(generated):len(generated)], notTaken...) {
		delete(all, key)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func with(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}
