package events

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Job is what functions need to know of a batch/v1 Job, and nothing else.
type Job struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Version is the resourceVersion of this sight; comparable with versions of Jobs only.
	Version uint64 `json:"version"`
	// Foreign says that spec.managedBy names somebody else, or nobody: the Job and its Pods are none of our business.
	Foreign bool `json:"foreign,omitempty"`
	// Deleting says that a deletion timestamp is set.
	Deleting bool      `json:"deleting,omitempty"`
	Created  time.Time `json:"created,omitzero"`

	Parallelism int32 `json:"parallelism"`
	// Completions is nil for a work queue: the first success stops the creation of Pods.
	Completions  *int32 `json:"completions,omitempty"`
	Indexed      bool   `json:"indexed,omitempty"`
	BackoffLimit int32  `json:"backoffLimit"`
	// RestartsInPlace is restartPolicy OnFailure: the kubelet restarts containers, and restarts count as retries.
	RestartsInPlace bool `json:"restartsInPlace,omitempty"`
	// ReplaceFailedOnly is podReplacementPolicy Failed: a terminating Pod is replaced only after it has ended.
	ReplaceFailedOnly bool `json:"replaceFailedOnly,omitempty"`
	// Unsupported names the fields of the spec that ask for what this version does not do.
	Unsupported []string `json:"unsupported,omitempty"`

	Status batchv1.JobStatus `json:"status"`
	// NextSerial and Backoff are restored from the annotations that were written with the status.
	NextSerial int     `json:"nextSerial,omitzero"`
	Backoff    Backoff `json:"backoff,omitzero"`
}

// Backoff is the record that delays the creation of Pods after failures (upstream's backoffRecord, made durable).
type Backoff struct {
	// Failures since the last success.
	Failures int `json:"failures,omitzero"`
	// Last is when the last of them ended.
	Last time.Time `json:"last,omitzero"`
}

// Condition returns whether the Job has the condition with status True.
func (j Job) Condition(t batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == "True" {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

// Finished says that the Job is Complete or Failed.
func (j Job) Finished() bool {
	_, complete := j.Condition(batchv1.JobComplete)
	_, failed := j.Condition(batchv1.JobFailed)
	return complete || failed
}
