package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ScheduledJob creates Jobs at points in time: again and again by a cron schedule, or once. Its fields are those of a CronJob
// (batch/v1), so a CronJob is converted by changing its apiVersion and kind; runAt, startAfter, catchUp, onScheduleChange,
// jitterSeconds and ttlSecondsAfterFinished are new.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=schedjob,categories=all
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name=Run At,type=string,JSONPath=`.spec.runAt`,priority=1
// +kubebuilder:printcolumn:name=Timezone,type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name=Suspend,type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name=Active Job,type=string,JSONPath=`.status.active[0].name`
// +kubebuilder:printcolumn:name=Last Schedule,type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name=Next,type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name=Last Result,type=string,JSONPath=`.status.lastResult`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Successful,type=integer,JSONPath=`.status.successful`,priority=1
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.failed`,priority=1
// +kubebuilder:printcolumn:name=Missed,type=integer,JSONPath=`.status.missed`,priority=1
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.size() <= 52`,message="metadata.name must be at most 52 characters, for a Job's name is longer: choose a shorter one"
type ScheduledJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired behaviour.
	Spec ScheduledJobSpec `json:"spec"`
	// Status is the latest state, written by the reconciler.
	// +optional
	Status ScheduledJobStatus `json:"status,omitempty"`
}

// ScheduledJobList is a list of ScheduledJobs.
//
// +kubebuilder:object:root=true
type ScheduledJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ScheduledJob `json:"items"`
}

