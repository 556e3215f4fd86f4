package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

var propagationPolicies = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
}

// A Job that is deleted while neither the trigger nor the reconciler runs leaves nothing behind. If the built-in Job controller
// runs, it removes the Pods' finalizer as soon as the Job is gone, although the Job was not its own. If it does not, and under
// Foreground, where the Job goes after its Pods, the reconciler removes it once it runs again.
func TestJobDeletedWhileWeAreAwayLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	t.Run("BesideTheBuiltInController", func(t *testing.T) {
		t.Parallel()
		deletedWhileAway(t, own(t, harness.Config{}), true)
	})
	t.Run("WithoutTheBuiltInController", func(t *testing.T) {
		t.Parallel()
		deletedWhileAway(t, own(t, harness.Config{NoBuiltInJobs: true}), false)
	})
}

func deletedWhileAway(t *testing.T, s *harness.System, helped bool) {
	spaces := map[metav1.DeletionPropagation]*harness.Space{}
	for _, policy := range propagationPolicies {
		p := s.Space(t)
		spaces[policy] = p
		script := `[ "$JOB_COMPLETION_INDEX" = 0 ] && exit 0; exec sleep 600`
		p.Apply(harness.Shell("left", script, harness.Size(4, 3, 0), harness.Indexed))
		p.Await("left", time.Minute, "to have one success and three Pods that run", func(j *batchv1.Job) bool {
			return j.Status.Succeeded == 1 && ptr.Deref(j.Status.Ready, 0) == 3
		})
	}
	for _, p := range append(s.Triggers, s.Reconcilers...) {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for policy, p := range spaces {
		err := p.Client.BatchV1().Jobs(p.Namespace).Delete(t.Context(), "left", metav1.DeleteOptions{PropagationPolicy: &policy})
		if err != nil {
			t.Fatal(err)
		}
	}
	away := time.Now()
	for policy, p := range spaces {
		if helped && policy != metav1.DeletePropagationForeground {
			awaitNothingLeft(t, p, policy)
			t.Logf("%s: nothing is left after %.1f s without jobstream", policy, time.Since(away).Seconds())
		} else if held := harness.Held(p.Pods("left")); len(held) != 3 {
			t.Fatalf("%s: %d Pods are held, want 3: this test would prove nothing", policy, len(held))
		}
	}
	startAll(t, s)
	back := time.Now()
	for policy, p := range spaces {
		awaitNothingLeft(t, p, policy)
		t.Logf("%s: nothing is left %.1f s after jobstream is back", policy, time.Since(back).Seconds())
		requests, err := s.Requests(p.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		if n := harness.Count(requests, harness.PodCreation); n != 4 {
			t.Errorf("%s: %d creations of Pods were requested, want 4", policy, n)
		}
	}
}

// awaitNothingLeft waits until the Job is gone, and with it its Pods, or under Orphan everything that ties them to it.
func awaitNothingLeft(t *testing.T, p *harness.Space, policy metav1.DeletionPropagation) {
	t.Helper()
	harness.Until(t, time.Minute, string(policy)+": nothing to be left", func(ctx context.Context) error {
		switch _, err := p.Client.BatchV1().Jobs(p.Namespace).Get(ctx, "left", metav1.GetOptions{}); {
		case err == nil:
			return errors.New("the Job still exists")
		case !apierrors.IsNotFound(err):
			return err
		}
		pods := p.Pods("left")
		if policy != metav1.DeletePropagationOrphan {
			if len(pods) > 0 {
				return fmt.Errorf("%d Pods exist, held are %v", len(pods), harness.Held(pods))
			}
			return nil
		}
		if held := harness.Held(pods); len(held) > 0 {
			return fmt.Errorf("held are %v", held)
		}
		running := 0
		for _, pod := range pods {
			if len(pod.OwnerReferences) > 0 {
				return fmt.Errorf("%s is owned by %v", pod.Name, pod.OwnerReferences)
			}
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		if running != 3 || len(pods) != 4 {
			return harness.Stop(fmt.Errorf("%d of %d Pods run, want 3 of 4", running, len(pods)))
		}
		return nil
	})
}
