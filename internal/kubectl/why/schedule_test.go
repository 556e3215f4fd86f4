package why

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/zone"
)

// schedule returns what was read about a ScheduledJob that is due in an hour.
func schedule(change ...func(*Schedule)) Schedule {
	next := ago(-time.Hour)
	s := Schedule{Now: noon, Zones: zone.Load, Object: &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "tick", Namespace: "shop", UID: "s", CreationTimestamp: ago(24 * time.Hour)},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "@hourly", TimeZone: ptr.To("Europe/Berlin")}, Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: &next}}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func flagged(kind, reason, message string) func(*Schedule) {
	return func(s *Schedule) {
		s.Object.Status.Conditions = append(s.Object.Status.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)})
	}
}

func decided(verdict, reason, message string, before time.Duration, count int64) func(*Schedule) {
	return func(s *Schedule) {
		s.Object.Status.Recent = append(s.Object.Status.Recent, v1alpha1.TickVerdict{Time: ago(before), Verdict: verdict, Reason: reason, Message: message, Count: count})
		s.Object.Status.LastDecision = verdict
	}
}

func concurrency(p v1alpha1.ConcurrencyPolicy) func(*Schedule) {
	return func(s *Schedule) { s.Object.Spec.ConcurrencyPolicy = p }
}

// active adds an active Job.
func active(change ...func(*Job)) func(*Schedule) {
	return func(s *Schedule) {
		j := seen(change...)
		j.Object.Name = "tick-1"
		s.Active = append(s.Active, j)
		s.Object.Status.Active = append(s.Object.Status.Active, corev1.ObjectReference{Name: "tick-1", UID: "j"})
	}
}

// passed makes a nominal time pass without a verdict so long ago.
func passed(before time.Duration) func(*Schedule) {
	return func(s *Schedule) { at := ago(before); s.Object.Status.NextScheduleTime = &at }
}

func never(s *Schedule) { s.Object.Status.NextScheduleTime = nil }

func lastRun(result, reason string) func(*Schedule) {
	return func(s *Schedule) {
		at := ago(2 * time.Hour)
		s.Object.Status.LastRun = &v1alpha1.EndedRun{JobName: "tick-0", JobUID: "j0", ScheduledTime: &at, Result: result, Reason: reason, CompletionTime: ago(time.Hour)}
	}
}

// kept adds the Job of the last run.
func kept(change ...func(*Job)) func(*Schedule) {
	return func(s *Schedule) {
		s.Last = seen(append(change, func(j *Job) { j.Object.Name, j.Object.UID = "tick-0", types.UID("j0") })...).Object
	}
}

