package v1alpha1

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduledJob creates Jobs at points in time: again and again by a cron schedule, or once. Its fields are those of a CronJob
// (batch/v1), so a CronJob is converted by changing its apiVersion and kind; runAt, startAfter, schedules, exclude, notBefore, notAfter,
// catchUp, onScheduleChange, queueLimit, pauseAfterFailures, jitterSeconds and ttlSecondsAfterFinished are new.
// ---
// "kubectl explain" shows the comments of this file and of status.go, so they spell names as JSON does. A field of the spec says what it does to a
// run, and its unit, default and an example; a field of the status is one sentence. What follows a line of three hyphens is
// for readers of the code. internal/dev/crd joins lines, except for items of a list and indented lines.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=schedjob,categories=all
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=`.spec.schedule`,description=`the cron schedule; empty with schedules and runAt`
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

	// spec is when to create Jobs, and from which template. Set exactly one of schedule, schedules and runAt. The times for which they demand a
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

// ScheduledJobSpec describes when to create Jobs, and from which template. Exactly one of Schedule, Schedules and RunAt must be set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.schedule) || has(self.schedules) || has(self.runAt)`,message="schedule or runAt is missing: write a schedule, such as \"30 2 * * *\", for Jobs again and again, or runAt, such as 2026-12-24T18:00:00Z, for one"
// +kubebuilder:validation:XValidation:rule=`!has(self.schedule) || !has(self.runAt)`,fieldPath=.runAt,message="schedule and runAt exclude each other: leave one of them out"
// +kubebuilder:validation:XValidation:rule=`!has(self.schedules) || !has(self.schedule) && !has(self.runAt)`,fieldPath=.schedules,message="schedules stands alone: write all schedules into it, and leave schedule and runAt out"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.timeZone)`,fieldPath=.timeZone,message="timeZone belongs to schedule: leave it out, and write the offset into runAt, as in 2026-12-24T18:00:00+01:00"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.exclude)`,fieldPath=.exclude,message="exclude belongs to schedule: leave it out"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.notBefore)`,fieldPath=.notBefore,message="notBefore belongs to schedule: leave it out, and write the time that is meant into runAt"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.notAfter)`,fieldPath=.notAfter,message="notAfter belongs to schedule: leave it out; startingDeadlineSeconds limits how late the Job of runAt may be created"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.pauseAfterFailures)`,fieldPath=.pauseAfterFailures,message="pauseAfterFailures belongs to schedule: leave it out: there is one run"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.startAfter)`,fieldPath=.startAfter,message="startAfter belongs to schedule: leave it out, and write the time that is meant into runAt"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || self.catchUp == 'Latest'`,fieldPath=.catchUp,message="catchUp belongs to schedule: leave it out; startingDeadlineSeconds limits how late the Job of runAt may be created"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || self.onScheduleChange == 'CatchUp'`,fieldPath=.onScheduleChange,message="onScheduleChange belongs to schedule: leave it out"
// +kubebuilder:validation:XValidation:rule=`!has(self.runAt) || !has(self.jitterSeconds) || self.jitterSeconds == 0`,fieldPath=.jitterSeconds,message="jitterSeconds belongs to schedule: leave it out, and write the time that is meant into runAt"
// +kubebuilder:validation:XValidation:rule=`!has(self.startAfter) || has(oldSelf.startAfter) && self.startAfter == oldSelf.startAfter`,fieldPath=.startAfter,message="startAfter counts only when the object is created: remove it, or create another ScheduledJob"
// +kubebuilder:validation:XValidation:rule=`has(self.runAt) || !has(self.ttlSecondsAfterFinished)`,fieldPath=.ttlSecondsAfterFinished,message="ttlSecondsAfterFinished belongs to runAt: a schedule never finishes; leave it out, and limit its Jobs by successfulJobsHistoryLimit and failedJobsHistoryLimit, or by ttlSecondsAfterFinished in jobTemplate.spec"
// +kubebuilder:validation:XValidation:rule=`!has(self.notBefore) || !has(self.notAfter) || timestamp(self.notBefore) <= timestamp(self.notAfter)`,fieldPath=.notAfter,message="notAfter is earlier than notBefore, so no Job would ever be created: write a later time, or remove one of them"
// +kubebuilder:validation:XValidation:rule=`self.concurrencyPolicy != 'Queue' || self.catchUp == 'Latest'`,fieldPath=.catchUp,message="catchUp does not apply with concurrencyPolicy Queue: leave it out; queueLimit and startingDeadlineSeconds decide what still runs"
// +kubebuilder:validation:XValidation:rule=`!has(self.queueLimit) || self.concurrencyPolicy == 'Queue'`,fieldPath=.queueLimit,message="queueLimit belongs to concurrencyPolicy Queue: write concurrencyPolicy: Queue, or leave it out"
type ScheduledJobSpec struct {
	// schedule is when Jobs are created, again and again: a cron schedule of the fields minute, hour, day of month, month and day of
	// week, with an optional field of seconds before them; @hourly, @daily, @weekly, @monthly or @yearly; or @every with a
	// duration, counted from the object's creation. H in a field stands for a number derived from the object's UID, so that objects
	// with the same schedule do not all start at once. Default: none; one of schedule, schedules and runAt is required. Examples:
	//   "30 2 * * *"      every day at 02:30
	//   "H/15 * * * *"    every 15 minutes
	//   "@every 90s"      every minute and a half
	// +optional
	Schedule CronSchedule `json:"schedule,omitempty"`
	// schedules are several schedules in place of schedule, 1 to 10, all in timeZone. A Job is created for each time at which at least
	// one of them is due, and one only. Default: none; one of schedule, schedules and runAt is required. Example:
	// ["0 9 * * MON-FRI", "0 12 * * SAT"].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Schedules []ListedSchedule `json:"schedules,omitempty"`
	// exclude are readings of the clock in timeZone for which no Job is created, at most 50 entries: dates, ranges of dates of at most
	// a year, or schedules. In a schedule of five fields, a minute that matches is excluded with all of its seconds. A time
	// that is left out gets the verdict Skipped (Excluded) when the next one has come. Default: none. Examples:
	//   2026-12-25               a day
	//   2026-12-24/2027-01-06    from one day to another, both included
	//   "* 0-6 * * *"            from 00:00 to 06:59
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Exclude []Exclusion `json:"exclude,omitempty"`
	// notBefore is the time before which no Job is created: a date, a time of whole seconds and an offset (RFC 3339). Times before it get
	// no verdict. Default: none. Example: "2027-01-01T00:00:00+01:00" (a schedule that is prepared for next year).
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="notBefore must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// notAfter is the last time for which a Job may be created: a date, a time of whole seconds and an offset (RFC 3339). When
	// no time is left, the ScheduledJob has the condition Finished. Default: none. Example: "2027-03-31T23:59:59+02:00".
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || self.matches(r'^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$') && timestamp(self) > timestamp('1970-01-01T00:00:00Z')`,optionalOldSelf=true,message="notAfter must be a date of 1970 or later, a time of whole seconds and an offset (RFC 3339), such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// runAt is the time at which a single Job is created, instead of schedule: a date, a time of whole seconds and an offset
	// (RFC 3339). A time in the past means now. Default: none; one of schedule, schedules and runAt is required. Example:
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
	// - Queue: the later one waits until the earlier one has ended; the oldest goes first. queueLimit and startingDeadlineSeconds
	// limit what waits. Times that passed during a downtime wait, too; catchUp does not apply.
	// +optional
	// +kubebuilder:default=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// queueLimit is how many times may wait with concurrencyPolicy Queue, 1 to 100. A time that comes while as many wait is skipped.
	// Default: 10. Example: 1 (the next one waits, and no more).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	QueueLimit *int32 `json:"queueLimit,omitempty"`
	// pauseAfterFailures is after how many failed Jobs in a row, 1 to 100, no more Jobs are created: the ScheduledJob has the condition
	// Suspended then, with the reason FailedRuns. Any edit of the spec ends the pause, such as that of the template that mends the
	// cause, and so does "kubectl jobstream resume", or a Job that a user starts and that completes. Times that pass meanwhile are
	// skipped. Default: no limit. Example: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	PauseAfterFailures *int32 `json:"pauseAfterFailures,omitempty"`
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

// AllSchedules returns Schedule, or Schedules in one line; "" with RunAt.
func (s *ScheduledJobSpec) AllSchedules() string {
	return strings.Join(append([]string{s.Schedule}, s.Schedules...)[min(len(s.Schedules), 1):], "; ")
}

// ConcurrencyPolicy is what happens to a Job that is due while an earlier one still runs.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace;Queue
type ConcurrencyPolicy string

const (
	// AllowConcurrent lets both run.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent skips the later one.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier one, and creates the later one when it and its Pods are gone.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
	// QueueConcurrent lets the later one wait until the earlier one has ended.
	QueueConcurrent ConcurrencyPolicy = "Queue"
)

// OneAtATime reports whether no two Jobs run at once.
func (p ConcurrencyPolicy) OneAtATime() bool { return p != AllowConcurrent && p != "" }

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
