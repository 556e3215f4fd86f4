package job

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/policy"
)

// warnings are the reasons of the Kubernetes Events that go with conditions of this project's own.
var warnings = map[batchv1.JobConditionType]string{
	v1alpha1.BackingOffCondition:  "BackingOff",
	v1alpha1.IgnoredCondition:     "AnnotationIgnored",
	v1alpha1.NotAdoptingCondition: "NotAdopting",
	v1alpha1.PodsWaitingCondition: "PodsWaiting",
	v1alpha1.UnsupportedCondition: "Unsupported",
}

// reports returns the Kubernetes Events that go with a status: one for each condition in it that has newly become true.
func reports(j events.Job, want batchv1.JobStatus) (out []effect.Report) {
	for _, c := range want.Conditions {
		old, was := j.Condition(c.Type)
		if c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionFalse && was {
			out = append(out, effect.Report{Reason: "Resumed", Message: c.Message})
		}
		if c.Status != corev1.ConditionTrue || was && (old.Reason == c.Reason || c.Type == v1alpha1.PodsWaitingCondition) ||
			c.Type == v1alpha1.BackingOffCondition && j.HasCondition(c.Type) {
			continue // the first time that a Job backs off is worth an Event, and each time that its Pods begin to wait
		}
		r := effect.Report{Warning: true, Reason: warnings[c.Type], Message: c.Message}
		switch c.Type {
		case batchv1.JobComplete:
			if j.Completions != nil && want.Succeeded > *j.Completions {
				out = append(out, effect.Report{Warning: true, Reason: "TooManySucceededPods", Message: "Too many succeeded pods running after completion count reached"})
			}
			r = effect.Report{Reason: "Completed", Message: "Job completed"}
		case batchv1.JobSuspended:
			r.Warning, r.Reason = false, "Suspended"
		case batchv1.JobFailed:
			r.Reason = c.Reason
		case v1alpha1.RefusedCondition:
			r.Reason = refusedReason(c.Message)
		default:
			if r.Reason == "" { // a condition that causes, or comes with, another
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// refusedReason returns upstream's reason for the refused effect, if it has one.
func refusedReason(message string) string {
	switch {
	case strings.HasPrefix(message, effect.KindCreatePod):
		return "FailedCreate"
	case strings.HasPrefix(message, effect.KindDeletePod):
		return "FailedDelete"
	}
	return "Refused"
}

// handled returns how many of the failures that a status accounts for the podFailurePolicy has handled, by action: those that the
// status lists, and the ignored ones that no earlier status has reported.
func handled(s State, c count, want batchv1.JobStatus) map[batchv1.PodFailurePolicyAction]int {
	if s.Job.PodFailurePolicy == nil {
		return nil
	}
	by := map[batchv1.PodFailurePolicyAction]int{}
	for _, p := range append(written(c.failed, want, s.Job), s.unreported(c.ignored)...) {
		if h := policy.Failure(s.Job.PodFailurePolicy, s.Job.Namespace, p); h.Action != "" {
			by[h.Action]++
		}
	}
	return by
}

// unreported returns the ignored Pods that no status has reported yet. The backoff record covers the reported ones, except for
// failures per index, which no status records.
func (s State) unreported(ignored []events.Pod) (out []events.Pod) {
	if s.Job.BackoffLimitPerIndex == nil {
		return unrecorded(s.Job, ignored)
	}
	for _, p := range ignored {
		if !s.Reported.Has(p.Serial) {
			out = append(out, p)
		}
	}
	return out
}
