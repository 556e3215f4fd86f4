package sim

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// verdict: a Job ends for a reason that is true.
func (t *truth) verdict(old, next events.Job) {
	if c, ok := next.Condition(batchv1.JobFailureTarget); ok {
		if _, was := old.Condition(batchv1.JobFailureTarget); !was {
			t.failsFor(old, next, c.Reason)
		}
	}
	if c, ok := next.Condition(batchv1.JobSuccessCriteriaMet); ok {
		if _, was := old.Condition(batchv1.JobSuccessCriteriaMet); !was {
			t.succeedsFor(next, c.Reason)
		}
	}
	for _, x := range [][2]batchv1.JobConditionType{{batchv1.JobFailureTarget, batchv1.JobFailed}, {batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}} {
		first, said := next.Condition(x[0])
		last, ends := next.Condition(x[1])
		if ends && (!said || first.Reason != last.Reason || first.Message != last.Message) {
			t.fail("%s for %q, but %s for %q", x[1], last.Reason, x[0], first.Reason)
		}
	}
}

func (t *truth) failsFor(old, next events.Job, reason string) {
	st := next.Status
	var holds bool
	switch reason {
	case batchv1.JobReasonDeadlineExceeded:
		holds = !old.Suspended && old.ActiveDeadlineSeconds != nil && !t.w.decided.Before(deadlineOf(old))
	case batchv1.JobReasonMaxFailedIndexesExceeded:
		holds = old.MaxFailedIndexes != nil && t.lostIndexes(next) > int(*old.MaxFailedIndexes)
	case batchv1.JobReasonFailedIndexes:
		holds = old.BackoffLimitPerIndex != nil && t.lostIndexes(next) > 0
	case batchv1.JobReasonPodFailurePolicy:
		holds = t.any(next, func(r *record) bool { return t.failed(r) && t.action(r) == batchv1.PodFailurePolicyActionFailJob })
	case batchv1.JobReasonBackoffLimitExceeded:
		failed := 0
		t.any(next, func(r *record) bool {
			if t.failed(r) || !next.ReplaceFailedOnly && r.deleted {
				failed += 1 + r.again
			}
			return false
		})
		holds = failed > int(next.BackoffLimit) || next.RestartsInPlace
	}
	if !holds {
		t.fail("fails for %s, which is not true: failed %d, failedIndexes %q", reason, st.Failed, or(st.FailedIndexes))
	}
}

// deadlineOf returns when the Job must have ended; zero if it has not started.
func deadlineOf(j events.Job) time.Time {
	if j.Status.StartTime == nil {
		return time.Time{}
	}
	return j.Status.StartTime.Add(time.Duration(or(j.ActiveDeadlineSeconds)) * time.Second)
}

// lostIndexes returns how many indexes have truly failed, whether or not a status lists them.
func (t *truth) lostIndexes(j events.Job) int {
	lost := failedIndexes(j.Status)
	t.any(j, func(r *record) bool {
		if t.endsIndex(j, r) && r.index < int(*j.Completions) {
			lost = lost.With(r.index)
		}
		return false
	})
	return lost.Len()
}

func (t *truth) any(j events.Job, of func(*record) bool) bool {
	for _, r := range t.pods {
		if r.owner == j.UID && of(r) {
			return true
		}
	}
	return false
}

func (t *truth) succeedsFor(next events.Job, reason string) {
	st := next.Status
	done := int(st.Succeeded) + len(uncounted(st).Succeeded)
	switch {
	case int(st.Failed)+len(uncounted(st).Failed) > int(next.BackoffLimit):
		t.fail("succeeds with %d failures, of at most %d", int(st.Failed)+len(uncounted(st).Failed), next.BackoffLimit)
	case reason == batchv1.JobReasonSuccessPolicy:
		all := completed(st)
		t.any(next, func(r *record) bool { // what is true may not have been written yet
			if r.well && r.index >= 0 && r.index < int(*next.Completions) {
				all = all.With(r.index)
			}
			return false
		})
		if !satisfied(next, all) {
			t.fail("succeeds by its successPolicy, which completedIndexes %s do not satisfy", st.CompletedIndexes)
		}
	case reason != batchv1.JobReasonCompletionsReached:
		t.fail("succeeds for %q", reason)
	case next.Completions != nil && max(done, t.successes) < int(*next.Completions), next.Completions == nil && t.successes == 0:
		t.fail("has reached its completions with %d of %d successes", done, *next.Completions)
	}
}

// satisfied reports whether the successPolicy has a rule that is met. It follows the API documentation, index by index.
func satisfied(j events.Job, done intervals.Set) bool {
	if j.SuccessPolicy == nil || done.Len() == 0 {
		return false
	}
	return slices.ContainsFunc(j.SuccessPolicy.Rules, func(rule batchv1.SuccessPolicyRule) bool {
		named, met := 0, 0
		these, _ := intervals.Parse(or(rule.SucceededIndexes))
		for i := range int(*j.Completions) {
			if rule.SucceededIndexes == nil || these.Has(i) {
				if named++; done.Has(i) {
					met++
				}
			}
		}
		return rule.SucceededIndexes != nil && named > 0 && met == named || rule.SucceededCount != nil && named > 0 && met >= int(*rule.SucceededCount)
	})
}

// unfinished: a write that meets an end condition must report that end.
func (t *truth) unfinished(old, next events.Job) {
	if _, failing := next.Condition(batchv1.JobFailureTarget); failing {
		return
	}
	if _, met := next.Condition(batchv1.JobSuccessCriteriaMet); met {
		return
	}
	st := next.Status
	lost, done := failedIndexes(st).Len(), completed(st)
	if end := deadlineOf(old); old.ActiveDeadlineSeconds != nil && !old.Suspended && suspended(old) != corev1.ConditionTrue && !end.IsZero() && !t.w.decided.Before(end) {
		t.fail("goes on after its deadline %v", end)
	}
	switch {
	case int(st.Failed)+len(uncounted(st).Failed) > int(next.BackoffLimit):
		t.fail("goes on with more failures than backoffLimit %d", next.BackoffLimit)
	case next.MaxFailedIndexes != nil && lost > int(*next.MaxFailedIndexes):
		t.fail("goes on with %d failed indexes, of at most %d", lost, *next.MaxFailedIndexes)
	case next.Indexed && lost > 0 && lost+done.Len() >= int(*next.Completions):
		t.fail("goes on when all indexes have completed (%s) or failed (%s)", done, or(st.FailedIndexes))
	case next.Indexed && satisfied(next, done):
		t.fail("goes on when its successPolicy is satisfied by %s", done)
	}
	for _, uid := range uncounted(st).Failed {
		r := t.of(uid)
		if slices.Contains(uncounted(old.Status).Failed, uid) || !t.failed(r) {
			continue
		}
		switch t.action(r) {
		case batchv1.PodFailurePolicyActionFailJob:
			t.fail("goes on though %s failed in a way that fails the Job", r.name)
		case batchv1.PodFailurePolicyActionFailIndex:
			if !failedIndexes(st).Has(r.index) && !done.Has(r.index) && r.index < int(*next.Completions) {
				t.fail("%s failed in a way that fails its index %d, which goes on", r.name, r.index)
			}
		case batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount: // the Job goes on
		}
		if t.endsIndex(next, r) && !failedIndexes(st).Has(r.index) && !done.Has(r.index) && r.index < int(*next.Completions) {
			t.fail("index %d goes on after %d failures", r.index, r.failures+1)
		}
	}
}
