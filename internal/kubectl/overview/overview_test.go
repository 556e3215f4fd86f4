package overview_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/overview"
	"github.com/jobstream/jobstream/internal/zone"
)

var now = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// job returns a Job of jobstream that was created an hour ago.
func job(name string, change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Hour)},
		Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy)}}
	change(j)
	return j
}

func running(active, succeeded int32, since time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Completions = ptr.To(int32(10))
		j.Status.Active, j.Status.Succeeded, j.Status.StartTime = active, succeeded, ptr.To(ago(since))
	}
}

func condition(kind batchv1.JobConditionType, reason, message string, since time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.StartTime = ptr.To(ago(time.Hour))
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: ago(since)})
	}
}

func scheduled(name string, change func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	s := &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Hour)},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "30 2 * * *"}, Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1}}
	change(s)
	return s
}

// lines returns the sections as lines, with | between the cells.
func lines(sections []overview.Section) (all []string) {
	for _, s := range sections {
		all = append(all, s.Title)
		for _, row := range s.Rows {
			all = append(all, strings.TrimRight(strings.Join(row, "|"), "|"))
		}
		if s.More != "" {
			all = append(all, s.More)
		}
	}
	return all
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// Running Jobs come first, the latest first; each Job that makes no progress has a reason.
func TestJobs(t *testing.T) {
	o := &overview.Overview{Now: now}
	for _, j := range []*batchv1.Job{
		job("drained", func(j *batchv1.Job) {
			j.Spec.Suspend, j.Labels = ptr.To(true), map[string]string{v1alpha1.SuspendedByLabel: "drain"}
		}),
		job("stopped", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }),
		job("nobodys", func(*batchv1.Job) {}),
		job("just-made", func(j *batchv1.Job) { j.CreationTimestamp = ago(time.Second) }),
		job("long", running(3, 4, 50*time.Minute)),
		job("short", running(1, 0, 5*time.Second)),
		job("refused", condition(v1alpha1.RefusedCondition, "FailedCreate", "exceeded \x1b[31mquota", time.Minute)),
		job("dying", condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", "too often", time.Minute)),
		job("done", condition(batchv1.JobComplete, "", "", time.Minute)),
		job("bad", condition(batchv1.JobFailed, "DeadlineExceeded", "too long", 5*time.Minute)),
		job("worse", condition(batchv1.JobFailed, "PodFailurePolicy", "exit code 3", 2*time.Minute)),
		job("long-ago", condition(batchv1.JobFailed, "BackoffLimitExceeded", "too often", 25*time.Hour)),
		job("theirs", func(j *batchv1.Job) { j.Spec.ManagedBy = nil }),
	} {
		o.SawJob(j)
	}
	check(t, lines(o.Sections(0)),
		"Jobs: 8 unfinished, 1 complete, 3 failed, 1 that other controllers run",
		"short|Running|0/10|1|0|5s ago|60m",
		"long|Running|4/10|3|0|50m ago|60m",
		"dying|Failing|0|0|0|60m ago|60m|BackoffLimitExceeded: too often",
		"just-made|Waiting|0|0|0||1s",
		"nobodys|Waiting|0|0|0||60m|not taken up: it waits until jobstream runs in this cluster",
		"refused|Waiting|0|0|0|60m ago|60m|Refused: FailedCreate: exceeded ?[31mquota",
		"drained|Suspended|0|0|0||60m|suspended by drain",
		"stopped|Suspended|0|0|0||60m",
		"Failed in the last 24 hours: 2",
		"worse|2m ago|0|0|60m|PodFailurePolicy: exit code 3",
		"bad|5m ago|0|0|60m|DeadlineExceeded: too long",
	)
}

// ScheduledJobs that should create Jobs and do not come first, then those that are due, in their own zones.
func TestScheduledJobs(t *testing.T) {
	o := &overview.Overview{Now: now}
	due := func(in time.Duration) func(*v1alpha1.ScheduledJob) {
		return func(s *v1alpha1.ScheduledJob) {
			s.Status.NextScheduleTime, s.Status.LastRun, s.Status.Missed = ptr.To(ago(-in)), &v1alpha1.EndedRun{Result: "Complete"}, 2
			s.Status.Active = []corev1.ObjectReference{{Name: s.Name + "-1"}}
		}
	}
	for _, s := range []*v1alpha1.ScheduledJob{
		scheduled("stopped", func(s *v1alpha1.ScheduledJob) { s.Spec.Suspend = ptr.To(true) }),
		scheduled("converted", func(s *v1alpha1.ScheduledJob) {
			s.Spec.Suspend, s.Labels = ptr.To(true), map[string]string{v1alpha1.SuspendedByLabel: "convert"}
		}),
		scheduled("tomorrow", due(24*time.Hour)),
		scheduled("berlin", func(s *v1alpha1.ScheduledJob) {
			due(8*time.Hour + 30*time.Minute)(s)
			s.Spec.TimeZone = ptr.To("Europe/Berlin")
		}),
		scheduled("late", due(-3*time.Minute)),
		scheduled("once", func(s *v1alpha1.ScheduledJob) {
			due(5*time.Hour + time.Second)(s)
			s.Spec.Schedule, s.Spec.RunAt = "", ptr.To(ago(-5*time.Hour-time.Second))
		}),
		scheduled("over", func(s *v1alpha1.ScheduledJob) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue}}
		}),
		scheduled("wrong", func(s *v1alpha1.ScheduledJob) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: "UnknownTimeZone", Message: "Mars is none"}}
		}),
		scheduled("nobodys", func(s *v1alpha1.ScheduledJob) { s.Status.ObservedGeneration = 0 }),
	} {
		o.SawScheduledJob(s, zone.Load)
	}
	check(t, lines(o.Sections(0)),
		"Jobs: none",
		"ScheduledJobs: 9, 2 suspended, 1 finished",
		"nobodys|30 2 * * *|UTC||||0|0|not taken up: it waits until jobstream runs in this cluster",
		"wrong|30 2 * * *|UTC||||0|0|UnknownTimeZone: Mars is none",
		"late|30 2 * * *|UTC|2026-11-22 17:57|3m late|Complete|1|2",
		"once|once|UTC|2026-11-22 23:00:01|5h|Complete|1|2",
		"berlin|30 2 * * *|Europe/Berlin|2026-11-23 03:30|8h|Complete|1|2",
		"tomorrow|30 2 * * *|UTC|2026-11-23 18:00|24h|Complete|1|2",
		"converted|30 2 * * *|UTC|suspended by convert|||0|0",
		"stopped|30 2 * * *|UTC|suspended|||0|0",
	)
}

