package why

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// TestEnded: how a Job ended, and what to do about it.
func TestEnded(t *testing.T) {
	indexed := func(j *Job) {
		j.Object.Spec.CompletionMode, j.Object.Status.FailedIndexes, j.Object.Status.Succeeded = ptr.To(batchv1.IndexedCompletion), ptr.To("1,3"), 2
	}
	failure := func(rest string) func(*Job) {
		return annotated(v1alpha1.LastFailureAnnotation, `{"pod":"pi-3-x","index":3,"node":"n1","container":"main","time":"2026-11-22T11:00:00Z",`+rest+`}`)
	}
	fails := func(reason string) func(*Job) { return says(batchv1.JobFailed, reason, "the message") }
	const logs, rerun = "see the output with: kubectl jobstream logs pi --failed -n shop; then ", "run it again with: kubectl jobstream rerun pi -n shop"
	for _, tt := range []struct {
		name   string
		change []func(*Job)
		level  finding.Level
		check  string
		says   string
		advice string
	}{
		{"complete", []func(*Job){says(batchv1.JobComplete, "CompletionsReached", "")}, finding.OK, "complete", "it completed at 2026-11-22T11:50:00Z, 10m ago, after 20m: 0 succeeded, 0 failed: CompletionsReached", ""},
		{"backoff limit", []func(*Job){fails("BackoffLimitExceeded"), failure(`"exitCode":3,"reason":"Error"`)}, finding.Fail, "failed",
			"it failed at 2026-11-22T11:50:00Z, 10m ago, after 20m: BackoffLimitExceeded: the message; the last failure: Pod pi-3-x failed: container main, exit code 3, Error, on node n1, index 3", logs + rerun},
		{"out of memory", []func(*Job){fails("BackoffLimitExceeded"), failure(`"exitCode":137,"reason":"OOMKilled"`)}, finding.Fail, "out of memory", "OOMKilled", "raise the memory limit of the container main; " + logs},
		{"evicted", []func(*Job){fails("BackoffLimitExceeded"), failure(`"reason":"Evicted"`)}, finding.Fail, "evicted", "Evicted", "the node n1 lacked memory or disk"},
		{"deadline", []func(*Job){fails("DeadlineExceeded")}, finding.Fail, "deadline exceeded", "", "raise spec.activeDeadlineSeconds; " + rerun},
		{"policy", []func(*Job){fails("PodFailurePolicy")}, finding.Fail, "failure policy", "", "spec.podFailurePolicy"},
		{"stopped", []func(*Job){fails("ManuallyTerminated"), failure(`"reason":"OOMKilled"`)}, finding.Fail, "stopped", "ManuallyTerminated: the message", rerun},
		{"failed indexes", []func(*Job){fails("FailedIndexes"), indexed}, finding.Fail, "failed indexes", "; failed indexes 1,3", rerun + " --failed-indexes"},
		{"a Pod that never started", []func(*Job){fails("BackoffLimitExceeded"), event("", "PendingDeadlineExceeded", "Pod pi-1 did not start within 60 s (ImagePullBackOff)", time.Minute)}, finding.Fail, "failed", "; Pod pi-1 did not start within 60 s (ImagePullBackOff)", ""},
		{"failed, and cannot be deleted", []func(*Job){fails("BackoffLimitExceeded"), deleting, holding("example.com/keep")}, finding.Fail, "finalizer", "example.com/keep", ""},
		{"another controller's", []func(*Job){fails("BackoffLimitExceeded"), managedBy("example.com/x")}, finding.Fail, "failed", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, seen(tt.change...).Explain(), tt.level, tt.check, tt.says, tt.advice)
		})
	}
}
