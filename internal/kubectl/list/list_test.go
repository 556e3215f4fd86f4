package list_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/list"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/zone"
)

var now = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// scheduled returns a ScheduledJob of which all is well and that is due in so much time, unless the changes say otherwise.
func scheduled(name string, in time.Duration, change ...func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	s := &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Hour)},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "30 2 * * *", TimeZone: ptr.To("Europe/Berlin")},
		Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: ptr.To(ago(-in)),
			LastRun: &v1alpha1.EndedRun{JobName: name + "-1", Result: "Complete", Reason: "CompletionsReached", CompletionTime: ago(3 * time.Hour)}}}
	for _, f := range change {
		f(s)
	}
	return s
}

func ended(result, reason string) func(*v1alpha1.ScheduledJob) {
	return func(s *v1alpha1.ScheduledJob) { s.Status.LastRun.Result, s.Status.LastRun.Reason = result, reason }
}

func holds(kind, reason, message string) func(*v1alpha1.ScheduledJob) {
	return func(s *v1alpha1.ScheduledJob) {
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
}

func suspended(by string) func(*v1alpha1.ScheduledJob) {
	return func(s *v1alpha1.ScheduledJob) {
		s.Spec.Suspend, s.Status.NextScheduleTime = ptr.To(true), nil
		if by != "" {
			s.Labels = map[string]string{v1alpha1.SuspendedByLabel: by}
		}
	}
}

// several are ScheduledJobs in all situations, in another order than that of the list.
func several() *list.List {
	l := &list.List{Now: now, Zones: zone.Load}
	for _, s := range []*v1alpha1.ScheduledJob{
		scheduled("well", 5*time.Minute, func(s *v1alpha1.ScheduledJob) { s.Status.Active = make([]corev1.ObjectReference, 2) }),
		scheduled("sooner", time.Minute),
		scheduled("paused", 0, suspended("")),
		scheduled("drained", 0, suspended("drain")),
		scheduled("late", -time.Minute),
		scheduled("jittered", -time.Minute, func(s *v1alpha1.ScheduledJob) { s.UID, s.Spec.JitterSeconds = "uid", ptr.To[int32](86400) }),
		scheduled("fresh", 0, func(s *v1alpha1.ScheduledJob) {
			s.CreationTimestamp, s.Status = ago(time.Second), v1alpha1.ScheduledJobStatus{}
		}),
		scheduled("queues", -time.Hour, func(s *v1alpha1.ScheduledJob) {
			s.Spec.Schedule, s.Spec.Schedules, s.Status.Queued = "", []v1alpha1.ListedSchedule{"0 9 * * MON-FRI", "0 12 * * SAT"}, 3
		}),
		scheduled("pauses", 0, holds(v1alpha1.SuspendedCondition, v1alpha1.ReasonFailedRuns, "the last 3 Jobs failed"), func(s *v1alpha1.ScheduledJob) { s.Status.NextScheduleTime = nil }),
		scheduled("skips", time.Hour, func(s *v1alpha1.ScheduledJob) { s.Status.LastRun, s.Status.LastDecision = nil, "Skipped" }),
		scheduled("once", 0, holds(v1alpha1.FinishedCondition, "Complete", ""), func(s *v1alpha1.ScheduledJob) {
			s.Spec.Schedule, s.Spec.TimeZone, s.Spec.RunAt, s.Status.NextScheduleTime = "", nil, ptr.To(ago(time.Hour)), nil
		}),
		scheduled("replaced", 2*time.Hour, ended("Missing", "Replaced")),
		scheduled("misses", time.Hour, func(s *v1alpha1.ScheduledJob) { s.Status.Missed = 3 }),
		scheduled("deleted", 20*time.Minute, ended("Missing", "")),
		scheduled("fails", 10*time.Minute, ended("Failed", "BackoffLimitExceeded"), func(s *v1alpha1.ScheduledJob) { s.Status.Missed = 1 }),
		scheduled("untouched", 0, func(s *v1alpha1.ScheduledJob) { s.Status = v1alpha1.ScheduledJobStatus{} }),
		scheduled("blocked", 30*time.Minute, holds(v1alpha1.BlockedCondition, "Forbidden", "exceeded quota")),
		scheduled("stalled", 0, holds(v1alpha1.StalledCondition, "InvalidSchedule", "hour \"25\"\x1b[31m\nis \u202enone"), func(s *v1alpha1.ScheduledJob) { s.Spec.Schedule, s.Status.NextScheduleTime = "0 25\t* * *", nil }),
	} {
		l.Add(s)
	}
	return l
}

// check compares lines with the wanted ones. ^ stands for an escape character.
func check(t *testing.T, got []string, want string) {
	t.Helper()
	if text := "\n" + strings.ReplaceAll(strings.Join(got, "\n"), "\x1b", "^") + "\n"; text != want {
		t.Errorf("got%s\nwant%s", text, want)
	}
}

// What needs a user comes first: no Jobs are created, then the last run failed, then times were missed. The others are in the order
// of their next times.
func TestLines(t *testing.T) {
	check(t, several().Lines(list.View{}), `
NAME        SCHEDULE                        NEXT                 LAST              ACTIVE   MISSED   REASON
blocked     30 2 * * *                      in 30m               Complete 3h ago   0        0        Forbidden: exceeded quota
pauses      30 2 * * *                      paused               Complete 3h ago   0        0        FailedRuns: the last 3 Jobs failed
stalled     0 25 * * *                                           Complete 3h ago   0        0        InvalidSchedule: hour "25"?[31m is ?none
untouched   30 2 * * *                                                             0        0        not taken up: it waits until jobstream runs in this cluster
fails       30 2 * * *                      in 10m               Failed 3h ago     0        1        last run: BackoffLimitExceeded
deleted     30 2 * * *                      in 20m               Missing 3h ago    0        0        last run: deleted before its end
misses      30 2 * * *                      in 60m               Complete 3h ago   0        3
queues      0 9 * * MON-FRI; 0 12 * * SAT   queued               Complete 3h ago   0        0        3 times wait for the end of an earlier Job
late        30 2 * * *                      60s late             Complete 3h ago   0        0
sooner      30 2 * * *                      in 60s               Complete 3h ago   0        0
well        30 2 * * *                      in 5m                Complete 3h ago   2        0
skips       30 2 * * *                      in 60m               Skipped           0        0
replaced    30 2 * * *                      in 120m              Missing 3h ago    0        0
jittered    30 2 * * *                      in 8h                Complete 3h ago   0        0
drained     30 2 * * *                      suspended by drain   Complete 3h ago   0        0
fresh       30 2 * * *                                                             0        0
once        once                            finished             Complete 3h ago   0        0
paused      30 2 * * *                      suspended            Complete 3h ago   0        0
`)
}

// On a terminal the lines fit its width, and have colours.
func TestLinesOnATerminal(t *testing.T) {
	check(t, several().Lines(list.View{Style: progress.Style{Width: 52, Colour: true, Blocks: true}})[:8], `
NAME        SCHEDULE         NEXT                 L…
^[31mblocked     30 2 * * *       in 30m               C…^[0m
^[31mpauses      30 2 * * *       paused               C…^[0m
^[31mstalled     0 25 * * *                            C…^[0m
^[31muntouched   30 2 * * *                             …^[0m
^[31mfails       30 2 * * *       in 10m               F…^[0m
^[31mdeleted     30 2 * * *       in 20m               M…^[0m
^[33mmisses      30 2 * * *       in 60m               C…^[0m
`)
}

// Wide lines are not cut, and have the zone, the next time on its clock, and the Job that ended last.
func TestWideLines(t *testing.T) {
	check(t, several().Lines(list.View{Namespaces: true, Wide: true})[3:8], `
shop        stalled     0 25 * * *                                           Complete 3h ago   0        0        Europe/Berlin                      stalled-1    InvalidSchedule: hour "25"?[31m is ?none
shop        untouched   30 2 * * *                                                             0        0        Europe/Berlin                                   not taken up: it waits until jobstream runs in this cluster
shop        fails       30 2 * * *                      in 10m               Failed 3h ago     0        1        Europe/Berlin   2026-11-22 19:10   fails-1      last run: BackoffLimitExceeded
shop        deleted     30 2 * * *                      in 20m               Missing 3h ago    0        0        Europe/Berlin   2026-11-22 19:20   deleted-1    last run: deleted before its end
shop        misses      30 2 * * *                      in 60m               Complete 3h ago   0        3        Europe/Berlin   2026-11-22 20:00   misses-1
`)
}

// Objects are in the order of the lines.
func TestObjects(t *testing.T) {
	var names []string
	for _, s := range several().Objects() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "blocked pauses stalled untouched fails deleted misses queues late sooner well skips replaced jittered drained fresh once paused" {
		t.Error(got)
	}
}

// docs/kubectl.md shows what the program prints.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	by := func(schedule string, ago time.Duration) func(*v1alpha1.ScheduledJob) {
		return func(s *v1alpha1.ScheduledJob) {
			s.Spec.Schedule, s.Status.LastRun.CompletionTime = schedule, metav1.NewTime(now.Add(-ago))
		}
	}
	l := &list.List{Now: now, Zones: zone.Load}
	for _, s := range []*v1alpha1.ScheduledJob{
		scheduled("weekly", 0, by("0 4 * * 0", 48*time.Hour), suspended("")),
		scheduled("sync", 2*time.Minute, by("@every 5m", 3*time.Minute), func(s *v1alpha1.ScheduledJob) { s.Status.Active = make([]corev1.ObjectReference, 1) }),
		scheduled("hourly", 37*time.Minute, by("7 * * * *", 22*time.Minute), func(s *v1alpha1.ScheduledJob) { s.Status.Missed = 3 }),
		scheduled("report", 10*time.Hour, by("30 2 * * *", 13*time.Hour), ended("Failed", "BackoffLimitExceeded")),
		scheduled("blocked", 30*time.Minute, by("0 * * * *", 3*time.Hour), holds(v1alpha1.BlockedCondition, "Forbidden", "exceeded quota")),
	} {
		l.Add(s)
	}
	if want := strings.Join(l.Lines(list.View{}), "\n"); !strings.Contains(string(text), "```\n"+want+"\n```\n") {
		t.Errorf("docs/kubectl.md does not have\n%s", want)
	}
}
