package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A Job that "stop" ends is Failed with its reason, every Pod is counted once, and no Pod keeps running: a running Job, one that
// was suspended before it ever ran, and one of the built-in controller. A subscriber receives the end.
func TestKubectlStop(t *testing.T) {
	t.Parallel()
	u := open(t)
	subscriber := u.Subscribe()
	const script = `[ $JOB_COMPLETION_INDEX -lt 2 ] || exec sleep 600`
	u.Apply(harness.Shell("works", script, harness.Size(9, 5, 0), harness.Indexed))
	u.Apply(harness.Shell("theirs", script, harness.Size(9, 5, 0), harness.Indexed, func(s *batchv1.JobSpec) { s.ManagedBy = nil }))
	u.Apply(harness.Shell("never", "true", harness.Size(2, 2, 0), func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) }))
	for _, name := range []string{"works", "theirs"} {
		u.Await(name, timeout, "to have 2 successes and 5 Pods that run", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 && ptr.Deref(j.Status.Ready, 0) == 5 })
	}
	u.Await("never", timeout, "to be suspended", func(j *batchv1.Job) bool { return harness.Is(j, batchv1.JobSuspended) })

	out, errOut, code := u.enter("kubectl jobstream stop works theirs never --wait --timeout=10m")
	if code != 0 || out != "job.batch/works stopped\njob.batch/theirs stopped\njob.batch/never stopped\n" || !strings.Contains(errOut, "job.batch/works is Failed: ManuallyTerminated: Job was stopped by a user (2 succeeded, 5 failed") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	for name, want := range map[string][2]int32{"works": {2, 5}, "theirs": {2, 5}, "never": {0, 0}} {
		j := u.Job(name)
		end := harness.Condition(j, batchv1.JobFailed)
		if end == nil || end.Reason != "ManuallyTerminated" || end.Message != "Job was stopped by a user" || j.Status.Succeeded != want[0] || j.Status.Failed != want[1] || j.Status.Active != 0 || ptr.Deref(j.Status.Terminating, 0) != 0 {
			t.Errorf("%s: %s", name, harness.Brief(j.Status))
		}
		pods := u.Pods(name)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
				t.Errorf("the Pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		if held := harness.Held(pods); len(held) > 0 {
			t.Errorf("%s: these Pods have a finalizer: %v", name, held)
		}
	}
	harness.Until(t, timeout, "a subscriber to receive the ends", func(context.Context) error {
		received := map[string]int{}
		for _, r := range subscriber.Received() {
			if e, is := r.Event.(events.JobFinished); is && e.Reason == "ManuallyTerminated" {
				received[e.Job.Name]++
			}
		}
		if len(received) != 2 || received["works"] != 1 || received["never"] != 1 { // theirs is not announced by jobstream
			return fmt.Errorf("it has received %v", received)
		}
		return nil
	})
	if _, errOut, code = u.enter("kubectl jobstream resume job/works"); code != 0 || !strings.Contains(errOut, "has finished: nothing is left to resume") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
