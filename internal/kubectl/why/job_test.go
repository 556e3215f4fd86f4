package why

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// ago returns a time before noon.
func ago(d time.Duration) metav1.Time { return metav1.Time{Time: noon.Add(-d)} }

// seen returns what was read about a Job of jobstream that began half an hour ago.
func seen(change ...func(*Job)) Job {
	began := ago(30 * time.Minute)
	j := Job{Now: noon, Object: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pi", Namespace: "shop", UID: "j", CreationTimestamp: ago(time.Hour)},
		Spec:   batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](2)},
		Status: batchv1.JobStatus{StartTime: &began}}}
	for _, f := range change {
		f(&j)
	}
	return j
}

func untouched(j *Job) { j.Object.Status = batchv1.JobStatus{} }
func isNew(j *Job)     { untouched(j); j.Object.CreationTimestamp = ago(2 * time.Second) }
func suspend(j *Job)   { j.Object.Spec.Suspend = ptr.To(true) }
func deleting(j *Job)  { at := ago(time.Minute); j.Object.DeletionTimestamp = &at }
func managedBy(name string) func(*Job) {
	return func(j *Job) { j.Object.Spec.ManagedBy = &name }
}

func labelled(key, value string) func(*Job) {
	return func(j *Job) { j.Object.Labels = map[string]string{key: value} }
}

func annotated(key, value string) func(*Job) {
	return func(j *Job) { j.Object.Annotations = map[string]string{key: value} }
}

func holding(finalizers ...string) func(*Job) {
	return func(j *Job) { j.Object.Finalizers = finalizers }
}

func says(t batchv1.JobConditionType, reason, message string) func(*Job) {
	return func(j *Job) {
		j.Object.Status.Conditions = append(j.Object.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: ago(10 * time.Minute)})
	}
}

// with adds a Pod that is on the node n1.
func with(name string, change ...func(*corev1.Pod)) func(*Job) {
	return func(j *Job) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pi-" + name, Namespace: "shop", UID: "uid-" + j.Object.UID, CreationTimestamp: ago(20 * time.Minute)},
			Spec: corev1.PodSpec{NodeName: "n1", SchedulerName: "default-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, f := range change {
			f(&p)
		}
		j.Pods = append(j.Pods, p)
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", Image: "perl:6",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
}

func silent(p *corev1.Pod)   { p.Status.Phase = corev1.PodPending }
func nowhere(p *corev1.Pod)  { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }
func tracked(p *corev1.Pod)  { p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer) }
func hostage(p *corev1.Pod)  { p.Finalizers = append(p.Finalizers, "example.com/keep") }
func leaves(p *corev1.Pod)   { at := ago(5 * time.Minute); p.DeletionTimestamp = &at }
func newborn(p *corev1.Pod)  { p.CreationTimestamp = ago(2 * time.Second) }
func failed(p *corev1.Pod)   { over(p, corev1.PodFailed) }
func succeeds(p *corev1.Pod) { over(p, corev1.PodSucceeded) }

func over(p *corev1.Pod, phase corev1.PodPhase) {
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(5 * time.Minute)}}}}
}

func event(uid, reason, message string, at time.Duration) func(*Job) {
	return func(j *Job) {
		j.Events = append(j.Events, corev1.Event{InvolvedObject: corev1.ObjectReference{UID: "j"}, Type: "Warning", Reason: reason, Message: message, LastTimestamp: ago(at)})
		if uid != "" {
			j.Events[len(j.Events)-1].InvolvedObject.UID = "uid-j"
		}
	}
}

// written records a field manager's write of a field.
func written(manager string, at time.Duration, fields string) func(*Job) {
	return func(j *Job) {
		when := ago(at)
		j.Object.ManagedFields = append(j.Object.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)})
	}
}

const suspendField = `{"f:spec":{"f:suspend":{}}}`

