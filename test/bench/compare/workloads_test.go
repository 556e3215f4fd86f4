package main

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestWorkloads(t *testing.T) {
	for name, want := range map[string]struct{ pods, jobs, atATenth int }{
		"one": {30, 30, 3}, "big5000": {5000, 1, 500}, "indexed10000": {10000, 1, 1000}, "storm": {1000, 1000, 100},
		"failing": {1000, 1, 100}, "mixed": {2000, 227, 210}, "large": {100000, 1, 10000},
		"due1000": {1000, 0, 100},
	} {
		chosen, err := choose(workloads, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := chosen[0]
		if pods, jobs, small := w.pods(), len(w.objects(nil)), w.scaled(0.1).pods(); pods != want.pods || jobs != want.jobs || small != want.atATenth {
			t.Errorf("%s: %d Pods in %d Jobs, %d at a tenth; want %+v", name, pods, jobs, small, want)
		}
	}
}

// A fast wrong count is no result.
func TestCheck(t *testing.T) {
	ended := func(as batchv1.JobConditionType) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue}}
	}
	for _, c := range []struct {
		name   string
		batch  batch
		status batchv1.JobStatus
		right  bool
	}{
		{"complete", batch{completions: 5}, batchv1.JobStatus{Succeeded: 5, Conditions: ended(batchv1.JobComplete)}, true},
		{"one too few", batch{completions: 5}, batchv1.JobStatus{Succeeded: 4, Conditions: ended(batchv1.JobComplete)}, false},
		{"one twice", batch{completions: 5}, batchv1.JobStatus{Succeeded: 6, Conditions: ended(batchv1.JobComplete)}, false},
		{"one still active", batch{completions: 5}, batchv1.JobStatus{Succeeded: 5, Active: 1, Conditions: ended(batchv1.JobComplete)}, false},
		{"failed", batch{completions: 5}, batchv1.JobStatus{Succeeded: 5, Conditions: ended(batchv1.JobFailed)}, false},
		{"failed as it should", batch{completions: 5, failing: true}, batchv1.JobStatus{Failed: 5, Conditions: ended(batchv1.JobFailed)}, true},
		{"not failed enough", batch{completions: 5, failing: true}, batchv1.JobStatus{Failed: 4, Conditions: ended(batchv1.JobFailed)}, false},
	} {
		if err := c.batch.check(&batchv1.Job{Status: c.status}); (err == nil) != c.right {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
