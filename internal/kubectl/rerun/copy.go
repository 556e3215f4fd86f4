package rerun

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// generated are the labels that the API server adds to a Job's Pod template, and to the Job itself if it has no labels
// (Kubernetes 1.36, pkg/registry/batch/job, generateSelector).
var generated = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

// notTaken are the labels and annotations of a Job that describe this Job or were added by a controller. They do not apply to a
// new Job.
var notTaken = []string{
	v1alpha1.NextSerialAnnotation, v1alpha1.BackoffAnnotation, v1alpha1.LastFailureAnnotation, v1alpha1.FailedIndexExitsAnnotation, v1alpha1.RerunOfAnnotation, v1alpha1.SuspendedByLabel,
	v1alpha1.ScheduledJobAnnotation, v1alpha1.NominalTimeAnnotation, v1alpha1.ScheduledJobUIDLabel, v1alpha1.CreatedByAnnotation,
	v1alpha1.InstantiateAnnotation, batchv1.CronJobScheduledTimestampAnnotation, corev1.LastAppliedConfigAnnotation, "batch.kubernetes.io/job-tracking",
}

// copied returns the manifest with which a user could have created the old Job, without its name: no status, nothing that the API
// server or a controller has added, and not suspended.
//
// The copy has no owner. A ScheduledJob that owned it would delete it by its history limits, skip a time because it runs, or stop
// it for the next run. The user has started this Job, and the user deletes it. The Pods keep their information about the
// schedule: a program that processes the day of its nominal time has to process the same day again.
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

// users returns the labels or annotations that the user has set; nil if there are none.
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
