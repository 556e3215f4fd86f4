package events

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// ProjectScheduledJob extracts what functions need of a ScheduledJob. It also applies the API server's defaults, because an older
// definition may not have them.
func ProjectScheduledJob(j *v1alpha1.ScheduledJob) ScheduledJob {
	s := &j.Spec
	out := ScheduledJob{
		Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		Version:    Version(j.ResourceVersion),
		Generation: j.Generation,
		Deleting:   j.DeletionTimestamp != nil,
		Created:    j.CreationTimestamp.UTC(),

		Schedule:                s.Schedule,
		Schedules:               listed(s.Schedules, listedSchedules),
		Exclude:                 listed(s.Exclude, listedExclusions),
		TimeZone:                orDefault(s.TimeZone, ""),
		StartingDeadlineSeconds: s.StartingDeadlineSeconds,
		ConcurrencyPolicy:       orOther(s.ConcurrencyPolicy, v1alpha1.AllowConcurrent),
		Suspended:               orDefault(s.Suspend, false),
		CatchUp:                 orOther(s.CatchUp, v1alpha1.CatchUpLatest),
		OnScheduleChange:        orOther(s.OnScheduleChange, v1alpha1.ChangeCatchesUp),
		JitterSeconds:           orDefault(s.JitterSeconds, 0),
		PauseAfterFailures:      min(max(orDefault(s.PauseAfterFailures, 0), 0), 100),
		SuccessfulJobs:          orDefault(s.SuccessfulJobsHistoryLimit, 3),
		FailedJobs:              orDefault(s.FailedJobsHistoryLimit, 1),
		TTLSecondsAfterFinished: s.TTLSecondsAfterFinished,

		Status: *j.Status.DeepCopy(),
	}
	if out.ConcurrencyPolicy == v1alpha1.QueueConcurrent {
		out.QueueLimit = min(max(orDefault(s.QueueLimit, 10), 1), 100)
	}
	if s.NotBefore != nil {
		out.NotBefore = s.NotBefore.UTC()
	}
	if s.NotAfter != nil {
		out.NotAfter = s.NotAfter.UTC()
	}
	if s.RunAt != nil {
		out.RunAt = s.RunAt.UTC()
	}
	if s.StartAfter != nil {
		out.StartAfter = s.StartAfter.UTC()
	}
	if orDefault(s.JobTemplate.Spec.ManualSelector, false) || s.JobTemplate.Spec.Selector != nil {
		out.Invalid = "spec.jobTemplate.spec.manualSelector and selector must not be set: the Jobs of one ScheduledJob would count each other's Pods"
	}
	return out
}

// ProjectRun extracts what a ScheduledJob needs of a Job that it owns. ok is false for a Job without such an owner. The UID
// identifies a ScheduledJob only together with the Job's namespace: a user may write any UID into a Job.
func ProjectRun(j *batchv1.Job) (uid types.UID, run Run, ok bool) {
	ref := metav1.GetControllerOf(j)
	if ref == nil || ref.Kind != v1alpha1.ScheduledJobKind || ref.APIVersion != v1alpha1.GroupVersion.String() || owner(ref) == "" {
		return "", Run{}, false
	}
	run = Run{Name: j.Name, UID: j.UID, Version: Version(j.ResourceVersion), Created: j.CreationTimestamp.UTC(), Deleting: j.DeletionTimestamp != nil}
	// The reconciler did not write an unreadable value: the Job counts as one that a user has started.
	if t, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		run.Nominal = t.UTC()
	}
	run.Manual = j.Annotations[v1alpha1.InstantiateAnnotation] == v1alpha1.InstantiateManual
	for _, c := range j.Status.Conditions {
		if c.Status == "True" && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			run.Result, run.Finished, run.Reason = RunResult(c.Type), c.LastTransitionTime.UTC(), word(c.Reason)
			if start := j.Status.StartTime; start != nil {
				run.Started = start.UTC()
			}
		}
	}
	return ref.UID, run, true
}

func orOther[T ~string](v, otherwise T) T {
	if v == "" {
		return otherwise
	}
	return v
}
