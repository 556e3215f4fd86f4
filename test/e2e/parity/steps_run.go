package parity

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// goes waits until so many Pods are ready and lets them end.
func goes(ready int32) func(*Side) {
	return func(s *Side) {
		s.awaitReady(ready)
		s.open("go")
	}
}

// addCondition does what another controller might do to the status of a Job that has no conditions.
func (s *Side) addCondition(t batchv1.JobConditionType) {
	s.Helper()
	now := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/status/conditions","value":[{"type":%q,"status":"True","reason":"ByUs",`+
		`"message":"hello","lastProbeTime":%q,"lastTransitionTime":%q}]}]`, t, now, now)
	if _, err := s.Client.BatchV1().Jobs(s.Namespace).Patch(s.Context(), s.JobName, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		s.Fatal(err)
	}
}

func addsCondition(s *Side) {
	s.awaitReady(2)
	s.noteStatus("runs")
	s.addCondition("example.com/Seen")
	s.open("go")
}

func isToldToEnd(t batchv1.JobConditionType) func(*Side) {
	return func(s *Side) {
		s.awaitReady(2)
		s.addCondition(t)
	}
}

func worksOffQueue(s *Side) {
	s.awaitReady(3)
	s.noteStatus("all three work")
	s.open("go-0")
	s.awaitCounts(1, 0)
	s.awaitReady(2)
	s.noteStatus("one has found the queue empty")
	s.open("go-1")
	s.awaitCounts(1, 1)
	s.awaitReady(1)
	s.noteStatus("one has failed")
	s.open("go-2")
}

func changesParallelism(s *Side) {
	s.await("to have started", func(j *batchv1.Job) bool { return j.Status.StartTime != nil })
	s.noteStatus("parallelism 0")
	for _, n := range []int32{3, 1, 2} {
		s.patch(`{"spec":{"parallelism":%d}}`, n)
		s.awaitReady(n)
		s.noteStatus(fmt.Sprint("parallelism ", n))
	}
	s.open("go")
}

func scales(s *Side) {
	s.awaitCounts(2, 0)
	s.awaitReady(8)
	s.noteStatus("10")
	s.patch(`{"spec":{"completions":4,"parallelism":4}}`)
	s.awaitCounts(1, 0)
	s.awaitReady(3)
	s.noteStatus("4")
	s.patch(`{"spec":{"completions":12,"parallelism":12}}`)
	s.awaitCounts(2, 0)
	s.awaitReady(10)
	s.noteStatus("12")
	s.open("go")
}

func scalesToZero(s *Side) {
	s.awaitCounts(1, 0)
	s.awaitReady(2)
	s.patch(`{"spec":{"completions":0,"parallelism":0}}`)
}

func meetsNewDeadline(s *Side) {
	s.awaitReady(1)
	s.patch(`{"spec":{"activeDeadlineSeconds":1}}`)
}

func outlivesDeadline(s *Side) {
	s.awaitTrapped(2)
	s.awaitCondition(batchv1.JobFailureTarget)
	s.awaitCounts(0, 2)
	s.await("to have two terminating Pods", func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && ptr.Deref(j.Status.Ready, 0) == 0 && ptr.Deref(j.Status.Terminating, 0) == 2
	})
	s.noteStatus("past the deadline")
	s.open("die")
}

func isAdmitted(s *Side) {
	s.awaitCondition(batchv1.JobSuspended)
	s.noteStatus("suspended")
	s.patch(`{"spec":{"template":{"metadata":{"labels":{"queue":"night"},"annotations":{"example.com/admitted":"yes"}},` +
		`"spec":{"nodeSelector":{"kubernetes.io/os":"linux"},"tolerations":[{"key":"example.com/spot","operator":"Exists"}]}}}}`)
	s.patch(`{"spec":{"suspend":false}}`)
}

func suspendsAndResumes(s *Side) {
	s.awaitCounts(1, 0)
	s.awaitReady(2)
	s.noteStatus("runs")
	s.patch(`{"spec":{"suspend":true}}`)
	s.awaitCondition(batchv1.JobSuspended)
	s.awaitReady(0)
	s.noteStatus("suspended")
	s.patch(`{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"5m"}}}]}}}}`)
	s.patch(`{"spec":{"suspend":false}}`)
	s.awaitReady(2)
	s.noteStatus("resumed")
	s.open("go")
}

func findsNode(s *Side) {
	s.await("to have two active Pods", func(j *batchv1.Job) bool { return j.Status.Active == 2 })
	s.patch(`{"spec":{"suspend":true}}`)
	s.awaitCondition(batchv1.JobSuspended)
	s.awaitReady(0)
	s.noteStatus("suspended")
	s.patch(`{"spec":{"template":{"spec":{"nodeSelector":{"example.com/none":null,"kubernetes.io/os":"linux"}}}}}`)
	s.patch(`{"spec":{"suspend":false}}`)
}

func succeedsDespite(s *Side) {
	s.awaitReady(3)
	s.open("go-1")
	s.awaitCounts(0, 1)
	s.awaitReady(2)
	s.noteStatus("an index has failed")
	s.open("go-0")
}

func hasEnough(s *Side) {
	s.awaitReady(4)
	s.open("go-3")
	s.awaitCounts(1, 0)
	s.open("go-1")
}

func failsTwoIndexes(s *Side) {
	s.awaitReady(4)
	s.open("go-0")
	s.awaitCounts(1, 0)
	s.awaitReady(4)
	s.open("go-1")
	s.awaitCounts(1, 1)
	s.awaitReady(4)
	s.noteStatus("one index has failed")
	s.open("go-2")
}

// letsGoWhenAllAreThere waits until so many Pods have been created, so that none is too late for the end.
func letsGoWhenAllAreThere(n int) func(*Side) {
	return func(s *Side) {
		s.await(fmt.Sprintf("to have created %d Pods", n), func(*batchv1.Job) bool {
			running := 0
			for _, p := range s.Pods("") {
				if p.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			return running == n
		})
		s.open("go")
	}
}
