package progress_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/progress"
)

// Of several reasons why a Job makes no progress, the one is shown that does not pass by itself.
func TestStateSaysWhatTheJobWaitsFor(t *testing.T) {
	backingOff := batchv1.JobCondition{Type: v1alpha1.BackingOffCondition, Status: corev1.ConditionTrue, Reason: "PodFailed", Message: "the next Pod is created at noon"}
	refused := batchv1.JobCondition{Type: v1alpha1.RefusedCondition, Status: corev1.ConditionTrue, Reason: "Forbidden", Message: "exceeded quota"}
	over := backingOff
	over.Status = corev1.ConditionFalse
	for _, c := range []struct {
		name       string
		conditions []batchv1.JobCondition
		why        string
	}{
		{"a delay", []batchv1.JobCondition{backingOff}, "BackingOff: PodFailed: the next Pod is created at noon"},
		{"a quota as well", []batchv1.JobCondition{backingOff, refused}, "Refused: Forbidden: exceeded quota"},
		{"in the other order", []batchv1.JobCondition{refused, backingOff}, "Refused: Forbidden: exceeded quota"},
		{"a delay that is over", []batchv1.JobCondition{over}, ""},
	} {
		if state, why := progress.State(&batchv1.Job{Status: batchv1.JobStatus{Conditions: c.conditions}}); state != "Waiting" || why != c.why {
			t.Errorf("%s: %s, %q", c.name, state, why)
		}
	}
}
