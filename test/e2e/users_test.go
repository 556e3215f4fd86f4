package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// setParallelism does what "kubectl patch" would.
func setParallelism(t *testing.T, p *harness.Space, job string, n int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"parallelism":%d}}`, n)
	if _, err := p.Client.BatchV1().Jobs(p.Namespace).Patch(t.Context(), job, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A Job grows and shrinks while it runs, down to zero and up again. Pods deleted for that are no failures.
func TestParallelismGoesUpAndDownWithoutFailures(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, indexed bool) {
		p, ledger := shared(t).Space(t), harness.NewLedger(t)
		const completions = 60
		gate := filepath.Join(t.TempDir(), "go") // no Pod ends meanwhile, so the speed of the machine does not matter
		j := harness.Shell("elastic", ledger.Script("0", "until [ -e '"+gate+"' ]; do sleep 0.2; done"), harness.Size(completions, 2, 0))
		if indexed {
			harness.Indexed(&j.Spec)
		}
		trail := p.Follow(p.Apply(j))
		active := func(n int) {
			t.Helper()
			p.Await("elastic", timeout, fmt.Sprintf("to have %d ready Pods", n), func(j *batchv1.Job) bool {
				return int(j.Status.Active) == n && int(ptr.Deref(j.Status.Ready, 0)) == n
			})
		}
		active(2)
		for _, n := range []int{20, 3, 0, 30} {
			setParallelism(t, p, "elastic", n)
			active(n)
		}
		touch(t, gate)
		end := p.AwaitEnd("elastic", batchv1.JobComplete, timeout)
		if sum := ledger.Read(t); end.Status.Succeeded != completions || end.Status.Failed != 0 || sum.Succeeded != completions || sum.Failed > 0 {
			t.Errorf("%d Pods have succeeded by the ledger: %s", sum.Succeeded, harness.Brief(end.Status))
		}
		if sum := ledger.Read(t); indexed && sum.Indexes != completions {
			t.Errorf("%d of %d indexes have succeeded", sum.Indexes, completions)
		}
		for _, wrong := range trail.Wrong() {
			t.Error(wrong)
		}
		awaitHeldNone(t, p)
	})
}

// One failure more than backoffLimit allows ends the Job. The second Pod comes ten seconds after the first has failed.
func TestJobFailsAtItsBackoffLimit(t *testing.T) {
	t.Parallel()
	p, ledger := shared(t).Space(t), harness.NewLedger(t)
	p.Apply(harness.Shell("doomed", ledger.Script("0", "code=7"), harness.Size(1, 1, 1)))
	end := p.AwaitEnd("doomed", batchv1.JobFailed, time.Minute)
	c := harness.Condition(end, batchv1.JobFailed)
	if c.Reason != batchv1.JobReasonBackoffLimitExceeded || c.Message != "Job has reached the specified backoff limit" {
		t.Errorf("it failed for the reason %s: %s", c.Reason, c.Message)
	}
	if sum := ledger.Read(t); sum.Failed != 2 || end.Status.Failed != 2 || end.Status.Succeeded != 0 || end.Status.CompletionTime != nil {
		t.Errorf("%d Pods have failed: %s", sum.Failed, harness.Brief(end.Status))
	}
	backedOff(t, p.Pods("doomed"))
	p.Await("doomed", time.Minute, "to have a Warning about it", func(*batchv1.Job) bool {
		return slices.ContainsFunc(p.Events("doomed"), func(e corev1.Event) bool {
			return e.Type == corev1.EventTypeWarning && e.Reason == batchv1.JobReasonBackoffLimitExceeded
		})
	})
	awaitHeldNone(t, p)
}

// backedOff expects two Pods, the second created ten seconds after the first had failed; later if jobstream was away meanwhile.
func backedOff(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if len(pods) != 2 {
		t.Fatalf("%d Pods are kept, want 2", len(pods))
	}
	failed := pods[0].Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if gap := pods[1].CreationTimestamp.Sub(failed.Time); gap < 10*time.Second {
		t.Errorf("the second Pod came %v after the first had failed, want 10 s", gap)
	}
}

// Workers share a queue: once one of them finds it empty, none is started any more, and the Job ends with the last.
func TestWorkQueueIsWorkedOffOnce(t *testing.T) {
	t.Parallel()
	const tasks, workers = 30, 5
	queue, done := t.TempDir(), t.TempDir()
	for i := range tasks {
		if err := os.WriteFile(filepath.Join(queue, fmt.Sprint("task-", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, ledger := shared(t).Space(t), harness.NewLedger(t)
	// The worker that renames a task has it. All start together, so that the first cannot empty the queue before the last is
	// created.
	gate := filepath.Join(t.TempDir(), "go")
	work := `until [ -e '` + gate + `' ]; do sleep 0.2; done; for task in '` + queue + `'/*; do mv "$task" '` + done + `'/"${task##*/}.$POD_UID" 2>/dev/null && sleep 0.1; done`
	j := harness.Shell("queue", ledger.Script("0", work), func(s *batchv1.JobSpec) { s.Parallelism = ptr.To[int32](workers) })
	p.Apply(j)
	p.Await("queue", timeout, "to have all its workers", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == workers })
	touch(t, gate)
	end := p.AwaitEnd("queue", batchv1.JobComplete, timeout)
	if sum := ledger.Read(t); sum.Succeeded != workers || end.Status.Succeeded != workers || end.Status.Failed != 0 {
		t.Errorf("%d workers have ended well: %s", sum.Succeeded, harness.Brief(end.Status))
	}
	files, err := os.ReadDir(done)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != tasks {
		t.Errorf("%d of %d tasks are done", len(files), tasks)
	}
	awaitHeldNone(t, p)
}

// A container that is restarted in place is no failed Pod.
func TestContainerThatIsRestartedInPlaceIsNoFailure(t *testing.T) {
	t.Parallel()
	p, ledger, dir := shared(t).Space(t), harness.NewLedger(t), t.TempDir()
	first := `mkdir '` + dir + `'/$POD_UID 2>/dev/null && exit 1`
	j := harness.Shell("stumbling", ledger.Script("1", first), harness.Size(3, 3, 6))
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	p.Apply(j)
	end := p.AwaitEnd("stumbling", batchv1.JobComplete, time.Minute)
	if sum := ledger.Read(t); sum.Succeeded != 3 || end.Status.Succeeded != 3 || end.Status.Failed != 0 {
		t.Errorf("%d Pods have succeeded: %s", sum.Succeeded, harness.Brief(end.Status))
	}
	for _, pod := range p.Pods("stumbling") {
		if n := pod.Status.ContainerStatuses[0].RestartCount; n != 1 {
			t.Errorf("the container of Pod %s was restarted %d times, want 1", pod.Name, n)
		}
	}
	awaitHeldNone(t, p)
}

// Restarts in place count against backoffLimit too, and then the Pod that keeps restarting is deleted.
func TestRestartsInPlaceEndAtTheBackoffLimit(t *testing.T) {
	t.Parallel()
	p := shared(t).Space(t)
	j := harness.Shell("stubborn", "exit 1", harness.Size(1, 1, 1))
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	p.Apply(j)
	end := p.AwaitEnd("stubborn", batchv1.JobFailed, time.Minute)
	if c := harness.Condition(end, batchv1.JobFailed); !strings.HasPrefix(c.Reason, batchv1.JobReasonBackoffLimitExceeded) {
		t.Errorf("it failed for the reason %s", c.Reason)
	}
	if end.Status.Failed != 1 || end.Status.Active != 0 {
		t.Errorf("it is %s", harness.Brief(end.Status))
	}
	awaitHeldNone(t, p)
}
