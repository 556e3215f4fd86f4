package schedules

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// The function never sees what this world keeps: each observation is the object that an API server would hold, read by the
// projection that the trigger uses.

// scheduleObject returns the object of a ScheduledJob, as the API server has defaulted it.
func scheduleObject(j events.ScheduledJob) *v1alpha1.ScheduledJob {
	out := &v1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name, UID: j.UID, Generation: j.Generation,
			ResourceVersion: strconv.FormatUint(j.Version, 10), CreationTimestamp: metav1.Time{Time: j.Created}},
		Spec: v1alpha1.ScheduledJobSpec{
			Schedule: j.Schedule, Schedules: j.Schedules, Exclude: j.Exclude, StartingDeadlineSeconds: j.StartingDeadlineSeconds, ConcurrencyPolicy: j.ConcurrencyPolicy, Suspend: &j.Suspended,
			CatchUp: j.CatchUp, OnScheduleChange: j.OnScheduleChange, JitterSeconds: &j.JitterSeconds,
			SuccessfulJobsHistoryLimit: &j.SuccessfulJobs, FailedJobsHistoryLimit: &j.FailedJobs, TTLSecondsAfterFinished: j.TTLSecondsAfterFinished,
		},
		Status: *j.Status.DeepCopy(),
	}
	if j.TimeZone != "" {
		out.Spec.TimeZone = &j.TimeZone
	}
	if !j.RunAt.IsZero() {
		out.Spec.RunAt = &metav1.Time{Time: j.RunAt}
	}
	if !j.NotBefore.IsZero() {
		out.Spec.NotBefore = &metav1.Time{Time: j.NotBefore}
	}
	if !j.NotAfter.IsZero() {
		out.Spec.NotAfter = &metav1.Time{Time: j.NotAfter}
	}
	if j.QueueLimit > 0 {
		out.Spec.QueueLimit = &j.QueueLimit
	}
	if j.PauseAfterFailures > 0 {
		out.Spec.PauseAfterFailures = &j.PauseAfterFailures
	}
	if !j.StartAfter.IsZero() {
		out.Spec.StartAfter = &metav1.Time{Time: j.StartAfter}
	}
	if j.Deleting {
		out.DeletionTimestamp = &metav1.Time{Time: j.Created}
	}
	if j.Invalid != "" {
		out.Spec.JobTemplate.Spec.ManualSelector = new(true)
	}
	return out
}

// runObject returns the object of a Job that the ScheduledJob owns.
func runObject(j *Job, scheduledJob string) *batchv1.Job {
	out := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, UID: j.UID, ResourceVersion: strconv.FormatUint(j.Version, 10),
			CreationTimestamp: metav1.Time{Time: j.Created}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind,
				Name: scheduledJob, UID: j.Owner, Controller: new(true)}}},
	}
	if !j.Nominal.IsZero() {
		out.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = j.Nominal.Format(time.RFC3339)
	}
	if j.Manual {
		out.Annotations[v1alpha1.InstantiateAnnotation] = v1alpha1.InstantiateManual
	}
	if j.Deleting {
		out.DeletionTimestamp = &metav1.Time{Time: j.Created}
	}
	if j.Result != "" {
		out.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobConditionType(j.Result), Status: corev1.ConditionTrue,
			Reason: "By" + j.Name, LastTransitionTime: metav1.Time{Time: j.Finished}}}
		out.Status.StartTime = &metav1.Time{Time: j.Created}
	}
	return out
}
