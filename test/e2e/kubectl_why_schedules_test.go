package e2e

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// whySchedules are the situations of a ScheduledJob. Each has one called tick.
var whySchedules = []situation{
	{"schedule without a time", schedule("0 0 30 2 *", "true"), "tick", "stalled", []string{"InvalidSchedule", "kubectl edit scheduledjob tick"}},
	{"schedule that a user has suspended", func(u *terminal) {
		schedule("@daily", "true")(u)
		u.succeeds("kubectl jobstream suspend tick")
	}, "tick", "suspended", []string{"set by kubectl-jobstream", "never caught up on", "kubectl jobstream resume scheduledjob/tick"}},
	{"overlap", func(u *terminal) {
		schedule("* * * * * *", "sleep 600", policy(v1alpha1.ForbidConcurrent))(u)
		u.AwaitSchedule("tick", timeout, "to skip a time", func(s *v1alpha1.ScheduledJob) bool { return s.Status.LastDecision == string(events.Skipped) })
	}, "tick", "overlap", []string{"the Job tick-", "concurrencyPolicy is Forbid", "kubectl jobstream why job/tick-"}},
	{"overlap with a Job that has no node", func(u *terminal) {
		schedule("* * * * * *", "true", policy(v1alpha1.ForbidConcurrent), gated)(u)
		u.AwaitSchedule("tick", timeout, "to skip a time", func(s *v1alpha1.ScheduledJob) bool { return s.Status.LastDecision == string(events.Skipped) })
	}, "tick", "overlap", []string{"the Job tick-", "that Job itself: scheduling gate: ", "example.com/budget"}},
	{"turn that has not come", func(u *terminal) {
		schedule("* * * * * *", "sleep 600", policy(v1alpha1.QueueConcurrent))(u)
		u.AwaitSchedule("tick", timeout, "to have a queue", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Queued > 0 })
	}, "tick", "overlap", []string{"the Job tick-", "concurrencyPolicy is Queue: the time that has come waits for its end"}},
	{"paused after a failure", schedule("* * * * * *", "exit 3", func(s *v1alpha1.ScheduledJobSpec) {
		s.PauseAfterFailures, s.JobTemplate.Spec.BackoffLimit = ptr.To[int32](1), ptr.To[int32](0)
	}), "tick", "paused", []string{"FailedRuns: ", "kubectl jobstream resume scheduledjob/tick"}},
	{"everything is excluded", schedule("* * * * * *", "true", func(s *v1alpha1.ScheduledJobSpec) {
		s.Exclude = []v1alpha1.Exclusion{"* 0-23 1-31 1-11 *", "* * * 12 *"}
	}), "tick", "stalled", []string{"spec.exclude: it leaves no time at all"}},
	{"quota of Jobs", func(u *terminal) { u.allowNoJobs(); schedule("@daily", "true", at("2026-01-01T00:00:00Z"))(u) }, "tick", "quota", []string{"refuses to create its Job", "exceeded quota: none", "kubectl describe quota none -n "}},
	{"name that is taken", func(u *terminal) {
		u.Apply(harness.Shell("tick-"+events.NominalHash(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), "true"))
		schedule("@daily", "true", at("2026-01-01T00:00:00Z"))(u)
	}, "tick", "name taken", []string{"tick-", "an object of another owner has that name"}},
	{"times before the deadline was over", func(u *terminal) {
		schedule("@daily", "true", func(s *v1alpha1.ScheduledJobSpec) {
			midnight := time.Now().UTC().Truncate(24 * time.Hour) // the second of the times
			s.StartAfter, s.StartingDeadlineSeconds = &metav1.Time{Time: midnight.Add(-25 * time.Hour)}, ptr.To[int64](1)
		})(u)
	}, "tick", "starting deadline", []string{"2 times, the last of them", "(startingDeadlineSeconds is 1)", "kubectl jobstream backfill tick"}},
	{"last run failed", func(u *terminal) {
		schedule("@daily", "exit 3", at("2026-01-01T00:00:00Z"), func(s *v1alpha1.ScheduledJobSpec) { s.JobTemplate.Spec.BackoffLimit = ptr.To[int32](0) })(u)
		u.AwaitSchedule("tick", timeout, "to have ended", func(s *v1alpha1.ScheduledJob) bool { return s.Status.LastRun != nil })
	}, "tick", "last run", []string{"of 2026-01-01T00:00:00Z failed", "container main, exit code 3", "kubectl jobstream logs tick-"}},
	{"active Job that cannot run", schedule("* * * * * *", "true", gated, func(s *v1alpha1.ScheduledJobSpec) {
		s.Schedule, s.RunAt = "", ptr.To(metav1.NewTime(time.Unix(1e9, 0)))
	}), "tick", "active job", []string{"scheduling gate", "example.com/budget"}},
	{"nothing is wrong", schedule("0 0 1 1 *", "true"), "tick", "next", []string{"the next Job is created at 2", "(in "}},
}

// schedule makes the creation of a ScheduledJob a situation.
func schedule(when, script string, change ...func(*v1alpha1.ScheduledJobSpec)) func(*terminal) {
	return func(u *terminal) { u.Schedule(harness.Every("tick", when, script, change...)) }
}

func policy(p v1alpha1.ConcurrencyPolicy) func(*v1alpha1.ScheduledJobSpec) {
	return func(s *v1alpha1.ScheduledJobSpec) { s.ConcurrencyPolicy = p }
}

// at replaces the schedule by one time.
func at(when string) func(*v1alpha1.ScheduledJobSpec) {
	return func(s *v1alpha1.ScheduledJobSpec) {
		t, err := time.Parse(time.RFC3339, when)
		if err != nil {
			panic(err)
		}
		s.Schedule, s.RunAt = "", &metav1.Time{Time: t}
	}
}

// gated keeps the Pods of the Jobs from being scheduled.
func gated(s *v1alpha1.ScheduledJobSpec) {
	s.JobTemplate.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/budget"}}
}

// allowNoJobs sets a quota of no Jobs, and waits until it is in force.
func (u *terminal) allowNoJobs() {
	u.Helper()
	hard := corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := u.Client.CoreV1().ResourceQuotas(u.Namespace).Create(u.Context(), q, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
	harness.Until(u, time.Minute, "the quota to be in force", func(ctx context.Context) error {
		probe := harness.Shell("probe", "true", func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
		if _, err := u.Client.BatchV1().Jobs(u.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return fmt.Errorf("a Job is allowed")
		}
		return nil
	})
}
