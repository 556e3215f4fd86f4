package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
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

// handled returns how many of the failures that a status accounts for the podFailurePolicy has handled, by action: those that the
// status lists, and the ignored ones that no earlier status has reported.
func handled(s State, c count, want batchv1.JobStatus) (by map[batchv1.PodFailurePolicyAction]int) {
	if s.Job.PodFailurePolicy == nil {
		return nil
	}
	for _, p := range append(written(c.failed, want, s.Job), s.unreported(c.ignored)...) {
		if h := policy.Failure(s.Job.PodFailurePolicy, s.Job.Namespace, p); h.Action != "" {
			if by == nil {
				by = map[batchv1.PodFailurePolicyAction]int{}
			}
			by[h.Action]++
		}
	}
	return by
}

// unreported returns the ignored Pods that no status has reported yet. The backoff record covers the reported ones, except for
// failures per index, which no status records.
func (s State) unreported(ignored []events.Pod) (out []events.Pod) {
	if s.Job.BackoffLimitPerIndex == nil {
		return unrecorded(s.Job, ignored)
	}
	for _, p := range ignored {
		if !s.Reported.Has(p.Serial) {
			out = append(out, p)
		}
	}
	return out
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

// podBackoff returns the delay of Pod creation after failures: that of the flags, or the one that the Job's annotation sets.
func (s State) podBackoff() backoff.Policy {
	p := s.limits.PodBackoff
	if w := s.Job.Options.BackoffSeconds; w != nil {
		p.Base = time.Duration(*w) * time.Second
		p.Max = max(p.Max, p.Base)
	}
	return p
}

// backoffEnds returns when Pods may be created again after failures; zero if they may be now.
func backoffEnds(s State, c count, now time.Time) time.Time {
	if s.Job.BackoffLimitPerIndex != nil {
		return time.Time{} // each index waits for itself
	}
	b := backoff.After(s.Job.Backoff, c.succeeded, append(unrecorded(s.Job, c.ignored), c.failed...))
	if ends := b.Last.Add(s.podBackoff().Delay(b.Failures)); b.Failures > 0 && now.Before(ends) {
		return ends
	}
	return time.Time{}
}
