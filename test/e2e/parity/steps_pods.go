package parity

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// awaitPodGone waits until the Pod's object is gone.
func (s *Side) awaitPodGone(name string) {
	s.Helper()
	harness.Until(s, s.timeout, "Pod "+name+" to be gone", func(ctx context.Context) error {
		p, err := s.Client.CoreV1().Pods(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is %s, deleted %v, finalizers %v", p.Status.Phase, p.DeletionTimestamp, p.Finalizers)
		}
		return err
	})
}

func survivesEviction(s *Side) {
	s.awaitReady(1)
	first := s.pod().Name
	s.evict(first)
	s.awaitPodGone(first)
	s.awaitReady(1)
	s.noteStatus("replaced")
	s.open("go")
}

func diesOfEviction(s *Side) {
	s.awaitReady(1)
	s.evict(s.pod().Name)
}

func losesOneOfTwo(s *Side) {
	s.awaitReady(2)
	name := s.Pods("")[0].Name
	s.evict(name)
	s.awaitPodGone(name)
}

func replacesWhenFailed(s *Side) {
	s.awaitReady(1)
	s.awaitTrapped(1)
	first := s.pod().Name
	s.deletePod(first)
	s.await("to have a terminating Pod and no other", func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && ptr.Deref(j.Status.Terminating, 0) == 1
	})
	s.noteStatus("the old Pod ends")
	s.open("die")
	s.awaitPodGone(first)
	s.awaitReady(1)
	s.noteStatus("replaced")
	s.open("go")
}

func replacesWhenTerminating(s *Side) {
	s.awaitReady(1)
	s.awaitTrapped(1)
	first := s.pod().Name
	s.deletePod(first)
	s.awaitCounts(0, 1)
	s.await("to have a ready Pod beside the terminating one", func(j *batchv1.Job) bool {
		return j.Status.Active == 1 && ptr.Deref(j.Status.Ready, 0) == 1 && ptr.Deref(j.Status.Terminating, 0) == 1
	})
	s.noteStatus("the old Pod ends")
	s.open("die")
	s.awaitPodGone(first)
	s.awaitReady(1)
	s.noteStatus("replaced")
	s.open("go")
}

func losesPods(s *Side) {
	s.awaitCounts(1, 0)
	s.awaitReady(1)
	for _, p := range s.Pods("") {
		s.deletePod(p.Name)
		s.awaitPodGone(p.Name)
	}
	s.awaitCounts(1, 1)
	s.awaitReady(1)
	s.noteStatus("replaced")
	s.open("go")
}

func losesIndex(s *Side) {
	s.awaitReady(2)
	for _, p := range s.Pods("") {
		if indexOf(&p) == "1" {
			s.deletePod(p.Name)
			s.awaitPodGone(p.Name)
		}
	}
	s.awaitReady(2)
	s.noteStatus("replaced")
	s.open("go")
}

// stripsAtEnd removes the template's own finalizer: it would keep the Pods, and their namespace, for ever.
func stripsAtEnd(s *Side, _ *batchv1.Job) {
	s.Cleanup(func() {
		pods := s.Client.CoreV1().Pods(s.Namespace)
		list, err := pods.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			s.Error(err)
			return
		}
		for _, p := range list.Items {
			if _, err := pods.Patch(context.Background(), p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				s.Error(err)
			}
		}
	})
}
