package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
)

// outcome is how a Job ends: the interim condition that says so, with upstream's reason and message. Its zero value is
// that the Job goes on.
type outcome struct {
	kind    batchv1.JobConditionType // "", SuccessCriteriaMet or FailureTarget
	reason  string
	message string
}

func (v outcome) failing() bool { return v.kind == batchv1.JobFailureTarget }

// verdict says whether the Job is over: by what is recorded already, whoever recorded it, or by failure. An ending that
// is recorded never turns into the other one, and failure comes before success (Kubernetes 1.36, syncJob).
func verdict(j events.Job, c count) outcome {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if cond, ok := j.Condition(kind); ok {
			return outcome{kind: kind, reason: cond.Reason, message: cond.Message}
		}
	}
	if c.lost > int(j.BackoffLimit) || restartsExhausted(j, c) {
		return outcome{batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"}
	}
	return outcome{}
}

// restartsExhausted applies backoffLimit where containers are restarted in place: the restarts of all active Pods
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

// complete says that the Job has all the successes that it needs.
func complete(j events.Job, c count) bool {
	if c.active+c.intended > 0 {
		return false
	}
	if j.Completions == nil { // a work queue: any success says that the queue is empty, the rest may finish
		return c.done > 0
	}
	return c.done >= int(*j.Completions)
}

// backoffEnds is when Pods may be created again after failures; zero if they may be now.
func backoffEnds(s State, c count, now time.Time) time.Time {
	b := backoff.After(s.Job.Backoff, c.succeeded, c.failed)
	if ends := b.Last.Add(backoff.Pods.Delay(b.Failures)); b.Failures > 0 && now.Before(ends) {
		return ends
	}
	return time.Time{}
}