// TestJob: the first finding is the cause that a user has to deal with first.
func TestJob(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change []func(*Job)
		level  finding.Level
		check  string
		says   string
		advice string
	}{
		{"runs", []func(*Job){with("a"), with("b"), func(j *Job) { j.Object.Status.Active, j.Object.Status.Succeeded = 2, 3 }}, finding.OK, "running", "nothing holds it up: 2 Pods active", ""},
		{"as many as parallelism allows", []func(*Job){with("a"), with("b"), func(j *Job) { j.Object.Status.Active = 2 }}, finding.OK, "parallelism", "as many as spec.parallelism allows", `{"spec":{"parallelism":4}}`},
		{"no parallelism", []func(*Job){func(j *Job) { j.Object.Spec.Parallelism = ptr.To[int32](0) }}, finding.Fail, "parallelism", "spec.parallelism is 0", "kubectl patch job pi -n shop"},

		{"untouched", []func(*Job){untouched}, finding.Fail, "controller", "jobstream has not touched it since its creation 60m ago", "kubectl get deployments -A"},
		{"new", []func(*Job){isNew}, finding.Warn, "new", "it was created 2s ago", "ask again"},
		{"the built-in controller's, untouched", []func(*Job){untouched, func(j *Job) { j.Object.Spec.ManagedBy = nil }}, finding.Fail, "managed by", "spec.managedBy is not set", "spec.managedBy: jobstream.dev/reconciler"},
		{"another controller's, untouched", []func(*Job){isNew, managedBy("example.com/x")}, finding.Fail, "managed by", `spec.managedBy is "example.com/x"`, "look for the controller"},
		{"another controller's, at work", []func(*Job){managedBy("example.com/x"), with("a", waiting("ErrImagePull", ""))}, finding.Fail, "image pull", "", ""},
		{"stopped, and runs on", []func(*Job){says(batchv1.JobFailureTarget, "ManuallyTerminated", ""), func(j *Job) { j.Object.Status.Active = 1 }, with("a")}, finding.Fail, "controller", "its end was decided 10m ago, and its Pods still run", ""},
		{"decided, and nothing is left", []func(*Job){says(batchv1.JobFailureTarget, "BackoffLimitExceeded", "")}, finding.Fail, "controller", "no Pod is left", ""},
		{"ended Pods are not counted", []func(*Job){with("a", succeeds, tracked)}, finding.Fail, "controller", "1 ended Pod is not counted, the first for 5m", ""},
		{"no Pod for a long time", nil, finding.Fail, "controller", "it has had no Pod for 30m", ""},
		{"resumed, and nothing happens", []func(*Job){untouched, says(batchv1.JobSuspended, "JobSuspended", "Job suspended"), written("kubectl-jobstream", 2*time.Minute, suspendField)}, finding.Fail, "controller", "it has had no Pod for 2m", ""},
		{"resumed this moment", []func(*Job){untouched, says(batchv1.JobSuspended, "JobSuspended", "Job suspended"), written("kubectl-jobstream", time.Second, suspendField)}, finding.OK, "running", "", ""},
		{"no Pod, because the last one has just ended", []func(*Job){with("a", succeeds), func(j *Job) { j.Now = noon.Add(-5*time.Minute + time.Second) }}, finding.OK, "running", "", ""},
		{"no Pod is known, because they could not be read", []func(*Job){func(j *Job) {
			j.PodsUnread, j.Unread = true, []finding.Finding{finding.Worry("not read", finding.Warn, "", "no")}
		}}, finding.Warn, "not read", "no", ""},

		{"suspended", []func(*Job){suspend, written("kubectl-patch", time.Minute, suspendField)}, finding.Fail, "suspended", "spec.suspend is true, set by kubectl-patch at 2026-11-22T11:59:00Z, 60s ago", "kubectl jobstream resume job/pi -n shop"},
		{"created as suspended", []func(*Job){suspend, written("argocd", 2*time.Hour, suspendField), written("kubectl-edit", 0, `{"f:spec":{"f:parallelism":{}}}`)}, finding.Fail, "suspended", "set by argocd when it was created 120m ago", ""},
		{"suspended, by an unknown manager", []func(*Job){suspend, written("x", 0, `{"f:spec":`)}, finding.Fail, "suspended", "spec.suspend is true: its Pods", ""},
		{"suspended by drain", []func(*Job){suspend, labelled(v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByDrain)}, finding.Fail, "suspended", "when jobstream was being removed", "resume job/pi -n shop --force"},
		{"suspended by run", []func(*Job){suspend, labelled(v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByRun)}, finding.Fail, "suspended", "was interrupted", "kubectl delete job pi -n shop"},
		{"in a queue", []func(*Job){suspend, labelled(v1alpha1.QueueLabel, "gpus")}, finding.Warn, "queue", "the queue gpus", "kubectl describe localqueue gpus -n shop"},
		{"in a queue, and a Pod is held", []func(*Job){suspend, labelled(v1alpha1.QueueLabel, "gpus"), with("a", leaves, succeeds, hostage)}, finding.Fail, "finalizer", "example.com/keep", ""},

		{"unsupported", []func(*Job){says(v1alpha1.UnsupportedCondition, "NotImplemented", "starts no Pods for a Job with x")}, finding.Fail, "unsupported", "a Job with x", ""},
		{"an ignored annotation", []func(*Job){says(v1alpha1.IgnoredCondition, "BadAnnotation", "backoff-seconds: soon"), with("a")}, finding.Warn, "annotation", "backoff-seconds: soon", "kubectl edit job pi -n shop"},
		{"a wait after a failure", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "3 failures in a row: the next Pod is created at 2026-11-22T12:00:40Z; Pod pi-1 failed: container main, exit code 3")}, finding.Warn, "backoff",
			"it waits after a failure: 3 failures in a row: the next Pod is created at 2026-11-22T12:00:40Z (in 40s); Pod pi-1 failed", "kubectl jobstream logs pi --failed -n shop"},
		{"a wait after a failure of an index", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "the first of the indexes that wait is tried again at 2026-11-22T12:02:00Z")}, finding.Warn, "backoff", "12:02:00Z (in 2m)", ""},
		{"a wait after a Pod that never started", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "the next Pod is created at 2026-11-22T12:00:40Z"), event("", "PendingDeadlineExceeded", "Pod pi-1 did not start within 60 s (ImagePullBackOff)", time.Minute)}, finding.Warn, "backoff", "(in 40s); Pod pi-1 did not start within 60 s (ImagePullBackOff)", ""},
		{"a wait that is over", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "the next Pod is created at 2026-11-22T11:58:00Z"), with("a", waiting("ErrImagePull", ""))}, finding.Fail, "image pull", "", ""},
		{"a wait that is over, and no Pod", []func(*Job){says(v1alpha1.BackingOffCondition, "PodFailed", "the next Pod is created at 2026-11-22T11:58:00Z")}, finding.Fail, "controller", "it has had no Pod for 2m", ""},

		{"the API server fails", []func(*Job){event("", "FailedCreate", "Error creating: the API server answered 500 Internal Server Error; it is tried again", 3*time.Second)}, finding.Warn, "api server", "the last time 3s ago: Error creating", "readyz"},
		{"the API server failed before the newest Pod", []func(*Job){event("", "FailedCreate", "Error creating: the API server answered 500", 3*time.Second), with("a", func(p *corev1.Pod) { p.CreationTimestamp = ago(0) })}, finding.OK, "running", "", ""},
		{"a quota under the built-in controller", []func(*Job){func(j *Job) { j.Object.Spec.ManagedBy = nil }, event("", "FailedCreate", `Error creating: pods "pi-x" is forbidden: exceeded quota: few, requested: pods=1`, time.Minute)},
			finding.Fail, "quota", "the last time 60s ago", "kubectl describe quota few -n shop"},
		{"an old failure under the built-in controller", []func(*Job){func(j *Job) { j.Object.Spec.ManagedBy = nil }, event("", "FailedCreate", `exceeded quota: few, requested`, time.Hour), with("a")}, finding.OK, "running", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, seen(tt.change...).Explain(), tt.level, tt.check, tt.says, tt.advice)
		})
	}
}

