package draw

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/test/oracle"
)

// Status draws a status that the API server would store on the Job. Some of the UIDs that it lists are those of Pods that Pods
// may draw.
func Status(t *rapid.T, j *batchv1.Job) batchv1.JobStatus {
	st := batchv1.JobStatus{}
	if chance(t, 6, "new") {
		return st // no controller has written the status yet
	}
	if !chance(t, 6, "not started") {
		st.StartTime = new(metav1.NewTime(moment(t, "start")))
	}
	counters(t, &st)
	if *j.Spec.CompletionMode == batchv1.IndexedCompletion {
		indexes(t, j, &st)
	}
	conditions(t, &st)
	if chance(t, 12, "ahead of time") && st.StartTime != nil && st.CompletionTime == nil { // by another clock
		st.StartTime = new(metav1.NewTime(Epoch.Add(20*time.Minute + 30*time.Second)))
	}
	probe := j.DeepCopy()
	probe.Status = st
	if err := oracle.Sound(probe); err != nil {
		t.Fatalf("this draws a status that the API server would never store: %v", err)
	}
	return st
}

func counters(t *rapid.T, st *batchv1.JobStatus) {
	st.Active = number(t, 0, 3, "active")
	if !chance(t, 8, "no ready") {
		st.Ready = new(number(t, 0, int(st.Active), "ready"))
	}
	if !chance(t, 8, "no terminating") {
		st.Terminating = new(number(t, 0, 2, "terminating"))
	}
	st.Succeeded, st.Failed = number(t, 0, 3, "succeeded"), number(t, 0, 3, "failed")
	if chance(t, 6, "nil uncounted") {
		return
	}
	st.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for i := range MaxPods + 2 { // the last two certainly do not exist
		switch uid := PodUID(i); rapid.IntRange(0, 5).Draw(t, fmt.Sprintf("uncounted %d", i)) {
		case 4:
			st.UncountedTerminatedPods.Succeeded = append(st.UncountedTerminatedPods.Succeeded, uid)
		case 5:
			st.UncountedTerminatedPods.Failed = append(st.UncountedTerminatedPods.Failed, uid)
		}
	}
}

func indexes(t *rapid.T, j *batchv1.Job, st *batchv1.JobStatus) {
	n := int(*j.Spec.Completions)
	completed := subset(t, n, "completed")
	st.CompletedIndexes, st.Succeeded = completed.String(), int32(completed.Len())
	if st.UncountedTerminatedPods != nil {
		st.UncountedTerminatedPods.Succeeded = nil // an Indexed Job's successes are listed by index
	}
	if j.Spec.BackoffLimitPerIndex == nil || chance(t, 6, "nil failedIndexes") {
		return
	}
	var failed intervals.Set
	for _, span := range subset(t, n, "failed") {
		for i := span.First; i <= span.Last; i++ {
			if !completed.Has(i) {
				failed = failed.With(i)
			}
		}
	}
	st.FailedIndexes = new(failed.String())
}

// conditions draws conditions of a Job that runs, is suspended, ends or has ended; and some of other controllers.
func conditions(t *rapid.T, st *batchv1.JobStatus) {
	at := moment(t, "transition")
	say := func(c batchv1.JobConditionType, status corev1.ConditionStatus, reason string) {
		st.Conditions = append(st.Conditions, batchv1.JobCondition{Type: c, Status: status, Reason: reason, Message: reason,
			LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at)})
	}
	if chance(t, 3, "suspended condition") {
		say(batchv1.JobSuspended, rapid.SampledFrom(conditionStatuses).Draw(t, "suspended is"), "JobSuspended")
	}
	if chance(t, 6, "custom condition") {
		say("example.com/Custom", rapid.SampledFrom(conditionStatuses).Draw(t, "custom is"), "Custom")
	}
	switch rapid.IntRange(0, 9).Draw(t, "ending") {
	case 0:
		say(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, rapid.SampledFrom(successReasons).Draw(t, "reason"))
	case 1:
		say(batchv1.JobFailureTarget, corev1.ConditionTrue, rapid.SampledFrom(failureReasons).Draw(t, "reason"))
	case 2:
		say(batchv1.JobSuccessCriteriaMet, corev1.ConditionFalse, batchv1.JobReasonCompletionsReached)
		say(batchv1.JobFailureTarget, corev1.ConditionUnknown, batchv1.JobReasonBackoffLimitExceeded)
	case 3:
		finish(st, at)
		say(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached)
		say(batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached)
		st.CompletionTime = new(metav1.NewTime(latest(at, st.StartTime.Time)))
	case 4:
		finish(st, at)
		say(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
		say(batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
	}
}

var successReasons = []string{batchv1.JobReasonCompletionsReached, batchv1.JobReasonSuccessPolicy, ""}
var failureReasons = []string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded, "Operator"}

// finish clears what a finished Job must not have.
func finish(st *batchv1.JobStatus, at time.Time) {
	st.Active, st.Ready, st.Terminating, st.UncountedTerminatedPods = 0, new(int32(0)), new(int32(0)), nil
	if st.StartTime == nil {
		st.StartTime = new(metav1.NewTime(at))
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// PodUID is the UID of the i-th Pod that Pods may draw.
func PodUID(i int) types.UID { return types.UID(fmt.Sprintf("drawn-%d", i)) }
