package events

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Job is what functions need to know of a batch/v1 Job, and nothing else.
type Job struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Version is the resourceVersion of this observation; comparable with versions of Jobs only.
	Version uint64 `json:"version"`
	// Generation grows with every change of the spec: Pods are built from a template that is at least as new.
	Generation int64 `json:"generation,omitzero"`
	// Foreign reports whether the Job belongs to another controller (Claim): jobstream ignores it and its Pods.
	Foreign bool `json:"foreign,omitempty"`
	// Deleting reports whether a deletion timestamp is set.
	Deleting bool      `json:"deleting,omitempty"`
	Created  time.Time `json:"created,omitzero"`

	Parallelism int32 `json:"parallelism"`
	// Completions is nil for a work queue: the first success stops the creation of Pods.
	Completions  *int32 `json:"completions,omitempty"`
	Indexed      bool   `json:"indexed,omitempty"`
	BackoffLimit int32  `json:"backoffLimit"`
	// RestartsInPlace is restartPolicy OnFailure: the kubelet restarts containers, and restarts count as retries.
	RestartsInPlace bool `json:"restartsInPlace,omitempty"`
	// ReplaceFailedOnly is podReplacementPolicy Failed, which a podFailurePolicy implies: a terminating Pod is replaced, and
	// counted, only after it has ended.
	ReplaceFailedOnly bool `json:"replaceFailedOnly,omitempty"`
	// Suspended is spec.suspend: the Job shall have no Pods for now.
	Suspended bool `json:"suspended,omitempty"`
	// SuspendedBy is the field manager that has set spec.suspend, and Queue the queue of Kueue that the Job waits in; "" if that is not
	// known, or the Job is not suspended.
	SuspendedBy string `json:"suspendedBy,omitempty"`
	Queue       string `json:"queue,omitempty"`
	// ActiveDeadlineSeconds is how long the Job may run since its start, nil for ever.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// BackoffLimitPerIndex is how many failures each index may have; nil if only the Job as a whole has a limit.
	BackoffLimitPerIndex *int32 `json:"backoffLimitPerIndex,omitempty"`
	// MaxFailedIndexes is how many indexes may fail before the Job fails at once, nil for any number.
	MaxFailedIndexes        *int32                    `json:"maxFailedIndexes,omitempty"`
	PodFailurePolicy        *batchv1.PodFailurePolicy `json:"podFailurePolicy,omitempty"`
	SuccessPolicy           *batchv1.SuccessPolicy    `json:"successPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                    `json:"ttlSecondsAfterFinished,omitempty"`
	// Selector is the user's own; nil if the API server has generated it from the UID.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Owner is the ScheduledJob whose run the Job is; nil for any other Job.
	Owner *RunOwner `json:"owner,omitempty"`
	// ManagedBy is spec.managedBy, "" if it is not set.
	ManagedBy string `json:"managedBy,omitempty"`
	// Labels are the labels that the operator has chosen for public events.
	Labels map[string]string `json:"labels,omitempty"`
	// Options are what the Job's annotations ask for beyond its spec.
	Options Options `json:"options,omitzero"`
	// Unsupported names the fields of the spec whose values this version does not know.
	Unsupported []string `json:"unsupported,omitempty"`

	// TemplateHash is the TemplateHash of the Pod template; "" for a Job that has not started, since only public events have it.
	TemplateHash string `json:"templateHash,omitempty"`

	Status batchv1.JobStatus `json:"status"`
	// NextSerial and Backoff are restored from the annotations that were written with the status.
	NextSerial int     `json:"nextSerial,omitzero"`
	Backoff    Backoff `json:"backoff,omitzero"`
	// LastFailure, too, is restored from such an annotation; nil if no Pod has failed.
	LastFailure *PodFailure `json:"lastFailure,omitempty"`
	// FailedIndexExits, too, are restored from such an annotation: at most MaxIndexExits, sorted, and all in status.failedIndexes.
	FailedIndexExits []IndexExit `json:"failedIndexExits,omitempty"`
}

// Options are what a user asks for by annotations of a Job, where batch/v1 has no field for it.
type Options struct {
	// BackoffSeconds is the delay after the first failure (proposal job.md), nil for the flag's.
	BackoffSeconds *int64 `json:"backoffSeconds,omitempty"`
	// FailedPodsLimit is how many failed Pods are kept once they are counted (proposal job.md), nil for all.
	FailedPodsLimit *int `json:"failedPodsLimit,omitempty"`
	// PendingDeadlineSeconds is how long a Pod may be Pending before it is given up as failed, nil for ever.
	PendingDeadlineSeconds *int64 `json:"pendingDeadlineSeconds,omitempty"`
	// Parameters names the ConfigMap with one list of values per variable, "" for none (proposal indexed-job.md).
	Parameters string `json:"parameters,omitempty"`
	// PublishFailedValues reports whether the JobFinish has the values of failed indexes, if there are Parameters.
	PublishFailedValues bool `json:"publishFailedValues,omitempty"`
	// ParentSpan is the traceparent of the span that the Job's continues, "" for none.
	ParentSpan string `json:"parentSpan,omitempty"`
	// Ignored lists, in whole sentences, the annotations that are ignored and why.
	Ignored []string `json:"ignored,omitempty"`
}

// Backoff is the record that delays the creation of Pods after failures (upstream's backoffRecord, made durable).
type Backoff struct {
	// Failures since the last success.
	Failures int `json:"failures,omitzero"`
	// Last is when the last of them ended; after a success, when that did.
	Last time.Time `json:"last,omitzero"`
}

// Equal reports whether two records are equal.
func (b Backoff) Equal(o Backoff) bool { return b.Failures == o.Failures && b.Last.Equal(o.Last) }

// Condition returns whether the Job has the condition with status True.
func (j Job) Condition(t batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == "True" {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

// HasCondition reports whether the Job has the condition, with any status.
func (j Job) HasCondition(t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == t })
}

// SuspendedMessage is the message of the condition Suspended: upstream's, and who has suspended the Job if that is known.
func (j Job) SuspendedMessage() string {
	switch {
	case j.Queue != "":
		return "Job suspended: it waits in the queue " + j.Queue
	case j.SuspendedBy != "":
		return "Job suspended by " + j.SuspendedBy
	}
	return "Job suspended"
}

// Finished reports whether the Job is Complete or Failed.
func (j Job) Finished() bool {
	_, complete := j.Condition(batchv1.JobComplete)
	_, failed := j.Condition(batchv1.JobFailed)
	return complete || failed
}

// Untouched reports whether the Job is as it was created: its spec has not changed, it has no selector of its user's own, and its
// status shows no trace of a Pod or of a start.
//
// A new State of such a Job intends the same first Pods, with the same names, as a State that was lost. So the inventory needs no list
// of Pods: those that exist are found by their names.
func (j Job) Untouched() bool {
	st := j.Status
	return j.Generation == 1 && j.Selector == nil && st.StartTime == nil && len(st.Conditions) == 0 && st.Active == 0 && st.Succeeded == 0 &&
		st.Failed == 0 && st.CompletedIndexes == "" && ptr.Deref(st.Terminating, 0) == 0 &&
		(st.UncountedTerminatedPods == nil || len(st.UncountedTerminatedPods.Succeeded)+len(st.UncountedTerminatedPods.Failed) == 0)
}

// Expires returns when a finished Job is to be deleted, counted from its terminal condition (Kubernetes 1.36, ttlafterfinished);
// zero for never.
func (j Job) Expires() time.Time {
	if j.TTLSecondsAfterFinished == nil || !j.Finished() {
		return time.Time{}
	}
	return j.FinishedAt().Add(time.Duration(*j.TTLSecondsAfterFinished) * time.Second)
}

// FinishedAt returns when the Job became Complete or Failed; zero before that.
func (j Job) FinishedAt() time.Time {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c, ok := j.Condition(t); ok {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
