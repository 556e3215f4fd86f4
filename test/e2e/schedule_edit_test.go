package e2e

import (
	"context"
	"fmt"
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

// The examples of proposal scheduledjob.md, "Updates to ScheduledJobs" and "Name of Jobs", with seconds in place of
// minutes: an hour is 20 seconds, half an hour 10.
const (
	hourly     = "*/20 * * * * *"
	halfHourly = "*/10 * * * * *"
)

// awaitRunAt waits for a Job whose nominal time is a multiple of so many seconds, and just passed.
func awaitRunAt(t *testing.T, p *harness.Space, sj *v1alpha1.ScheduledJob, every int) (nominal time.Time) {
	t.Helper()
	harness.Until(t, timeout, fmt.Sprintf("a Job at a multiple of %d seconds", every), func(context.Context) error {
		for at := range p.Runs(sj.UID) {
			when, err := time.Parse(time.RFC3339, at)
			if err != nil {
				return harness.Stop(err)
			}
			if when.Second()%every == 0 && time.Since(when) < 3*time.Second {
				nominal = when
				return nil
			}
		}
		return fmt.Errorf("Jobs exist for %d times", len(p.Runs(sj.UID)))
	})
	return nominal
}

// passUntil waits for a moment of the clock.
func passUntil(t *testing.T, at time.Time) {
	t.Helper()
	harness.Pass(t, time.Until(at))
}

// inTime runs a story whose first half must be over when a moment of the clock comes. If the machine was too slow, it runs the
// story once more.
func inTime(t *testing.T, story func(p *harness.Space) (tooLate bool)) {
	t.Helper()
	for range 5 {
		if !story(shared(t).Space(t)) {
			return
		}
		t.Log("too late; once more")
	}
	t.Fatal("the machine is too slow for seconds")
}

// reschedule changes the ScheduledJob "report", and waits until the reconciler has seen that.
func reschedule(p *harness.Space, patch string) {
	p.Helper()
	p.Reschedule("report", patch)
	p.AwaitSchedule("report", timeout, "to be observed", func(s *v1alpha1.ScheduledJob) bool { return s.Status.ObservedGeneration == s.Generation })
}

// between returns the nominal times of Jobs after one time and before another.
func between(p *harness.Space, sj *v1alpha1.ScheduledJob, after, before time.Time) (all []string) {
	p.Helper()
	for at := range p.Runs(sj.UID) {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			p.Fatal(err)
		}
		if when.After(after) && when.Before(before) {
			all = append(all, at)
		}
	}
	return all
}

// awaitRun waits until one Job has that time.
func awaitRun(p *harness.Space, sj *v1alpha1.ScheduledJob, what string, at time.Time) {
	p.Helper()
	harness.Until(p, timeout, what, func(context.Context) error {
		if runs := p.Runs(sj.UID); len(runs[key(at)]) != 1 {
			return fmt.Errorf("Jobs exist for %d times", len(runs))
		}
		return nil
	})
}

