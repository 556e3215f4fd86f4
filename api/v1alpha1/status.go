package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ScheduledJobStatus is the state of a ScheduledJob. Each nominal time up to DecidedUntil has been decided once.
type ScheduledJobStatus struct {
	// observedGeneration is the metadata.generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// observedSchedule is the schedule and zone by which the times up to decidedUntil were decided.
	// +optional
	ObservedSchedule string `json:"observedSchedule,omitempty"`
	// decidedUntil is the time up to which every nominal time has a verdict.
	// +optional
	DecidedUntil *metav1.Time `json:"decidedUntil,omitempty"`
	// nextScheduleTime is the next nominal time; it is absent while there is none, as under suspend.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// lastScheduleTime is the nominal time of the latest Job that was created on schedule.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a Job last completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// lastDecision is the latest verdict: Started, Skipped, Missed, Blocked or Failed.
	// +optional
	LastDecision string `json:"lastDecision,omitempty"`
	// lastRun is the Job that ended last, and how it ended.
	// +optional
	LastRun *EndedRun `json:"lastRun,omitempty"`
	// active lists the Jobs that have been created and whose end is not counted yet.
	// +optional
	// +listType=atomic
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// activeCount is the number of Jobs in active.
	// +optional
	ActiveCount *int32 `json:"activeCount,omitempty"`
	// queued is how many times are due and wait for the end of an earlier Job, with concurrencyPolicy Queue.
	// +optional
	Queued int32 `json:"queued,omitempty"`
	// consecutiveFailures counts the Jobs that have failed since one completed, or since the spec was edited, with pauseAfterFailures.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`
	// successful counts the Jobs that have completed.
	// +optional
	Successful int64 `json:"successful,omitempty"`
	// failed counts the Jobs that have failed or were deleted before their end, and the nominal times in missed.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// missed counts the nominal times for which a Job should have been created and was not.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// recent lists the latest verdicts, at most ten, the newest last.
	// ---
	// Each is here before it is announced, and until it has been.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Recent []TickVerdict `json:"recent,omitempty"`
	// conditions are Ready (Jobs are created when their time comes), Stalled (none until the spec is corrected), Suspended (by spec.suspend, or by pauseAfterFailures), Blocked
	// (the API server refuses the Job that is due) and Finished (no time is left, by runAt or notAfter, and the last Job has ended).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecentVerdicts is the largest number of verdicts in a status.
const RecentVerdicts = 10

// EndedRun is a Job of a ScheduledJob that has ended, and how.
type EndedRun struct {
	// jobName is the name of the Job.
	JobName string `json:"jobName"`
	// jobUID is the UID of the Job.
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`
	// scheduledTime is the nominal time that the Job was for; it is absent if a user has started the Job for no nominal time.
	// +optional
	ScheduledTime *metav1.Time `json:"scheduledTime,omitempty"`
	// result is Complete, Failed, or Missing if the Job was deleted before its end.
	Result string `json:"result"`
	// reason is the reason of the Job's final condition, such as BackoffLimitExceeded; for Missing it is Replaced if concurrencyPolicy
	// has deleted the Job.
	// +optional
	Reason string `json:"reason,omitempty"`
	// startTime is when the Job started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the Job ended; for Missing it is when the reconciler found that it was gone.
	CompletionTime metav1.Time `json:"completionTime"`
}

// TickVerdict is the verdict on one nominal time, on all nominal times of a range, or on a Job that a user has started.
type TickVerdict struct {
	// time is the nominal time, or the first of a range; for a Job with the reason Manual it is the Job's creation.
	Time metav1.Time `json:"time"`
	// until is the last nominal time of a range.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// count is the number of nominal times that the verdict is on.
	Count int64 `json:"count"`
	// verdict is Started (the Job was created), Skipped (none was wanted), Missed (it was too late), Blocked (its name was taken) or
	// Failed (the API server refused it).
	Verdict string `json:"verdict"`
	// reason is the reason in one word, such as Overlap or Deadline; for Started it is Manual or Backfill if a user has started the
	// Job, and absent if the Job was created on schedule.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes the reason in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// announced reports whether the bus has confirmed the verdict; it is written together with the next other change.
	// +optional
	Announced bool `json:"announced,omitempty"`
	// jobName is the name of the Job that was created.
	// +optional
	JobName string `json:"jobName,omitempty"`
	// jobUID is the UID of the Job that was created.
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`
	// result is how the Job has ended (Complete, Failed or Missing); it is absent while the Job runs.
	// +optional
	Result string `json:"result,omitempty"`
	// completionTime is when the Job ended; it is absent while the Job runs.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}
