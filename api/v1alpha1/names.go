// Package v1alpha1 is the API group jobstream.dev: the kind ScheduledJob, and every name that jobstream shares with the
// cluster: the value of spec.managedBy, labels, annotations and condition types. A magic string that stands anywhere else
// is a bug.
//
// +kubebuilder:object:generate=true
// +groupName=jobstream.dev
package v1alpha1

const (
	// Group is the API group of jobstream's own kinds and the prefix of its labels and annotations.
	Group = "jobstream.dev"

	// DefaultManagedBy is the value of a Job's spec.managedBy that hands the Job to jobstream.
	// It is immutable and at most 63 characters long (Kubernetes 1.36, batch/v1 validation).
	DefaultManagedBy = Group + "/reconciler"

	// ManagedLabel marks every Pod that jobstream made, so that one label selector watches them all.
	ManagedLabel = Group + "/managed"

	// SerialAnnotation carries the ordinal of a Pod within its Job: a decimal number from 0 on. It is given once and, as far as the
	// Job's status shows, never again.
	SerialAnnotation = Group + "/serial"

	// NextSerialAnnotation on a Job is the lowest serial that no Pod of the Job has had. It is written by the same
	// PUT as the status, so that names are not reused when the memory on the bus is lost.
	NextSerialAnnotation = Group + "/next-serial"

	// BackoffAnnotation on a Job is the backoff record that belongs to the failures in its status, as JSON:
	// {"failures":2,"last":"2026-11-21T00:00:00Z"}. Upstream keeps this record in memory and forgets it at a restart.
	BackoffAnnotation = Group + "/backoff"

	// LastFailureAnnotation on a Job is how the Pod failed that failed last, as JSON: {"pod":"pi-4xk2b","node":"worker-1",
	// "container":"main","exitCode":3,"reason":"Error","time":"2026-11-21T00:00:00Z"}, with "index" in an Indexed Job. It is written
	// together with the status, and stays as it was when the Job's end was decided.
	LastFailureAnnotation = Group + "/last-failure"

	// FailedIndexExitsAnnotation on an Indexed Job with a backoffLimitPerIndex is how its failed indexes ended, at most 20 of them, the
	// lowest, as JSON: [{"index":3,"exitCode":1,"reason":"Error"},{"index":7,"exitCode":137,"reason":"OOMKilled"}]. It is written
	// together with the status, and changes only when an index fails, or when the Job loses indexes.
	FailedIndexExitsAnnotation = Group + "/failed-index-exits"

	// BackoffSecondsAnnotation on a Job is the delay of the next Pod after the first failure, in seconds: 1 to 600. It doubles with
	// each further failure (proposal job.md, backoffSeconds).
	BackoffSecondsAnnotation = Group + "/backoff-seconds"

	// FailedPodsLimitAnnotation on a Job is the number of failed Pods to keep once they are counted, the newest: 0 or more (proposal
	// job.md, failedPodsLimit). Without it all are kept, as Kubernetes does.
	FailedPodsLimitAnnotation = Group + "/failed-pods-limit"

	// PendingDeadlineSecondsAnnotation on a Job is how long one of its Pods may be Pending before it is deleted and counts as
	// failed, in seconds: 1 or more. Without it a Pod whose image cannot be pulled waits for ever.
	PendingDeadlineSecondsAnnotation = Group + "/pending-deadline-seconds"

	// PerCompletionEnvAnnotation on an Indexed Job names an immutable ConfigMap of its namespace. Each of its keys is an
	// environment variable, and its value one line per completion index (proposal indexed-job.md, per-completion-env).
	PerCompletionEnvAnnotation = Group + "/per-completion-env"

	// PublishFailedValuesAnnotation on a Job with PerCompletionEnvAnnotation is "true" or "false": whether its JobFinish has the values of
	// its failed indexes. Every subscriber may read them, so without it they are not published: they may be secret.
	PublishFailedValuesAnnotation = Group + "/publish-failed-values"

	// EventIDAnnotation on a Kubernetes Event about a Job is the id of the public event that it repeats.
	EventIDAnnotation = Group + "/event-id"

	// TraceparentAnnotation on a Job is the W3C traceparent of the span that the Job's own continues. Without it the Job's trace
	// is derived from its UID, or from the nominal time that it was made for.
	TraceparentAnnotation = Group + "/traceparent"

	// PodTraceparentAnnotation on a Job is "true" or "false": whether its Pods find the traceparent of the Job's span in the
	// environment variable TRACEPARENT. Without it the reconciler's flag --pod-traceparent decides.
	PodTraceparentAnnotation = Group + "/pod-traceparent"

	// RefusedCondition is True on a Job while the API server refuses what the Job needs done: its Pods by a quota, an
	// admission webhook or an invalid template, a deletion, the removal of a finalizer. Its reason and message are the API server's.
	RefusedCondition = Group + "/Refused"

	// BackingOffCondition is True on a Job that waits after failed Pods before it creates the next. The message has until when, after how
	// many failures, and how the last Pod failed.
	BackingOffCondition = Group + "/BackingOff"

	// PodsWaitingCondition is True on a Job some of whose Pods have been Pending for more than 30 seconds, or are being deleted and wait
	// for a finalizer of another program. Its reason is the one that most of them have, and its message counts them by reason and names
	// a Pod of each.
	PodsWaitingCondition = Group + "/PodsWaiting"

	// IgnoredCondition is True on a Job with an invalid annotation. The message names it with the reason; the Job runs as if it were
	// not there.
	IgnoredCondition = Group + "/AnnotationIgnored"

	// UnsupportedCondition is True on a Job that needs something this version does not support. None of its Pods are started.
	UnsupportedCondition = Group + "/Unsupported"

	// NotAdoptingCondition is True on a Job with a user's own selector that adopts no Pods, because its namespace has too many such
	// Jobs. The message has their number; the Job runs with the Pods that it creates itself.
	NotAdoptingCondition = Group + "/NotAdopting"

	// ScheduledJobAnnotation is the name of the ScheduledJob on the Jobs that it makes and on their Pods, where a container
	// reads it through the downward API.
	ScheduledJobAnnotation = Group + "/scheduled-job"

	// NominalTimeAnnotation is the nominal time that a Job was made for, in UTC (RFC 3339), on the Job and on its Pods. The
	// two together are what an application needs to do its work at most once.
	NominalTimeAnnotation = Group + "/nominal-time"

	// ScheduledJobUIDLabel is the UID of the ScheduledJob on the Jobs that it makes, for people who list them.
	ScheduledJobUIDLabel = Group + "/scheduled-job-uid"

	// SuspendedByLabel on a ScheduledJob or a Job names the program that has suspended it, for users who want to resume it:
	// SuspendedByDrain, SuspendedByConvert or SuspendedByRun.
	SuspendedByLabel = Group + "/suspended-by"

	// SuspendedByDrain is the value of SuspendedByLabel on objects that "jobstream-reconciler drain" has suspended.
	SuspendedByDrain = "drain"

	// SuspendedByConvert is its value on CronJobs and ScheduledJobs that "kubectl jobstream convert" has suspended, because an
	// object of the other kind takes over.
	SuspendedByConvert = "convert"

	// ConvertedFromAnnotation on a ScheduledJob or CronJob is the UID of the object of the other kind that it has taken over from.
	ConvertedFromAnnotation = Group + "/converted-from"

	// QueueLabel is the label by which Kueue takes a Job into a queue: it suspends the Job, and resumes it when there is room.
	QueueLabel = "kueue.x-k8s.io/queue-name"

	// SuspendedByRun is the value of SuspendedByLabel on Jobs that "kubectl jobstream run" is creating: they wait for their
	// ConfigMap. If it stays, run was killed; the Job has done nothing, and may be deleted.
	SuspendedByRun = "run"

	// InstantiateAnnotation with the value InstantiateManual marks Jobs that a user, not the clock, has started for a schedule:
	// kubectl and Argo CD write it on Jobs of CronJobs, "kubectl jobstream trigger" and "backfill" on Jobs of ScheduledJobs.
	InstantiateAnnotation = "cronjob.kubernetes.io/instantiate"

	// InstantiateManual is its only value.
	InstantiateManual = "manual"

	// RerunOfAnnotation on a Job is the name of the Job that it runs again, a slash, and that Job's UID. "kubectl jobstream rerun"
	// writes it.
	RerunOfAnnotation = Group + "/rerun-of"

	// OriginalIndexVariable is the environment variable in which the Pods of "kubectl jobstream rerun --failed-indexes" find the
	// index that they have in the first of the Jobs: 0 or more. JOB_COMPLETION_INDEX refers to it.
	OriginalIndexVariable = "JOBSTREAM_ORIGINAL_INDEX"

	// ReasonManuallyTerminated is the reason of the condition FailureTarget by which a user ends a Job: "kubectl jobstream stop"
	// writes it, as Argo CD's action "terminate" does.
	ReasonManuallyTerminated = "ManuallyTerminated"

	// CreatedByAnnotation names the object that created a Job, as a serialized reference (proposal scheduledjob.md, "Fields Added to
	// Job Template").
	CreatedByAnnotation = "kubernetes.io/created-by"
)

