package parity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Side is one of the two runs of a case: the Job under one controller, in a namespace of its own.
type Side struct {
	*harness.Space
	// JobName and JobUID are those of the Job.
	JobName string
	JobUID  types.UID
	// Dir replaces {{dir}} in the manifest.
	Dir string
	// Managed reports whether jobstream runs the Job, not the built-in controller.
	Managed bool

	timeout time.Duration
	found   *batchv1.Job // as the last wait has found it
	notes   []string
}

// open creates the file that Pods wait for.
func (s *Side) open(gate string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, gate), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// note records a text that must be equal on both sides.
func (s *Side) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// noteStatus records the status that was waited for.
func (s *Side) noteStatus(when string) {
	s.Helper()
	j := s.found
	s.note("%s: %s started=%v, Pods: %s", when, harness.Brief(withoutBackingOff(j.Status)), j.Status.StartTime != nil, s.phases())
}

// phases counts the Pods of the namespace by their state.
func (s *Side) phases() string {
	s.Helper()
	var words []string
	for _, p := range s.Pods("") {
		word := string(p.Status.Phase)
		if p.DeletionTimestamp != nil {
			word += "(deleted)"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return fmt.Sprint(words)
}

// await waits until the Job is as the step wants it.
func (s *Side) await(what string, is func(*batchv1.Job) bool) {
	s.Helper()
	s.found = s.Await(s.JobName, s.timeout, what, is)
}

// awaitReady waits until exactly so many Pods are active, all of them ready, none is terminating, and all others are counted.
func (s *Side) awaitReady(n int32) {
	s.Helper()
	s.await(fmt.Sprintf("to have %d ready Pods", n), func(j *batchv1.Job) bool {
		return j.Status.Active == n && ptr.Deref(j.Status.Ready, 0) == n && ptr.Deref(j.Status.Terminating, 0) == 0 && allCounted(j)
	})
	s.awaitNoneLeaving()
}

// awaitTrapped waits until so many shells handle their signals: a container is ready before its shell has started.
func (s *Side) awaitTrapped(n int) {
	s.Helper()
	harness.Until(s, s.timeout, "the shells to have set their traps", func(context.Context) error {
		if files, _ := filepath.Glob(filepath.Join(s.Dir, "trapped-*")); len(files) != n {
			return fmt.Errorf("%d of %d have", len(files), n)
		}
		return nil
	})
}

// awaitCounts waits until so many Pods have succeeded and failed, every one of them counted.
func (s *Side) awaitCounts(succeeded, failed int32) {
	s.Helper()
	s.await(fmt.Sprintf("to have %d succeeded and %d failed Pods", succeeded, failed), func(j *batchv1.Job) bool {
		return j.Status.Succeeded == succeeded && j.Status.Failed == failed && allCounted(j)
	})
}

// allCounted reports whether every Pod that is known to have ended is counted.
func allCounted(j *batchv1.Job) bool {
	u := ptr.Deref(j.Status.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	return len(u.Succeeded)+len(u.Failed) == 0
}

// awaitCondition waits until the condition is True.
func (s *Side) awaitCondition(t batchv1.JobConditionType) {
	s.Helper()
	s.await("to be "+string(t), func(j *batchv1.Job) bool { return harness.Is(j, t) })
}

// awaitNoneLeaving waits until no Pod is terminating, except those with a foreign finalizer.
func (s *Side) awaitNoneLeaving() {
	s.Helper()
	harness.Until(s, s.timeout, "the deleted Pods to be gone", func(context.Context) error {
		for _, p := range s.Pods("") {
			foreign := slices.ContainsFunc(p.Finalizers, func(f string) bool { return f != batchv1.JobTrackingFinalizer })
			if p.DeletionTimestamp != nil && !foreign {
				return fmt.Errorf("%s still exists, with finalizers %v", p.Name, p.Finalizers)
			}
		}
		return nil
	})
}

// awaitGone waits until the Job is gone.
func (s *Side) awaitGone() {
	s.Helper()
	harness.Until(s, s.timeout, "the Job to be gone", func(ctx context.Context) error {
		j, err := s.Client.BatchV1().Jobs(s.Namespace).Get(ctx, s.JobName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it exists, deleted %v, finalizers %v", j.DeletionTimestamp, j.Finalizers)
		}
		return err
	})
}

// patch does what "kubectl patch" would to the Job's spec.
func (s *Side) patch(format string, args ...any) {
	s.Helper()
	patch := fmt.Appendf(nil, format, args...)
	if _, err := s.Client.BatchV1().Jobs(s.Namespace).Patch(s.Context(), s.JobName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// patchMeta does what "kubectl patch" would to the Job's metadata.
func (s *Side) patchMeta(patch string) {
	s.Helper()
	if _, err := s.Client.BatchV1().Jobs(s.Namespace).Patch(s.Context(), s.JobName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// pod returns the one running Pod of the Job.
func (s *Side) pod() corev1.Pod {
	s.Helper()
	pods := slices.DeleteFunc(s.Pods(""), func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil })
	if len(pods) != 1 {
		s.Fatalf("%d Pods run, want 1", len(pods))
	}
	return pods[0]
}

// deletePod does what "kubectl delete pod" does.
func (s *Side) deletePod(name string) {
	s.Helper()
	if err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// evict does what "kubectl drain" does to a Pod.
func (s *Side) evict(name string) {
	s.Helper()
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace}}
	if err := s.Client.CoreV1().Pods(s.Namespace).EvictV1(s.Context(), e); err != nil {
		s.Fatal(err)
	}
}

// deleteJob deletes the Job with that policy.
func (s *Side) deleteJob(policy metav1.DeletionPropagation) {
	s.Helper()
	if err := s.Client.BatchV1().Jobs(s.Namespace).Delete(s.Context(), s.JobName, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		s.Fatal(err)
	}
}
