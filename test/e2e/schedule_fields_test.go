package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const everyTwoSeconds = "*/2 * * * * *"

// With Queue, the Jobs run one after the other in the order of their times, and what comes while the queue is full is skipped.
func TestQueueRunsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	sj := p.Schedule(harness.Every("queue", everyTwoSeconds, "sleep 3", harness.KeepAll, func(s *v1alpha1.ScheduledJobSpec) {
		s.ConcurrencyPolicy, s.QueueLimit = v1alpha1.QueueConcurrent, ptr.To(int32(1))
	}))
	p.AwaitSchedule("queue", timeout, "to have skipped a time, and run three Jobs", func(s *v1alpha1.ScheduledJob) bool {
		full := slices.ContainsFunc(s.Status.Recent, func(v v1alpha1.TickVerdict) bool { return v.Reason == events.ReasonQueueFull })
		return full && s.Status.Successful >= 3
	})
	p.Reschedule("queue", `{"suspend":true}`)
	p.AwaitSchedule("queue", timeout, "to be at rest", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.SuspendedCondition) && len(s.Status.Active) == 0 && s.Status.Queued == 0
	})
	runs := p.Runs(sj.UID)
	var before *batchv1.Job
	for _, at := range slices.Sorted(maps.Keys(runs)) {
		j := &runs[at][0]
		if len(runs[at]) != 1 || j.Status.CompletionTime == nil {
			t.Fatalf("%s has %d Jobs, completed %v", at, len(runs[at]), j.Status.CompletionTime)
		}
		if before != nil && j.CreationTimestamp.Before(before.Status.CompletionTime) {
			t.Errorf("%s was created at %v, and %s completed at %v", j.Name, j.CreationTimestamp, before.Name, before.Status.CompletionTime)
		}
		before = j
	}
}

// Two failures in a row pause the schedule: no third Job is created until a user resumes it, and the times of the pause are skipped.
func TestPauseAfterFailures(t *testing.T) {
	t.Parallel()
	u := open(t)
	sj := u.Schedule(harness.Every("broken", everyTwoSeconds, "exit 1", harness.KeepAll, func(s *v1alpha1.ScheduledJobSpec) {
		s.PauseAfterFailures, s.JobTemplate.Spec.BackoffLimit = ptr.To(int32(2)), ptr.To(int32(0))
		s.ConcurrencyPolicy = v1alpha1.ForbidConcurrent
	}))
	paused := func(s *v1alpha1.ScheduledJob) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.SuspendedCondition)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonFailedRuns
	}
	u.AwaitSchedule("broken", timeout, "to be paused", paused)
	if runs := u.Runs(sj.UID); len(runs) != 2 {
		t.Errorf("%d Jobs were created before the pause", len(runs))
	}
	harness.Pass(t, 5*time.Second)
	if runs := u.Runs(sj.UID); len(runs) != 2 {
		t.Errorf("%d Jobs were created, some during the pause", len(runs))
	}
	u.succeeds("kubectl jobstream resume scheduledjob/broken")
	// Soon, as the status has the last ten verdicts only: on a slow cluster the next Jobs last for more times than these.
	u.AwaitSchedule("broken", timeout, "to have a verdict on the times of the pause", func(s *v1alpha1.ScheduledJob) bool {
		return slices.ContainsFunc(s.Status.Recent, func(v v1alpha1.TickVerdict) bool {
			return v.Reason == v1alpha1.ReasonFailedRuns && strings.HasPrefix(v.Message, "the ScheduledJob was paused")
		})
	})
	u.AwaitSchedule("broken", timeout, "to be paused again", func(s *v1alpha1.ScheduledJob) bool {
		return paused(s) && s.Status.Failed-s.Status.Missed == 4 // a slow cluster misses a time, and that counts as failed
	})
}

// After notAfter no Job is created, and the ScheduledJob is Finished; a time that is left out has its verdict.
func TestWindowEnds(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	last := time.Now().UTC().Truncate(time.Second).Add(30 * time.Second)
	even := func(s *v1alpha1.ScheduledJobSpec) {
		s.Schedule, s.Schedules, s.Exclude = "", []v1alpha1.ListedSchedule{everyTwoSeconds, "* * * * * *"}, []v1alpha1.Exclusion{"1-59/2 * * * * *"}
		s.NotAfter = &metav1.Time{Time: last}
	}
	sj := p.Schedule(harness.Every("window", everyTwoSeconds, "true", harness.KeepAll, even))
	end := p.AwaitSchedule("window", timeout, "to be Finished", func(s *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.FinishedCondition)
	})
	for at, jobs := range p.Runs(sj.UID) {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil || when.After(last) || when.Second()%2 == 1 || len(jobs) != 1 {
			t.Errorf("%d Jobs for %s, %v", len(jobs), at, err)
		}
	}
	if !slices.ContainsFunc(end.Status.Recent, func(v v1alpha1.TickVerdict) bool { return v.Reason == events.ReasonExcluded && v.Count == 1 }) {
		t.Errorf("no verdict on what was left out: %v", end.Status.Recent)
	}
}