// Condition types of a ScheduledJob.
const (
	// ReadyCondition is True while Jobs are created when their time comes.
	ReadyCondition = "Ready"
	// StalledCondition is True while no Jobs are created until the spec is changed. kstatus knows this type.
	StalledCondition = "Stalled"
	// SuspendedCondition is True while the ScheduledJob is suspended. Times that pass meanwhile are skipped.
	SuspendedCondition = "Suspended"
	// BlockedCondition is True while the Job that is due cannot be created: its name is taken, or the API server refuses it.
	BlockedCondition = "Blocked"
	// FinishedCondition is True once a ScheduledJob with runAt has been decided and its Job has finished.
	FinishedCondition = "Finished"
)

// Reasons of SuspendedCondition, and of the verdict Skipped on the times that pass meanwhile.
const (
	// ReasonSuspended is for spec.suspend.
	ReasonSuspended = "Suspended"
	// ReasonFailedRuns is for a ScheduledJob that pauseAfterFailures has paused.
	ReasonFailedRuns = "FailedRuns"
)

// Reasons of StalledCondition.
const (
	ReasonInvalidSchedule = "InvalidSchedule"
	ReasonUnknownTimeZone = "UnknownTimeZone"
	ReasonInvalidTemplate = "InvalidTemplate"
)
