package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// With --claim-unmanaged the reconciler is the cluster's Job controller, also of Jobs that were running when the built-in one
// was switched off. What that one has created and counted stays counted, and the reconciler adopts its Pods.
func TestWeTakeOverFromTheBuiltInController(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{NoBuiltInJobs: true, NoBuiltInTTL: true, Flags: []string{"--claim-unmanaged"}, ReconcilerFlags: []string{"--ttl-after-finished"}})
	eachMode(t, func(t *testing.T, indexed bool) { takesOver(t, s, indexed) })
	t.Run("JobThatNamesNoController", func(t *testing.T) { claimed(t, s, nil) })
	t.Run("JobThatNamesTheBuiltInController", func(t *testing.T) { claimed(t, s, ptr.To(batchv1.JobControllerName)) })
	t.Run("JobOfAnotherController", func(t *testing.T) { leftAlone(t, s) })
	t.Run("TimeToLive", func(t *testing.T) { deletesAfterItsTime(t, s) })
}

func takesOver(t *testing.T, s *harness.System, indexed bool) {
	ours := slices.Concat(s.Triggers, s.Reconcilers)
	for _, p := range ours {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	builtIn := startBuiltIn(t, s)
	const completions = 30
	b := &batch{Space: s.Space(t), ledger: harness.NewLedger(t), completions: completions, indexed: indexed, began: time.Now()}
	// Some fail for sure, and at least a second apart: the built-in controller looks once a second.
	j := harness.Shell("batch", b.ledger.Script("2", drawLots(t.TempDir())+`[ $RANK = 3 ] && code=3`), harness.Size(completions, 6, completions))
	j.Spec.ManagedBy = nil
	if indexed {
		harness.Indexed(&j.Spec)
	}
	b.job = b.Apply(j)
	b.trail = b.Follow(b.job)
	b.awaitDone(6)
	if err := builtIn.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Logf("taken over when the Job was %s", harness.Brief(b.Job("batch").Status))
	theirs := harness.Held(b.Pods(""))
	startAll(t, s)
	b.finish(t)
	for _, pod := range b.Pods("") {
		if slices.Contains(theirs, pod.Name) && pod.Annotations[v1alpha1.SerialAnnotation] == "" {
			t.Errorf("Pod %s was not taken over", pod.Name)
		}
	}
	if len(theirs) == 0 {
		t.Error("the built-in controller has left no Pod: this test proves nothing")
	}
}

func claimed(t *testing.T, s *harness.System, managedBy *string) {
	p := s.Space(t)
	j := harness.Shell("plain", "true", harness.Size(2, 2, 0))
	j.Spec.ManagedBy = managedBy
	p.Apply(j)
	end := p.AwaitEnd("plain", batchv1.JobComplete, time.Minute)
	if end.Status.Succeeded != 2 {
		t.Errorf("it is %s", harness.Brief(end.Status))
	}
}

// leftAlone watches a Job that names an absent controller. Another Job, for jobstream, shows that the reconciler works.
func leftAlone(t *testing.T, s *harness.System) {
	p := s.Space(t)
	j := harness.Shell("theirs", "true", harness.Size(1, 1, 0))
	j.Spec.ManagedBy = ptr.To("example.com/another-controller")
	p.Apply(j)
	p.Apply(harness.Shell("ours", "true", harness.Size(1, 1, 0)))
	p.AwaitEnd("ours", batchv1.JobComplete, time.Minute)
	if now := p.Job("theirs"); now.Status.StartTime != nil || len(now.Status.Conditions) > 0 || len(p.Pods("theirs")) > 0 {
		t.Errorf("it was touched: %s", harness.Brief(now.Status))
	}
}

// deletesAfterItsTime: where kube-controller-manager does not delete finished Jobs after their time to live, the reconciler
// does.
func deletesAfterItsTime(t *testing.T, s *harness.System) {
	p := s.Space(t)
	const life = 20 * time.Second // so long that the test sees it
	j := harness.Shell("mortal", "true", harness.Size(2, 2, 0))
	j.Spec.TTLSecondsAfterFinished = ptr.To(int32(life / time.Second))
	p.Apply(j)
	end := p.AwaitEnd("mortal", batchv1.JobComplete, time.Minute)
	harness.Until(t, time.Minute, "the Job and its Pods to be gone", func(ctx context.Context) error {
		if _, err := p.Client.BatchV1().Jobs(p.Namespace).Get(ctx, "mortal", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("asking for the Job: %w", err)
		}
		if n := len(p.Pods("")); n > 0 {
			return fmt.Errorf("%d Pods are left", n)
		}
		return nil
	})
	if lived := time.Since(end.Status.CompletionTime.Time); lived < life || lived > life+seconds {
		t.Errorf("it was gone after %v, want %v", lived, life)
	}
}

// startBuiltIn starts the built-in Job controller, which is stopped with the test.
func startBuiltIn(t *testing.T, s *harness.System) *harness.Process {
	t.Helper()
	builtIn, err := s.BuiltInJobs()
	if err != nil {
		t.Fatal(err)
	}
	if err := builtIn.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = builtIn.Kill() })
	return builtIn
}
