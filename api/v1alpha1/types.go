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
// ---
// "kubectl explain" shows the comments of this file, so they spell names as JSON does. A field of the spec says what it does to a
// run, and its unit, default and an example; a field of the status is one sentence. What follows a line of three hyphens is
// for readers of the code. internal/dev/crd joins lines, except for items of a list and indented lines.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=schedjob,categories=all
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=`.spec.schedule`,description=`the cron schedule; empty with runAt`
// +kubebuilder:printcolumn:name=Run At,type=string,JSONPath=`.spec.runAt`,priority=1,description=`the time of a single Job; empty with schedule`
// +kubebuilder:printcolumn:name=Timezone,type=string,JSONPath=`.spec.timeZone`,description=`the zone of the schedule; empty for UTC`
// +kubebuilder:printcolumn:name=Suspend,type=boolean,JSONPath=`.spec.suspend`,description=`whether the creation of Jobs is suspended`
// +kubebuilder:printcolumn:name=Active,type=integer,JSONPath=`.status.activeCount`,description=`the number of Jobs that have not ended`
// +kubebuilder:printcolumn:name=Last Schedule,type=date,JSONPath=`.status.lastScheduleTime`,description=`how long ago the nominal time of the latest Job was`
// +kubebuilder:printcolumn:name=Next,type=string,JSONPath=`.status.nextScheduleTime`,description=`the next nominal time`
// +kubebuilder:printcolumn:name=Last Result,type=string,JSONPath=`.status.lastRun.result`,description=`how the Job ended that ended last`
// +kubebuilder:printcolumn:name=Ended,type=date,JSONPath=`.status.lastRun.completionTime`,description=`how long ago that was`
// +kubebuilder:printcolumn:name=Missed,type=integer,JSONPath=`.status.missed`,description=`the number of nominal times for which no Job was created although one should have been`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description=`how long ago the object was created`
// +kubebuilder:printcolumn:name=Successful,type=integer,JSONPath=`.status.successful`,priority=1,description=`the number of Jobs that have completed`
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.failed`,priority=1,description=`the number of Jobs that have failed, and of nominal times that were missed`
// +kubebuilder:printcolumn:name=Last Decision,type=string,JSONPath=`.status.lastDecision`,priority=1,description=`the latest verdict on a nominal time`
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.size() <= 52`,message="metadata.name must be at most 52 characters, for a Job's name is longer: choose a shorter one"
type ScheduledJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when to create Jobs, and from which template. Set exactly one of schedule and runAt. The times for which they demand a
	// Job are called nominal times; the Job itself may be created later.
	Spec ScheduledJobSpec `json:"spec"`
	// status is what the reconciler has decided and observed: the latest verdicts, the next time, the active Jobs, and counters.
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
	// schedule is when Jobs are created, again and again: a cron schedule of the fields minute, hour, day of month, month and day of
	// week, with an optional field of seconds before them; @hourly, @daily, @weekly, @monthly or @yearly; or @every with a
	// duration, counted from the object's creation. H in a field stands for a number derived from the object's UID, so that objects
	// with the same schedule do not all start at once. Default: none; one of schedule and runAt is required. Examples:
	//   "30 2 * * *"      every day at 02:30
	//   "H/15 * * * *"    every 15 minutes
	//   "@every 90s"      every minute and a half
	// +optional
	Schedule CronSchedule `json:"schedule,omitempty"`
	// runAt is the time at which a single Job is created, instead of schedule: a date, a time of whole seconds and an offset
	// (RFC 3339). A time in the past means now. Default: none; one of schedule and runAt is required. Example:
	// "2026-12-24T18:00:00+01:00".
	// ---
	// Its schema is deliberately not date-time, because that accepts values that cannot be decoded (a zone in small letters,
	// second 60).
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="runAt must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	RunAt *metav1.Time `json:"runAt,omitempty"`
	// startAfter is the time after which schedule begins: a date, a time of whole seconds and an offset (RFC 3339). If it is in the
	// past, catchUp decides about the times since then: to take over from another controller, write the last time for which that
	// controller has created a Job. It counts only when the object is created; it can be removed, but not changed. Default:
	// the object's creation. Example: "2026-11-14T02:30:00Z".
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="startAfter must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	StartAfter *metav1.Time `json:"startAfter,omitempty"`
	// timeZone is the IANA name of the zone in which schedule is read. A time of day that daylight saving skips runs when the gap is
	// over, and one that comes twice runs once; an hour field that begins with * follows the wall clock. Default: UTC. Example:
	// "Europe/Berlin".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self.lowerAscii() != 'local'`,message="timeZone must be the IANA name of a zone, such as Europe/Berlin, neither an offset nor Local, which is another zone on every machine; leave it out for UTC"
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || !self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') || self.lowerAscii() == 'local' || timestamp('2020-01-01T00:00:00Z').getHours(self) >= 0`,optionalOldSelf=true,message="timeZone must be the IANA name of a zone that the API server knows, such as Europe/Berlin; leave it out for UTC"
	TimeZone *string `json:"timeZone,omitempty"`
	// startingDeadlineSeconds is how long after its nominal time, and after the delay of jitterSeconds, a Job may still be created, in
	// seconds, at least 1. A time beyond it is missed, and counts as failed. A deadline of a few seconds misses times while jobstream
	// restarts. Default: no limit. Example: 3600 (no Job is created more than an hour late).
	// +optional
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self >= 1`,optionalOldSelf=true,message="startingDeadlineSeconds must be at least 1: with 0 no time could be met; leave it out for no limit"
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// concurrencyPolicy is what happens to a Job that is due while an earlier one is active. Default: Allow. Example: Forbid.
	// - Allow: both run.
	// - Forbid: the later one is skipped, and not made up for.
	// - Replace: the earlier one is deleted; when it and its Pods are gone, the later one is created.
	// +optional
	// +kubebuilder:default=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// suspend stops the creation of Jobs while it is true. Times that pass meanwhile are skipped, and never caught up on. Running Jobs
	// go on. Default: false. Example: true.
	// +optional
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`
	// catchUp decides which of several nominal times that passed during a downtime get a Job. The others are missed. Default: Latest.
	// Example: All (a report that is needed for every day).
	// - Latest: one Job, for the latest of them.
	// - All: a Job for each within startingDeadlineSeconds; without a deadline, for the latest 100. With concurrencyPolicy Forbid,
	// those that overlap are skipped; with Replace, only the latest is created.
	// - None: no Job; a time that is more than a minute late is missed.
	// +optional
	// +kubebuilder:default=Latest
	CatchUp CatchUpPolicy `json:"catchUp,omitempty"`
	// onScheduleChange decides whether a new schedule or timeZone also applies to the time since the last decision. Default: CatchUp.
	// Example: Wait.
	// - CatchUp: it does, so an edit may create a Job at once. If an hourly schedule is changed to every half hour at 14:31, the
	// Job of 14:30 is created then.
	// - Wait: the new schedule begins with its first time after the edit.
	// +optional
	// +kubebuilder:default=CatchUp
	OnScheduleChange ScheduleChangePolicy `json:"onScheduleChange,omitempty"`
	// jitterSeconds delays each Job by a share of this many seconds, at most 86400, so that not all objects start at once. An object
	// always has the same share, and the nominal time does not change. Default: 0. Example: 300 (up to five minutes later).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	JitterSeconds *int32 `json:"jitterSeconds,omitempty"`
	// jobTemplate is the template of the Jobs, as it is when each is created: an edit changes only later ones. jobstream runs the Jobs
	// unless spec.managedBy in the template names another controller. "kubectl explain cronjob.spec.jobTemplate" describes
	// its fields. Required. Example:
	//   spec:
	//     template:
	//       spec:
	//         restartPolicy: Never
	//         containers:
	//         - {name: hello, image: busybox, command: [echo, hello]}
	// +kubebuilder:validation:XValidation:rule=`has(self.spec)`,message="jobTemplate.spec is missing: write the spec of the Jobs, as in a CronJob"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.manualSelector) || !self.spec.manualSelector`,fieldPath=.spec.manualSelector,message="manualSelector must not be set: the Jobs of one ScheduledJob would count each other's Pods; leave it out"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.selector)`,fieldPath=.spec.selector,message="selector must not be set: every Job gets one of its own; leave it out"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || has(self.spec.template.spec)`,fieldPath=.spec.template,message="template.spec is missing: write containers and a restartPolicy"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.template.spec) || has(self.spec.template.spec.restartPolicy) && self.spec.template.spec.restartPolicy in ['OnFailure', 'Never']`,fieldPath=.spec.template.spec.restartPolicy,message="restartPolicy must be OnFailure or Never: a Job's Pods end"
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// successfulJobsHistoryLimit is how many complete Jobs are kept, the newest. The others are deleted with their Pods, once they are
	// counted. Default: 3. Example: 0 (none).
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is how many failed Jobs are kept, the newest. The others are deleted with their Pods, once they are
	// counted. Default: 1. Example: 5 (to compare their logs).
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// ttlSecondsAfterFinished is how long a ScheduledJob with runAt is kept once its Job has finished, or its time was missed, in
	// seconds. Its Job is deleted with it. Default: for ever. Example: 3600 (an hour).
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
	// conditions are Ready (Jobs are created when their time comes), Stalled (none until the spec is corrected), Suspended, Blocked
	// (the API server refuses the Job that is due) and Finished (the time of runAt is decided, and its Job has ended).
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
