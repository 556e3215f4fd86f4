package why

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// ended reports how the Job ended.
func (x *jobCauses) ended(end *batchv1.JobCondition) {
	st := &x.Object.Status
	when := fmt.Sprintf("at %s, %s ago", end.LastTransitionTime.UTC().Format(time.RFC3339), x.ago(end.LastTransitionTime.Time))
	if st.StartTime != nil {
		when += ", after " + span(end.LastTransitionTime.Sub(st.StartTime.Time))
	}
	if end.Type == batchv1.JobComplete {
		x.good("complete", "it completed %s: %d succeeded, %d failed%s", when, st.Succeeded, st.Failed, colon(clean(end.Reason)))
		return
	}
	check, advice := x.nextTime(end.Reason)
	found := fmt.Sprintf("it failed %s: %s: %s", when, clean(end.Reason), clean(end.Message))
	if f := events.ProjectJob(x.Object, events.Claim{}).LastFailure; f != nil && end.Reason != v1alpha1.ReasonManuallyTerminated {
		found += fmt.Sprintf("; the last failure: %s", clean(f.String()))
		if f.Index != nil {
			found += fmt.Sprintf(", index %d", *f.Index)
		}
		switch f.Reason {
		case "OOMKilled":
			check, advice = "out of memory", "raise the memory limit of the container "+clean(f.Container)+"; "+advice
		case "Evicted":
			check, advice = "evicted", "the node "+clean(f.Node)+" lacked memory or disk: set requests that match the use; "+advice
		}
	}
	found += x.neverStarted()
	if failed := ptr.Deref(st.FailedIndexes, ""); failed != "" {
		found += "; failed indexes " + clean(failed)
	}
	x.fail(check, advice, "%s", found)
}

// nextTime returns the name of the cause by which a Job has failed, and what to do.
func (x *jobCauses) nextTime(reason string) (check, advice string) {
	rerun := fmt.Sprintf("run it again with: kubectl jobstream rerun %s -n %s", x.name, x.namespace)
	if ptr.Deref(x.Object.Spec.CompletionMode, "") == batchv1.IndexedCompletion && x.Object.Status.Succeeded > 0 {
		rerun += " --failed-indexes"
	}
	output := fmt.Sprintf("see the output with: kubectl jobstream logs %s --failed -n %s; then ", x.name, x.namespace)
	switch reason {
	case batchv1.JobReasonDeadlineExceeded:
		return "deadline exceeded", "find what takes so long, or raise spec.activeDeadlineSeconds; " + rerun
	case v1alpha1.ReasonManuallyTerminated:
		return "stopped", rerun
	case batchv1.JobReasonPodFailurePolicy:
		return "failure policy", "a rule of spec.podFailurePolicy has ended it; " + output + rerun
	case batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded:
		return "failed indexes", output + rerun
	}
	return "failed", strings.TrimSuffix(output, "; ") + rerun
}

// neverStarted describes the latest Pod that was given up because it was Pending for too long; "" if there was none. Its Event alone
// has what it waited for.
func (x *jobCauses) neverStarted() string {
	e, n := newest(x.Events, string(x.Object.UID), "PendingDeadlineExceeded")
	if n == 0 {
		return ""
	}
	return "; " + clean(e.Message)
}
