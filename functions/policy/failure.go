// Package policy evaluates the policies of a Job's spec: podFailurePolicy decides what one failed Pod means for the Job,
// successPolicy which completed indexes are enough.
package policy

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// Handling is the result of a podFailurePolicy for one failed Pod.
type Handling struct {
	// Action is that of the first rule that matches, "" if none does.
	Action batchv1.PodFailurePolicyAction
	// Counts reports whether the failure counts towards the limits. Only the action Ignore prevents it.
	Counts bool
	// Message is why the Job fails, with the action FailJob.
	Message string
}

// Failure finds the first rule that matches the Pod (Kubernetes 1.36, matchPodFailurePolicy): by the exit code of a
// container, app containers before init containers, or by a condition. A nil policy counts every failure.
func Failure(policy *batchv1.PodFailurePolicy, namespace string, p events.Pod) Handling {
	if policy == nil {
		return Handling{Counts: true}
	}
	for i, rule := range policy.Rules {
		why, matches := "", false
		switch {
		case rule.OnExitCodes != nil:
			why, matches = exits(rule.OnExitCodes, namespace, p)
		default:
			why, matches = conditions(rule.OnPodConditions, namespace, p)
		}
		if !matches {
			continue
		}
		switch rule.Action {
		case batchv1.PodFailurePolicyActionFailJob:
			return Handling{Action: rule.Action, Counts: true, Message: fmt.Sprintf("%s matching %s rule at index %d", why, rule.Action, i)}
		case batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionCount:
			return Handling{Action: rule.Action, Counts: rule.Action != batchv1.PodFailurePolicyActionIgnore}
		} // an unknown action decides nothing (API: "additional values are considered to be added in the future")
	}
	return Handling{Counts: true}
}

func exits(r *batchv1.PodFailurePolicyOnExitCodesRequirement, namespace string, p events.Pod) (why string, ok bool) {
	for _, e := range p.Exits {
		if r.ContainerName != nil && *r.ContainerName != e.Container {
			continue
		}
		in := slices.Contains(r.Values, e.Code)
		if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && in || r.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn && !in {
			return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d", e.Container, namespace, p.Name, e.Code), true
		}
	}
	return "", false
}

func conditions(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern, namespace string, p events.Pod) (why string, ok bool) {
	for _, c := range p.Conditions {
		for _, pattern := range patterns {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %s", namespace, p.Name, c.Type), true
			}
		}
	}
	return "", false
}