func key(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// "If you have a schedule to run every 30 minutes, and change that to hourly, then the previously started top-of-the-hour
// run, in Status.Active, will be seen and no new job started."
func TestHalfHourlyBecomesHourly(t *testing.T) {
	t.Parallel()
	inTime(t, func(p *harness.Space) (tooLate bool) {
		sj := p.Schedule(harness.Every("report", halfHourly, "sleep 60", harness.KeepAll))
		top := awaitRunAt(t, p, sj, 20)
		reschedule(p, fmt.Sprintf(`{"schedule":%q}`, hourly))
		if time.Since(top) > 9*time.Second { // the next half hour may have run already
			return true
		}
		next := top.Add(20 * time.Second)
		awaitRun(p, sj, "the next hour to run", next)
		if half := between(p, sj, top, next); len(half) > 0 || len(p.Runs(sj.UID)[key(top)]) != 1 {
			t.Errorf("%d Jobs at the top, and then Jobs at %q", len(p.Runs(sj.UID)[key(top)]), half)
		}
		return false
	})
}

// "If you have a schedule to run every hour, change that to 30-minutely, at 31 minutes past the hour, one run will be started
// immediately for the starting time that has just passed."
func TestHourlyBecomesHalfHourly(t *testing.T) {
	t.Parallel()
	inTime(t, func(p *harness.Space) (tooLate bool) {
		sj := p.Schedule(harness.Every("report", hourly, "true", harness.KeepAll))
		top := awaitRunAt(t, p, sj, 20)
		passUntil(t, top.Add(11*time.Second))
		reschedule(p, fmt.Sprintf(`{"schedule":%q}`, halfHourly))
		if time.Since(top) > 19*time.Second { // at the next hour the half hour is superseded
			return true
		}
		awaitRun(p, sj, "the half hour that has just passed to run", top.Add(10*time.Second))
		return false
	})
}

// "If the job template of a ScheduledJob is updated, then future executions use the new template but old ones still satisfy
// the schedule and are not re-run just because the template changed."
func TestTemplateChangeRunsNothing(t *testing.T) {
	t.Parallel()
	inTime(t, func(p *harness.Space) (tooLate bool) {
		sj := p.Schedule(harness.Every("report", halfHourly, "true", harness.KeepAll))
		first := awaitRunAt(t, p, sj, 10)
		reschedule(p, `{"jobTemplate":{"metadata":{"labels":{"edition":"second"}}}}`)
		if time.Since(first) > 9*time.Second { // the next Job may be of the first edition
			return true
		}
		second := first.Add(10 * time.Second)
		awaitRun(p, sj, "the next Job", second)
		if again := between(p, sj, first, second); len(again) > 0 {
			t.Errorf("Jobs exist for %q", again)
		}
		for at, jobs := range p.Runs(sj.UID) {
			want := ""
			if when, _ := time.Parse(time.RFC3339, at); !when.Before(second) {
				want = "second"
			}
			if have := jobs[0].Labels["edition"]; len(jobs) != 1 || have != want {
				t.Errorf("the %d Jobs of %s are of edition %q, want one of %q", len(jobs), at, have, want)
			}
		}
		return false
	})
}

// "If you delete and replace a ScheduledJob with one of the same name", the new one knows nothing of the old one. A Job that has
// the name that it needs blocks it, until a user deletes that Job.
func TestReplacedByOneOfTheSameName(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	old := p.Schedule(harness.Every("report", halfHourly, "sleep 600", harness.KeepAll))
	awaitRunAt(t, p, old, 10)
	p.Unschedule("report", metav1.DeletePropagationOrphan)
	// The garbage collector, which orphans, learns of a kind as new as this cluster after half a minute or more.
	harness.Until(t, 2*time.Minute, "it to be gone and its Jobs to stay", func(context.Context) error {
		if runs := p.Runs(old.UID); len(runs) != 0 {
			return fmt.Errorf("%d Jobs are still its own", len(runs))
		}
		return p.Unscheduled("report")
	})
	forbid := func(s *v1alpha1.ScheduledJobSpec) { s.ConcurrencyPolicy = v1alpha1.ForbidConcurrent }
	made := p.Schedule(harness.Every("report", hourly, "true", harness.KeepAll, forbid))
	first := made.CreationTimestamp.Truncate(20 * time.Second).Add(20 * time.Second)
	taken := first.Add(20 * time.Second)
	leftover := harness.Shell("report-"+events.NominalHash(taken), "true", func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
	p.Apply(leftover)

	harness.Until(t, timeout, "the new one's first Job, although the old one's still run", func(context.Context) error {
		for at := range p.Runs(made.UID) {
			when, err := time.Parse(time.RFC3339, at)
			if err != nil {
				return harness.Stop(err)
			}
			if !when.After(made.CreationTimestamp.Time) {
				return harness.Stop(fmt.Errorf("a Job for %s, before the ScheduledJob was created", at))
			}
		}
		if len(p.Runs(made.UID)[key(first)]) != 1 {
			return fmt.Errorf("Jobs exist for %d times", len(p.Runs(made.UID)))
		}
		return nil
	})
	blocked := p.AwaitSchedule("report", timeout, "to be blocked", func(j *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.BlockedCondition)
	})
	if c := meta.FindStatusCondition(blocked.Status.Conditions, v1alpha1.BlockedCondition); !strings.Contains(c.Message, leftover.Name) || !strings.Contains(c.Message, "delete it") {
		t.Errorf("it is blocked by %s: %s", c.Reason, c.Message)
	}
	p.Delete(leftover.Name)
	harness.Until(t, timeout, "it to run when the leftover is gone", func(context.Context) error {
		if runs := p.Runs(made.UID); len(runs[key(taken)]) != 1 || runs[key(taken)][0].Name != leftover.Name {
			return fmt.Errorf("Jobs exist for %d times", len(runs))
		}
		return nil
	})
}

// A Job is named after its ScheduledJob and a hash of its nominal time, and names its owner and its time.
func TestNameOfJobs(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	sj := p.Schedule(harness.Every("report", "* * * * * *", "true", harness.KeepAll))
	p.AwaitSchedule("report", time.Minute, "to have created three Jobs", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful >= 3 })
	for at, jobs := range p.Runs(sj.UID) {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		j := jobs[0]
		if want := "report-" + events.NominalHash(when); j.Name != want {
			t.Errorf("the Job of %s is called %s, want %s", at, j.Name, want)
		}
		if by := j.Annotations[v1alpha1.CreatedByAnnotation]; !hasAll(by, []string{"SerializedReference", "ScheduledJob", string(sj.UID)}) {
			t.Errorf("it was created by %s", by)
		}
		if j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != at || ptr.Deref(j.Spec.ManagedBy, "") != v1alpha1.DefaultManagedBy {
			t.Errorf("%s: %v, managed by %v", j.Name, j.Annotations, j.Spec.ManagedBy)
		}
	}
}