// ScheduledJobSpec describes when to create Jobs, and from which template. Exactly one of Schedule and RunAt must be set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.schedule) || has(self.runAt)`,message="schedule or runAt is missing: write a schedule, such as \"30 2 * * *\", for Jobs again and again, or runAt, such as 2026-12-24T18:00:00Z, for one"
// +kubebuilder:validation:XValidation:rule=`!has(self.schedule) || !has(self.runAt)`,fieldPath=.runAt,message="schedule and runAt exclude each other: leave one of them out"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.timeZone)`,fieldPath=.timeZone,message="timeZone belongs to schedule: leave it out, and write the offset into runAt, as in 2026-12-24T18:00:00+01:00"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || self.catchUp == 'Latest'`,fieldPath=.catchUp,message="catchUp belongs to schedule: leave it out; startingDeadlineSeconds limits how late the Job of runAt may be created"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || self.onScheduleChange == 'CatchUp'`,fieldPath=.onScheduleChange,message="onScheduleChange belongs to schedule: leave it out"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.startAfter)`,fieldPath=.startAfter,message="startAfter belongs to schedule: leave it out, and write the time that is meant into runAt"
// +kubebuilder:validation:XValidation:rule=`!has(self.startAfter) || has(oldSelf.startAfter) && self.startAfter == oldSelf.startAfter`,fieldPath=.startAfter,message="startAfter counts only when the object is created: remove it, or create another ScheduledJob"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.jitterSeconds) || self.jitterSeconds == 0`,fieldPath=.jitterSeconds,message="jitterSeconds belongs to schedule: leave it out, and write the time that is meant into runAt"
// +kubebuilder:validation:XValidation:rule=`!has(self.schedule) || !has(self.ttlSecondsAfterFinished)`,fieldPath=.ttlSecondsAfterFinished,message="ttlSecondsAfterFinished belongs to runAt: a schedule never finishes; leave it out, and limit its Jobs by successfulJobsHistoryLimit and failedJobsHistoryLimit, or by ttlSecondsAfterFinished in jobTemplate.spec"
type ScheduledJobSpec struct {
	// Schedule is a cron schedule: minute, hour, day of month, month, day of week, with an optional field of seconds before them; or
	// @hourly and its like, or "@every 90s". "H" in a field stands for a value derived from the object's UID.
	// +optional
	Schedule CronSchedule `json:"schedule,omitempty"`
	// RunAt is the time at which a single Job is created, a whole second. Its schema is deliberately not date-time, because that
	// accepts values that cannot be decoded (a zone in small letters, second 60).
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="runAt must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	RunAt *metav1.Time `json:"runAt,omitempty"`
	// StartAfter is the time after which the schedule begins, a whole second; the default is the object's creation. If it is in the
	// past, CatchUp decides about the times since then: a user who takes over from another controller writes here the last time that
	// controller has run. It can be removed, but not changed.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="startAfter must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	StartAfter *metav1.Time `json:"startAfter,omitempty"`
	// TimeZone is the IANA name of the schedule's zone; the default is UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self.lowerAscii() != 'local'`,message="timeZone must be the IANA name of a zone, such as Europe/Berlin, neither an offset nor Local, which is another zone on every machine; leave it out for UTC"
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || !self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') || self.lowerAscii() == 'local' || timestamp('2020-01-01T00:00:00Z').getHours(self) >= 0`,optionalOldSelf=true,message="timeZone must be the IANA name of a zone that the API server knows, such as Europe/Berlin; leave it out for UTC"
	TimeZone *string `json:"timeZone,omitempty"`
	// StartingDeadlineSeconds is how long after its nominal time a Job may still be created, in seconds. Times beyond it are missed,
	// and count as failed. Without it there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy is what happens to a Job that is due while an earlier one still runs.
	// +optional
	// +kubebuilder:default=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend stops the creation of Jobs. Running Jobs go on.
	// +optional
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`
	// CatchUp decides which of several nominal times that passed during a downtime get a Job.
	// +optional
	// +kubebuilder:default=Latest
	CatchUp CatchUpPolicy `json:"catchUp,omitempty"`
	// OnScheduleChange decides whether a new schedule or zone also applies to the time since the last Job.
	// +optional
	// +kubebuilder:default=CatchUp
	OnScheduleChange ScheduleChangePolicy `json:"onScheduleChange,omitempty"`
	// JitterSeconds delays each start by a stable share of this many seconds, so that not all start at once. The nominal time does
	// not change.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	JitterSeconds *int32 `json:"jitterSeconds,omitempty"`
	// JobTemplate is the template of the Jobs, as it is when each is created.
	// +kubebuilder:validation:XValidation:rule=`has(self.spec)`,message="jobTemplate.spec is missing: write the spec of the Jobs, as in a CronJob"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.manualSelector) || !self.spec.manualSelector`,fieldPath=.spec.manualSelector,message="manualSelector must not be set: the Jobs of one ScheduledJob would count each other's Pods; leave it out"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.selector)`,fieldPath=.spec.selector,message="selector must not be set: every Job gets one of its own; leave it out"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || has(self.spec.template.spec)`,fieldPath=.spec.template,message="template.spec is missing: write containers and a restartPolicy"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.template.spec) || has(self.spec.template.spec.restartPolicy) && self.spec.template.spec.restartPolicy in ['OnFailure', 'Never']`,fieldPath=.spec.template.spec.restartPolicy,message="restartPolicy must be OnFailure or Never: a Job's Pods end"
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// SuccessfulJobsHistoryLimit is how many complete Jobs are kept, the newest.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// FailedJobsHistoryLimit is how many failed Jobs are kept, the newest.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// TTLSecondsAfterFinished is how long a ScheduledJob with RunAt is kept once its Job has finished, or has been missed, in
	// seconds. Its Job is deleted with it. Without it both stay.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ConcurrencyPolicy is what happens to a Job that is due while an earlier one still runs.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent lets both run.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent skips the later one.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier one, and creates the later one when it and its Pods are gone.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CatchUpPolicy decides which of several nominal times that passed during a downtime get a Job.
//
// +kubebuilder:validation:Enum=Latest;All;None
type CatchUpPolicy string

const (
	// CatchUpLatest creates one Job, for the latest of them.
	CatchUpLatest CatchUpPolicy = "Latest"
	// CatchUpAll creates a Job for each within StartingDeadlineSeconds; without a deadline, for the latest 100.
	CatchUpAll CatchUpPolicy = "All"
	// CatchUpNone creates none: a nominal time that is more than a minute old is missed.
	CatchUpNone CatchUpPolicy = "None"
)

// ScheduleChangePolicy decides whether a new schedule or zone also applies to the time since the last Job.
//
// +kubebuilder:validation:Enum=CatchUp;Wait
type ScheduleChangePolicy string

const (
	// ChangeCatchesUp applies it (proposal scheduledjob.md, "Updates to ScheduledJobs").
	ChangeCatchesUp ScheduleChangePolicy = "CatchUp"
	// ChangeWaits begins with the first nominal time after the change.
	ChangeWaits ScheduleChangePolicy = "Wait"
)

// ScheduledJobStatus is the state of a ScheduledJob. Each nominal time up to DecidedUntil has been decided once.
type ScheduledJobStatus struct {
	// ObservedGeneration is the generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedSchedule is the schedule and zone by which the times up to DecidedUntil were decided.
	// +optional
	ObservedSchedule string `json:"observedSchedule,omitempty"`
	// DecidedUntil is the nominal time up to which every time has a verdict.
	// +optional
	DecidedUntil *metav1.Time `json:"decidedUntil,omitempty"`
	// NextScheduleTime is the next nominal time.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastScheduleTime is the nominal time of the latest Job that was created.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// LastSuccessfulTime is when a Job last completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// LastResult is the result of the latest nominal time or Job that was decided, in one word.
	// +optional
	LastResult string `json:"lastResult,omitempty"`
	// Active are the Jobs that have been created and not yet counted.
	// +optional
	// +listType=atomic
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// Successful counts Jobs that have completed.
	// +optional
	Successful int64 `json:"successful,omitempty"`
	// Failed counts Jobs that have failed, and nominal times that were missed.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// Missed counts the nominal times for which a Job should have been created and was not.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// Recent are the latest verdicts, the newest last. Each is here before it is announced, and until it has been.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Recent []TickVerdict `json:"recent,omitempty"`
	// Conditions are Ready, Stalled, Suspended, Blocked and Finished.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecentVerdicts is the largest number of verdicts in a status.
const RecentVerdicts = 10

// TickVerdict is the verdict on one nominal time, or on all nominal times of a range.
type TickVerdict struct {
	// Time is the nominal time, or the first of a range; for a Manual start it is the creation of the Job.
	Time metav1.Time `json:"time"`
	// Until is the last of a range.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Count is the number of nominal times.
	Count int64 `json:"count"`
	// Verdict is Started, Skipped, Missed, Blocked or Failed.
	Verdict string `json:"verdict"`
	// Reason is the reason in one word. For Started it is empty if the clock has started the Job, and Manual or Backfill if a user
	// has.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a description for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Announced reports whether the bus has confirmed the verdict. It is recorded with the next write that has another reason.
	// +optional
	Announced bool `json:"announced,omitempty"`
	// JobName and JobUID identify the Job that was created.
	// +optional
	JobName string `json:"jobName,omitempty"`
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`
}