// TestSchedule: the first finding is the cause that a user has to deal with first.
func TestSchedule(t *testing.T) {
	runs := with("a")
	stuck := with("a", waiting("ErrImagePull", ""))
	for _, tt := range []struct {
		name   string
		change []func(*Schedule)
		level  finding.Level
		check  string
		says   string
		advice string
	}{
		{"fine", nil, finding.OK, "next", "the next Job is created at 2026-11-22T14:00:00+01:00 (in 60m)", ""},
		{"stalled", []func(*Schedule){flagged("Stalled", "InvalidSchedule", "spec.schedule: no"), never}, finding.Fail, "stalled", "InvalidSchedule: spec.schedule: no", "kubectl edit scheduledjob tick -n shop"},
		{"stalled and suspended", []func(*Schedule){flagged("Stalled", "InvalidSchedule", ""), never, func(s *Schedule) { s.Object.Spec.Suspend = ptr.To(true) }}, finding.Fail, "stalled", "", ""},
		{"suspended", []func(*Schedule){never, func(s *Schedule) { s.Object.Spec.Suspend = ptr.To(true) }, decided("Skipped", "Suspended", "", time.Hour, 3)}, finding.Fail, "suspended", "never caught up on", "kubectl jobstream resume scheduledjob/tick -n shop"},
		{"suspended by convert", []func(*Schedule){never, func(s *Schedule) {
			s.Object.Spec.Suspend, s.Object.Labels = ptr.To(true), map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByConvert}
		}}, finding.Fail, "suspended", "because a CronJob has taken over", "kubectl delete scheduledjob tick -n shop"},
		{"untouched", []func(*Schedule){never, func(s *Schedule) { s.Object.Status.ObservedGeneration = 0 }}, finding.Fail, "controller", "jobstream has not touched it since its creation 24h ago", "kubectl get deployments -A"},
		{"new", []func(*Schedule){never, func(s *Schedule) {
			s.Object.Status.ObservedGeneration, s.Object.CreationTimestamp = 0, ago(time.Second)
		}}, finding.Warn, "new", "created 1s ago", ""},
		{"a time has passed", []func(*Schedule){passed(time.Minute)}, finding.Fail, "controller", "the time 2026-11-22T12:59:00+01:00 has passed without a decision, 60s ago", ""},
		{"a time has just come", []func(*Schedule){passed(time.Second)}, finding.Warn, "due", "is being decided", ""},
		{"a time has passed before it was created", []func(*Schedule){passed(48 * time.Hour), func(s *Schedule) { s.Object.CreationTimestamp = ago(time.Second) }}, finding.Warn, "due", "is being decided", ""},
		{"no time is left", []func(*Schedule){never}, finding.Fail, "no next time", "", "kubectl edit"},
		{"finished", []func(*Schedule){never, flagged("Finished", "Complete", "its one time has come and gone"), lastRun("Complete", "CompletionsReached")}, finding.OK, "last run", "the Job tick-0 of 2026-11-22T11:00:00+01:00 completed", ""},
		{"runs once, and its Job could not be read", []func(*Schedule){never, func(s *Schedule) { s.Object.Spec.RunAt = ptr.To(ago(time.Minute)) }}, finding.OK, "ready", "nothing holds it up", ""},
		{"being deleted, with a finalizer", []func(*Schedule){func(s *Schedule) {
			at := ago(time.Minute)
			s.Object.DeletionTimestamp, s.Object.Finalizers = &at, []string{"example.com/keep"}
		}}, finding.Fail, "finalizer", "example.com/keep", "kubectl edit scheduledjob.jobstream.dev tick -n shop"},

		{"blocked by a quota", []func(*Schedule){passed(time.Minute), flagged("Blocked", "Forbidden", `jobs.batch "tick-1" is forbidden: exceeded quota: few, requested`), func(s *Schedule) { s.Object.Spec.StartingDeadlineSeconds = ptr.To[int64](600) }},
			finding.Fail, "quota", "until startingDeadlineSeconds (600) have passed", "kubectl describe quota few -n shop"},
		{"blocked by a Job of that name", []func(*Schedule){passed(time.Minute), flagged("Blocked", "AlreadyExists", `the Job tick-1 exists`)}, finding.Fail, "name taken", "tick-1", ""},
		{"blocked by a template", []func(*Schedule){passed(time.Minute), flagged("Blocked", "Invalid", `field spec.parallelism: FieldValueInvalid`)}, finding.Fail, "template", "spec.parallelism", "change jobTemplate with: kubectl edit scheduledjob tick"},
		{"the API server fails", []func(*Schedule){passed(2 * time.Minute), func(s *Schedule) {
			s.Events = []corev1.Event{{InvolvedObject: corev1.ObjectReference{UID: "s"}, Reason: "FailedCreate", Message: "Error creating: the API server answered 500 Internal Server Error; it is tried again", LastTimestamp: ago(time.Second)}}
		}}, finding.Warn, "api server", "500", ""},

		{"overlap", []func(*Schedule){concurrency("Forbid"), active(runs), decided("Skipped", "Overlap", "", time.Minute, 1)}, finding.Fail, "overlap", "the Job tick-1, created 60m ago, is still active", "kubectl jobstream why job/tick-1 -n shop"},
		{"overlap with a Job that is stuck", []func(*Schedule){concurrency("Forbid"), active(stuck), decided("Skipped", "Overlap", "", time.Minute, 1)}, finding.Fail, "overlap", "that Job itself: image pull: the image perl:6", "correct the image"},
		{"overlap that is over", []func(*Schedule){concurrency("Forbid"), decided("Started", "", "", 2*time.Minute, 1), decided("Skipped", "Overlap", "an earlier Job was still active", time.Minute, 1)}, finding.Warn, "overlap",
			"the time 2026-11-22T12:59:00+01:00 got no Job: Skipped (Overlap): an earlier Job", "backfill tick -n shop --from=2026-11-22T12:59:00+01:00"},
		{"a Job started by hand after the overlap", []func(*Schedule){concurrency("Forbid"), decided("Skipped", "Overlap", "", 2*time.Minute, 1), decided("Started", "Manual", "", time.Minute, 1)}, finding.Warn, "overlap", "", ""},
		{"no overlap yet", []func(*Schedule){concurrency("Forbid"), active(runs), decided("Started", "", "", time.Minute, 1)}, finding.OK, "running", "a time that comes before its end is skipped", ""},
		{"replaced", []func(*Schedule){concurrency("Replace"), passed(time.Minute), active(deleting, holding("foregroundDeletion"), with("a", leaves, failed, hostage))}, finding.Fail, "replace", "that Job itself: finalizer: ", "remove it"},
		{"waits for its turn", []func(*Schedule){concurrency("Queue"), passed(time.Minute), active(runs)}, finding.Warn, "overlap", "concurrencyPolicy is Queue: the time that has come waits for its end", "why job/tick-1"},
		{"waits for its turn behind a Job that is stuck", []func(*Schedule){concurrency("Queue"), passed(time.Minute), active(stuck)}, finding.Fail, "overlap", "that Job itself: image pull", "correct the image"},
		{"paused after failures", []func(*Schedule){never, flagged("Suspended", "FailedRuns", "the last 3 Jobs failed"), lastRun("Failed", "BackoffLimitExceeded")}, finding.Fail, "paused", "no Job is created for 60s: FailedRuns: the last 3 Jobs failed", "resume scheduledjob/tick"},
		{"resumed this moment", []func(*Schedule){never, flagged("Suspended", "Suspended", "spec.suspend is true")}, finding.OK, "ready", "", ""},
		{"active Job that is stuck", []func(*Schedule){active(stuck)}, finding.Fail, "active job", "the Job tick-1, created 60m ago, does not run; that Job itself: image pull", ""},

		{"missed its deadline", []func(*Schedule){decided("Missed", "Deadline", "it was noticed after its deadline", time.Hour, 3), func(s *Schedule) { s.Object.Spec.StartingDeadlineSeconds = ptr.To[int64](5) }}, finding.Fail, "starting deadline", "3 times, the last of them 2026-11-22T12:00:00+01:00, got no Job: Missed (Deadline): it was noticed after its deadline (startingDeadlineSeconds is 5)", "raise startingDeadlineSeconds"},
		{"missed with catchUp None", []func(*Schedule){decided("Missed", "Deadline", "", time.Hour, 1), func(s *Schedule) { s.Object.Spec.CatchUp = "None" }}, finding.Fail, "starting deadline", "catchUp is None", ""},
		{"missed, because a later time had come", []func(*Schedule){decided("Missed", "Superseded", "a later time had come", time.Hour, 1)}, finding.Fail, "missed", "a later time had come", "catchUp"},
		{"missed before the last Job", []func(*Schedule){decided("Missed", "Superseded", "", time.Hour, 1), decided("Started", "", "", time.Minute, 1)}, finding.OK, "next", "", ""},
		{"refused for good", []func(*Schedule){decided("Failed", "Forbidden", `admission webhook "w.example.com" denied the request: no`, time.Hour, 1)}, finding.Fail, "admission webhook", "got no Job: Failed (Forbidden)", "the owner of the webhook w.example.com"},
		{"name taken until the next time", []func(*Schedule){decided("Blocked", "NameTaken", "the Job tick-1 is another's", time.Hour, 1)}, finding.Fail, "name taken", "tick-1", ""},
		{"a verdict of a newer version", []func(*Schedule){decided("Skipped", "Holiday", "it is one", time.Hour, 1)}, finding.Warn, "skipped", "Skipped (Holiday): it is one", ""},
		{"a condition of a newer version", []func(*Schedule){flagged("Tired", "Why", "it rests")}, finding.Warn, "condition Tired", "Why: it rests", ""},

		{"last run failed", []func(*Schedule){lastRun("Failed", "BackoffLimitExceeded"), kept(says(batchv1.JobFailed, "BackoffLimitExceeded", "limit"), annotated(v1alpha1.LastFailureAnnotation,
			`{"pod":"tick-0-x","container":"main","exitCode":137,"reason":"OOMKilled","time":"2026-11-22T11:00:00Z","node":"n1"}`))}, finding.Fail, "last run", "Pod tick-0-x failed: container main, exit code 137, OOMKilled", "raise the memory limit of the container main; see the output with: kubectl jobstream logs tick-0 --failed"},
		{"last run failed, and is gone", []func(*Schedule){lastRun("Failed", "BackoffLimitExceeded")}, finding.Fail, "last run", "it does not exist any more", "failedJobsHistoryLimit"},
		{"last run was deleted", []func(*Schedule){lastRun("Missing", "Replaced")}, finding.Warn, "last run", "did not end: Missing (Replaced)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, schedule(tt.change...).Explain(), tt.level, tt.check, tt.says, tt.advice)
		})
	}
}