// runAt creates one Job, once; and with a time to live both are deleted after it has ended.
func TestRunAtRunsOnceAndGoes(t *testing.T) {
	t.Parallel()
	p, received := shared(t).Space(t), shared(t).Record(t)
	once := harness.Every("once", "", "true", func(s *v1alpha1.ScheduledJobSpec) {
		s.RunAt = ptr.To(metav1.NewTime(time.Now().Add(5 * time.Second).Truncate(time.Second)))
		s.TTLSecondsAfterFinished = ptr.To[int32](60) // long enough for the test to see it
	})
	made := p.Schedule(once)
	end := p.AwaitSchedule("once", time.Minute, "to have finished", func(j *v1alpha1.ScheduledJob) bool {
		return meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.FinishedCondition)
	})
	if st := end.Status; st.Successful != 1 || st.Failed != 0 || len(p.Runs(made.UID)) != 1 || st.NextScheduleTime != nil {
		t.Errorf("%d Jobs, and the status %+v", len(p.Runs(made.UID)), st)
	}
	harness.Until(t, 2*time.Minute, "it and its Job to be gone", func(context.Context) error {
		if n := len(p.Runs(made.UID)); n > 0 {
			return fmt.Errorf("%d Jobs are left", n)
		}
		return p.Unscheduled("once")
	})
	for _, v := range received.Ticks(t) {
		if v.ScheduledJob.UID == made.UID && (v.Verdict != events.Started || !v.Nominal.Equal(once.Spec.RunAt.Time)) {
			t.Errorf("it has the verdicts: %v", v)
		}
	}
}

// Replace deletes the running Job, and creates the next one when it and its Pods are gone: two never run at once.
func TestReplaceLeavesOneRunning(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	sj := p.Schedule(harness.Every("latest", "*/5 * * * * *", "sleep 600", harness.KeepAll, func(s *v1alpha1.ScheduledJobSpec) {
		s.ConcurrencyPolicy = v1alpha1.ReplaceConcurrent
		s.JobTemplate.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	}))
	harness.Until(t, 90*time.Second, "three Jobs, one after the other", func(context.Context) error {
		running := 0
		for _, jobs := range p.Runs(sj.UID) {
			for _, j := range jobs {
				if j.DeletionTimestamp == nil && !harness.Is(&j, batchv1.JobComplete) && !harness.Is(&j, batchv1.JobFailed) {
					running++
				}
			}
		}
		if running > 1 {
			return harness.Stop(fmt.Errorf("%d Jobs run", running))
		}
		if st := p.Scheduled("latest").Status; st.Failed < 2 || len(st.Active) != 1 {
			return fmt.Errorf("its status is %+v", st)
		}
		return nil
	})
}
