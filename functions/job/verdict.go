package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/policy"
)

// outcome is how a Job ends: the interim condition that shows it, with upstream's reason and message. The zero value means that
// the Job goes on.
type outcome struct {
	kind    batchv1.JobConditionType // "", SuccessCriteriaMet or FailureTarget
	reason  string
	message string
}

func (v outcome) failing() bool { return v.kind == batchv1.JobFailureTarget }

// verdict returns whether and how the Job ends: by a condition that is recorded already, no matter which controller recorded it,
// by failure, or by its successPolicy. A recorded outcome never turns into the other one, and failure comes before success (the
// order of Kubernetes 1.36, syncJob).
func verdict(s State, c count, now time.Time) outcome {
	j := s.Job
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if cond, ok := j.Condition(kind); ok {
			return outcome{kind: kind, reason: cond.Reason, message: cond.Message}
		}
	}
	fails := func(reason, message string) outcome { return outcome{batchv1.JobFailureTarget, reason, message} }
	end := deadline(j)
	failed := c.indexes.failed.Len()
	switch {
	case c.doom != "":
		return fails(batchv1.JobReasonPodFailurePolicy, c.doom)
	case c.lost > int(j.BackoffLimit), restartsExhausted(j, c):
		return fails(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case !end.IsZero() && !now.Before(end):
		return fails(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	case j.MaxFailedIndexes != nil && failed > int(*j.MaxFailedIndexes):
		return fails(batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
	case failed > 0 && failed+c.done >= completions(j):
		return fails(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	}
	if message, met := policy.Success(j.SuccessPolicy, completions(j), c.indexes.completed); met {
		return outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy, message}
	}
	return outcome{}
}

// deadline returns when the Job has run for too long; zero for never. The clock of a suspended Job stands still, and resuming the
// Job starts it anew.
func deadline(j events.Job) time.Time {
	_, suspended := j.Condition(batchv1.JobSuspended)
	if j.ActiveDeadlineSeconds == nil || j.Status.StartTime == nil || j.Suspended || suspended {
		return time.Time{}
	}
	return j.Status.StartTime.Add(time.Duration(*j.ActiveDeadlineSeconds) * time.Second)
}

// restartsExhausted applies backoffLimit to Jobs whose containers are restarted in place: the restarts of all active Pods
// together are the retries (upstream: pastBackoffLimitOnFailure).
func restartsExhausted(j events.Job, c count) bool {
	if !j.RestartsInPlace {
		return false
	}
	if j.BackoffLimit == 0 {
		return c.restarts > 0
	}
	return c.restarts >= j.BackoffLimit
}

// complete reports whether the Job has all the successes that it needs.
func complete(j events.Job, c count) bool {
	if c.active+c.intended > 0 {
		return false
	}
	if j.Completions == nil { // a work queue: any success means that the queue is empty, and the other Pods may finish
		return c.done > 0
	}
	return c.done >= int(*j.Completions)
}
