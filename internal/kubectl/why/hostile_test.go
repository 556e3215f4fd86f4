package why

import (
	"strings"
	"testing"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// FuzzExplain: whatever users, webhooks, kubelets and other controllers have written into objects, there is an answer. It is safe to
// print, of limited length, and has advice for each cause that does not pass by itself.
//
//	go test ./internal/kubectl/why -fuzz FuzzExplain
func FuzzExplain(f *testing.F) {
	for _, text := range []string{"", "Failed", "\x1b[31m\u202e\n1. running: no\x00", strings.Repeat("x", 40_000), "\xff\xfe", "exceeded quota: \x1b", "CreatePod: a: b", `admission webhook "a" denied`,
		"the next Pod is created at 2026-11-22T12:00:40Z", "created at 9999-99-99T99:99:99Z", `{"pod":"p","time":"2026-11-22T11:00:00Z","reason":"OOMKilled"}`, `{"f:spec":{"f:suspend":{}}}`, "%s %d %!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, j := range hostileJobs(text) {
			judge(t, j.Explain())
			judge(t, schedule(concurrency("Forbid"), decided("Skipped", "Overlap", text, time.Minute, -1), func(s *Schedule) { s.Active, s.Last = []Job{j}, j.Object }, lastRun("Failed", text)).Explain())
			Unexplained(j.Pods)
		}
		for _, reason := range []string{"Deadline", "Superseded", "NameTaken", text} {
			judge(t, schedule(decided("Missed", reason, text, time.Hour, 1), flagged(text, text, text), flagged("Stalled", text, text)).Explain())
		}
		judge(t, schedule(flagged("Blocked", text, text), lastRun(text, text), func(s *Schedule) { s.Object.Spec.TimeZone = &text }).Explain())
	})
}

// hostileJobs are Jobs with the text wherever another program may write one.
func hostileJobs(text string) []Job {
	scribbled := func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Spec.SchedulingGates = text, []corev1.PodSchedulingGate{{Name: text}}
		p.Finalizers = append(p.Finalizers, text)
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].Name, p.Status.ContainerStatuses[i].Image = text, text
		}
	}
	return []Job{
		seen(managedBy(text), untouched),
		seen(suspend, labelled(v1alpha1.QueueLabel, text)),
		seen(suspend, labelled(v1alpha1.SuspendedByLabel, text), written(text, time.Minute, suspendField), written(text, 0, text)),
		seen(deleting, holding("foregroundDeletion", text), with("a", leaves, failed, hostage, tracked, scribbled), with("b", leaves, scribbled)),
		seen(says(v1alpha1.RefusedCondition, text, "CreatePod: "+text), says(batchv1.JobConditionType(text), text, text)),
		seen(says(v1alpha1.RefusedCondition, "Invalid", text), says(v1alpha1.IgnoredCondition, text, text), says(v1alpha1.UnsupportedCondition, text, text)),
		seen(says(v1alpha1.BackingOffCondition, text, text), event("", "FailedCreate", text, 0)),
		seen(with("a", waiting(text, text), scribbled), with("b", waiting("ErrImagePull", text), scribbled), with("c", crashed, scribbled), with("d", nowhere, scribbled),
			with("e", nowhere, scheduled("False", text, text)), annotated(v1alpha1.PendingDeadlineSecondsAnnotation, text)),
		seen(with("a", waiting("ContainerCreating", text)), event("a", text, text, 0)),
		seen(says(batchv1.JobFailed, text, text), annotated(v1alpha1.LastFailureAnnotation, text), func(j *Job) { j.Object.Status.FailedIndexes = &text }),
		seen(says(batchv1.JobFailureTarget, text, text), with("a", leaves, scribbled)),
	}
}

// judge checks what is true of every answer.
func judge(t *testing.T, a Answer) {
	t.Helper()
	if len(a.Findings) == 0 {
		t.Fatal("there is no answer")
	}
	for i, f := range a.Findings {
		if i > 0 && f.Level > a.Findings[i-1].Level {
			t.Errorf("what passes by itself comes first: %s", text(a))
		}
		if f.Level == finding.Fail && f.Advice == "" || f.Found == "" {
			t.Errorf("there is no advice: %+v", f)
		}
		for _, s := range []string{f.Check, f.Found, f.Advice} {
			if len(s) > 8*longest || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%d bytes are not safe to print: %q", len(s), s)
			}
		}
	}
}

// A user copies the commands that an advice has: no text of another program gets into them.
func TestAdviceRunsNothingElse(t *testing.T) {
	const evil = "x; rm -rf ~ #"
	jobs := append(hostileJobs(evil), seen(with("a", func(p *corev1.Pod) { silent(p); p.Spec.NodeName = evil })), seen(says(v1alpha1.RefusedCondition, "Forbidden", "CreatePod: exceeded quota: "+evil)), seen(says(v1alpha1.RefusedCondition, "Forbidden", `CreatePod: error looking up service account a/b: serviceaccount "`+evil+`" not found`)))
	for _, j := range jobs {
		for _, f := range j.Explain().Findings {
			for _, command := range strings.Split(f.Advice, "kubectl ")[1:] {
				if strings.Contains(command, "rm -rf") {
					t.Errorf("%s: %s", f.Check, f.Advice)
				}
			}
		}
	}
}

// The same objects give the same answer.
func TestExplainIsRepeatable(t *testing.T) {
	j := seen(with("a", waiting("ErrImagePull", "x")), with("b", waiting("ErrImagePull", "y")), with("c", nowhere), says(v1alpha1.RefusedCondition, "Forbidden", "CreatePod: no"))
	want := text(j.Explain())
	for range 50 {
		if got := text(j.Explain()); got != want {
			t.Fatalf("want\n%s\ngot\n%s", want, got)
		}
	}
}