// A start delayed by jitter is not late.
func TestAJobThatIsDueLater(t *testing.T) {
	o := &overview.Overview{Now: now}
	o.SawScheduledJob(scheduled("spread", func(s *v1alpha1.ScheduledJob) {
		s.UID, s.Spec.JitterSeconds, s.Status.NextScheduleTime = "7", ptr.To[int32](86400), ptr.To(ago(time.Minute))
	}), zone.Load)
	if got := strings.Join(lines(o.Sections(0)), "\n"); strings.Contains(got, "late") {
		t.Errorf("got\n%s", got)
	}
}

// Rows that do not fit are counted; no section starves another.
func TestAScreenful(t *testing.T) {
	o := &overview.Overview{Now: now, Namespaces: true}
	for i := range 40 {
		o.SawJob(job(fmt.Sprintf("run-%02d", i), running(1, 0, time.Minute)))
		o.SawJob(job(fmt.Sprintf("wait-%02d", i), func(j *batchv1.Job) { j.CreationTimestamp = ago(time.Second) }))
	}
	o.SawJob(job("bad", condition(batchv1.JobFailed, "DeadlineExceeded", "too long", 5*time.Minute)))
	for i := range 4 {
		o.SawScheduledJob(scheduled(fmt.Sprint(i), func(*v1alpha1.ScheduledJob) {}), zone.Load)
	}
	check(t, lines(o.Sections(6)),
		"Jobs: 80 unfinished, 1 failed",
		"shop|run-00|Running|0/10|1|0|60s ago|60m",
		"shop|run-01|Running|0/10|1|0|60s ago|60m",
		"shop|run-02|Running|0/10|1|0|60s ago|60m",
		"and 77 more: 37 Running, 40 Waiting",
		"Failed in the last 24 hours: 1",
		"shop|bad|5m ago|0|0|60m|DeadlineExceeded: too long",
		"ScheduledJobs: 4",
		"shop|0|30 2 * * *|UTC||||0|0",
		"shop|1|30 2 * * *|UTC||||0|0",
		"and 2 more",
	)
	if all := o.Sections(0); len(all) != 3 || len(all[0].Rows) != 80 || len(all[0].Columns) != len(all[0].Rows[0]) {
		t.Errorf("without a limit there are %d sections with %d Jobs", len(all), len(all[0].Rows))
	}
}
