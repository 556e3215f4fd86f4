package scheduledjob_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

func TestIdle(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := noon.Add(30 * time.Minute)
	until, next := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	is := func(condition string, since time.Time) metav1.Condition {
		return metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}
	}
	run := func(result events.RunResult, nominal time.Time) events.Run {
		return events.Run{Result: result, Nominal: nominal}
	}
	early := noon.Add(-time.Hour)
	for _, c := range []struct {
		name   string
		change func(*events.ScheduledJob)
		runs   []events.Run
		want   bool
	}{
		{"it waits", nil, nil, true},
		{"it keeps what it may keep", nil, []events.Run{run("Complete", early), run("Complete", noon), run("Failed", early)}, true},
		{"it is suspended", func(j *events.ScheduledJob) { j.Suspended = true; j.Status.NextScheduleTime = &until }, nil, true},
		{"it is stalled", func(j *events.ScheduledJob) {
			j.Status.DecidedUntil, j.Status.NextScheduleTime = nil, nil
			j.Status.Conditions = []metav1.Condition{is(v1alpha1.StalledCondition, early)}
		}, nil, true},
		{"it has no status yet", func(j *events.ScheduledJob) { j.Status = v1alpha1.ScheduledJobStatus{} }, nil, false},
		{"its spec has changed since", func(j *events.ScheduledJob) { j.Generation++ }, nil, false},
		{"its time has come", func(j *events.ScheduledJob) { j.Status.NextScheduleTime = &until }, nil, false},
		{"a Job of it is not counted", func(j *events.ScheduledJob) { j.Status.Active = []corev1.ObjectReference{{Name: "x"}} }, nil, false},
		{"a Job of it runs, and is not in its status", nil, []events.Run{run("", noon)}, false},
		{"a Job of it had finished before it was in its status", nil, []events.Run{run("Complete", noon.Add(time.Second))}, false},
		{"a Job that a user had started has ended unseen", nil, []events.Run{{UID: "u", Result: "Complete"}}, false},
		{"so has one for a nominal time", nil, []events.Run{{UID: "u", Result: "Complete", Nominal: early, Manual: true}}, false},
		{"a Job that a user had started has its verdict", func(j *events.ScheduledJob) {
			j.Status.Recent = []v1alpha1.TickVerdict{{Time: metav1.NewTime(early), JobUID: "u"}}
		}, []events.Run{{UID: "u", Result: "Complete"}}, true},
		{"a Job that a user had started has perhaps lost its verdict", func(j *events.ScheduledJob) {
			j.Status.Recent = slices.Repeat([]v1alpha1.TickVerdict{{Time: metav1.NewTime(early)}}, v1alpha1.RecentVerdicts)
			j.Status.LastRun = &v1alpha1.EndedRun{JobUID: "v", CompletionTime: metav1.NewTime(noon)}
		}, []events.Run{{UID: "u", Result: "Complete"}}, true},
		{"it keeps too many Jobs that are complete", nil, []events.Run{run("Complete", early), run("Complete", early), run("Complete", noon)}, false},
		{"it keeps too many Jobs that have failed", nil, []events.Run{run("Failed", early), run("Failed", noon)}, false},
		{"one too many is being deleted", nil, []events.Run{run("Failed", early), {Result: "Failed", Nominal: noon, Deleting: true}}, true},
		{"it is blocked", func(j *events.ScheduledJob) {
			j.Status.Conditions = []metav1.Condition{is(v1alpha1.BlockedCondition, early)}
		}, nil, false},
		{"its verdict may not have been announced", func(j *events.ScheduledJob) {
			late := metav1.NewTime(now.Add(-time.Minute))
			j.Status.DecidedUntil, j.Status.Recent = &late, []v1alpha1.TickVerdict{{Time: late}}
		}, nil, false},
		{"the verdict of its end may not have been announced", func(j *events.ScheduledJob) {
			j.Status.NextScheduleTime, j.Status.Recent = nil, []v1alpha1.TickVerdict{{Time: until}}
			j.Status.Conditions = []metav1.Condition{is(v1alpha1.FinishedCondition, now.Add(-time.Minute))}
		}, nil, false},
		{"its verdict has been announced long since", func(j *events.ScheduledJob) { j.Status.Recent = []v1alpha1.TickVerdict{{Time: until}} }, nil, true},
		{"its time to live is over", func(j *events.ScheduledJob) {
			j.TTLSecondsAfterFinished, j.Status.NextScheduleTime = new(int32(60)), nil
			j.Status.Conditions = []metav1.Condition{is(v1alpha1.FinishedCondition, noon)}
		}, nil, false},
		{"its time to live is not over", func(j *events.ScheduledJob) {
			j.TTLSecondsAfterFinished, j.Status.NextScheduleTime = new(int32(3600)), nil
			j.Status.Conditions = []metav1.Condition{is(v1alpha1.FinishedCondition, noon)}
		}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := events.ScheduledJob{Generation: 3, RunAt: noon, SuccessfulJobs: 2, FailedJobs: 1,
				Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 3, DecidedUntil: &until, NextScheduleTime: &next}}
			if c.change != nil {
				c.change(&j)
			}
			if got := scheduledjob.Idle(&j, c.runs, now, 12*time.Minute); got != c.want {
				t.Errorf("idle: %v", got)
			}
		})
	}
}
