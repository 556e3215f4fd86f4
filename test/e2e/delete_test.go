package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// seconds is a bound for "within seconds" on a busy machine. A Pod that had to wait for its grace period would take ten minutes.
const seconds = time.Minute

func graceful(s *batchv1.JobSpec) { s.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) }

// awaitNoPods waits until no Pod of the Job with that UID is left.
func awaitNoPods(t *testing.T, p *harness.Space, j *batchv1.Job) {
	t.Helper()
	began := time.Now()
	harness.Until(t, seconds, "the Pods of a deleted Job to be gone", func(ctx context.Context) error {
		list, err := p.Client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(j.UID)})
		if err == nil && len(list.Items) > 0 {
			first := list.Items[0]
			err = fmt.Errorf("%d are left, %d of them with a finalizer; one is %s, deleted %v, finalizers %v", len(list.Items),
				len(harness.Held(list.Items)), first.Status.Phase, first.DeletionTimestamp, first.Finalizers)
		}
		return err
	})
	t.Logf("gone after %.1f s", time.Since(began).Seconds())
}

// kubectl delete job: as soon as the garbage collector has deleted the Pods, no finalizer of jobstream keeps them. The built-in
// Job controller, which would remove it too, is off.
func TestDeletedJobs(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{NoBuiltInJobs: true})
	t.Run("PodsAreGoneInSeconds", func(t *testing.T) { podsAreGone(t, s.Space(t)) })
	t.Run("PodsMayStay", func(t *testing.T) { podsMayStay(t, s.Space(t)) })
	t.Run("NewJobOfTheNameShowsNoTrace", func(t *testing.T) {
		eachMode(t, func(t *testing.T, indexed bool) { noTrace(t, s.Space(t), indexed) })
	})
}

func podsAreGone(t *testing.T, p *harness.Space) {
	const pods = 20
	j := p.Apply(harness.Shell("long", "sleep 600", harness.Size(pods, pods, 0), graceful))
	p.Await("long", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == pods })
	if held := harness.Held(p.Pods("long")); len(held) != pods {
		t.Fatalf("%d Pods are held, want %d: this test would prove nothing", len(held), pods)
	}
	p.Delete("long")
	awaitNoPods(t, p, j)
}

// podsMayStay: kubectl delete --cascade=orphan leaves the Pods without an owner. They keep running, without the finalizer.
func podsMayStay(t *testing.T, p *harness.Space) {
	p.Apply(harness.Shell("long", "sleep 600", harness.Size(2, 2, 0), graceful))
	p.Await("long", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 2 })
	err := p.Client.BatchV1().Jobs(p.Namespace).Delete(t.Context(), "long", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)})
	if err != nil {
		t.Fatal(err)
	}
	// The reconciler removes the finalizer while the garbage collector removes the owner, Pod by Pod: either may be first.
	harness.Until(t, seconds, "the Pods to lose finalizer and owner", func(context.Context) error {
		pods := p.Pods("long")
		if held := harness.Held(pods); len(held) > 0 {
			return fmt.Errorf("held are %v", held)
		}
		for _, pod := range pods {
			if len(pod.OwnerReferences) > 0 {
				return fmt.Errorf("%s is owned by %v", pod.Name, pod.OwnerReferences)
			}
		}
		return nil
	})
	for _, pod := range p.Pods("long") {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			t.Errorf("Pod %s is %s, deleted %v", pod.Name, pod.Status.Phase, pod.DeletionTimestamp)
		}
	}
	if n := len(p.Pods("long")); n != 2 {
		t.Errorf("%d Pods are left, want 2", n)
	}
}

// noTrace: a Job that is created as soon as its namesake has been deleted, while the old Pods still terminate, starts from
// nothing.
func noTrace(t *testing.T, p *harness.Space, indexed bool) {
	ledger := harness.NewLedger(t)
	job := func(script string, change ...func(*batchv1.JobSpec)) *batchv1.Job {
		j := harness.Shell("again", script, change...)
		if indexed {
			harness.Indexed(&j.Spec)
		}
		return j
	}
	// The old Job has one of each: a success, a failure with its backoff, and Pods that ignore SIGTERM.
	old := p.Apply(job(drawLots(t.TempDir())+`case $RANK in 0) exit 0;; 1) exit 1;; esac; trap "" TERM; sleep 600`, harness.Size(4, 4, 10)))
	p.Await("again", time.Minute, "to have one of each", func(j *batchv1.Job) bool {
		return j.Status.Succeeded == 1 && j.Status.Failed == 1 && j.Status.Active >= 2
	})
	p.Delete("again")
	now := p.Apply(job(ledger.Script("1", ""), harness.Size(3, 2, 0)))
	trail := p.Follow(now)
	end := p.AwaitEnd("again", batchv1.JobComplete, time.Minute)
	if end.UID != now.UID || end.Status.Succeeded != 3 || end.Status.Failed != 0 {
		t.Errorf("the new Job is %s", harness.Brief(end.Status))
	}
	if sum := ledger.Read(t); sum.Succeeded != 3 || len(sum.Codes) != 3 {
		t.Errorf("the new Job has run %d Pods, want 3", len(sum.Codes))
	}
	for _, pod := range p.Pods("again") {
		if owner := metav1.GetControllerOf(&pod); owner.UID != old.UID && owner.UID != now.UID {
			t.Errorf("Pod %s belongs to %v", pod.Name, owner)
		}
	}
	for _, wrong := range trail.Wrong() {
		t.Error(wrong)
	}
	awaitHeldNone(t, p)
}

// drawLots gives every Pod that starts another $RANK, from 0 on.
func drawLots(dir string) string {
	return `RANK=0; while ! mkdir '` + dir + `'/$RANK 2>/dev/null; do RANK=$((RANK+1)); done; `
}

func awaitHeldNone(t *testing.T, p *harness.Space) {
	t.Helper()
	harness.Until(t, time.Minute, "every finalizer to be removed", func(context.Context) error {
		if held := harness.Held(p.Pods("")); len(held) > 0 {
			return fmt.Errorf("held are %v", held)
		}
		return nil
	})
}

// touch creates the file that Pods wait for.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
