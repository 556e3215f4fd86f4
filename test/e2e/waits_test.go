package e2e

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A Job whose Pod does not start has a condition and an Event with the kubelet's reason, once the Pod has waited for 30 s: for users of
// plain kubectl. It costs one status write. The next write after the Pod has started takes it back.
func TestAJobShowsThatItsPodsWait(t *testing.T) {
	t.Parallel()
	u := open(t)
	j := harness.Shell("stuck", "exit 0")
	j.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	u.Apply(j)
	started := u.Await("stuck", timeout, "to have started", func(j *batchv1.Job) bool { return j.Status.Active == 1 })
	waits := u.Await("stuck", 2*time.Minute, "to show that its Pod waits", func(j *batchv1.Job) bool { return harness.Is(j, v1alpha1.PodsWaitingCondition) })
	c := harness.Condition(waits, v1alpha1.PodsWaitingCondition)
	if waited := c.LastTransitionTime.Sub(started.Status.StartTime.Time); waited < 30*time.Second-apiSecond {
		t.Errorf("it shows after %v that its Pod waits", waited)
	}
	message := regexp.MustCompile(`^1 of 1 Pods wait: 1 CreateContainerConfigError \(stuck-[a-z0-9]{5}\)$`)
	if got := u.succeeds(`kubectl get job stuck -o jsonpath='{.status.conditions[?(@.type=="jobstream.dev/PodsWaiting")].message}'`); c.Reason != "CreateContainerConfigError" || !message.MatchString(got) {
		t.Errorf("reason %s, message %q", c.Reason, got)
	}
	harness.Until(t, timeout, "kubectl describe to show it", func(ctx context.Context) error {
		out, err := u.asks(ctx, "kubectl describe job stuck")
		if err == nil && (!strings.Contains(out, "PodsWaiting") || !strings.Contains(out, c.Message)) {
			err = errors.New(out)
		}
		return err
	})
	requests, err := u.Requests(u.Namespace)
	writes := slices.DeleteFunc(requests, func(r harness.Request) bool { return r.Resource != "jobs/status" })
	if err != nil || len(writes) == 0 || len(writes) > 2 {
		t.Errorf("%d status writes, want that of its start and that of its wait: %v", len(writes), err)
	}
	u.succeeds("kubectl create configmap settings --from-literal=A=1")
	end := u.AwaitEnd("stuck", batchv1.JobComplete, time.Minute)
	if c := harness.Condition(end, v1alpha1.PodsWaitingCondition); c.Status != corev1.ConditionFalse {
		t.Errorf("at the end: %+v", c)
	}
}

// The condition Suspended and its Event name who has suspended the Job: the field manager, or the queue of Kueue that it waits in.
func TestAJobShowsWhoHasSuspendedIt(t *testing.T) {
	t.Parallel()
	u := open(t)
	queued := harness.Shell("queued", "exit 0", func(s *batchv1.JobSpec) { s.Suspend = new(true) })
	queued.Labels = map[string]string{v1alpha1.QueueLabel: "gpus"}
	u.Apply(queued)
	u.Apply(harness.Shell("patched", "sleep 600"))
	u.Await("patched", timeout, "to run", func(j *batchv1.Job) bool { return j.Status.Active == 1 })
	u.succeeds(`kubectl patch job patched -p '{"spec":{"suspend":true}}'`)
	for name, want := range map[string]string{"queued": "Job suspended: it waits in the queue gpus", "patched": "Job suspended by kubectl-patch"} {
		j := u.Await(name, timeout, "to be suspended", func(j *batchv1.Job) bool { return harness.Is(j, batchv1.JobSuspended) })
		if got := harness.Condition(j, batchv1.JobSuspended).Message; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		harness.Until(t, timeout, "kubectl describe to show it", func(ctx context.Context) error {
			out, err := u.asks(ctx, "kubectl describe job "+name)
			if err == nil && !strings.Contains(out, want) {
				err = errors.New(out)
			}
			return err
		})
	}
}