// page is the section of docs/kubectl.md that lists the causes.
var page = sync.OnceValue(func() string {
	text, err := os.ReadFile("../../../docs/kubectl.md")
	if err != nil {
		panic(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Why does it not run, and how did it end?\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
})

// check compares the first finding with what is wanted of it.
func check(t *testing.T, a Answer, level finding.Level, name, says, advice string) {
	t.Helper()
	if len(a.Findings) == 0 {
		t.Fatal("there is no finding")
	}
	if f := a.Findings[0]; f.Level != level || f.Check != name || !strings.Contains(f.Found, says) || !strings.Contains(f.Advice, advice) {
		t.Errorf("want %v %s: %q -> %q, got\n%s", level, name, says, advice, text(a))
	}
	for _, f := range a.Findings {
		if !strings.Contains(page(), "`"+f.Check+"`") && !strings.HasPrefix(f.Check, "condition ") {
			t.Errorf("docs/kubectl.md does not have the cause %q", f.Check)
		}
		if f.Level == finding.Fail && f.Advice == "" {
			t.Errorf("no advice: %+v", f)
		}
		if strings.Contains(f.Advice, "POD") || strings.Contains(f.Advice, "TEMPLATE") || strings.Contains(f.Advice, "NAMESPACE") || strings.Contains(f.Advice+f.Found, "%!") {
			t.Errorf("a placeholder is left: %+v", f)
		}
	}
}

func text(a Answer) string {
	var b strings.Builder
	for _, f := range a.Findings {
		b.WriteString(f.Level.String() + " " + f.Check + ": " + f.Found + " -> " + f.Advice + "\n")
	}
	return b.String()
}
