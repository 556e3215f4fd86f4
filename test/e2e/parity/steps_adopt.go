package parity

import (
	"context"
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// orphan is a Pod that existed before the Job.
const orphan = "orphan"

func leavesOrphan(s *Side, j *batchv1.Job) {
	s.leave(j, orphan, "")
	s.awaitSeen()
}

// leave creates a Pod as the Job would, with that index if there is one, before the Job exists.
func (s *Side) leave(j *batchv1.Job, name, index string) {
	s.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(j.Spec.Selector.MatchLabels)}, Spec: j.Spec.Template.Spec}
	if index != "" {
		p.Labels[batchv1.JobCompletionIndexAnnotation] = index
		p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	}
	if _, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Context(), p, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// awaitAll waits until all Pods of the namespace are in that phase.
func (s *Side) awaitAll(phase corev1.PodPhase) {
	s.Helper()
	harness.Until(s, s.timeout, "all Pods to be "+string(phase), func(context.Context) error {
		for _, p := range s.Pods("") {
			if p.Status.Phase != phase {
				return fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
}

func leavesIndexes(s *Side, j *batchv1.Job) {
	s.leave(j, "no-index", "")
	s.leave(j, "out-of-range", "2")
	s.leave(j, "in-range", "1")
	s.awaitAll(corev1.PodRunning)
	s.awaitSeen()
}

func leavesSucceeded(s *Side, j *batchv1.Job) {
	for _, name := range []string{"one", "two", "three"} {
		s.leave(j, name, "")
	}
	s.awaitAll(corev1.PodSucceeded)
	s.awaitSeen()
}

// awaitSeen waits until the built-in controller's cache has every Pod that exists: it has once the controller reacts to the end of
// a Pod created later. Its caches of Jobs and of Pods are filled apart, so it may otherwise see a Job before a Pod that is older,
// create a Pod in its place, and delete one of the two.
func (s *Side) awaitSeen() {
	s.Helper()
	elsewhere := s.System.Space(s.TB)
	elsewhere.Apply(harness.Shell("later", "true", func(j *batchv1.JobSpec) { j.ManagedBy = nil }))
	elsewhere.AwaitEnd("later", batchv1.JobComplete, s.timeout)
}

func adoptsAndReleases(s *Side) {
	s.awaitReady(2)
	s.noteOrphan("adopted")
	s.noteStatus("adopted")
	patch := []byte(`{"metadata":{"labels":{"parity":"released"}}}`)
	if _, err := s.Client.CoreV1().Pods(s.Namespace).Patch(s.Context(), orphan, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	harness.Until(s, s.timeout, "the Pod to be released, and another one to be ready in its place", func(context.Context) error {
		released, ready := false, 0
		for _, p := range s.Pods("") {
			if p.Name == orphan {
				released = !held(&p) && metav1.GetControllerOf(&p) == nil
			} else if p.Status.Phase == corev1.PodRunning {
				ready++
			}
		}
		if !released || ready != 2 {
			return fmt.Errorf("released is %v, %d others run", released, ready)
		}
		return nil
	})
	s.awaitReady(2)
	s.noteOrphan("released")
	s.noteStatus("released")
	s.open("go")
	s.awaitAll(corev1.PodSucceeded) // the Job does not wait for the released one
}

func (s *Side) noteOrphan(when string) {
	s.Helper()
	p, err := s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), orphan, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.note("the orphan, %s: finalizers %v, owners %v", when, p.Finalizers, owners(p))
}
